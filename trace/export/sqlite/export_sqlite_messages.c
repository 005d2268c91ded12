/* SPDX-License-Identifier: MIT */
/* export_sqlite_messages.c - see export_sqlite_messages.h. */
#include "trace/export/sqlite/export_sqlite_messages.h"

#include "base/vec.h"
#include "trace/messages/mpi.h"

const char export_sqlite_messages_tables[] =
	/* received: NULL where it is not known when, or whether */
	"CREATE TABLE message(trace_id INT REFERENCES trace, from_thread INT, to_thread INT, from_rank INT,"
	" to_rank INT, communicator INT, tag INT, bytes INT, sent INT, posted INT, received INT,"
	" FOREIGN KEY(trace_id, from_thread) REFERENCES thread,"
	" FOREIGN KEY(trace_id, to_thread) REFERENCES thread);\n"
	"CREATE TABLE mpi_wait(trace_id INT REFERENCES trace, thread_id INT, for_thread INT, why TEXT, start INT,"
	" stop INT, FOREIGN KEY(trace_id, thread_id) REFERENCES thread,"
	" FOREIGN KEY(trace_id, for_thread) REFERENCES thread);\n";

#define NS(tick) "CAST(" tick " * t.tick_ns AS INT)"

const char export_sqlite_messages_views[] =
	"CREATE INDEX message_sent ON message(trace_id, sent);\n"
	"CREATE VIEW messages AS SELECT m.trace_id, " NS("m.sent") " AS sent_ns, " NS(
		"m.posted") " AS posted_ns,"
			    " " NS("m.received") " AS received_ns, m.from_rank, m.to_rank, a.process_id AS from_process,"
						 " b.process_id AS to_process, m.communicator, m.tag, m.bytes FROM message m"
						 " JOIN thread a ON a.trace_id = m.trace_id AND a.thread_id = m.from_thread"
						 " JOIN thread b ON b.trace_id = m.trace_id AND b.thread_id = m.to_thread"
						 " JOIN trace t ON t.trace_id = m.trace_id;\n"
						 "CREATE VIEW message_matrix AS SELECT trace_id, from_process, to_process, count(*) AS messages,"
						 " sum(bytes) AS bytes, sum(received_ns - sent_ns) AS total_ns, min(received_ns - sent_ns) AS min_ns,"
						 " max(received_ns - sent_ns) AS max_ns FROM messages GROUP BY trace_id, from_process, to_process;\n";

struct fill {
	const struct trace *t;
	int64_t trace_id;
	sqlite3_stmt *message, *wait;
	int error;
};

static int64_t tick_of(const struct fill *f, uint64_t tsc)
{
	return (int64_t)(tsc - f->t->start_tsc);
}

static void step(struct fill *f, sqlite3_stmt *s)
{
	sqlite3_step(s);
	f->error = sqlite3_reset(s);
}

static void on_message(void *arg, const struct mpi_message *m)
{
	struct fill *f = arg;
	const int64_t values[] = {f->trace_id,
				  m->from,
				  m->to,
				  m->from_rank,
				  m->to_rank,
				  m->comm,
				  m->tag,
				  (int64_t)m->bytes,
				  tick_of(f, m->sent),
				  tick_of(f, m->posted),
				  tick_of(f, m->received)};
	const int n = (int)(sizeof(values) / sizeof(*values));

	if (f->error)
		return;
	for (int i = 0; i < n; i++)
		sqlite3_bind_int64(f->message, i + 1, values[i]);
	if (m->bytes == UINT64_MAX)
		sqlite3_bind_null(f->message, 8);
	if (!m->received)
		sqlite3_bind_null(f->message, n);
	step(f, f->message);
}

static void on_wait(void *arg, const struct mpi_wait *w)
{
	static const char *const whys[MPI_WHYS] = {[MPI_LATE_SENDER] = "late sender",
						   [MPI_LATE_RECEIVER] = "late receiver",
						   [MPI_LATE_AT_COLLECTIVE] = "late at collective"};
	struct fill *f = arg;

	if (f->error)
		return;
	sqlite3_bind_int64(f->wait, 1, f->trace_id);
	sqlite3_bind_int64(f->wait, 2, w->who);
	sqlite3_bind_int64(f->wait, 3, w->by);
	sqlite3_bind_text(f->wait, 4, whys[w->why], -1, SQLITE_STATIC);
	sqlite3_bind_int64(f->wait, 5, tick_of(f, w->since));
	sqlite3_bind_int64(f->wait, 6, tick_of(f, w->until));
	step(f, f->wait);
}

int export_sqlite_messages(sqlite3 *db, int64_t trace_id, const struct trace *t)
{
	struct fill f = {.t = t, .trace_id = trace_id};

	if (!mpi_has(t))
		return SQLITE_OK;
	f.error = sqlite3_prepare_v2(db, "INSERT INTO message VALUES(?,?,?,?,?,?,?,?,?,?,?)", -1,
				     &f.message, NULL);
	if (!f.error)
		f.error = sqlite3_prepare_v2(db, "INSERT INTO mpi_wait VALUES(?,?,?,?,?,?)", -1,
					     &f.wait, NULL);
	if (!f.error)
		mpi_read(t, &(struct mpi_sink){&f, on_message, on_wait, NULL}, NULL, NULL);
	sqlite3_finalize(f.message);
	sqlite3_finalize(f.wait);
	return f.error;
}

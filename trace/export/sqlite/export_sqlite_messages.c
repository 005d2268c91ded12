/* SPDX-License-Identifier: MIT */
/* export_sqlite_messages.c - see export_sqlite_messages.h. */
#include "trace/export/sqlite/export_sqlite_messages.h"

#include "base/vec.h"
#include "trace/messages/messages.h"

const char export_sqlite_messages_tables[] =
	/* NULL: MPI's have no connection and offset, TCP's none of the columns from from_rank to tag; received: where it
	 * is not known when, or whether */
	"CREATE TABLE message(trace_id INT REFERENCES trace, kind TEXT, from_thread INT, to_thread INT,"
	" from_rank INT, to_rank INT, communicator INT, tag INT, connection INT, offset INT, bytes INT,"
	" sent INT, posted INT, received INT,"
	" FOREIGN KEY(trace_id, from_thread) REFERENCES thread,"
	" FOREIGN KEY(trace_id, to_thread) REFERENCES thread);\n"
	"CREATE TABLE message_wait(trace_id INT REFERENCES trace, thread_id INT, for_thread INT, why TEXT, start INT,"
	" stop INT, FOREIGN KEY(trace_id, thread_id) REFERENCES thread,"
	" FOREIGN KEY(trace_id, for_thread) REFERENCES thread);\n";

#define NS(tick, name) "CAST(" tick " * t.tick_ns AS INT) AS " name

const char export_sqlite_messages_views[] =
	"CREATE INDEX message_sent ON message(trace_id, sent);\n"
	"CREATE VIEW messages AS SELECT m.trace_id, m.kind, " NS("m.sent", "sent_ns, ") NS(
		"m.posted", "posted_ns, ")
		NS("m.received",
		   "received_ns,") " m.from_rank, m.to_rank, a.process_id AS from_process, b.process_id AS to_process,"
				   " m.communicator, m.tag, m.connection, m.offset, m.bytes FROM message m"
				   " JOIN thread a ON a.trace_id = m.trace_id AND a.thread_id = m.from_thread"
				   " JOIN thread b ON b.trace_id = m.trace_id AND b.thread_id = m.to_thread"
				   " JOIN trace t ON t.trace_id = m.trace_id;\n"
				   "CREATE VIEW message_matrix AS SELECT trace_id, kind, from_process, to_process, count(*) AS messages,"
				   " sum(bytes) AS bytes, sum(received_ns - sent_ns) AS total_ns, min(received_ns - sent_ns) AS min_ns,"
				   " max(received_ns - sent_ns) AS max_ns FROM messages GROUP BY trace_id, kind, from_process, to_process;\n";

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

static void bind(sqlite3_stmt *s, int at, bool is_known, int64_t value)
{
	if (is_known)
		sqlite3_bind_int64(s, at, value);
	else
		sqlite3_bind_null(s, at);
}

static void on_message(void *arg, const struct message *m)
{
	struct fill *f = arg;
	const bool is_mpi = m->kind == MESSAGE_MPI, is_tcp = m->kind == MESSAGE_TCP;
	const struct {
		bool is_known;
		int64_t value;
	} columns[] = {{true, m->from},
		       {true, m->to},
		       {is_mpi, m->from_rank},
		       {is_mpi, m->to_rank},
		       {is_mpi, m->comm},
		       {is_mpi, m->tag},
		       {is_tcp, m->comm},
		       {is_tcp, (int64_t)m->offset},
		       {m->bytes != UINT64_MAX, (int64_t)m->bytes},
		       {true, tick_of(f, m->sent)},
		       {true, tick_of(f, m->posted)},
		       {m->received != 0, tick_of(f, m->received)}};

	if (f->error)
		return;
	sqlite3_bind_int64(f->message, 1, f->trace_id);
	sqlite3_bind_text(f->message, 2, message_kinds[m->kind], -1, SQLITE_STATIC);
	for (int i = 0; i < (int)(sizeof(columns) / sizeof(*columns)); i++)
		bind(f->message, i + 3, columns[i].is_known, columns[i].value);
	step(f, f->message);
}

static void on_wait(void *arg, const struct message_wait *w)
{
	static const char *const whys[MESSAGE_WHYS] = {[MESSAGE_LATE_SENDER] = "late sender",
						       [MESSAGE_LATE_RECEIVER] = "late receiver",
						       [MESSAGE_LATE_AT_COLLECTIVE] =
							       "late at collective"};
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

	if (!messages_has(t))
		return SQLITE_OK;
	f.error = sqlite3_prepare_v2(db, "INSERT INTO message VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
				     -1, &f.message, NULL);
	if (!f.error)
		f.error = sqlite3_prepare_v2(db, "INSERT INTO message_wait VALUES(?,?,?,?,?,?)", -1,
					     &f.wait, NULL);
	if (!f.error)
		messages_read(
			t,
			&(struct message_sink){.arg = &f, .message = on_message, .wait = on_wait},
			NULL, NULL, NULL);
	sqlite3_finalize(f.message);
	sqlite3_finalize(f.wait);
	return f.error;
}

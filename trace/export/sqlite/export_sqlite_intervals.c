/* SPDX-License-Identifier: MIT */
/* export_sqlite_intervals.c - see export_sqlite_intervals.h. */
#include "trace/export/sqlite/export_sqlite_intervals.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "trace/export/export_table.h"
#include "trace/monitor/monitored.h"
#include "trace/text.h"

const char export_sqlite_intervals_tables[] =
	/* of: program, processes, board; node: as the column of Parquet has it */
	"CREATE TABLE monitor(trace_id INT REFERENCES trace, monitor_id INT, node INT, of TEXT, command TEXT,"
	" every_ns INT, freezes INT, PRIMARY KEY(trace_id, monitor_id)) WITHOUT ROWID;\n"
	"CREATE TABLE monitor_column(trace_id INT, monitor_id INT, column_id INT, name TEXT NOT NULL,"
	" kind TEXT NOT NULL, PRIMARY KEY(trace_id, monitor_id, column_id),"
	" FOREIGN KEY(trace_id, monitor_id) REFERENCES monitor) WITHOUT ROWID;\n"
	/* stopped and the following: NULL where the program is not stopped at the end of each */
	"CREATE TABLE monitor_interval(trace_id INT, monitor_id INT, interval_id INT, start INT, stop INT,"
	" ns INT, stopped INT, stood_ns INT, skew_ns INT, threads INT,"
	" PRIMARY KEY(trace_id, monitor_id, interval_id),"
	" FOREIGN KEY(trace_id, monitor_id) REFERENCES monitor) WITHOUT ROWID;\n"
	/* value: NULL: not known; whole: of a percentage, ticks, of which value are it; else NULL */
	"CREATE TABLE monitor_value(trace_id INT, monitor_id INT, interval_id INT, column_id INT, value, whole INT,"
	" estimate INT, overrun INT, PRIMARY KEY(trace_id, monitor_id, interval_id, column_id),"
	" FOREIGN KEY(trace_id, monitor_id, interval_id) REFERENCES monitor_interval,"
	" FOREIGN KEY(trace_id, monitor_id, column_id) REFERENCES monitor_column) WITHOUT ROWID;\n";

const char export_sqlite_intervals_views[] =
	"CREATE VIEW monitor_intervals AS SELECT i.trace_id, i.monitor_id, i.interval_id,"
	" CAST(i.start * t.tick_ns AS INT) AS start_ns, CAST(i.stop * t.tick_ns AS INT) AS stop_ns,"
	" i.ns AS duration_ns, i.stopped, i.stood_ns, i.skew_ns, i.threads, m.node, m.command"
	" FROM monitor_interval i JOIN monitor m USING(trace_id, monitor_id) JOIN trace t USING(trace_id);\n"
	"CREATE VIEW counters AS SELECT v.trace_id, v.monitor_id, v.interval_id, i.start_ns, i.stop_ns, i.duration_ns,"
	" c.name, c.kind, CASE WHEN v.whole IS NULL THEN v.value ELSE 100.0 * v.value / v.whole END AS value,"
	" v.estimate, v.overrun FROM monitor_value v JOIN monitor_intervals i USING(trace_id, monitor_id, interval_id)"
	" JOIN monitor_column c USING(trace_id, monitor_id, column_id);\n";

struct fill {
	sqlite3 *db;
	int error;
	int64_t trace_id, monitor_id;
	const struct trace *t;
	uint32_t part;
	sqlite3_stmt *monitor, *column, *interval, *value;
};

static void prepare(struct fill *f, sqlite3_stmt **s, const char *sql)
{
	if (!f->error)
		f->error = sqlite3_prepare_v2(f->db, sql, -1, s, NULL);
}

static void add(struct fill *f, sqlite3_stmt *s)
{
	if (f->error)
		return;
	sqlite3_bind_int64(s, 1, f->trace_id);
	sqlite3_bind_int64(s, 2, f->monitor_id);
	sqlite3_step(s);
	f->error = sqlite3_reset(s);
}

static void bind_text(sqlite3_stmt *s, int at, const char *text)
{
	char *shown = text_shown(text ? text : "");

	sqlite3_bind_text(s, at, shown, -1, SQLITE_TRANSIENT);
	xfree(shown);
}

/* ---- what is watched ---- */

static void put_monitor(struct fill *f, const struct monitored *m)
{
	const struct trace *t = trace_part(f->t, f->part);

	sqlite3_bind_int64(f->monitor, 3, export_table_node(f->t, f->part));
	bind_text(f->monitor, 4, trace_session(t, "monitor"));
	bind_text(f->monitor, 5, trace_session(t, "command"));
	sqlite3_bind_int64(f->monitor, 6, (int64_t)m->every_ns);
	sqlite3_bind_int64(f->monitor, 7, m->freezes);
	add(f, f->monitor);
	for (size_t i = 0; i < m->columns.v.n; i++) {
		sqlite3_bind_int64(f->column, 3, (int64_t)i);
		bind_text(f->column, 4, m->columns.v.v[i].name);
		sqlite3_bind_text(f->column, 5, monitored_kind(m->columns.v.v[i].kind), -1,
				  SQLITE_STATIC);
		add(f, f->column);
	}
}

/* ---- rows ---- */

static int64_t tick_at(const struct fill *f, uint64_t ns)
{
	return (int64_t)(trace_part_at(f->t, f->part, ns) - f->t->start_tsc);
}

/* A natural number that SQLite's have no room for is a text, as values of probes are. */
static void bind_value(sqlite3_stmt *s, int at, const struct column *c, const struct reading *r)
{
	char text[24];
	double d;

	if (!r->known || (c->kind == READING_PERCENT && !r->of)) {
		sqlite3_bind_null(s, at);
	} else if (c->type == VALUE_DOUBLE) {
		memcpy(&d, &r->n, sizeof(d));
		sqlite3_bind_double(s, at, d);
	} else if (c->type == VALUE_SIGNED || r->n <= INT64_MAX) {
		sqlite3_bind_int64(s, at, (int64_t)r->n);
	} else {
		snprintf(text, sizeof(text), "%" PRIu64, r->n);
		sqlite3_bind_text(s, at, text, -1, SQLITE_TRANSIENT);
	}
}

static void put_value(struct fill *f, int64_t interval, size_t i, const struct column *c,
		      const struct reading *r)
{
	sqlite3_stmt *s = f->value;

	sqlite3_bind_int64(s, 3, interval);
	sqlite3_bind_int64(s, 4, (int64_t)i);
	bind_value(s, 5, c, r);
	if (c->kind == READING_PERCENT)
		sqlite3_bind_int64(s, 6, (int64_t)r->of);
	else
		sqlite3_bind_null(s, 6);
	sqlite3_bind_int64(s, 7, r->is_estimate);
	sqlite3_bind_int64(s, 8, r->has_overrun);
	add(f, s);
}

static void put_interval(struct fill *f, const struct monitored *m, const struct monitor_row *row,
			 int64_t interval)
{
	sqlite3_stmt *s = f->interval;

	sqlite3_bind_int64(s, 3, interval);
	sqlite3_bind_int64(s, 4, tick_at(f, row->from_ns));
	sqlite3_bind_int64(s, 5, tick_at(f, row->to_ns));
	sqlite3_bind_int64(s, 6, (int64_t)(row->to_ns - row->from_ns));
	if (m->freezes) {
		sqlite3_bind_int64(s, 7, row->was_frozen);
		sqlite3_bind_int64(s, 8, (int64_t)row->stood_ns);
		sqlite3_bind_int64(s, 9, (int64_t)row->skew_ns);
		sqlite3_bind_int64(s, 10, row->threads);
	} else {
		for (int at = 7; at <= 10; at++)
			sqlite3_bind_null(s, at);
	}
	add(f, s);
	for (size_t i = 0; i < m->columns.v.n && !f->error; i++)
		put_value(f, interval, i, &m->columns.v.v[i], &row->v[i]);
}

static void put_part(struct fill *f)
{
	struct monitor_row row;
	struct monitored m;
	int64_t n = 0;

	if (!monitored_open(&m, trace_part(f->t, f->part)))
		return;
	put_monitor(f, &m);
	while (!f->error && monitored_next(&m, &row))
		put_interval(f, &m, &row, n++);
	monitored_close(&m);
	f->monitor_id++;
}

int export_sqlite_intervals(sqlite3 *db, int64_t trace_id, const struct trace *t)
{
	struct fill f = {.db = db, .trace_id = trace_id, .t = t};

	prepare(&f, &f.monitor, "INSERT INTO monitor VALUES(?,?,?,?,?,?,?)");
	prepare(&f, &f.column, "INSERT INTO monitor_column VALUES(?,?,?,?,?)");
	prepare(&f, &f.interval, "INSERT INTO monitor_interval VALUES(?,?,?,?,?,?,?,?,?,?)");
	prepare(&f, &f.value, "INSERT INTO monitor_value VALUES(?,?,?,?,?,?,?,?)");
	for (; f.part < trace_parts(t) && !f.error; f.part++)
		put_part(&f);
	sqlite3_finalize(f.monitor);
	sqlite3_finalize(f.column);
	sqlite3_finalize(f.interval);
	sqlite3_finalize(f.value);
	return f.error;
}

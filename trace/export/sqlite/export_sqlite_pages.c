/* SPDX-License-Identifier: MIT */
/* export_sqlite_pages.c - see export_sqlite_pages.h. */
#include "trace/export/sqlite/export_sqlite_pages.h"

#include <stdlib.h>
#include <string.h>

#include "trace/pages.h"
#include "trace/text.h"

const char export_sqlite_pages_tables[] =
	/* process_id: NULL in older traces, which know the pid only; what is not mapped any more keeps its name */
	"CREATE TABLE mapping(trace_id INT REFERENCES trace, mapping_id INT, process_id INT, pid INT, start INT, stop INT,"
	" file_offset INT, name TEXT, PRIMARY KEY(trace_id, mapping_id),"
	" FOREIGN KEY(trace_id, process_id) REFERENCES process) WITHOUT ROWID;\n"
	/*
	 * node: NULL where it is not known; mapping_id: NULL where kron saw none; mixed: 1 where other mappings had the
	 * address at another time, and what was counted is of all
	 */
	"CREATE TABLE page(trace_id INT REFERENCES trace, process_id INT, address INT, size INT, tid INT, node INT,"
	" reads INT, writes INT, mapping_id INT, mixed INT, FOREIGN KEY(trace_id, process_id) REFERENCES process);\n"
	/* kron pages --by function; function_id: NULL where the trace has no name */
	"CREATE TABLE page_function(trace_id INT REFERENCES trace, process_id INT, address INT, function_id INT,"
	" reads INT, writes INT, FOREIGN KEY(trace_id, process_id) REFERENCES process,"
	" FOREIGN KEY(trace_id, function_id) REFERENCES function);\n"
	"CREATE TABLE page_look(trace_id INT REFERENCES trace, look_id INT, start INT, stop INT,"
	" PRIMARY KEY(trace_id, look_id)) WITHOUT ROWID;\n"
	"CREATE TABLE page_step(trace_id INT REFERENCES trace, look_id INT, process_id INT, address INT,"
	" reads INT, writes INT, FOREIGN KEY(trace_id, look_id) REFERENCES page_look);\n"
	/* where a page was when it was last looked for */
	"CREATE TABLE page_home(trace_id INT REFERENCES trace, process_id INT, address INT, node INT);\n"
	/* error: 0, or the system's number; rehearsal: nothing was moved; local, remote: references that led to it */
	"CREATE TABLE page_move(trace_id INT REFERENCES trace, tick INT, process_id INT, address INT,"
	" from_node INT, to_node INT, error INT, rehearsal INT, local INT, remote INT);\n";

/* Addresses are texts in views: as numbers nobody can read them. */
const char export_sqlite_pages_views[] =
	"CREATE INDEX page_place ON page(trace_id, process_id, address);\n"
	"CREATE INDEX page_function_place ON page_function(trace_id, process_id, address);\n"
	"CREATE INDEX page_step_place ON page_step(trace_id, process_id, address);\n"
	"CREATE INDEX page_home_place ON page_home(trace_id, process_id, address);\n"
	"CREATE VIEW pages AS SELECT g.trace_id, g.process_id, p.pid, printf('0x%x', g.address) AS address,"
	" m.name AS mapping, g.size, sum(g.reads) AS reads, sum(g.writes) AS writes,"
	" count(DISTINCT g.tid) AS threads, count(DISTINCT CASE WHEN g.writes THEN g.tid END) AS writers,"
	" (SELECT h.node FROM page_home h WHERE h.trace_id = g.trace_id AND h.process_id = g.process_id"
	" AND h.address = g.address - g.address % 4096) AS home, max(g.mixed) AS mixed"
	" FROM page g JOIN process p USING(trace_id, process_id)"
	" LEFT JOIN mapping m USING(trace_id, mapping_id) GROUP BY g.trace_id, g.process_id, g.address;\n"
	"CREATE VIEW page_functions AS SELECT g.trace_id, g.process_id, p.pid, printf('0x%x', g.address) AS address,"
	" f.name AS function, m.path AS module, g.reads, g.writes"
	" FROM page_function g JOIN process p USING(trace_id, process_id)"
	" LEFT JOIN function f USING(trace_id, function_id) LEFT JOIN module m USING(trace_id, module_id);\n"
	"CREATE VIEW page_steps AS SELECT s.trace_id, s.look_id, CAST(l.start * t.tick_ns AS INT) AS start_ns,"
	" CAST(l.stop * t.tick_ns AS INT) AS stop_ns, s.process_id, p.pid,"
	" printf('0x%x', s.address) AS address, s.reads, s.writes FROM page_step s"
	" JOIN page_look l USING(trace_id, look_id) JOIN process p USING(trace_id, process_id)"
	" JOIN trace t USING(trace_id);\n"
	"CREATE VIEW page_moves AS SELECT m.trace_id, CAST(m.tick * t.tick_ns AS INT) AS time_ns, m.process_id,"
	" p.pid, printf('0x%x', m.address) AS address, m.from_node, m.to_node, m.error, m.rehearsal, m.local,"
	" m.remote FROM page_move m JOIN process p USING(trace_id, process_id) JOIN trace t USING(trace_id);\n";

#define NONE INT64_MIN /* NULL */

struct fill {
	sqlite3 *db;
	int error;
	int64_t trace_id;
	const struct trace *t;
	/* of the part that goes in */
	uint32_t part;
	const struct trace_pages *p;
	int64_t mappings, looks; /* of the parts before it */
};

/* ---- SQLite ---- */

static sqlite3_stmt *prepare(struct fill *f, const char *sql)
{
	sqlite3_stmt *s = NULL;

	if (!f->error)
		f->error = sqlite3_prepare_v2(f->db, sql, -1, &s, NULL);
	return s;
}

/* A row of numbers, after the trace's. */
#define ROW(f, s, ...) \
	put_row(f, s, (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / 8)

static void put_row(struct fill *f, sqlite3_stmt *s, const int64_t *values, int n)
{
	if (f->error)
		return;
	sqlite3_bind_int64(s, 1, f->trace_id);
	for (int i = 0; i < n; i++) {
		if (values[i] == NONE)
			sqlite3_bind_null(s, i + 2);
		else
			sqlite3_bind_int64(s, i + 2, values[i]);
	}
	sqlite3_step(s);
	f->error = sqlite3_reset(s);
}

/* ---- what the trace has ---- */

static int64_t process_of(const struct fill *f, uint32_t uid)
{
	const uint32_t id = trace_part_process(f->t, f->part, uid);

	return id ? (int64_t)id : NONE;
}

static int64_t node_of(int node)
{
	return node == TRACE_NODE_UNKNOWN ? NONE : node;
}

static int64_t tick_at(const struct fill *f, uint64_t ns)
{
	return (int64_t)(trace_part_at(f->t, f->part, ns) - f->t->start_tsc);
}

static void put_mappings(struct fill *f)
{
	sqlite3_stmt *s = prepare(f, "INSERT INTO mapping VALUES(?1,?2,?3,?4,?5,?6,?7,?8)");

	for (size_t i = 0; i < f->p->maps.n && !f->error; i++) {
		const struct trace_mapping *m = &f->p->maps.v[i];
		char *name = text_shown(trace_mapping_name(m));

		sqlite3_bind_text(s, 8, name, -1, SQLITE_TRANSIENT);
		ROW(f, s, f->mappings + (int64_t)i, m->uid ? process_of(f, m->uid) : NONE, m->pid,
		    (int64_t)m->start, (int64_t)m->end, (int64_t)m->offset);
		xfree(name);
	}
	sqlite3_finalize(s);
}

static void put_pages(struct fill *f)
{
	sqlite3_stmt *s = prepare(f, "INSERT INTO page VALUES(?,?,?,?,?,?,?,?,?,?)");

	for (size_t i = 0; i < f->p->v.n && !f->error; i++) {
		const struct trace_page *p = &f->p->v.v[i];
		const struct trace_proc *proc = trace_proc_of(trace_part(f->t, f->part), p->uid);
		const uint32_t pid = proc ? (uint32_t)proc->pid : 0;
		const struct trace_mapping *m =
			proc ? trace_pages_mapping(f->p, p->uid, pid, p->address) : NULL;

		ROW(f, s, process_of(f, p->uid), (int64_t)p->address, f->p->unit, p->tid,
		    node_of(p->node), (int64_t)p->reads, (int64_t)p->writes,
		    m ? f->mappings + (m - f->p->maps.v) : NONE,
		    m && trace_pages_are_mixed(f->p, m, p->uid, pid, p->address));
	}
	sqlite3_finalize(s);
}

static void put_functions(struct fill *f)
{
	sqlite3_stmt *s = prepare(f, "INSERT INTO page_function VALUES(?,?,?,?,?,?)");

	for (size_t i = 0; i < f->p->functions.n && !f->error; i++) {
		const struct trace_page_function *p = &f->p->functions.v[i];
		const struct trace_function *of = trace_part_function(f->t, f->part, p->function);

		ROW(f, s, process_of(f, p->uid), (int64_t)p->address, of ? (int64_t)of->n : NONE,
		    (int64_t)p->reads, (int64_t)p->writes);
	}
	sqlite3_finalize(s);
}

static void put_steps(struct fill *f)
{
	sqlite3_stmt *look = prepare(f, "INSERT INTO page_look VALUES(?,?,?,?)");
	sqlite3_stmt *step = prepare(f, "INSERT INTO page_step VALUES(?,?,?,?,?,?)");

	for (size_t i = 0; i < f->p->looks.n && !f->error; i++)
		ROW(f, look, f->looks + (int64_t)i, tick_at(f, i ? f->p->looks.v[i - 1] : 0),
		    tick_at(f, f->p->looks.v[i]));
	for (size_t i = 0; i < f->p->steps.n && !f->error; i++) {
		const struct trace_page_step *p = &f->p->steps.v[i];

		ROW(f, step, f->looks + p->look, process_of(f, p->uid), (int64_t)p->address,
		    (int64_t)p->reads, (int64_t)p->writes);
	}
	sqlite3_finalize(look);
	sqlite3_finalize(step);
}

static void put_places(struct fill *f)
{
	sqlite3_stmt *home = prepare(f, "INSERT INTO page_home VALUES(?,?,?,?)");
	sqlite3_stmt *move = prepare(f, "INSERT INTO page_move VALUES(?,?,?,?,?,?,?,?,?,?)");

	for (size_t i = 0; i < f->p->homes.n && !f->error; i++) {
		const struct trace_page_home *h = &f->p->homes.v[i];

		ROW(f, home, process_of(f, h->uid), (int64_t)h->address, node_of(h->node));
	}
	for (size_t i = 0; i < f->p->moves.n && !f->error; i++) {
		const struct trace_page_move *m = &f->p->moves.v[i];

		ROW(f, move, tick_at(f, m->ns), process_of(f, m->uid), (int64_t)m->address,
		    node_of(m->from), node_of(m->to), m->code < 0 ? -m->code : 0, m->code > 0,
		    (int64_t)m->local, (int64_t)m->remote);
	}
	sqlite3_finalize(home);
	sqlite3_finalize(move);
}

int export_sqlite_pages(sqlite3 *db, int64_t trace_id, const struct trace *t)
{
	struct fill f = {.db = db, .trace_id = trace_id, .t = t};
	struct trace_pages pages;
	struct err err;

	for (; f.part < trace_parts(t); f.part++) {
		if (trace_pages_read(&pages, trace_part(t, f.part)->dir, &err))
			continue;
		f.p = &pages;
		put_mappings(&f);
		put_pages(&f);
		put_functions(&f);
		put_steps(&f);
		put_places(&f);
		f.mappings += (int64_t)pages.maps.n;
		f.looks += (int64_t)pages.looks.n;
		trace_pages_free(&pages);
	}
	return f.error;
}

/* SPDX-License-Identifier: MIT */
/*
 * export_sqlite_schema.h - the tables of a trace database.
 *
 *   trace ─┬─ session, event, module ── function ◄── node ◄──┐
 *          ├─ process ── thread ◄──┐                  │
 *          └─ sample (every sample, by time) ◄── call (an entry, its exit, its caller)
 *                                            ◄── orphan (an exit without an entry)
 *                                            ◄── loss, migration (records of the runtime)
 *                                            ◄── event_value (an event's value that is not whole)
 *   thread ◄── switch (every context switch, by time), off (when a thread was off the CPUs)
 *   process ◄── page and what belongs to it: export_sqlite_pages.h
 *   trace ◄── monitor and what belongs to it: export_sqlite_intervals.h
 *
 * The key of every table begins with trace_id, that of a sample's tables goes on with
 * sample_id.  Times are ticks of the trace's clock since its start; trace.tick_ns makes
 * nanoseconds of them, and the views give nothing else.
 */
#ifndef TRACE_EXPORT_SQLITE_SCHEMA_H
#define TRACE_EXPORT_SQLITE_SCHEMA_H

#define SCHEMA_APPLICATION 0x6b726f6e /* "kron", in the database's header */
#define SCHEMA_VERSION 9

/* Numbers of sample.type */
enum { TYPE_ENTRY, TYPE_EXIT, TYPE_LOSS, TYPE_CPU, TYPE_OTHER, TYPE_EVENT };

static const char schema_tables[] =
	"CREATE TABLE trace(trace_id INTEGER PRIMARY KEY, tick_ns REAL NOT NULL,"
	" first_tick INT, last_tick INT, samples INT, lost INT, cut_off INT, complete INT);\n"
	"CREATE TABLE session(trace_id INT REFERENCES trace, key TEXT, value TEXT,"
	" PRIMARY KEY(trace_id, key)) WITHOUT ROWID;\n"
	"CREATE TABLE module(trace_id INT REFERENCES trace, module_id INT, path TEXT,"
	" build_id TEXT, PRIMARY KEY(trace_id, module_id)) WITHOUT ROWID;\n"
	"CREATE TABLE function(trace_id INT REFERENCES trace, function_id INT, module_id INT,"
	" address INT, size INT, name TEXT NOT NULL, level INT,"
	" PRIMARY KEY(trace_id, function_id),"
	" FOREIGN KEY(trace_id, module_id) REFERENCES module) WITHOUT ROWID;\n"
	/* of probes that users placed: their samples have this number, type 5 */
	"CREATE TABLE event(trace_id INT REFERENCES trace, event INT, name TEXT NOT NULL, level INT,"
	" payload TEXT, payload_type TEXT, PRIMARY KEY(trace_id, event)) WITHOUT ROWID;\n"
	/* node: which of several traces that were read as one; else NULL */
	"CREATE TABLE process(trace_id INT REFERENCES trace, process_id INT, pid INT,"
	" parent_id INT, by_fork INT, start INT, stop INT, lost INT, cut_off INT, exe TEXT,"
	" cmdline TEXT, note TEXT, node TEXT, PRIMARY KEY(trace_id, process_id)) WITHOUT ROWID;\n"
	"CREATE TABLE thread(trace_id INT REFERENCES trace, thread_id INT, process_id INT,"
	" tid INT, source INT, name TEXT, first INT, last INT, PRIMARY KEY(trace_id, thread_id),"
	" FOREIGN KEY(trace_id, process_id) REFERENCES process) WITHOUT ROWID;\n"
	"CREATE TABLE sample_type(type INTEGER PRIMARY KEY, name TEXT);\n"
	"INSERT INTO sample_type VALUES(0,'entry'),(1,'exit'),(2,'loss'),(3,'cpu'),(4,'other'),(5,'event');\n"
	"CREATE TABLE sample(trace_id INT REFERENCES trace, sample_id INT,"
	" type INT REFERENCES sample_type, thread_id INT, cpu INT, tick INT, head INT,"
	" event INT, data, PRIMARY KEY(trace_id, sample_id),"
	" FOREIGN KEY(trace_id, thread_id) REFERENCES thread) WITHOUT ROWID;\n"
	/* state: cut, a text that went on; half, the low one of 64 bits; unreadable.  All others are whole. */
	"CREATE TABLE event_value(trace_id INT, sample_id INT, state TEXT,"
	" PRIMARY KEY(trace_id, sample_id), FOREIGN KEY(trace_id, sample_id) REFERENCES sample)"
	" WITHOUT ROWID;\n"
	"CREATE TABLE node(trace_id INT REFERENCES trace, node_id INT, parent_id INT,"
	" function_id INT, depth INT, calls INT, total INT, self INT,"
	" PRIMARY KEY(trace_id, node_id), FOREIGN KEY(trace_id, parent_id) REFERENCES node,"
	" FOREIGN KEY(trace_id, function_id) REFERENCES function) WITHOUT ROWID;\n"
	/* sample_id: of the entry; exit_id: of its exit, also by a jump, after which the call goes on;
	 * end: 0 exit, 1 inferred, 2 still running; off: ticks off the CPUs */
	"CREATE TABLE call(trace_id INT, sample_id INT, exit_id INT, parent_id INT, node_id INT,"
	" ticks INT, self INT, end INT, recursive INT, spans_loss INT, off INT,"
	" PRIMARY KEY(trace_id, sample_id), FOREIGN KEY(trace_id, sample_id) REFERENCES sample,"
	" FOREIGN KEY(trace_id, exit_id) REFERENCES sample,"
	" FOREIGN KEY(trace_id, parent_id) REFERENCES call,"
	" FOREIGN KEY(trace_id, node_id) REFERENCES node) WITHOUT ROWID;\n"
	"CREATE TABLE orphan(trace_id INT, sample_id INT, function_id INT,"
	" PRIMARY KEY(trace_id, sample_id), FOREIGN KEY(trace_id, sample_id) REFERENCES sample,"
	" FOREIGN KEY(trace_id, function_id) REFERENCES function) WITHOUT ROWID;\n"
	"CREATE TABLE loss(trace_id INT, sample_id INT, lost INT,"
	" PRIMARY KEY(trace_id, sample_id),"
	" FOREIGN KEY(trace_id, sample_id) REFERENCES sample) WITHOUT ROWID;\n"
	"CREATE TABLE migration(trace_id INT, sample_id INT, from_cpu INT, to_cpu INT,"
	" PRIMARY KEY(trace_id, sample_id),"
	" FOREIGN KEY(trace_id, sample_id) REFERENCES sample) WITHOUT ROWID;\n"
	/* from the first to the last of a thread's samples that came one after another on a CPU */
	"CREATE TABLE stay(trace_id INT, cpu INT, start INT, stop INT, thread_id INT,"
	" samples INT, FOREIGN KEY(trace_id, thread_id) REFERENCES thread);\n"
	"CREATE TABLE switch_kind(kind INTEGER PRIMARY KEY, name TEXT);\n"
	"INSERT INTO switch_kind VALUES(1,'in'),(2,'out'),(3,'preempted'),(4,'lost');\n"
	/* lost: in the place of tid how many; thread_id: NULL where the thread has no samples */
	"CREATE TABLE switch(trace_id INT REFERENCES trace, switch_id INT,"
	" kind INT REFERENCES switch_kind, tick INT, cpu INT, tid INT, thread_id INT,"
	" PRIMARY KEY(trace_id, switch_id),"
	" FOREIGN KEY(trace_id, thread_id) REFERENCES thread) WITHOUT ROWID;\n"
	/* between a thread's first sample and its last, or the end of what it was in */
	"CREATE TABLE off(trace_id INT, thread_id INT, start INT, stop INT, preempted INT,"
	" from_cpu INT, to_cpu INT, FOREIGN KEY(trace_id, thread_id) REFERENCES thread);\n";

static const char schema_indexes[] =
	"CREATE INDEX call_exit ON call(trace_id, exit_id) WHERE exit_id IS NOT NULL;\n"
	"CREATE INDEX node_parent ON node(trace_id, parent_id);\n"
	"CREATE INDEX call_node ON call(trace_id, node_id);\n"
	"CREATE INDEX off_thread ON off(trace_id, thread_id, start);\n";

#define NS(x) "CAST(" x " * t.tick_ns AS INT)"
/* So many ticks from a moment on: not short on average, as what is cut off at its end only would be. */
#define SPAN_NS(from, ticks) "(" NS("(" from " + " ticks ")") " - " NS(from) ")"
/* clang-format takes the macros for calls. */
/* clang-format off */
static const char schema_views[] =
	/* as kron report: total of outermost calls; min, avg, max without calls across a loss, min without those that ran on */
	"CREATE VIEW functions AS SELECT f.trace_id, f.function_id, f.name AS function,"
	" m.path AS module, s.calls, " NS("s.total") " AS total_ns, " NS("s.self") " AS self_ns, " NS("s.min")
	" AS min_ns, " NS("s.avg") " AS avg_ns, " NS("s.max") " AS max_ns, s.inferred, f.level,"
	" CASE WHEN y.value = 'yes' THEN CAST((s.total - s.off) * t.tick_ns AS INT) END AS on_cpu_ns "
	"FROM (SELECT c.trace_id, n.function_id, count(*) AS calls,"
	" sum(CASE WHEN c.recursive THEN 0 ELSE c.ticks END) AS total, sum(c.self) AS self,"
	" coalesce(min(CASE WHEN NOT c.spans_loss AND c.end < 2 THEN c.ticks END),"
	" min(CASE WHEN NOT c.spans_loss THEN c.ticks END),"
	" min(CASE WHEN c.end < 2 THEN c.ticks END), min(c.ticks)) AS min,"
	" coalesce(avg(CASE WHEN c.spans_loss THEN NULL ELSE c.ticks END), avg(c.ticks)) AS avg,"
	" coalesce(max(CASE WHEN c.spans_loss THEN NULL ELSE c.ticks END), max(c.ticks)) AS max,"
	" sum(CASE WHEN c.recursive THEN 0 ELSE c.off END) AS off,"
	" sum(c.end = 1) AS inferred FROM call c JOIN node n USING(trace_id, node_id)"
	" GROUP BY c.trace_id, n.function_id) s JOIN function f USING(trace_id, function_id)"
	" LEFT JOIN module m USING(trace_id, module_id) JOIN trace t USING(trace_id)"
	" LEFT JOIN session y ON y.trace_id = f.trace_id AND y.key = 'switches';\n"
	"CREATE VIEW intervals AS SELECT c.trace_id, c.sample_id, c.exit_id, c.parent_id,"
	" c.node_id, h.thread_id, f.function_id, f.name AS function, n.depth, s.cpu, " NS("s.tick")
	" AS start_ns, " SPAN_NS("s.tick", "c.ticks") " AS duration_ns, " SPAN_NS("s.tick", "c.self")
	" AS self_ns, CASE c.end WHEN 0 THEN 'exit' WHEN 1 THEN 'inferred' ELSE 'running' END AS end,"
	" c.recursive, c.spans_loss, p.pid, h.tid, CASE WHEN y.value = 'yes' THEN "
	SPAN_NS("s.tick", "(c.ticks - c.off)")
	" END AS on_cpu_ns FROM call c JOIN sample s USING(trace_id, sample_id)"
	" JOIN node n USING(trace_id, node_id) JOIN function f USING(trace_id, function_id)"
	" JOIN thread h USING(trace_id, thread_id) JOIN process p USING(trace_id, process_id)"
	" JOIN trace t USING(trace_id)"
	" LEFT JOIN session y ON y.trace_id = c.trace_id AND y.key = 'switches';\n"
	"CREATE VIEW call_tree AS SELECT n.trace_id, n.node_id, n.parent_id, n.depth, n.function_id,"
	" f.name AS function, n.calls, " NS("n.total") " AS total_ns, " NS("n.self") " AS self_ns"
	" FROM node n JOIN function f USING(trace_id, function_id) JOIN trace t USING(trace_id);\n"
	"CREATE VIEW cpu_occupancy AS SELECT s.trace_id, s.cpu, " NS("sum(s.stop - s.start)") " AS busy_ns,"
	" round(100.0 * sum(s.stop - s.start) / max(1, t.last_tick - t.first_tick), 2) AS percent,"
	" count(*) AS stays, count(DISTINCT s.thread_id) AS threads, sum(s.samples) AS samples"
	" FROM stay s JOIN trace t USING(trace_id) GROUP BY s.trace_id, s.cpu;\n"
	"CREATE VIEW samples AS SELECT s.trace_id, s.sample_id, y.name AS type, " NS("s.tick")
	" AS time_ns, p.pid, h.tid, s.cpu, s.event, s.data, f.name AS function,"
	" m.path AS module, s.thread_id, p.process_id FROM sample s JOIN sample_type y USING(type)"
	" JOIN thread h USING(trace_id, thread_id) JOIN process p USING(trace_id, process_id)"
	" JOIN trace t USING(trace_id) LEFT JOIN function f ON f.trace_id = s.trace_id AND"
	" s.type < 2 AND f.function_id = s.event / 2 LEFT JOIN module m ON"
	" m.trace_id = f.trace_id AND m.module_id = f.module_id;\n"
	"CREATE VIEW events AS SELECT s.trace_id, s.sample_id, s.time_ns, s.pid, s.tid, s.cpu, e.name, e.level, e.payload, e.payload_type, s.data,"
	" CASE WHEN e.payload <> '' THEN coalesce(v.state, 'whole') END AS value_state"
	" FROM event e JOIN samples s ON s.trace_id = e.trace_id AND s.type = 'event' AND s.event = e.event"
	" LEFT JOIN event_value v ON v.trace_id = s.trace_id AND v.sample_id = s.sample_id;\n"
	"CREATE VIEW losses AS SELECT s.trace_id, s.sample_id, s.time_ns, s.pid, s.tid, l.lost"
	" FROM loss l JOIN samples s USING(trace_id, sample_id);\n"
	"CREATE VIEW migrations AS SELECT s.trace_id, s.sample_id, s.time_ns, s.pid, s.tid,"
	" m.from_cpu, m.to_cpu FROM migration m JOIN samples s USING(trace_id, sample_id);\n";
/* on_cpu_ns: NULL where no context switches were recorded */
static const char schema_switch_views[] =
	"CREATE VIEW switches AS SELECT s.trace_id, s.switch_id, k.name AS kind, " NS("s.tick")
	" AS time_ns, p.pid, CASE WHEN s.kind < 4 THEN s.tid END AS tid, s.cpu,"
	" h.name AS thread, s.thread_id, CASE WHEN s.kind = 4 THEN s.tid END AS lost"
	" FROM switch s JOIN switch_kind k USING(kind) JOIN trace t USING(trace_id)"
	" LEFT JOIN thread h ON h.trace_id = s.trace_id AND h.thread_id = s.thread_id"
	" LEFT JOIN process p ON p.trace_id = h.trace_id AND p.process_id = h.process_id;\n"
	"CREATE VIEW off_cpu AS SELECT o.trace_id, o.thread_id, p.pid, h.tid, " NS("o.start")
	" AS start_ns, " SPAN_NS("o.start", "(o.stop - o.start)") " AS duration_ns, o.preempted,"
	" o.from_cpu, o.to_cpu FROM off o JOIN thread h USING(trace_id, thread_id)"
	" JOIN process p USING(trace_id, process_id) JOIN trace t USING(trace_id);\n"
	"CREATE VIEW thread_times AS SELECT h.trace_id, h.thread_id, p.pid, h.tid, h.name, "
	NS("(h.last - h.first)") " AS wall_ns, CASE WHEN y.value = 'yes' THEN "
	NS("(h.last - h.first - coalesce(o.off, 0))") " END AS on_cpu_ns, "
	NS("coalesce(o.off - o.forced, 0)") " AS waiting_ns, " NS("coalesce(o.forced, 0)") " AS preempted_ns,"
	" coalesce(o.waits, 0) AS waits, coalesce(o.preemptions, 0) AS preemptions"
	" FROM thread h JOIN process p USING(trace_id, process_id) JOIN trace t USING(trace_id)"
	" LEFT JOIN session y ON y.trace_id = h.trace_id AND y.key = 'switches'"
	" LEFT JOIN (SELECT trace_id, thread_id, sum(stop - start) AS off,"
	" sum(CASE WHEN preempted THEN stop - start ELSE 0 END) AS forced,"
	" sum(NOT preempted) AS waits, sum(preempted) AS preemptions"
	" FROM off GROUP BY trace_id, thread_id) o"
	" ON o.trace_id = h.trace_id AND o.thread_id = h.thread_id;\n";
/* clang-format on */
#undef SPAN_NS
#undef NS

#endif

/* SPDX-License-Identifier: MIT */
/*
 * export_sqlite.c - a trace as an SQLite database (tables: export_sqlite_schema.h).
 *
 * Traces go in one after the other, each with a trace_id of its own.
 *
 * All samples are read once, merged by time, so sample_id counts in order of time.  A row of
 * `call` is written when the call ends; what it needs of the entry waits in a slot of an open
 * frame.  So memory grows with open frames, functions and ways to them, not with samples.
 *
 * The database has neither journal nor sync while it is made (base/output.h).
 * Words from the trace are only ever bound, and stored as people see them elsewhere (text.h),
 * for shells print what they find to terminals.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/output.h"
#include "trace/analysis/calltree.h"
#include "trace/export/export.h"
#include "trace/export/export_nest.h"
#include "trace/export/sqlite/export_sqlite_intervals.h"
#include "trace/export/sqlite/export_sqlite_messages.h"
#include "trace/export/sqlite/export_sqlite_pages.h"
#include "trace/export/sqlite/export_sqlite_schema.h"
#include "trace/export/export_switches.h"
#include "trace/text.h"
#include "trace/value.h"

#define NONE INT64_MIN /* NULL, in rows of numbers */

/* X(table, columns): statements that are made once */
#define TABLES(X)         \
	X(session, 3)     \
	X(module, 4)      \
	X(function, 7)    \
	X(event, 6)       \
	X(process, 13)    \
	X(thread, 8)      \
	X(sample, 9)      \
	X(node, 8)        \
	X(call, 11)       \
	X(orphan, 3)      \
	X(loss, 3)        \
	X(migration, 4)   \
	X(event_value, 3) \
	X(stay, 6)        \
	X(switch, 7)      \
	X(off, 7)

enum table {
#define X(name, columns) T_##name,
	TABLES(X)
#undef X
		NTABLES
};

struct frame { /* open */
	int64_t call, parent;
	int64_t jump; /* the sample of its exit by a jump, NONE: it has not left */
	uint32_t node;
	uint32_t next_free;
};

struct stay { /* on one CPU, now */
	uint32_t thread;
	uint64_t start, stop, samples;
};

struct seen {        /* of a lane */
	int64_t cpu; /* where it was last, NONE: nowhere yet */
	uint64_t first, last;
	bool any;
	struct offcpu_walk off;
};

struct rows { /* of all traces, for statistics */
	int64_t sample, call, node, function, thread, process, off;
};

struct database {
	sqlite3 *db;
	sqlite3_stmt *insert[NTABLES];
	int error; /* SQLite's, of the first failure */
	char *why;
	struct rows rows;
	int64_t trace_id;

	/* of the trace that is going in; below here all zero before it does */
	const struct trace *t;
	struct calltree tree;
	VEC(struct frame) frames;
	uint32_t free_frame; /* index + 1 */
	struct export_set functions;
	VEC(struct stay) stays; /* by CPU */
	struct seen *seen;      /* by lane */
	struct export_switches switches;
	int64_t sample, calls, switched, offs; /* so far */
	uint64_t first, last;
};

/* ---- SQLite ---- */

static bool check(struct database *d, int ret)
{
	if (ret == SQLITE_OK || ret == SQLITE_DONE)
		return true;
	if (!d->error) {
		d->error = ret;
		d->why = xstrdup(sqlite3_errmsg(d->db));
	}
	return false;
}

static void run(struct database *d, const char *sql)
{
	if (!d->error)
		check(d, sqlite3_exec(d->db, sql, NULL, NULL, NULL));
}

static void prepare(struct database *d)
{
	static const struct {
		const char *name;
		int columns;
	} tables[] = {
#define X(name, columns) {#name, columns},
		TABLES(X)
#undef X
	};

	for (int i = 0; i < NTABLES && !d->error; i++) {
		char *sql = xasprintf("INSERT INTO %s VALUES(?%.*s)", tables[i].name,
				      2 * (tables[i].columns - 1), ",?,?,?,?,?,?,?,?,?,?,?,?");

		check(d, sqlite3_prepare_v3(d->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
					    &d->insert[i], NULL));
		sqlite3_bind_int64(d->insert[i], 1, d->trace_id); /* stays bound */
		xfree(sql);
	}
}

static void add(struct database *d, enum table table)
{
	if (d->error)
		return;
	sqlite3_step(d->insert[table]);
	check(d, sqlite3_reset(d->insert[table]));
}

static void set(struct database *d, enum table table, int column, int64_t value)
{
	if (value == NONE)
		sqlite3_bind_null(d->insert[table], column);
	else
		sqlite3_bind_int64(d->insert[table], column, value);
}

/* A row of numbers, from the column after trace_id on. */
#define ROW(d, table, ...) \
	put_row(d, table, (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / 8)

static void put_row(struct database *d, enum table table, const int64_t *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		set(d, table, (int)i + 2, values[i]);
	add(d, table);
}

static void set_text(struct database *d, enum table table, int column, const char *s)
{
	char *shown = NULL;
	size_t size;
	FILE *f = s ? open_memstream(&shown, &size) : NULL;

	if (f) {
		text_put(f, s);
		fclose(f);
	}
	sqlite3_bind_text(d->insert[table], column, shown, -1, SQLITE_TRANSIENT);
	free(shown);
}

/* ---- tables that the trace has, too ---- */

static int64_t tick_of(const struct trace *t, uint64_t tsc)
{
	return (int64_t)(tsc - t->start_tsc);
}

static void put_function(struct database *d, uint32_t n)
{
	const struct trace_function *f = trace_function_of(d->t, KRON_EVENT_ENTRY(n));
	char buf[32];

	if (!export_set_add(&d->functions, n))
		return;
	set(d, T_function, 3, f ? (int64_t)d->t->modules[f->module].id : NONE);
	set(d, T_function, 4, f ? (int64_t)f->vaddr : NONE);
	set(d, T_function, 5, f ? (int64_t)f->size : NONE);
	set_text(d, T_function, 6, text_function(d->t, n, buf, sizeof(buf)));
	set(d, T_function, 7, f ? (int64_t)f->level : NONE);
	set(d, T_function, 2, n);
	add(d, T_function);
}

static void put_modules(struct database *d)
{
	struct export_set seen = {0};

	for (size_t i = 0; i < d->t->nmodules; i++) {
		const struct trace_module *m = &d->t->modules[i];

		if (!export_set_add(&seen, m->id))
			continue; /* a damaged table */
		set(d, T_module, 2, m->id);
		set_text(d, T_module, 3, m->path);
		set_text(d, T_module, 4, m->build_id);
		add(d, T_module);
	}
	export_set_free(&seen);
	for (size_t i = 0; i < d->t->nfunctions; i++)
		put_function(d, d->t->functions[i].n);
}

static void put_process(struct database *d, const struct trace_proc *p)
{
	const struct trace *t = d->t;

	set(d, T_process, 2, p->uid);
	set(d, T_process, 3, p->known ? p->pid : NONE);
	set(d, T_process, 4, p->parent_uid ? (int64_t)p->parent_uid : NONE);
	set(d, T_process, 5, p->by_fork);
	set(d, T_process, 6, p->known ? tick_of(t, p->start_tsc) : NONE);
	set(d, T_process, 7, p->end_tsc ? tick_of(t, p->end_tsc) : NONE);
	set(d, T_process, 8, (int64_t)p->lost);
	set(d, T_process, 9, (int64_t)p->cut_off);
	set_text(d, T_process, 10, p->exe);
	set_text(d, T_process, 11, p->cmdline);
	set_text(d, T_process, 12, p->note);
	if (trace_nodes(t))
		set_text(d, T_process, 13, trace_node_at(t, p->node)->name);
	add(d, T_process);
}

static void put_tables(struct database *d)
{
	static const char *const keys[] = {
		"command",  "hostname",      "kernel",       "cpu",         "ncpu",
		"kron",     "bus",           "device",       "when_full",   "buffer",
		"filter",   "start_mono_ns", "tsc_hz",       "exit",        "start_real_ns",
		"probe_ns", "recording",     "probe_ns_off", "start_tsc",   "switches",
		"node",     "node_from",     "boot_id",      "clocksource", "clock_every"};
	const struct trace *t = d->t;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (!trace_session(t, keys[i]))
			continue;
		set_text(d, T_session, 2, keys[i]);
		set_text(d, T_session, 3, trace_session(t, keys[i]));
		add(d, T_session);
	}
	set_text(d, T_session, 2, "directory");
	set_text(d, T_session, 3, t->dir);
	add(d, T_session);
	put_modules(d);
	for (size_t i = 0; i < t->nuser_events; i++) {
		char type[16];

		set(d, T_event, 2, KRON_EVENT_ENTRY((int64_t)t->user_events[i].n));
		set_text(d, T_event, 3, t->user_events[i].name);
		set(d, T_event, 4, t->user_events[i].level);
		set_text(d, T_event, 5, t->user_events[i].payload);
		set_text(d, T_event, 6, value_type_text(&t->user_events[i].type, type));
		add(d, T_event);
	}
	for (size_t i = 0; i < t->nprocs; i++)
		put_process(d, &t->procs[i]);
}

/* When all samples are known. */
static void put_threads(struct database *d)
{
	for (size_t i = 0; i < d->t->nlanes; i++) {
		const struct trace_lane *l = &d->t->lanes[i];
		bool any = d->seen[i].any;

		set_text(d, T_thread, 6, l->name);
		set(d, T_thread, 7, any ? tick_of(d->t, d->seen[i].first) : NONE);
		set(d, T_thread, 8, any ? tick_of(d->t, d->seen[i].last) : NONE);
		ROW(d, T_thread, (int64_t)i, l->proc_uid, l->tid, l->source);
	}
}

static void put_trace(struct database *d)
{
	const struct trace *t = d->t;
	sqlite3_stmt *s = NULL;

	/* 2^40 ticks: as exact as a double */
	if (d->error ||
	    !check(d, sqlite3_prepare_v2(d->db, "INSERT INTO trace VALUES(?8,?1,?2,?3,?4,?5,?6,?7)",
					 -1, &s, NULL)))
		return;
	sqlite3_bind_double(s, 1, (double)trace_ns(t, 1ull << 40) / (double)(1ull << 40));
	if (d->sample) {
		sqlite3_bind_int64(s, 2, tick_of(t, d->first));
		sqlite3_bind_int64(s, 3, tick_of(t, d->last));
	}
	sqlite3_bind_int64(s, 4, d->sample);
	sqlite3_bind_int64(s, 5, (int64_t)t->lost);
	sqlite3_bind_int64(s, 6, (int64_t)t->cut_off);
	sqlite3_bind_int(s, 7, t->complete);
	sqlite3_bind_int64(s, 8, d->trace_id);
	check(d, sqlite3_step(s));
	sqlite3_finalize(s);
}

/* ---- calls ---- */

static uint32_t on_node(void *ctx, uint32_t caller, uint32_t function)
{
	struct database *d = ctx;
	bool has_caller = caller != PAIR_NO_NODE;
	struct frame *f;
	uint32_t at;

	if (d->free_frame) {
		at = d->free_frame - 1;
		d->free_frame = d->frames.v[at].next_free;
	} else {
		at = (uint32_t)d->frames.n;
		vec_push(&d->frames);
	}
	f = &d->frames.v[at];
	f->call = d->sample;
	f->parent = has_caller ? d->frames.v[caller].call : NONE;
	f->jump = NONE;
	f->node = calltree_node_of(&d->tree, has_caller ? d->frames.v[caller].node : CALLTREE_ROOT,
				   function);
	return at;
}

static void on_jump(void *ctx, const struct trace_event *e, uint32_t node)
{
	struct database *d = ctx;

	(void)e;
	d->frames.v[node].jump = d->sample;
}

/* How much of a call its thread was off the CPUs. */
static int64_t off_ticks(struct database *d, const struct pair_call *c)
{
	struct offcpu_walk *w = &d->seen[c->lane].off;
	uint64_t until = offcpu_before(w, c->exit_tsc);

	return (int64_t)(until - offcpu_before(w, c->entry_tsc));
}

static void on_leave(void *ctx, const struct trace_event *e, const struct pair_call *c)
{
	struct database *d = ctx;
	struct frame *f = &d->frames.v[c->node];
	struct calltree_node *n = &d->tree.nodes.v[f->node];
	int64_t ticks = (int64_t)(c->exit_tsc - c->entry_tsc);
	int64_t self = ticks - (int64_t)c->children_tsc;
	bool exited = e && !c->inferred && !c->open;

	if (c->open && c->exit_tsc > d->seen[c->lane].last)
		d->seen[c->lane].last = c->exit_tsc; /* as long as that the thread was there */
	d->calls++;
	n->total += (uint64_t)ticks;
	n->self += (uint64_t)self;
	ROW(d, T_call, f->call, exited && !c->jumped ? d->sample : f->jump, f->parent, f->node,
	    ticks, self,
	    c->open       ? 2
	    : c->inferred ? 1
			  : 0,
	    c->recursive, c->spans_loss, off_ticks(d, c));
	f->next_free = d->free_frame;
	d->free_frame = c->node + 1;
}

static void on_orphan(void *ctx, const struct trace_event *e, uint32_t function)
{
	struct database *d = ctx;

	(void)e;
	put_function(d, function);
	ROW(d, T_orphan, d->sample, function);
}

/* A parent comes before its children. */
static void put_nodes(struct database *d)
{
	uint32_t *depths = xcalloc(d->tree.nodes.n + 1, sizeof(*depths));

	for (size_t i = 0; i < d->tree.nodes.n; i++) {
		const struct calltree_node *n = &d->tree.nodes.v[i];
		bool is_root = n->parent == CALLTREE_ROOT;

		depths[i] = is_root ? 0 : depths[n->parent] + 1;
		put_function(d, n->function);
		ROW(d, T_node, (int64_t)i, is_root ? NONE : (int64_t)n->parent, n->function,
		    depths[i], (int64_t)n->calls, (int64_t)n->total, (int64_t)n->self);
	}
	xfree(depths);
}

/* ---- samples ---- */

#define CPU_MAX 65536u

static void end_stay(struct database *d, uint32_t cpu)
{
	struct stay *s = &d->stays.v[cpu];

	if (s->samples)
		ROW(d, T_stay, cpu, tick_of(d->t, s->start), tick_of(d->t, s->stop), s->thread,
		    (int64_t)s->samples);
	s->samples = 0;
}

static void occupy(struct database *d, const struct trace_event *e)
{
	struct stay *s;
	int64_t was = d->seen[e->lane].cpu;

	if (e->cpu >= CPU_MAX)
		return;
	if (was != NONE && was != e->cpu && d->stays.v[was].thread == e->lane)
		end_stay(d, (uint32_t)was);
	while (d->stays.n <= e->cpu)
		vec_push(&d->stays);
	s = &d->stays.v[e->cpu];
	if (s->samples && s->thread != e->lane)
		end_stay(d, e->cpu);
	if (!s->samples++) {
		s->thread = e->lane;
		s->start = e->tsc;
	}
	s->stop = e->tsc;
}

static int type_of(const struct trace *t, uint32_t event)
{
	if (t->nuser_events && trace_user_event_of(t, event))
		return TYPE_EVENT;
	if (event < KRON_EVENT_SPECIAL)
		return event & 1 ? TYPE_EXIT : TYPE_ENTRY;
	return event == KRON_EVENT_LOST  ? TYPE_LOSS
	       : event == KRON_EVENT_CPU ? TYPE_CPU
					 : TYPE_OTHER;
}

/*
 * Any 64 bits are a sample's data, NONE's too; and so is a text.  What could not be read is NULL, as is what is
 * no number, and numbers from 2^63 on are texts: SQLite has none for them.  Without a type, or with x, they are bits.
 */
static void put_data(struct database *d, int column, struct value v)
{
	char text[VALUE_TEXT];

	if (value_is_number(v) && value_is_floating(v) && isnan(value_double(v)))
		set_text(d, T_sample, column, "nan"); /* SQLite makes NULL of it */
	else if (value_is_number(v) && value_is_floating(v))
		sqlite3_bind_double(d->insert[T_sample], column, value_double(v));
	else if (value_is_number(v) && (v.type.form != 'u' || v.number <= INT64_MAX))
		sqlite3_bind_int64(d->insert[T_sample], column, (int64_t)v.number);
	else if (value_is_number(v))
		set_text(d, T_sample, column, value_text(v, text));
	else
		set_text(d, T_sample, column, value_string(v, text));
}

/* Most are whole: they have no row. */
static void put_value_state(struct database *d, struct value v)
{
	if (value_state(v) == STATE_WHOLE)
		return;
	set(d, T_event_value, 2, d->sample);
	set_text(d, T_event_value, 3, value_states[value_state(v)]);
	add(d, T_event_value);
}

static void put_sample_row(struct database *d, const struct trace_event *e, int type)
{
	const int64_t values[] = {d->sample, type,      e->lane, e->cpu, tick_of(d->t, e->tsc),
				  e->s.head, e->s.event};
	const int n = sizeof(values) / sizeof(*values);
	struct value v = {.number = e->s.payload};

	if (type == TYPE_EVENT)
		v = value_of(trace_user_event_of(d->t, e->s.event), e);
	for (int i = 0; i < n; i++)
		set(d, T_sample, i + 2, values[i]);
	put_data(d, n + 2, v);
	add(d, T_sample);
	put_value_state(d, v);
}

static void put_sample(struct database *d, const struct trace_event *e)
{
	struct seen *seen = &d->seen[e->lane];
	int64_t was = seen->cpu;
	int type = type_of(d->t, e->s.event);

	if (!d->sample++ || e->tsc < d->first)
		d->first = e->tsc;
	if (e->tsc > d->last)
		d->last = e->tsc;
	put_sample_row(d, e, type);
	if (type == TYPE_LOSS)
		ROW(d, T_loss, d->sample, e->s.payload);
	if (was != NONE && was != e->cpu)
		ROW(d, T_migration, d->sample, was, e->cpu);
	occupy(d, e);
	if (!seen->any || e->tsc < seen->first)
		seen->first = e->tsc;
	if (!seen->any || e->tsc > seen->last)
		seen->last = e->tsc;
	seen->any = true;
	if (e->cpu < CPU_MAX)
		seen->cpu = e->cpu;
}

/* ---- context switches ---- */

/* Those up to a time, so that a thread that went through an exec is who it was then. */
static void put_switches(struct database *d, uint64_t until)
{
	const struct export_switches *s = &d->switches;

	for (; (size_t)d->switched < s->n && s->v[d->switched].tsc <= until; d->switched++) {
		const struct trace_switch *r = &s->v[d->switched];
		bool is_loss = r->kind == TRACE_SWITCH_LOST;
		uint32_t lane = is_loss ? UINT32_MAX : export_switches_lane(s, r->tid);

		if (export_switches_valid(r))
			ROW(d, T_switch, d->switched + 1, r->kind, tick_of(d->t, r->tsc), r->cpu,
			    is_loss ? r->tid : r->tid & TRACE_TASK_MASK,
			    lane == UINT32_MAX ? NONE : (int64_t)lane);
	}
}

static void on_off(void *ctx, uint32_t lane, const struct offcpu_stretch *o)
{
	struct database *d = ctx;

	d->offs++;
	ROW(d, T_off, lane, tick_of(d->t, o->out), tick_of(d->t, o->in), o->preempted, o->from_cpu,
	    o->to_cpu);
}

static void put_offs(struct database *d)
{
	for (uint32_t lane = 0; lane < d->t->nlanes; lane++)
		if (d->seen[lane].any)
			export_switches_off(&d->switches, lane, d->seen[lane].first,
					    d->seen[lane].last, on_off, d);
}

static void put_samples(struct database *d)
{
	const struct trace *t = d->t;
	struct pair_sink sink = {.ctx = d,
				 .node = on_node,
				 .leave = on_leave,
				 .jump = on_jump,
				 .orphan_exit = on_orphan,
				 .want_recursive = true};
	struct pairs *pairs = pairs_open(t, &sink);
	struct trace_cursor *cursor = trace_cursor_open(t, -1);
	struct trace_event e;

	d->seen = xcalloc(t->nlanes + 1, sizeof(*d->seen));
	export_switches_open(&d->switches, t);
	for (size_t i = 0; i < t->nlanes; i++) {
		d->seen[i].cpu = NONE;
		offcpu_of(d->switches.off, trace_lane_task(&t->lanes[i]), &d->seen[i].off);
	}
	while (!d->error && trace_cursor_next(cursor, &e)) {
		put_switches(d, e.tsc);
		if (d->switches.n)
			export_switches_see(&d->switches, e.lane);
		put_sample(d, &e);
		pairs_feed(pairs, &e);
	}
	trace_cursor_close(cursor);
	pairs_finish(pairs);
	pairs_close(pairs);
	for (uint32_t cpu = 0; cpu < d->stays.n; cpu++)
		end_stay(d, cpu);
	put_switches(d, UINT64_MAX);
	put_offs(d);
	put_threads(d);
	export_switches_close(&d->switches);
}

/*
 * What ANALYZE would count, from what we know.  Without it, SQLite's planner takes any trace_id
 * for a choice of few rows.
 */
static void put_statistics(struct database *d)
{
	const struct rows *r = &d->rows;
	const struct {
		const char *table, *index;
		int64_t rows, same; /* rows with the same whole key */
	} v[] = {
		{"sample", "sample", r->sample, 1},
		{"call", "call", r->call, 1},
		{"call", "call_exit", r->call, 1},
		{"call", "call_node", r->call, r->node ? r->call / r->node + 1 : 1},
		{"node", "node", r->node, 1},
		{"node", "node_parent", r->node, 4},
		{"function", "function", r->function, 1},
		{"thread", "thread", r->thread, 1},
		{"process", "process", r->process, 1},
		{"off", "off_thread", r->off, r->thread ? r->off / r->thread + 1 : 1},
	};

	run(d, "ANALYZE sqlite_schema"); /* makes the table, and nothing else */
	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		char *sql =
			sqlite3_mprintf("INSERT INTO sqlite_stat1 VALUES(%Q, %Q, '%lld %lld %lld')",
					v[i].table, v[i].index, v[i].rows + 1,
					v[i].rows / d->trace_id + 1, v[i].same);

		run(d, sql);
		sqlite3_free(sql);
	}
}

/* ---- one trace ---- */

static void forget_trace(struct database *d)
{
	calltree_free(&d->tree);
	vec_free(&d->frames);
	vec_free(&d->stays);
	export_set_free(&d->functions);
	xfree(d->seen);
	memset(&d->t, 0, sizeof(*d) - offsetof(struct database, t));
}

static void put_one(struct database *d, const struct trace *t)
{
	d->t = t;
	d->trace_id++;
	prepare(d);
	put_tables(d);
	put_samples(d);
	put_nodes(d);
	put_trace(d);
	if (!d->error)
		check(d, export_sqlite_pages(d->db, d->trace_id, t));
	if (!d->error)
		check(d, export_sqlite_messages(d->db, d->trace_id, t));
	if (!d->error)
		check(d, export_sqlite_intervals(d->db, d->trace_id, t));
	for (int i = 0; i < NTABLES; i++) {
		sqlite3_finalize(d->insert[i]);
		d->insert[i] = NULL;
	}
	d->rows.sample += d->sample;
	d->rows.call += d->calls;
	d->rows.node += (int64_t)d->tree.nodes.n;
	d->rows.function += (int64_t)d->functions.n;
	d->rows.off += d->offs;
	d->rows.thread += (int64_t)t->nlanes;
	d->rows.process += (int64_t)t->nprocs;
	forget_trace(d);
}

/* ---- the file ---- */

static void fill(struct database *d, const struct trace *const *traces, size_t n, const char *path)
{
	char head[200];

	check(d, sqlite3_open_v2(path, &d->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL));
	snprintf(head, sizeof(head),
		 "PRAGMA page_size=16384; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
		 "PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=-16384;"
		 "PRAGMA application_id=%d; PRAGMA user_version=%d; BEGIN;",
		 SCHEMA_APPLICATION, SCHEMA_VERSION);
	run(d, head);
	run(d, schema_tables);
	run(d, export_sqlite_pages_tables);
	run(d, export_sqlite_messages_tables);
	run(d, export_sqlite_intervals_tables);
	for (size_t i = 0; i < n && !d->error; i++)
		put_one(d, traces[i]);
	run(d, schema_indexes);
	run(d, schema_views);
	run(d, schema_switch_views);
	run(d, export_sqlite_pages_views);
	run(d, export_sqlite_messages_views);
	run(d, export_sqlite_intervals_views);
	if (!d->error)
		put_statistics(d);
	run(d, "COMMIT");
	if (d->db)
		check(d, sqlite3_close(d->db));
}

/* SQLite's header: its words at 0, and at 68 whose database it is, with the highest byte first. */
static bool is_somebodys_database(const char *path)
{
	static const char words[16] = "SQLite format 3";
	unsigned char head[72];
	struct stat st;
	size_t n;
	FILE *f;

	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return false;
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(head, 1, sizeof(head), f);
	fclose(f);
	return n == sizeof(head) && !memcmp(head, words, sizeof(words)) &&
	       ((unsigned)head[68] << 24 | head[69] << 16 | head[70] << 8 | head[71]) !=
		       SCHEMA_APPLICATION;
}

int export_sqlite_many(const struct trace *const *traces, size_t n, const char *path,
		       struct err *err)
{
	struct database d = {.db = NULL};
	struct output out;
	int ret;

	if (is_somebodys_database(path))
		return err_set(err, EEXIST,
			       "%s is a database that kron export has not made: remove it, or name "
			       "another file",
			       path);
	ret = output_begin(&out, path, OUTPUT_NAMED, err);
	if (ret)
		return ret;
	fill(&d, traces, n, output_path(&out));
	if (d.error) {
		output_drop(&out);
		ret = err_set(err, EIO, "cannot write %s: %s", path, d.why);
	} else {
		ret = output_end(&out, err);
	}
	xfree(d.why);
	return ret;
}

int export_sqlite(const struct trace *t, const char *path, struct err *err)
{
	return export_sqlite_many(&t, 1, path, err);
}

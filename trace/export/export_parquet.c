/* SPDX-License-Identifier: MIT */
/*
 * export_parquet.c - a trace as one table, for DuckDB, pandas, Spark and their kin: a row for
 * each call when it ends, and for each sample that is no part of a call.
 *
 *   kind        call, inferred (its end was not seen), running (when the trace ended),
 *               orphan (an exit without its entry), lost, cpu (the thread came to another),
 *               event (of a user's probe; its name is in the column function),
 *               waiting, preempted (from then on the thread was off the CPU)
 *   host pid process tid thread cpu      where; cpu is that of the entry
 *   time_ns     since the start of the trace; of a call, its entry
 *   duration_ns self_ns depth function module caller recursive spans_loss      calls have them
 *   value       lost: how many samples; cpu: its number; event: its payload (a double: its bits); waiting, preempted:
 *               the CPU that the thread came back to
 *   level       filter level of the function or the event
 *   text        event: a value from memory that is a text; what could not be read has neither value nor text
 *
 * Tables of several hosts or ranks can be read as one.  Rows come thread by thread.
 */
#include "base/vec.h"
#include "trace/export/export.h"
#include "trace/export/export_switches.h"
#include "trace/index.h"
#include "trace/analysis/pairs.h"
#include "trace/export/parquet.h"
#include "trace/text.h"
#include "trace/value.h"

#define COLUMNS(X)                  \
	X(kind, TEXT, false)        \
	X(host, TEXT, false)        \
	X(pid, INT32, false)        \
	X(process, TEXT, false)     \
	X(tid, INT32, false)        \
	X(thread, TEXT, false)      \
	X(cpu, INT32, false)        \
	X(time_ns, INT64, false)    \
	X(duration_ns, INT64, true) \
	X(self_ns, INT64, true)     \
	X(depth, INT32, true)       \
	X(function, TEXT, true)     \
	X(module, TEXT, true)       \
	X(caller, TEXT, true)       \
	X(recursive, BOOL, true)    \
	X(spans_loss, BOOL, true)   \
	X(value, INT64, true)       \
	X(level, INT32, true)       \
	X(text, TEXT, true)

enum {
#define X(name, type, optional) C_##name,
	COLUMNS(X)
#undef X
		NCOLUMNS
};
static const struct parquet_column columns[] = {
#define X(name, type, optional) {#name, PARQUET_##type, optional},
	COLUMNS(X)
#undef X
};

struct frame { /* open */
	uint32_t cpu, next_free;
};

struct table {
	const struct trace *t;
	struct parquet *p;
	struct index functions; /* number -> index of names */
	VEC(int64_t) names;
	int64_t *modules, no_module;
	VEC(struct frame) frames;
	uint32_t free_frame;    /* index + 1 */
	uint32_t cpu;           /* of the event that is being fed */
	int64_t lane[NCOLUMNS]; /* what all rows of this thread have */
	struct export_switches switches;
};

static int64_t put_text(struct table *w, const char *s)
{
	char *shown = text_shown(s);
	int64_t n = parquet_text(w->p, shown);

	xfree(shown);
	return n;
}

static int64_t name_of(struct table *w, uint32_t function)
{
	size_t known = w->functions.n;
	uint32_t at = index_of(&w->functions, function);
	char buf[32];

	if (at == known)
		*vec_push(&w->names) = put_text(w, text_function(w->t, function, buf, sizeof(buf)));
	return w->names.v[at];
}

static int64_t module_of(const struct table *w, uint32_t function)
{
	const struct trace_function *f = trace_function_of(w->t, KRON_EVENT_ENTRY(function));

	return f ? w->modules[f->module] : w->no_module;
}

static int64_t level_of(const struct table *w, uint32_t function)
{
	const struct trace_function *f = trace_function_of(w->t, KRON_EVENT_ENTRY(function));

	return f ? f->level : PARQUET_NULL;
}

static void start_row(const struct table *w, int64_t *row, uint64_t tsc)
{
	for (int i = 0; i < NCOLUMNS; i++)
		row[i] = w->lane[i];
	row[C_cpu] = w->cpu;
	row[C_time_ns] = (int64_t)trace_time(w->t, tsc);
}

static uint32_t on_node(void *ctx, uint32_t caller, uint32_t function)
{
	struct table *w = ctx;
	uint32_t at = w->free_frame - 1;

	(void)caller, (void)function;
	if (w->free_frame) {
		w->free_frame = w->frames.v[at].next_free;
	} else {
		at = (uint32_t)w->frames.n;
		vec_push(&w->frames);
	}
	w->frames.v[at].cpu = w->cpu;
	return at;
}

static void on_leave(void *ctx, const struct trace_event *e, const struct pair_call *c)
{
	struct table *w = ctx;
	struct frame *f = &w->frames.v[c->node];
	uint64_t ticks = c->exit_tsc - c->entry_tsc;
	int64_t row[NCOLUMNS];

	(void)e;
	start_row(w, row, c->entry_tsc);
	row[C_kind] = parquet_text(w->p, c->open ? "running" : c->inferred ? "inferred" : "call");
	row[C_cpu] = f->cpu;
	row[C_duration_ns] = (int64_t)trace_ns(w->t, ticks);
	row[C_self_ns] = (int64_t)trace_ns(w->t, ticks - c->children_tsc);
	row[C_depth] = c->depth;
	row[C_function] = name_of(w, c->function);
	row[C_module] = module_of(w, c->function);
	row[C_caller] = c->caller == UINT32_MAX ? PARQUET_NULL : name_of(w, c->caller);
	row[C_recursive] = c->recursive;
	row[C_spans_loss] = c->spans_loss;
	row[C_level] = level_of(w, c->function);
	parquet_row(w->p, row);
	f->next_free = w->free_frame;
	w->free_frame = c->node + 1;
}

static void on_orphan(void *ctx, const struct trace_event *e, uint32_t function)
{
	struct table *w = ctx;
	int64_t row[NCOLUMNS];

	start_row(w, row, e->tsc);
	row[C_kind] = parquet_text(w->p, "orphan");
	row[C_function] = name_of(w, function);
	row[C_module] = module_of(w, function);
	row[C_level] = level_of(w, function);
	parquet_row(w->p, row);
}

static void on_special(void *ctx, const struct trace_event *e)
{
	struct table *w = ctx;
	bool is_loss = e->s.event == KRON_EVENT_LOST;
	int64_t row[NCOLUMNS];

	if (!is_loss && e->s.event != KRON_EVENT_CPU)
		return;
	start_row(w, row, e->tsc);
	row[C_kind] = parquet_text(w->p, is_loss ? "lost" : "cpu");
	row[C_value] = e->s.payload;
	parquet_row(w->p, row);
}

static void on_user_event(void *ctx, const struct trace_event *e, const struct trace_user_event *u)
{
	struct table *w = ctx;
	const struct value v = value_of(u, e);
	int64_t row[NCOLUMNS];
	char text[VALUE_TEXT];

	start_row(w, row, e->tsc);
	row[C_kind] = parquet_text(w->p, "event");
	row[C_function] = put_text(w, u->name);
	if (value_is_number(v))
		row[C_value] = (int64_t)v.number;
	if (value_string(v, text))
		row[C_text] = put_text(w, value_string(v, text));
	row[C_level] = u->level;
	parquet_row(w->p, row);
}

static void on_off(void *ctx, uint32_t lane, const struct offcpu_stretch *o)
{
	struct table *w = ctx;
	int64_t row[NCOLUMNS];

	(void)lane;
	start_row(w, row, o->out);
	row[C_kind] = parquet_text(w->p, o->preempted ? "preempted" : "waiting");
	row[C_cpu] = o->from_cpu;
	row[C_duration_ns] = (int64_t)trace_ns(w->t, o->in - o->out);
	row[C_value] = o->to_cpu;
	parquet_row(w->p, row);
}

static void put_lane(struct table *w, struct pairs *pairs, uint32_t lane)
{
	const struct trace_lane *l = &w->t->lanes[lane];
	const struct trace_proc *p = trace_proc_of(w->t, l->proc_uid);
	struct trace_cursor *cursor = trace_cursor_open(w->t, (int)lane);
	const struct trace *node = trace_nodes(w->t) ? trace_node_at(w->t, l->node)->t : w->t;
	const char *host = trace_session(node, "hostname");
	uint64_t first = UINT64_MAX, last = 0;
	struct trace_event e;

	for (int i = 0; i < NCOLUMNS; i++)
		w->lane[i] = PARQUET_NULL;
	w->lane[C_host] = put_text(w, host ? host : "?");
	w->lane[C_pid] = p ? (int32_t)trace_pid_number(p) : (int32_t)l->proc_uid;
	w->lane[C_process] = put_text(w, p && p->exe[0] ? text_base(p->exe) : "?");
	w->lane[C_tid] = l->tid;
	w->lane[C_thread] = put_text(w, l->name);
	while (trace_cursor_next(cursor, &e)) {
		w->cpu = e.cpu;
		first = e.tsc < first ? e.tsc : first;
		last = e.tsc > last ? e.tsc : last;
		pairs_feed(pairs, &e);
	}
	trace_cursor_close(cursor);
	pairs_finish_lane(pairs, lane);
	export_switches_off(&w->switches, lane, first, last, on_off, w);
}

static void put_notes(struct table *w)
{
	static const char *const keys[] = {"command",       "hostname",   "node",
					   "boot_id",       "kernel",     "start_real_ns",
					   "start_mono_ns", "clock_every"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *value = trace_session(w->t, keys[i]);
		char *shown = text_shown(value ? value : "");

		if (value)
			parquet_note(w->p, keys[i], shown);
		xfree(shown);
	}
}

void export_parquet(const struct trace *t, FILE *out)
{
	struct table w = {.t = t, .p = parquet_open(out, columns, NCOLUMNS)};
	struct pair_sink sink = {.ctx = &w,
				 .node = on_node,
				 .leave = on_leave,
				 .orphan_exit = on_orphan,
				 .special = on_special,
				 .user_event = on_user_event,
				 .want_recursive = true};
	struct pairs *pairs = pairs_open(t, &sink);

	w.no_module = put_text(&w, "?");
	w.modules = xcalloc(t->nmodules + 1, sizeof(*w.modules));
	for (size_t i = 0; i < t->nmodules; i++)
		w.modules[i] = put_text(&w, t->modules[i].path);
	put_notes(&w);
	export_switches_open(&w.switches, t);
	for (uint32_t lane = 0; lane < t->nlanes; lane++)
		put_lane(&w, pairs, lane);
	export_switches_close(&w.switches);
	pairs_close(pairs);
	parquet_close(w.p);
	index_free(&w.functions);
	vec_free(&w.names);
	vec_free(&w.frames);
	xfree(w.modules);
}

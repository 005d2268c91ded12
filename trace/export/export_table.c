/* SPDX-License-Identifier: MIT */
/* export_table.c - see export_table.h. */
#include "trace/export/export_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/analysis/pairs.h"
#include "trace/export/export_switches.h"
#include "trace/text.h"
#include "trace/value.h"

#define KINDS(X)    \
	X(call)     \
	X(inferred) \
	X(running)  \
	X(orphan)   \
	X(lost)     \
	X(cpu)      \
	X(event)    \
	X(waiting)  \
	X(preempted)
enum kind {
#define X(name) KIND_##name,
	KINDS(X)
#undef X
		NKINDS
};

const struct parquet_column export_table_columns[EXPORT_TABLE_WIDTH] = {
#define X(name, type, optional) {#name, PARQUET_##type, optional},
	EXPORT_TABLE_COLUMNS(X)
#undef X
};

struct frame { /* open */
	uint32_t cpu, next_free;
};

struct export_table {
	const struct trace *t;
	struct text_pool *pool;
	export_table_fn fn;
	void *ctx;
	struct pairs *pairs;
	int64_t kinds[NKINDS];
	struct index functions; /* number -> index of names */
	VEC(int64_t) names;
	int64_t *modules, no_module;
	int64_t *payloads, *payload_types; /* by user's event: names, or EXPORT_TABLE_NULL */
	int64_t states[VALUE_STATES];
	VEC(struct frame) frames;
	uint32_t free_frame;              /* index + 1 */
	uint32_t cpu;                     /* of the event that is being fed */
	int64_t lane[EXPORT_TABLE_WIDTH]; /* what all rows of this thread have */
	struct export_switches switches;
};

static int64_t put_text(struct export_table *w, const char *s)
{
	char *shown = text_shown(s);
	int64_t n = text_pool_add(w->pool, shown);

	xfree(shown);
	return n;
}

static int64_t name_of(struct export_table *w, uint32_t function)
{
	size_t known = w->functions.n;
	uint32_t at = index_of(&w->functions, function);
	char buf[32];

	if (at == known)
		*vec_push(&w->names) = put_text(w, text_function(w->t, function, buf, sizeof(buf)));
	return w->names.v[at];
}

static int64_t module_of(const struct export_table *w, uint32_t function)
{
	const struct trace_function *f = trace_function_of(w->t, KRON_EVENT_ENTRY(function));

	return f ? w->modules[f->module] : w->no_module;
}

static int64_t level_of(const struct export_table *w, uint32_t function)
{
	const struct trace_function *f = trace_function_of(w->t, KRON_EVENT_ENTRY(function));

	return f ? f->level : EXPORT_TABLE_NULL;
}

static void start_row(const struct export_table *w, int64_t *row, enum kind kind, uint64_t tsc)
{
	for (int i = 0; i < EXPORT_TABLE_WIDTH; i++)
		row[i] = w->lane[i];
	row[EXPORT_TABLE_IS_NUMBER] = 0;
	row[EXPORT_TABLE_kind] = w->kinds[kind];
	row[EXPORT_TABLE_cpu] = w->cpu;
	row[EXPORT_TABLE_time_ns] = (int64_t)trace_time(w->t, tsc);
	row[EXPORT_TABLE_end_ns] = row[EXPORT_TABLE_time_ns];
}

/* From moment to moment: that is not short on average, and what is nested stays so. */
static void set_end(const struct export_table *w, int64_t *row, uint64_t tsc)
{
	int64_t end = (int64_t)trace_time(w->t, tsc);

	row[EXPORT_TABLE_duration_ns] = end - row[EXPORT_TABLE_time_ns];
	row[EXPORT_TABLE_end_ns] = end;
}

static void put_row(const struct export_table *w, const int64_t *row)
{
	w->fn(w->ctx, row, NULL);
}

static uint32_t on_node(void *ctx, uint32_t caller, uint32_t function)
{
	struct export_table *w = ctx;
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
	struct export_table *w = ctx;
	struct frame *f = &w->frames.v[c->node];
	int64_t row[EXPORT_TABLE_NUMBERS];

	(void)e;
	start_row(w, row,
		  c->open       ? KIND_running
		  : c->inferred ? KIND_inferred
				: KIND_call,
		  c->entry_tsc);
	row[EXPORT_TABLE_cpu] = f->cpu;
	set_end(w, row, c->exit_tsc);
	row[EXPORT_TABLE_self_ns] = (int64_t)trace_time(w->t, c->exit_tsc - c->children_tsc) -
				    row[EXPORT_TABLE_time_ns];
	row[EXPORT_TABLE_depth] = c->depth;
	row[EXPORT_TABLE_function] = name_of(w, c->function);
	row[EXPORT_TABLE_module] = module_of(w, c->function);
	row[EXPORT_TABLE_caller] =
		c->caller == UINT32_MAX ? EXPORT_TABLE_NULL : name_of(w, c->caller);
	row[EXPORT_TABLE_recursive] = c->recursive;
	row[EXPORT_TABLE_spans_loss] = c->spans_loss;
	row[EXPORT_TABLE_level] = level_of(w, c->function);
	put_row(w, row);
	f->next_free = w->free_frame;
	w->free_frame = c->node + 1;
}

static void on_orphan(void *ctx, const struct trace_event *e, uint32_t function)
{
	struct export_table *w = ctx;
	int64_t row[EXPORT_TABLE_NUMBERS];

	start_row(w, row, KIND_orphan, e->tsc);
	row[EXPORT_TABLE_function] = name_of(w, function);
	row[EXPORT_TABLE_module] = module_of(w, function);
	row[EXPORT_TABLE_level] = level_of(w, function);
	put_row(w, row);
}

static void on_special(void *ctx, const struct trace_event *e)
{
	struct export_table *w = ctx;
	bool is_loss = e->s.event == KRON_EVENT_LOST;
	int64_t row[EXPORT_TABLE_NUMBERS];

	if (!is_loss && e->s.event != KRON_EVENT_CPU)
		return;
	start_row(w, row, is_loss ? KIND_lost : KIND_cpu, e->tsc);
	row[EXPORT_TABLE_value] = e->s.payload;
	put_row(w, row);
}

static void set_number(int64_t *row, unsigned column, int64_t bits)
{
	row[column] = bits;
	row[EXPORT_TABLE_IS_NUMBER] |= 1ll << column;
}

static int64_t bits_of(double d)
{
	int64_t bits;

	memcpy(&bits, &d, sizeof(bits));
	return bits;
}

/* The value by its name, as its type says. */
static void set_value(const struct export_table *w, int64_t *row, const struct trace_user_event *u,
		      struct value v)
{
	const size_t i = (size_t)(u - w->t->user_events);

	if (w->payloads[i] == EXPORT_TABLE_NULL)
		return;
	row[EXPORT_TABLE_payload] = w->payloads[i];
	row[EXPORT_TABLE_payload_type] = w->payload_types[i];
	row[EXPORT_TABLE_value_state] = w->states[value_state(v)];
	if (!value_is_number(v) || !value_is_whole(v))
		return;
	if (value_is_floating(v))
		set_number(row, EXPORT_TABLE_value_real, bits_of(value_double(v)));
	else
		set_number(row,
			   v.type.form == 's' ? EXPORT_TABLE_value_int : EXPORT_TABLE_value_uint,
			   (int64_t)v.number);
}

static void on_user_event(void *ctx, const struct trace_event *e, const struct trace_user_event *u)
{
	struct export_table *w = ctx;
	const struct value v = value_of(u, e);
	int64_t row[EXPORT_TABLE_NUMBERS];
	char buf[VALUE_TEXT], *shown;
	const char *text = value_string(v, buf);

	start_row(w, row, KIND_event, e->tsc);
	row[EXPORT_TABLE_function] = put_text(w, u->name);
	if (value_is_number(v))
		set_number(row, EXPORT_TABLE_value, (int64_t)v.number);
	row[EXPORT_TABLE_level] = u->level;
	set_value(w, row, u, v);
	shown = text ? text_escaped(text) : NULL;
	w->fn(w->ctx, row, shown);
	xfree(shown);
}

static void on_off(void *ctx, uint32_t lane, const struct offcpu_stretch *o)
{
	struct export_table *w = ctx;
	int64_t row[EXPORT_TABLE_NUMBERS];

	(void)lane;
	start_row(w, row, o->preempted ? KIND_preempted : KIND_waiting, o->out);
	row[EXPORT_TABLE_cpu] = o->from_cpu;
	set_end(w, row, o->in);
	row[EXPORT_TABLE_value] = o->to_cpu;
	put_row(w, row);
}

/* ---- who runs in a lane ---- */

/* -1: it is none */
static int32_t number_in(const char *s)
{
	unsigned long n;

	if (!*s || s[strspn(s, "0123456789")])
		return -1;
	errno = 0;
	n = strtoul(s, NULL, 10);
	return errno || n > INT32_MAX ? -1 : (int32_t)n;
}

/* Names are numbers either of all nodes or of none (trace/join_session.c). */
int32_t export_table_node(const struct trace *t, uint32_t part)
{
	int32_t n;

	if (trace_nodes(t)) {
		n = number_in(trace_node_at(t, part)->name);
		return n < 0 ? (int32_t)part + 1 : n;
	}
	n = trace_session(t, "node") ? number_in(trace_session(t, "node")) : 0;
	return n < 0 ? 0 : n;
}

struct export_table_place export_table_place(const struct trace *t, uint32_t lane)
{
	const struct trace_lane *l = &t->lanes[lane];
	const struct trace_proc *p = trace_proc_of(t, l->proc_uid);

	return (struct export_table_place){
		.node = export_table_node(t, l->node),
		.pid = p && p->known ? p->pid : (int32_t)l->proc_uid,
	};
}

static void begin_lane(struct export_table *w, uint32_t lane)
{
	const struct export_table_place place = export_table_place(w->t, lane);
	const struct trace_lane *l = &w->t->lanes[lane];
	const struct trace_proc *p = trace_proc_of(w->t, l->proc_uid);
	const char *host = trace_session(trace_part(w->t, l->node), "hostname");

	for (int i = 0; i < EXPORT_TABLE_WIDTH; i++)
		w->lane[i] = EXPORT_TABLE_NULL;
	w->lane[EXPORT_TABLE_host] = put_text(w, host ? host : "?");
	w->lane[EXPORT_TABLE_node] = place.node;
	w->lane[EXPORT_TABLE_pid] = place.pid;
	w->lane[EXPORT_TABLE_process] = put_text(w, p && p->exe[0] ? text_base(p->exe) : "?");
	w->lane[EXPORT_TABLE_process_id] = (int32_t)l->proc_uid;
	w->lane[EXPORT_TABLE_tid] = l->tid;
	w->lane[EXPORT_TABLE_thread] = put_text(w, l->name);
}

void export_table_lane(struct export_table *w, uint32_t lane)
{
	struct trace_cursor *cursor = trace_cursor_open(w->t, (int)lane);
	uint64_t first = UINT64_MAX, last = 0;
	struct trace_event e;

	begin_lane(w, lane);
	while (trace_cursor_next(cursor, &e)) {
		w->cpu = e.cpu;
		first = e.tsc < first ? e.tsc : first;
		last = e.tsc > last ? e.tsc : last;
		pairs_feed(w->pairs, &e);
	}
	trace_cursor_close(cursor);
	pairs_finish_lane(w->pairs, lane);
	export_switches_off(&w->switches, lane, first, last, on_off, w);
}

/* ---- all of it ---- */

static void name_values(struct export_table *w)
{
	const size_t n = w->t->nuser_events;
	char type[16];

	w->payloads = xcalloc(n + 1, sizeof(*w->payloads));
	w->payload_types = xcalloc(n + 1, sizeof(*w->payload_types));
	for (size_t i = 0; i < n; i++) {
		const struct trace_user_event *u = &w->t->user_events[i];

		w->payloads[i] = u->payload[0] ? put_text(w, u->payload) : EXPORT_TABLE_NULL;
		w->payload_types[i] =
			*value_type_text(&u->type, type) ? put_text(w, type) : EXPORT_TABLE_NULL;
	}
	for (size_t i = 0; i < VALUE_STATES; i++)
		w->states[i] = put_text(w, value_states[i]);
}

static void name_all(struct export_table *w)
{
	static const char *const kinds[] = {
#define X(name) #name,
		KINDS(X)
#undef X
	};

	for (size_t i = 0; i < NKINDS; i++)
		w->kinds[i] = put_text(w, kinds[i]);
	w->no_module = put_text(w, "?");
	w->modules = xcalloc(w->t->nmodules + 1, sizeof(*w->modules));
	for (size_t i = 0; i < w->t->nmodules; i++)
		w->modules[i] = put_text(w, w->t->modules[i].path);
}

struct export_table *export_table_open(const struct trace *t, struct text_pool *pool,
				       export_table_fn fn, void *ctx)
{
	struct export_table *w = xcalloc(1, sizeof(*w));
	struct pair_sink sink = {.ctx = w,
				 .node = on_node,
				 .leave = on_leave,
				 .orphan_exit = on_orphan,
				 .special = on_special,
				 .user_event = on_user_event,
				 .want_recursive = true};

	w->t = t;
	w->pool = pool;
	w->fn = fn;
	w->ctx = ctx;
	w->pairs = pairs_open(t, &sink);
	name_all(w);
	name_values(w);
	export_switches_open(&w->switches, t);
	return w;
}

void export_table_close(struct export_table *w)
{
	export_switches_close(&w->switches);
	pairs_close(w->pairs);
	index_free(&w->functions);
	vec_free(&w->names);
	vec_free(&w->frames);
	xfree(w->modules);
	xfree(w->payloads);
	xfree(w->payload_types);
	xfree(w);
}

void export_table_notes(struct parquet *p, const struct trace *t)
{
	static const char *const keys[] = {"command",       "hostname",   "node",
					   "boot_id",       "kernel",     "start_real_ns",
					   "start_mono_ns", "clock_every"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *value = trace_session(t, keys[i]);
		char *shown = text_shown(value ? value : "");

		if (value)
			parquet_note(p, keys[i], shown);
		xfree(shown);
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * view_calls.c - what the calls of a trace give to the pictures: a track and the longest calls
 * for each thread, a row for each function, the call tree for the flame graph.
 *
 * The lanes are read one after another, those with few samples first: what they leave of the
 * room for calls goes to the others.
 *
 * Sums are those of kron report (profile.c says how they are meant).  Where only a part of the
 * trace is shown, a call counts for it if it overlaps it, and with the time that lies in it; its
 * self time is then the time that it was on top of the stack.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/export_nest.h"
#include "trace/text.h"
#include "trace/view_impl.h"

struct open_call {
	uint32_t function;
	bool again;
	uint64_t begin, self; /* self: within the view */
};
struct calls {
	struct view *v;
	struct export_nest nest;
	struct view_track track;
	struct view_spans spans;
	VEC(struct open_call) stack;
	uint64_t at; /* until then all time is accounted for */
	bool shown;
	uint64_t ncalls;
	size_t spans_left; /* room for them in the lanes to come */
};

/* ---- functions ---- */

static uint32_t new_stat(struct view *v, uint32_t n)
{
	vec_push(&v->stats);
	*vec_push(&v->numbers) = n;
	return (uint32_t)v->stats.n;
}

static struct profile_stat *stat_of(struct view *v, uint32_t n)
{
	uint32_t *at;

	if (n < v->function_limit) {
		at = &v->function_at[n];
	} else {
		uint32_t i = index_of(&v->other_functions, n);

		at = i < v->other_at.n ? &v->other_at.v[i] : vec_push(&v->other_at);
	}
	if (!*at)
		*at = new_stat(v, n);
	return &v->stats.v[*at - 1];
}

static uint64_t clip(const struct view *v, uint64_t tsc)
{
	return tsc < v->from ? v->from : tsc > v->to ? v->to : tsc;
}

/*
 * What takes a call tree's node too many is summed up at the nearest caller that has one: calls,
 * and the time of those calls that no other such call encloses.
 */
static void add_to_node(struct view *v, uint32_t node, uint64_t total, uint64_t self)
{
	uint32_t at = node & VIEW_NODE_MASK;
	struct view_node *n;

	if (!(node & VIEW_NODE_NONE)) {
		n = &v->nodes.v[node];
		n->calls++;
		n->total += total;
		n->self += self;
		return;
	}
	n = at == VIEW_NODE_MASK ? &v->top : &v->nodes.v[at];
	n->rest_calls++;
	if (!(node & VIEW_NODE_NESTED))
		n->rest_total += total;
}

static void add_sums(struct calls *c, const struct pair_call *call, uint64_t total, uint64_t self)
{
	struct profile_stat *s = stat_of(c->v, call->function);

	add_to_node(c->v, call->node, total, self);
	s->calls++;
	s->inferred += call->inferred;
	s->self += self;
	if (!call->recursive)
		s->total += total;
}

/* Only of calls that are in the view as a whole: a part has no length. */
static void add_length(struct calls *c, const struct pair_call *call)
{
	struct profile_stat *s = stat_of(c->v, call->function);
	uint64_t time = call->exit_tsc - call->entry_tsc;

	if (call->spans_loss)
		return;
	s->measured++;
	s->sum += time;
	s->inverse_min = ~time > s->inverse_min ? ~time : s->inverse_min;
	s->max = time > s->max ? time : s->max;
	loghist_add(&s->lengths, time);
}

static void take_call(struct calls *c, const struct pair_call *call, const struct open_call *o)
{
	const struct view *v = c->v;

	if (call->exit_tsc < v->from || call->entry_tsc > v->to)
		return;
	c->ncalls++;
	if (call->entry_tsc >= v->from && call->exit_tsc <= v->to) {
		uint64_t total = call->exit_tsc - call->entry_tsc;

		add_sums(c, call, total, total - call->children_tsc);
		add_length(c, call);
	} else {
		add_sums(c, call, clip(v, call->exit_tsc) - clip(v, call->entry_tsc), o->self);
	}
}

/* ---- the thread's time ---- */

/* Until tsc the function on top of the stack was running. */
static void account(struct calls *c, uint64_t tsc)
{
	const struct view *v = c->v;
	uint64_t a = clip(v, c->at), b = clip(v, tsc);
	struct open_call *top = c->stack.n ? &c->stack.v[c->stack.n - 1] : NULL;

	if ((int64_t)(tsc - c->at) <= 0)
		return;
	c->at = tsc;
	if (!top || a >= b)
		return;
	top->self += b - a;
	if (c->shown)
		view_track_add(&c->track, a - v->from, b - v->from, top->function);
}

static void on_event(void *ctx, const struct trace_event *e)
{
	account(ctx, e->tsc);
}

static uint32_t on_node(void *ctx, uint32_t caller, uint32_t function)
{
	struct view *v = ((struct calls *)ctx)->v;
	uint32_t n;

	if (caller != PAIR_NO_NODE && caller & VIEW_NODE_NONE)
		return caller | VIEW_NODE_NESTED;
	if (v->nodes.n >= VIEW_NODES_MOST && !calltree_has(&v->tree, caller, function)) {
		v->ways_left_out = true;
		return VIEW_NODE_NONE | (caller == PAIR_NO_NODE ? VIEW_NODE_MASK : caller);
	}
	n = calltree_node_of(&v->tree, caller, function);
	while (v->nodes.n <= n)
		vec_push(&v->nodes);
	return n;
}

static void on_begin(void *ctx, uint32_t function, uint64_t tsc, bool again)
{
	struct calls *c = ctx;
	const struct view *v = c->v;

	account(c, tsc);
	*vec_push(&c->stack) =
		(struct open_call){.function = function, .again = again, .begin = tsc};
	if (c->shown && !again && view_holds(v, tsc))
		view_track_call(&c->track, tsc - v->from, (uint32_t)c->stack.n);
}

static void keep_span(struct calls *c, const struct open_call *o, uint64_t end,
		      const struct pair_call *call)
{
	struct view_span s = {.begin = o->begin,
			      .end = end,
			      .function = o->function,
			      .depth = (uint32_t)c->stack.n,
			      .flags = view_span_flags(o->again, call)};

	if (view_span_shows(c->v, &s))
		view_spans_add(&c->spans, &s);
}

static void on_end(void *ctx, uint32_t function, uint64_t tsc, const struct pair_call *call)
{
	struct calls *c = ctx;
	struct open_call o;

	(void)function;
	account(c, tsc);
	if (!c->stack.n)
		return;
	o = c->stack.v[--c->stack.n];
	if (call)
		take_call(c, call, &o);
	if (c->shown)
		keep_span(c, &o, tsc, call);
}

/* ---- lanes ---- */

static void put_lane(struct calls *c, uint32_t lane)
{
	struct view *v = c->v;
	const struct trace_lane *l = &v->t->lanes[lane];
	const struct trace_proc *p = trace_proc_of(v->t, l->proc_uid);
	struct json *j = &v->j;

	fputc('\n', j->f);
	json_open(j, '{');
	json_ku64(j, "lane", lane);
	json_ku64(j, "process", l->proc_uid);
	json_ku64(j, "pid", p && p->known ? (uint64_t)p->pid : l->proc_uid);
	json_ku64(j, "tid", l->tid);
	json_ku64(j, "source", l->source);
	view_put_key_name(j, "name", l->name);
	view_put_key_name(j, "exe", p && p->exe ? text_base(p->exe) : "");
	json_ku64(j, "samples", v->lanes[lane].samples);
	json_ku64(j, "lost", v->lanes[lane].lost);
	json_ku64(j, "calls", c->ncalls);
	if (c->shown) {
		view_spans_put(&c->spans, v, j);
		json_key(j, "track");
		view_track_put(&c->track, j);
	}
	json_close(j, '}');
}

static void read_lane(struct calls *c, uint32_t lane, size_t lanes_left)
{
	struct view *v = c->v;

	c->shown = v->lanes[lane].shown;
	c->at = v->lanes[lane].first;
	c->ncalls = 0;
	c->stack.n = 0;
	if (c->shown)
		view_track_open(&c->track, v->budget.bins, v->bin_ticks);
	view_spans_reset(&c->spans, c->shown ? c->spans_left / lanes_left : 0);
	export_nest_lane(&c->nest, lane);
	c->spans_left -= c->spans.n;
	v->lanes[lane].left_out = c->spans.left_out;
	v->lanes[lane].any_kept = c->spans.n;
	if (c->spans.n)
		v->lanes[lane].least_kept = c->spans.v[0];
	put_lane(c, lane);
}

void view_calls(struct view *v)
{
	struct calls c = {.v = v,
			  .spans_left = v->budget.spans,
			  .spans.by_length = v->short_calls,
			  .nest = {.t = v->t,
				   .begin = on_begin,
				   .end = on_end,
				   .event = on_event,
				   .node = on_node,
				   .want_recursive = true}};

	c.nest.ctx = &c;
	v->function_limit = trace_function_limit(v->t);
	v->function_at = xcalloc(v->function_limit, sizeof(*v->function_at));
	json_key(&v->j, "threads");
	json_open(&v->j, '[');
	export_nest_open(&c.nest);
	for (size_t i = 0; i < v->t->nlanes; i++)
		read_lane(&c, v->order[i], v->t->nlanes - i);
	v->counts = *pairs_counts(c.nest.pairs);
	export_nest_close(&c.nest);
	json_close(&v->j, ']');
	vec_free(&c.stack);
	xfree(c.spans.v);
}

void view_calls_free(struct view *v)
{
	vec_for(&v->stats, s)
		loghist_free(&s->lengths);
	vec_free(&v->stats);
	vec_free(&v->numbers);
	vec_free(&v->nodes);
	vec_free(&v->other_at);
	index_free(&v->other_functions);
	calltree_free(&v->tree);
	xfree(v->function_at);
}

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

#include "trace/text.h"
#include "trace/view/view_impl.h"

struct open_call {
	uint32_t function;
	uint32_t node; /* of the call tree */
	uint32_t next_free;
	uint64_t self; /* within the view */
};
struct calls {
	struct view *v;
	struct tracks *tracks;
	struct view_track track;
	struct view_spans spans;
	VEC(struct open_call) open;
	uint32_t free_open; /* index + 1 */
	uint32_t lane;
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

static void add_sums(struct calls *c, const struct pair_call *call, uint32_t node, uint64_t total,
		     uint64_t self)
{
	struct profile_stat *s = stat_of(c->v, call->function);

	add_to_node(c->v, node, total, self);
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
	profile_least_add(&s->least, time, call->open);
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

		add_sums(c, call, o->node, total, total - call->children_tsc);
		add_length(c, call);
	} else {
		add_sums(c, call, o->node, clip(v, call->exit_tsc) - clip(v, call->entry_tsc),
			 o->self);
	}
}

/* ---- the thread's time ---- */

/* Until tsc the same function was running. */
static void account(struct calls *c, uint64_t tsc)
{
	const struct view *v = c->v;
	uint64_t a = clip(v, c->at), b = clip(v, tsc);
	uint32_t top = tracks_top(c->tracks, c->lane);

	if ((int64_t)(tsc - c->at) <= 0)
		return;
	c->at = tsc;
	if (top == PAIR_NO_NODE || a >= b)
		return;
	c->open.v[top].self += b - a;
	if (c->shown)
		view_track_add(&c->track, a - v->from, b - v->from, c->open.v[top].function);
}

static uint32_t tree_node(struct view *v, uint32_t caller, uint32_t function)
{
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

static uint32_t on_node(void *ctx, uint32_t caller, uint32_t function)
{
	struct calls *c = ctx;
	uint32_t at = c->free_open - 1;

	if (c->free_open) {
		c->free_open = c->open.v[at].next_free;
	} else {
		at = (uint32_t)c->open.n;
		vec_push(&c->open);
	}
	c->open.v[at] = (struct open_call){
		.function = function,
		.node = tree_node(c->v, caller == PAIR_NO_NODE ? caller : c->open.v[caller].node,
				  function)};
	return at;
}

static void on_begin(void *ctx, const struct trace_event *e, const struct track_call *call)
{
	struct calls *c = ctx;
	const struct view *v = c->v;

	if (c->shown && view_holds(v, e->tsc))
		view_track_call(&c->track, e->tsc - v->from, call->level + 1);
}

static void on_leave(void *ctx, const struct trace_event *e, const struct pair_call *call,
		     const struct track_call *at)
{
	struct calls *c = ctx;
	struct open_call *o = &c->open.v[at->node];
	struct view_span s = view_span_of(call, at);

	(void)e;
	take_call(c, call, o);
	o->next_free = c->free_open;
	c->free_open = at->node + 1;
	if (!c->shown || !view_span_shows(c->v, &s))
		return;
	view_rows_see(&c->v->lanes[c->lane].rows, &s);
	view_spans_add(&c->spans, &s);
}

/* ---- lanes ---- */

/* Rows with which a thread's stacks begin, where it has more than one. */
static void put_stacks(struct json *j, const struct view_rows *rows)
{
	if (rows->first.n < 2)
		return;
	json_key(j, "stacks");
	json_open(j, '[');
	for (size_t i = 0; i < rows->first.n; i++)
		json_u64(j, rows->first.v[i]);
	json_close(j, ']');
}

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
		put_stacks(j, &v->lanes[lane].rows);
		view_spans_put(&c->spans, v, &v->lanes[lane].rows, j);
		json_key(j, "track");
		view_track_put(&c->track, j);
	}
	json_close(j, '}');
}

static void read_lane(struct calls *c, uint32_t lane, size_t lanes_left)
{
	struct view *v = c->v;
	struct trace_cursor *cursor = trace_cursor_open(v->t, (int)lane);
	struct trace_event e;

	c->lane = lane;
	c->shown = v->lanes[lane].shown;
	c->at = v->lanes[lane].first;
	c->ncalls = 0;
	if (c->shown)
		view_track_open(&c->track, v->budget.bins, v->bin_ticks);
	view_spans_reset(&c->spans, c->shown ? c->spans_left / lanes_left : 0);
	while (trace_cursor_next(cursor, &e)) {
		account(c, e.tsc);
		tracks_feed(c->tracks, &e);
	}
	trace_cursor_close(cursor);
	account(c, tracks_lane_end(c->tracks, lane));
	tracks_finish_lane(c->tracks, lane);
	view_rows_lay_out(&v->lanes[lane].rows);
	c->spans_left -= c->spans.n;
	v->lanes[lane].left_out = c->spans.left_out;
	v->lanes[lane].any_kept = c->spans.n;
	if (c->spans.n)
		v->lanes[lane].least_kept = c->spans.v[0];
	put_lane(c, lane);
}

void view_calls(struct view *v)
{
	struct calls c = {.v = v, .spans_left = v->budget.spans, .spans.by_length = v->short_calls};
	struct track_sink sink = {.ctx = &c,
				  .plans = v->plans,
				  .begin = on_begin,
				  .leave = on_leave,
				  .node = on_node,
				  .want_recursive = true};

	v->function_limit = trace_function_limit(v->t);
	v->function_at = xcalloc(v->function_limit, sizeof(*v->function_at));
	json_key(&v->j, "threads");
	json_open(&v->j, '[');
	c.tracks = tracks_open(v->t, &sink);
	for (size_t i = 0; i < v->t->nlanes; i++)
		read_lane(&c, v->order[i], v->t->nlanes - i);
	v->counts = *tracks_counts(c.tracks);
	tracks_close(c.tracks);
	json_close(&v->j, ']');
	vec_free(&c.open);
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

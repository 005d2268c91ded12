/* SPDX-License-Identifier: MIT */
/*
 * report_replay.c - calls in order of time, indented by depth, as uftrace replay prints them:
 *
 *   # DURATION     TID     FUNCTION
 *              [  1234] | main() {
 *     1.234 us [  1234] |   leaf();
 *     2.345 us [  1234] | } (a comment: main)
 *
 * Streams: a call is a leaf when its exit is the lane's next sample, which the cursor lets one
 * look at.  Kept are one word of state a lane and the open frames that pairs.c keeps anyway.
 *
 * After the TID stands the number of the stack, from 2 on, where a thread has stacks whose calls
 * interleave:  [  1234/2]
 */
#define _GNU_SOURCE
#include "trace/report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/name_forms.h"
#include "base/str.h"
#include "base/vec.h"
#include "trace/analysis/offcpu.h"
#include "trace/analysis/slack.h"
#include "trace/report/report_slack.h"
#include "trace/text.h"
#include "trace/analysis/tracks.h"
#include "trace/value.h"

#define INDENT_MAX 64 /* deeper levels are numbered instead: lines stay short */

struct lane_state {
	bool leaf;          /* the last entry was printed as a leaf: its exit is silent */
	bool inside;        /* a call that -F selected is open */
	uint32_t base;      /* its depth */
	uint32_t depth;     /* of the next entry, as far as known */
	uint64_t since_tsc; /* when it was entered */
	struct offcpu_walk off;
};

struct ended { /* a lane without further events */
	uint64_t tsc;
	uint32_t lane;
};

struct replay {
	const struct trace *t;
	const struct replay_options *o;
	FILE *out;
	struct trace_cursor *cursor;
	struct tracks *tracks;
	struct lane_state *lanes;
	bool *selected;          /* by index into t->functions; NULL: all */
	struct offcpu *offcpu;   /* NULL: switches are not wanted */
	VEC(struct ended) ended; /* by time; those before ended_at are done */
	size_t ended_at;
};

/* ---- lines ---- */

struct length {
	uint64_t ticks;
	struct trace_bounds in;
};

static struct length exactly(uint64_t ticks)
{
	return (struct length){ticks, {ticks, ticks}};
}

static void put_left(struct replay *r, uint32_t lane, uint32_t track, const struct length *length)
{
	if (length) {
		bool slow = r->o->color && trace_ns(r->t, length->ticks) >= 1000000;

		fputs(slow ? "\033[31m" : "", r->out);
		report_slack_put_length(r->t, length->ticks, length->in, r->out);
		fputs(slow ? "\033[0m" : "", r->out);
	} else {
		fputs("          ", r->out);
	}
	if (trace_nodes(r->t)) {
		fputs(" [", r->out);
		text_put(r->out, trace_node_at(r->t, r->t->lanes[lane].node)->name);
		fprintf(r->out, track ? ".%u/%u] | " : ".%u] | ", r->t->lanes[lane].tid, track + 1);
		return;
	}
	fprintf(r->out, track ? " [%7u/%u] | " : " [%7u] | ", r->t->lanes[lane].tid, track + 1);
}

static void put_indent(struct replay *r, uint32_t depth)
{
	fprintf(r->out, "%*s", 2 * (int)(depth < INDENT_MAX ? depth : INDENT_MAX), "");
	if (depth > INDENT_MAX)
		fprintf(r->out, "(%u) ", depth);
}

static void put_comment(struct replay *r, const char *text)
{
	fprintf(r->out, r->o->color ? "\033[2m%s\033[0m" : "%s", text);
}

/* A demangled name brings its parameters: "f(int) const", not "(anonymous namespace)::f". */
static bool has_parameters(const char *name)
{
	const char *end = strrchr(name, ')');

	return end && !strstr(end, "::") && (!end[1] || end[1] == ' ');
}

static void put_call(struct replay *r, uint32_t function, const char *end)
{
	char buf[32];
	const char *name = text_function(r->t, function, buf, sizeof(buf));

	text_put(r->out, name);
	fputs(has_parameters(name) ? "" : "()", r->out);
	fputs(end, r->out);
}

/* ---- which calls are shown ---- */

static bool is_selected(const struct replay *r, uint32_t function)
{
	const struct trace_function *f;

	if (!r->selected)
		return true;
	f = trace_function_of(r->t, KRON_EVENT_ENTRY(function));
	return f && r->selected[f - r->t->functions];
}

static bool is_shown_depth(const struct replay *r, const struct lane_state *l, uint32_t depth)
{
	return !r->o->depth || depth - l->base < r->o->depth;
}

/* ---- off the processor ---- */

/* What was over before this time and was not said yet. */
static void put_stretches(struct replay *r, uint32_t lane, uint64_t until)
{
	struct lane_state *l = &r->lanes[lane];
	struct offcpu_walk *w = &l->off;

	for (; w->at < w->n && w->v[w->at].in <= until; w->at++) {
		const struct offcpu_stretch *s = &w->v[w->at];
		struct length off;

		if (!l->inside || s->out < l->since_tsc)
			continue;
		off = exactly(s->in - s->out);
		put_left(r, lane, 0, &off);
		put_indent(r, l->depth > l->base ? l->depth - l->base : 0);
		put_comment(r, s->preempted ? "/* off the processor, preempted */\n"
					    : "/* off the processor */\n");
	}
}

static bool is_on_processor(const struct lane_state *l, uint64_t until)
{
	return l->off.at == l->off.n || l->off.v[l->off.at].out >= until;
}

/* ---- events ---- */

/* Whether the lane goes straight on to leave this call. */
static bool is_leaf(const struct replay *r, const struct trace_event *e, struct trace_event *exit)
{
	return !r->o->no_merge && trace_cursor_peek(r->cursor, exit) && !exit->jump &&
	       is_on_processor(&r->lanes[e->lane], exit->tsc) &&
	       exit->s.event == (e->s.event | 1) && exit->s.payload == e->s.payload &&
	       exit->tsc >= e->tsc && !tracks_is_cut(r->tracks, e, exit->tsc);
}

static void on_begin(void *ctx, const struct trace_event *e, const struct track_call *c)
{
	struct replay *r = ctx;
	struct lane_state *l = &r->lanes[e->lane];
	struct trace_event exit;
	struct length length;

	l->depth = c->depth + 1;
	if (!l->inside || c->depth < l->base) {
		l->inside = is_selected(r, c->function);
		l->base = r->selected ? c->depth : 0;
		l->since_tsc = e->tsc;
	}
	if (!l->inside || !is_shown_depth(r, l, c->depth))
		return;
	l->leaf = is_leaf(r, e, &exit);
	if (l->leaf)
		length = (struct length){exit.tsc - e->tsc, slack_between(e->in, exit.in)};
	put_left(r, e->lane, c->track, l->leaf ? &length : NULL);
	put_indent(r, c->depth - l->base);
	put_call(r, c->function, l->leaf ? ";\n" : " {\n");
}

static void put_end(struct replay *r, const struct track_call *c, const struct lane_state *l)
{
	const struct length length = {c->exit_tsc - c->entry_tsc, slack_between(c->entry, c->exit)};

	put_left(r, c->lane, c->track, &length);
	put_indent(r, c->depth - l->base);
	fputs("} ", r->out);
	put_comment(r, "/* ");
	text_put_function(r->out, r->t, c->function);
	put_comment(r, c->at_least ? ", left by a jump to what was not recorded: at least */"
		       : c->inferred && c->jumped ? ", left by a jump, its end not seen */"
		       : c->inferred              ? ", no exit seen */"
		       : c->open                  ? ", still running */"
		       : c->spans_loss            ? ", samples lost inside */"
						  : " */");
	fputc('\n', r->out);
}

static void on_end(void *ctx, const struct trace_event *e, const struct track_call *c)
{
	struct replay *r = ctx;
	struct lane_state *l = &r->lanes[c->lane];

	(void)e;
	l->depth = c->depth;
	if (!l->inside || c->entry_tsc < l->since_tsc || c->depth < l->base)
		return;
	if (l->leaf)
		l->leaf = false;
	else if (is_shown_depth(r, l, c->depth))
		put_end(r, c, l);
	if (r->selected && c->depth == l->base)
		l->inside = false;
}

static void on_orphan(void *ctx, const struct trace_event *e, uint32_t function)
{
	struct replay *r = ctx;
	struct lane_state *l = &r->lanes[e->lane];

	if (r->selected && !is_selected(r, function))
		return;
	put_left(r, e->lane, 0, NULL);
	put_indent(r, l->inside && l->depth > l->base ? l->depth - l->base : 0);
	fputs("} ", r->out);
	put_comment(r, "/* ");
	text_put_function(r->out, r->t, function);
	put_comment(r, ", no entry seen */");
	fputc('\n', r->out);
}

static void on_user_event(void *ctx, const struct trace_event *e, const struct trace_user_event *u,
			  uint32_t track)
{
	struct replay *r = ctx;
	struct lane_state *l = &r->lanes[e->lane];
	char value[VALUE_TEXT];

	if (r->selected && !l->inside)
		return;
	put_left(r, e->lane, track, NULL);
	put_indent(r, l->inside && l->depth > l->base ? l->depth - l->base : 0);
	fputs("* ", r->out);
	text_put(r->out, u->name);
	if (u->payload[0]) {
		fputc(' ', r->out);
		text_put(r->out, u->payload);
		fprintf(r->out, "=%s", value_text(value_of(u, e), value));
	}
	fputc('\n', r->out);
}

static void on_special(void *ctx, const struct trace_event *e)
{
	struct replay *r = ctx;
	struct lane_state *l = &r->lanes[e->lane];
	char text[STR_NUMBER + 40], number[STR_NUMBER];

	if (e->s.event != KRON_EVENT_LOST)
		return;
	put_left(r, e->lane, 0, NULL);
	put_indent(r, l->inside && l->depth > l->base ? l->depth - l->base : 0);
	snprintf(text, sizeof(text), "/* %s samples lost here */\n",
		 str_thousands(number, sizeof(number), e->s.payload));
	put_comment(r, text);
}

/* ---- selection ---- */

static bool *select_lanes(const struct trace *t, const struct replay_options *o, struct err *err)
{
	bool *want = xcalloc(t->nlanes, sizeof(*want));

	for (size_t i = 0; i < o->ntids; i++) {
		bool found = false;

		for (size_t lane = 0; lane < t->nlanes; lane++)
			if (t->lanes[lane].tid == o->tids[i])
				want[lane] = found = true;
		if (!found) {
			err_set(err, ENOENT, "the trace has no thread %" PRIu64, o->tids[i]);
			xfree(want);
			return NULL;
		}
	}
	return want;
}

static bool *select_functions(const struct trace *t, const struct replay_options *o,
			      struct err *err)
{
	bool *selected = xcalloc(t->nfunctions, sizeof(*selected));

	for (size_t i = 0; i < o->nglobs; i++) {
		bool found = false;

		for (size_t f = 0; f < t->nfunctions; f++)
			if (name_forms_match_any(t->functions[f].name, t->functions[f].aliases,
						 o->globs[i]))
				selected[f] = found = true;
		if (!found) {
			err_set(err, ENOENT, "no function of the trace matches %s", o->globs[i]);
			xfree(selected);
			return NULL;
		}
	}
	return selected;
}

/* In wrap mode what is lost is what came first: no record in the lanes says so. */
static void put_overwritten(const struct replay *r)
{
	const char *s = trace_session(r->t, "overwritten");
	char number[STR_NUMBER];
	uint64_t n = s ? strtoull(s, NULL, 10) : 0;

	if (n)
		fprintf(r->out, "/* %s samples before these were overwritten */\n",
			str_thousands(number, sizeof(number), n));
}

/* A lane has given all its events: it ends when what it has open does, among the events of others. */
static void add_ended(struct replay *r, struct tracks *tracks, uint32_t lane)
{
	struct ended x = {tracks_lane_end(tracks, lane), lane};
	size_t i = r->ended.n;

	vec_push(&r->ended);
	for (; i > r->ended_at && r->ended.v[i - 1].tsc > x.tsc; i--)
		r->ended.v[i] = r->ended.v[i - 1];
	r->ended.v[i] = x;
}

static void finish_ended(struct replay *r, struct tracks *tracks, uint64_t until)
{
	while (r->ended_at < r->ended.n && r->ended.v[r->ended_at].tsc < until) {
		const struct ended *x = &r->ended.v[r->ended_at++];

		put_stretches(r, x->lane, x->tsc);
		tracks_finish_lane(tracks, x->lane);
	}
}

static void replay(struct replay *r, const bool *want)
{
	struct track_sink sink = {
		.ctx = r,
		.begin = on_begin,
		.end = on_end,
		.orphan_exit = on_orphan,
		.special = on_special,
		.user_event = on_user_event,
		.lazy = true,
	};
	struct tracks *tracks = tracks_open(r->t, &sink);
	struct trace_event e;

	fputs("# DURATION       TID     FUNCTION\n", r->out);
	put_overwritten(r);
	r->tracks = tracks;
	r->cursor = trace_cursor_open_some(r->t, want);
	while (trace_cursor_next(r->cursor, &e)) {
		finish_ended(r, tracks, e.tsc);
		put_stretches(r, e.lane, e.tsc);
		tracks_feed(tracks, &e);
		if (trace_cursor_is_last(r->cursor))
			add_ended(r, tracks, e.lane);
	}
	finish_ended(r, tracks, UINT64_MAX);
	for (uint32_t lane = 0; lane < r->t->nlanes; lane++)
		tracks_finish_lane(tracks, lane);
	vec_free(&r->ended);
	trace_cursor_close(r->cursor);
	tracks_close(tracks);
}

int report_replay(const struct trace *t, const struct replay_options *o, FILE *out, struct err *err)
{
	struct replay r = {.t = t, .o = o, .out = out};
	bool *want = NULL;
	int ret = 0;

	if (o->ntids && !(want = select_lanes(t, o, err)))
		ret = -ENOENT;
	if (!ret && o->nglobs && !(r.selected = select_functions(t, o, err)))
		ret = -ENOENT;
	if (!ret) {
		r.lanes = xcalloc(t->nlanes, sizeof(*r.lanes));
		if (o->switches)
			r.offcpu = offcpu_open(t);
		for (size_t lane = 0; r.offcpu && lane < t->nlanes; lane++)
			offcpu_of(r.offcpu, trace_lane_task(&t->lanes[lane]), &r.lanes[lane].off);
		replay(&r, want);
	}
	offcpu_close(r.offcpu);
	xfree(r.lanes);
	xfree(r.selected);
	xfree(want);
	return ret;
}

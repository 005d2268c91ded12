/* SPDX-License-Identifier: MIT */
/*
 * join_clock.c - the times of several traces on one line: that of the first trace whose samples have the
 * processor's counter.
 *
 *   same boot, processor's counter   one clock already
 *   held against one clock, both     by that clock: the collector's, whose readings are in the table `clock` of what
 *                                    came over a cable (clock_fit.h); or the boot's own CLOCK_MONOTONIC
 *   else                             by the hosts' wall clocks
 *
 * Whatever the way, it stands beside the node, with what it may be wrong by.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trace/reader_impl.h"
#include "trace/rows.h"

#define SESSION_ERROR_NS 1000u /* of a calibration point, and of what CLOCK_MONOTONIC is slewed */

static bool has_counter(const struct trace *t)
{
	return !trace_session(t, "bus") || trace_session_is(t, "bus", "lane");
}

static bool same_boot(const struct trace *a, const struct trace *b)
{
	const char *boot = trace_session(a, "boot_id");

	return boot && *boot && trace_session_is(b, "boot_id", boot);
}

uint32_t trace_node_clock(const struct trace *t, uint32_t node)
{
	const struct joined *v = priv_of(t)->joined;

	for (uint32_t i = 0; i < node && has_counter(v[node].t); i++)
		if (has_counter(v[i].t) && same_boot(v[i].t, v[node].t))
			return i;
	return node;
}

/* A damaged table may say any time: what is further away than centuries is as far as that. */
#define TICKS_MOST 0x1p61

static int64_t whole_ticks(double ticks)
{
	if (!(ticks > -TICKS_MOST)) /* nor a number */
		return -(int64_t)TICKS_MOST;
	return ticks < TICKS_MOST ? (int64_t)llround(ticks) : (int64_t)TICKS_MOST;
}

/* ---- what a trace was held against ---- */

typedef VEC(struct clock_reading) readings;

struct held {
	char clock[64]; /* boot ID of whose CLOCK_MONOTONIC it is; empty: none */
	bool by_cable;
	size_t n; /* readings */
	struct clock_fit fit;
};

/* On a board's clock CLOCK_MONOTONIC leads to the tick. */
static uint64_t tick_of(const struct trace *t, uint64_t tsc, uint64_t mono_ns)
{
	double ns = (double)(int64_t)(mono_ns - trace_session_number(t, "start_mono_ns", 0));

	return has_counter(t) ? tsc : t->start_tsc + (uint64_t)whole_ticks(ns * t->tsc_hz / 1e9);
}

static void take_reading(const struct trace *t, const struct table_lines *l, readings *out)
{
	struct clock_reading r;
	uint64_t tsc, mono;

	if (!table_number(l->field[0], 10, UINT64_MAX, &tsc) ||
	    !table_number(l->field[1], 10, UINT64_MAX, &mono) ||
	    !table_number(l->field[2], 10, UINT64_MAX, &r.ns) ||
	    !table_number(l->field[3], 10, UINT64_MAX / 4, &r.error_ns))
		return; /* a line that makes no sense */
	r.tick = tick_of(t, tsc, mono);
	/* a link that was broken: what was read again before it, if anything, is left out */
	if (!out->n || (r.tick > out->v[out->n - 1].tick && r.ns > out->v[out->n - 1].ns))
		*vec_push(out) = r;
}

static void read_table(const struct trace *t, char clock[64], readings *out)
{
	int dirfd = open(t->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct table_lines l;

	if (dirfd < 0 || table_open(&l, dirfd, "clock"))
		goto out;
	while (table_next_fields(&l)) {
		if (!strcmp(l.field[0], "reference")) {
			if (strncmp(clock, l.field[1], 63))
				out->n = 0; /* another clock from here on */
			strncpy(clock, l.field[1], 63);
		} else {
			take_reading(t, &l, out);
		}
	}
	table_close(&l);
out:
	if (dirfd >= 0)
		close(dirfd);
}

/* Its own host's clock, by the calibration points of its session. */
static void read_session(const struct trace *t, readings *out)
{
	uint64_t start = trace_session_number(t, "start_mono_ns", 0);
	uint64_t end = trace_session_number(t, "end_mono_ns", 0);

	if (!start)
		return;
	*vec_push(out) = (struct clock_reading){t->start_tsc, start, SESSION_ERROR_NS};
	if (t->complete && end > start + 1000000)
		*vec_push(out) = (struct clock_reading){t->end_tsc, end, SESSION_ERROR_NS};
}

static void hold(struct held *h, const struct trace *t)
{
	const char *boot = trace_session(t, "boot_id");
	readings r = {0};

	*h = (struct held){0};
	read_table(t, h->clock, &r);
	h->by_cable = r.n && !(boot && !strcmp(boot, h->clock));
	if (!h->by_cable) {
		r.n = 0;
		snprintf(h->clock, sizeof(h->clock), "%s", boot ? boot : "");
		read_session(t, &r);
	}
	h->n = r.n;
	if (!clock_fit_make(&h->fit, r.v, r.n, t->tsc_hz))
		h->clock[0] = 0;
	vec_free(&r);
}

/* Of a trace whose recorder was killed: to the last reading. */
static uint64_t last_tick(const struct trace *t, const struct held *h)
{
	const uint64_t last = h->fit.knots.n ? h->fit.knots.v[h->fit.knots.n - 1].tick : 0;

	return t->complete && t->end_tsc > last ? t->end_tsc : last;
}

/* No time of the trace is wrong by more. */
static uint64_t error_of(const struct trace *t, const struct held *h)
{
	return clock_fit_error(&h->fit, t->start_tsc, last_tick(t, h));
}

bool trace_clock(const struct trace *t, struct trace_clock *out)
{
	struct held h;

	hold(&h, t);
	*out = (struct trace_clock){
		.readings = h.n, .error_ns = error_of(t, &h), .is_line = h.fit.is_line};
	clock_fit_free(&h.fit);
	return h.by_cable && h.clock[0];
}

/* ---- the common line ---- */

static size_t find_reference(const struct trace_priv *p)
{
	for (size_t i = 0; i < p->njoined; i++)
		if (has_counter(p->joined[i].t))
			return i;
	return 0;
}

/* Ticks of the reference's line, from its trace's begin; signed, for hosts may have been started long after others. */
struct point {
	uint64_t from;
	int64_t to;
};
typedef VEC(struct point) points;

static bool is_known(const struct held *h)
{
	return h->fit.error_ns != UINT64_MAX;
}

/* The reference's tick when the other one's clock stood there; base: of the two fits' nanoseconds. */
static uint64_t reference_tick(const struct held *h, uint64_t tick, const struct trace *ref,
			       const struct held *ref_held, double base)
{
	const double ns = base + clock_fit_ns(&h->fit, tick);

	return ref->start_tsc +
	       (uint64_t)whole_ticks(clock_fit_ticks(&ref_held->fit, ns, ref->start_tsc));
}

/* The reference's line leads on to where the other trace is, which may be long after its own end. */
static uint64_t common_error(const struct joined *j, const struct held *h, const struct trace *ref,
			     const struct held *ref_held, double base)
{
	const uint64_t own = error_of(j->t, h);
	const uint64_t of_ref =
		clock_fit_error(&ref_held->fit,
				reference_tick(h, j->t->start_tsc, ref, ref_held, base),
				reference_tick(h, last_tick(j->t, h), ref, ref_held, base));

	return own > UINT64_MAX - of_ref ? UINT64_MAX : own + of_ref;
}

/* Both were held against one clock. */
static void by_common_clock(struct joined *j, const struct held *h, const struct trace *ref,
			    const struct held *ref_held, points *out)
{
	double base = (double)(int64_t)(h->fit.base_ns - ref_held->fit.base_ns);

	for (size_t i = 0; i < h->fit.knots.n; i++) {
		const struct clock_knot *k = &h->fit.knots.v[i];

		*vec_push(out) = (struct point){
			k->tick,
			whole_ticks(clock_fit_ticks(&ref_held->fit, base + k->ns, ref->start_tsc))};
	}
	j->node.how =
		!h->by_cable && !ref_held->by_cable ? "by CLOCK_MONOTONIC, which is its host's"
		: (h->fit.is_line || !h->by_cable) && (ref_held->fit.is_line || !ref_held->by_cable)
			? "by readings of the collector's clock, a straight line"
			: "by readings of the collector's clock, from one to the next";
	if (is_known(h) && is_known(ref_held))
		j->node.error_ns = common_error(j, h, ref, ref_held, base);
}

static void by_wall_clock(struct joined *j, const struct trace *ref, points *out)
{
	const struct trace *t = j->t;
	double ns = (double)(int64_t)(trace_session_number(t, "start_real_ns", 0) -
				      trace_session_number(ref, "start_real_ns", 0));
	int64_t begin = whole_ticks(ns * ref->tsc_hz / 1e9);

	j->node.how = "by the hosts' wall clocks";
	*vec_push(out) = (struct point){t->start_tsc, begin};
	*vec_push(out) =
		(struct point){t->start_tsc + (uint64_t)t->tsc_hz, begin + (int64_t)ref->tsc_hz};
}

static void find_way(struct joined *j, const struct held *h, const struct trace *ref,
		     const struct held *ref_held, points *out)
{
	j->node.error_ns = UINT64_MAX;
	if (same_boot(j->t, ref) && has_counter(j->t) && has_counter(ref)) {
		j->node.how = "one clock with the others of its host";
		j->node.error_ns = 0;
		*vec_push(out) = (struct point){j->t->start_tsc,
						(int64_t)(j->t->start_tsc - ref->start_tsc)};
	} else if (h->clock[0] && !strcmp(h->clock, ref_held->clock)) {
		by_common_clock(j, h, ref, ref_held, out);
	} else {
		by_wall_clock(j, ref, out);
	}
}

/* shift: what is added to the reference's own ticks. */
static void draw(struct joined *j, const struct trace *ref, const points *v, uint64_t shift)
{
	if (v->n == 1 && !shift)
		return; /* as it is */
	for (size_t i = 0; i < v->n; i++)
		timeline_add(&j->clock, v->v[i].from,
			     ref->start_tsc + shift + (uint64_t)v->v[i].to);
	timeline_end(&j->clock, 1);
}

static int64_t begin_of(const struct joined *j, const points *v)
{
	double since = (double)(int64_t)(j->t->start_tsc - v->v[0].from);

	/* about: rates are nearly one, but for boards, which are slower */
	return whole_ticks((double)v->v[0].to +
			   (since < 0 && !has_counter(j->t) ? 1000 * since : since));
}

static void whole_span(struct trace *t)
{
	struct trace_priv *p = priv_of(t);

	t->complete = true;
	for (size_t i = 0; i < p->njoined; i++) {
		const struct joined *j = &p->joined[i];
		uint64_t start = timeline_to(&j->clock, j->t->start_tsc);
		uint64_t end = timeline_to(&j->clock, j->t->end_tsc);

		if (!i || start < t->start_tsc)
			t->start_tsc = start;
		if (j->t->end_tsc && end > t->end_tsc)
			t->end_tsc = end;
		t->complete &= j->t->complete;
	}
	if (!t->complete)
		t->end_tsc = 0;
}

/* `clock`, and from there on as `move` says. */
static void go_on(struct timeline *clock, const struct timeline *move)
{
	struct timeline both = {0};
	size_t i = 0, k = 0;

	if (!move->v.n)
		return;
	while (i < clock->v.n || k < move->v.n) {
		const uint64_t to = i < clock->v.n ? clock->v.v[i].to : UINT64_MAX;

		if (k == move->v.n || to < move->v.v[k].from) {
			timeline_add(&both, clock->v.v[i].from, timeline_to(move, to));
			i++;
		} else {
			timeline_add(&both, timeline_from(clock, move->v.v[k].from),
				     move->v.v[k].to);
			k++;
		}
	}
	timeline_end(&both, 1);
	timeline_free(clock);
	*clock = both;
}

void join_clocks(struct trace *t, const struct timeline *moves)
{
	struct trace_priv *p = priv_of(t);
	size_t at = find_reference(p);
	const struct trace *ref = p->joined[at].t;
	struct held *h = xcalloc(p->njoined, sizeof(*h));
	points *ways = xcalloc(p->njoined, sizeof(*ways));
	int64_t first = 0;
	uint64_t shift;

	for (size_t i = 0; i < p->njoined; i++)
		hold(&h[i], p->joined[i].t);
	for (size_t i = 0; i < p->njoined; i++) {
		find_way(&p->joined[i], &h[i], ref, &h[at], &ways[i]);
		if (begin_of(&p->joined[i], &ways[i]) < first)
			first = begin_of(&p->joined[i], &ways[i]);
	}
	/* no time may be before the clock's 0 */
	shift = (uint64_t)-first > ref->start_tsc ? (uint64_t)-first - ref->start_tsc : 0;
	for (size_t i = 0; i < p->njoined; i++) {
		draw(&p->joined[i], ref, &ways[i], shift);
		if (moves)
			go_on(&p->joined[i].clock, &moves[i]);
		clock_fit_free(&h[i].fit);
		vec_free(&ways[i]);
	}
	xfree(h);
	xfree(ways);
	t->tsc_hz = ref->tsc_hz;
	p->ns_mult = priv_of(ref)->ns_mult;
	p->ns_shift = priv_of(ref)->ns_shift;
	whole_span(t);
}

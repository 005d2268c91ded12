/* SPDX-License-Identifier: MIT */
/*
 * watched_estimate.c - how many calls functions may have had while they slept.
 *
 * A program is slower while all its functions are watched, so time is no measure of how far it has come.  That is what
 * its threads call of functions that never slept (beats).  Those of threads that were seen to call the function count, and of
 * threads of the same program that ran only while it slept.
 *
 *     estimate = calls seen + (calls in all windows / beats in them) * beats that were not watched
 *
 * How far it may be off is the sum of
 *   - the ratio's: its standard error (a ratio estimator; Cochran, Sampling Techniques, ch. 6) times Student's t for as
 *     many windows, 0.975;
 *   - phases: where the beats of a gap come faster or slower than those of all gaps, the program does something else there,
 *     and may call the function as time goes by rather than as beats do;
 *   - other work: how far the functions that the beats are of differ in windows and outside (watched_mix.c);
 *   - threads that nobody has seen awake: all that they may have called;
 *   - beats that keep time: who waits for a clock beats as often in a window, in which the program comes less far.
 * Less than two windows, no beat in them, beats that keep time, or are of other functions than outside: it is not known.
 */
#define _GNU_SOURCE
#include "trace/watched/watched_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"

#define LEAST_NS 1000000u /* shorter windows are cut off by the program's end */
#define SLOWEST 0.1       /* of a window is the program's own, whatever the price says */
#define KEEP_TIME 2.0     /* beats that are so much too frequent in windows go by a clock */
#define OTHER 0.33        /* of the beats in windows are of other functions than outside, */
#define FACTOR 1.0        /* or one has half of its share there: they say nothing */
#define SOON_NS 20000.0   /* a thread that has stored nothing for longer was not running, perhaps */

static double student(size_t n)
{
	static const double t[] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26};

	return n - 2 < sizeof(t) / sizeof(*t) ? t[n - 2] : 2.1;
}

/* ---- what each thread has done, between moments ---- */

struct moments {
	VEC(uint64_t) at; /* ascending */
};
struct did {
	uint32_t beats, events;
	uint64_t busy; /* ticks, as far as one event came soon after the other */
};
struct lane_look {
	uint32_t node, program; /* program: lanes of one have the same number */
	uint64_t first, last;
	struct did *did; /* from the moment before the first on: at.n + 1 of them */
};
struct look {
	struct watched *w;
	struct moments *moments; /* by node */
	struct lane_look *lanes;
	uint32_t *stamps; /* by function: the lane that has called it last, + 1 */
	struct mix *mix;
	uint8_t *kinds; /* by interval between moments */
	size_t nprograms;
	bool *calls; /* by program: a thread of it calls the function that is looked at */
};

static void list_moments(struct look *l)
{
	const struct watched *w = l->w;

	l->moments = xcalloc(trace_parts(w->t), sizeof(*l->moments));
	for (size_t i = 0; i < w->v.n; i++) {
		const struct watched_function *f = &w->v.v[i];
		struct moments *m = &l->moments[f->node];

		for (size_t k = 0; k < f->spans.n; k++) {
			*vec_push(&m->at) = f->spans.v[k].from;
			*vec_push(&m->at) = f->spans.v[k].to;
		}
	}
	for (uint32_t node = 0; node < trace_parts(w->t); node++) {
		struct moments *m = &l->moments[node];

		m->at.n = sort_uint64_once(m->at.v, m->at.n);
	}
}

/* How many of them are not after this one. */
static size_t place_of(const struct moments *m, uint64_t tsc)
{
	return partition_point(i, m->at.n, m->at.v[i] <= tsc);
}

static void count_call(struct watched_function *f, uint64_t tsc)
{
	const size_t at = partition_point(i, f->spans.n, f->spans.v[i].to <= tsc);

	f->calls++;
	if (at < f->spans.n && tsc >= f->spans.v[at].from)
		f->spans.v[at].calls++;
}

static void take_call(struct look *l, size_t lane, uint32_t i, uint64_t tsc)
{
	count_call(&l->w->v.v[i], tsc);
	if (l->stamps[i] == lane + 1)
		return;
	l->stamps[i] = (uint32_t)lane + 1;
	*vec_push(&l->w->v.v[i].lanes) = (uint32_t)lane;
}

static void read_lane(struct look *l, size_t lane)
{
	const struct trace *t = l->w->t;
	struct lane_look *x = &l->lanes[lane];
	const struct moments *m = &l->moments[t->lanes[lane].node];
	struct trace_cursor *c = trace_cursor_open(t, (int)lane);
	const uint64_t soon = (uint64_t)(SOON_NS * t->tsc_hz / 1e9);
	struct trace_event e;
	struct did *d;
	size_t place;
	uint32_t i;

	x->node = t->lanes[lane].node;
	x->did = xcalloc(m->at.n + 1, sizeof(*x->did));
	mix_begin(l->mix, x->node, x->program);
	while (trace_cursor_next(c, &e)) {
		if (!x->last)
			x->first = x->last = e.tsc;
		place = place_of(m, e.tsc);
		d = &x->did[place];
		d->events++;
		d->busy += e.tsc - x->last < soon ? e.tsc - x->last : soon;
		x->last = e.tsc;
		if (e.s.event >= KRON_EVENT_JUMPS || e.s.event & 1)
			continue;
		i = index_find(&l->w->by_function, watched_key(x->node, e.s.event / 2));
		if (i != INDEX_NONE)
			take_call(l, lane, i, e.tsc);
		else if (trace_function_of(t, e.s.event)) {
			d->beats++;
			mix_take(l->mix, (uint32_t)place, e.s.event / 2);
		}
	}
	mix_end(l->mix);
	trace_cursor_close(c);
}

/* ---- which program a thread is of ---- */

/* By its file; by the process where that is not known. */
static int by_program(const void *a, const void *b, void *trace)
{
	const struct trace *t = trace;
	const uint32_t x = t->lanes[*(const uint32_t *)a].proc_uid,
		       y = t->lanes[*(const uint32_t *)b].proc_uid;
	const struct trace_proc *p = trace_proc_of(t, x), *q = trace_proc_of(t, y);

	if (p && p->exe && q && q->exe)
		return strcmp(p->exe, q->exe);
	if ((p && p->exe) || (q && q->exe))
		return p && p->exe ? 1 : -1;
	return (x > y) - (x < y);
}

static void number_programs(struct look *l)
{
	struct trace *t = (struct trace *)(uintptr_t)l->w->t;
	uint32_t *order = xmalloc((t->nlanes + 1) * sizeof(*order));

	for (uint32_t i = 0; i < t->nlanes; i++)
		order[i] = i;
	qsort_r(order, t->nlanes, sizeof(*order), by_program, t);
	for (size_t i = 0; i < t->nlanes; i++) {
		l->nprograms += !i || by_program(&order[i - 1], &order[i], t);
		l->lanes[order[i]].program = (uint32_t)l->nprograms - 1;
	}
	xfree(order);
	l->calls = xcalloc(l->nprograms + 1, sizeof(*l->calls));
}

/* ---- of the threads that call a function ---- */

static struct did sum_of(const struct look *l, const struct lane_look *x, uint64_t from,
			 uint64_t to)
{
	const struct moments *m = &l->moments[x->node];
	struct did sum = {0};

	for (size_t i = place_of(m, from); i <= m->at.n && (!i || m->at.v[i - 1] < to); i++) {
		sum.beats += x->did[i].beats;
		sum.events += x->did[i].events;
		sum.busy += x->did[i].busy;
	}
	return sum;
}

static uint64_t next_from(const struct watched_function *f, size_t span)
{
	return span + 1 < f->spans.n ? f->spans.v[span + 1].from : f->end;
}

/* What a thread has done in all spans, and after each.  Its beats after them. */
static double take_lane(const struct look *l, struct watched_function *f, const struct lane_look *x)
{
	double after = 0;
	bool is_awake = false;

	for (size_t i = 0; i < f->spans.n; i++) {
		struct watched_span *s = &f->spans.v[i];
		const struct did in = sum_of(l, x, s->from, s->to);
		const double out =
			s->to < next_from(f, i) ? sum_of(l, x, s->to, next_from(f, i)).beats : 0;

		s->beats += in.beats;
		s->events += in.events;
		s->busy += (double)in.busy;
		s->after += out;
		after += out;
		is_awake |= i && in.events;
	}
	f->threads += is_awake;
	return after;
}

/*
 * In no window it has come any further.  That a thread was there, and waited, say, for its turn, does not tell what it calls
 * later; nor does how it began.
 */
static bool is_unseen(const struct look *l, const struct watched_function *f,
		      const struct lane_look *x)
{
	for (size_t i = 1; i < f->spans.n; i++)
		if (sum_of(l, x, f->spans.v[i].from, f->spans.v[i].to).beats)
			return false;
	return x->last != 0;
}

static void take_lanes(const struct look *l, struct watched_function *f)
{
	size_t k = 0;

	memset(l->calls, 0, l->nprograms * sizeof(*l->calls));
	vec_for(&f->lanes, lane)
		l->calls[l->lanes[*lane].program] = true;
	for (uint32_t lane = 0; lane < l->w->t->nlanes; lane++) {
		const struct lane_look *x = &l->lanes[lane];
		const bool calls = k < f->lanes.n && f->lanes.v[k] == lane;

		k += calls;
		if (x->node != f->node)
			continue;
		if (calls)
			take_lane(l, f, x);
		else if (l->calls[x->program] && is_unseen(l, f, x))
			f->doubt += take_lane(l, f, x);
	}
}

/* ---- estimates ---- */

struct sums {
	double calls, beats, events, busy, ticks; /* in windows */
	double after, gap_ticks;                  /* between them, and before and after */
	double seen;
	size_t n; /* of the windows */
};

static bool is_window(const struct watched *w, const struct watched_span *s)
{
	return trace_ns(w->t, s->to - s->from) >= LEAST_NS;
}

static struct sums sum_up(const struct look *l, const struct watched_function *f)
{
	struct sums sum = {0};

	for (size_t i = 0; i < f->spans.n; i++) {
		const struct watched_span *s = &f->spans.v[i];

		sum.seen += (double)s->calls; /* not what came while it turned: nor are its beats */
		sum.after += s->after;
		sum.gap_ticks += (double)(next_from(f, i) - s->to);
		if (!i || !is_window(l->w, s)) /* how a program begins says little */
			continue;
		sum.n++;
		sum.calls += (double)s->calls;
		sum.beats += s->beats;
		sum.events += s->events;
		sum.busy += s->busy;
		sum.ticks += (double)(s->to - s->from);
	}
	return sum;
}

/* Of the ratio. */
static double error_of_ratio(const struct look *l, const struct watched_function *f,
			     const struct sums *sum)
{
	const double ratio = sum->calls / sum->beats, n = (double)sum->n;
	double squares = 0;

	for (size_t i = 1; i < f->spans.n; i++) {
		const double off = (double)f->spans.v[i].calls - ratio * f->spans.v[i].beats;

		squares += is_window(l->w, &f->spans.v[i]) ? off * off : 0;
	}
	return (student(sum->n) * sqrt(squares * n / (n - 1)) +
		2 * sqrt(sum->calls > 1 ? sum->calls : 1)) /
	       sum->beats;
}

/* Calls that a gap has more or less, if they come with time. */
static double phases(const struct watched_function *f, const struct sums *sum)
{
	const double pace = sum->gap_ticks > 0 ? sum->after / sum->gap_ticks : 0;
	double off = 0;

	for (size_t i = 0; i < f->spans.n; i++)
		off += fabs(f->spans.v[i].after -
			    pace * (double)(next_from(f, i) - f->spans.v[i].to));
	return off * sum->calls / sum->beats;
}

/* How far the beats in windows are apart from those outside, by the functions that they are of. */
static struct mix_apart apart(struct look *l, const struct watched_function *f)
{
	const struct moments *m = &l->moments[f->node];

	l->kinds = xrealloc(l->kinds, m->at.n + 1);
	memset(l->kinds, MIX_NEITHER, m->at.n + 1);
	for (size_t i = 0; i < f->spans.n; i++) {
		const struct watched_span *s = &f->spans.v[i];

		for (size_t k = place_of(m, s->from);
		     k <= m->at.n && m->at.v[k - 1] < next_from(f, i); k++)
			if (m->at.v[k - 1] >= s->to)
				l->kinds[k] = MIX_OUT;
			else if (i && is_window(l->w, s))
				l->kinds[k] = MIX_IN;
	}
	return mix_apart(l->mix, f->node, l->calls, l->kinds);
}

/* In a loop, the least. */
static double price_ns(const struct trace *t)
{
	const char *text = trace_session(t, "probe_ns");

	return text ? strtod(text, NULL) : 0;
}

/*
 * By how many times beats come more often in windows than those of a program that is slower there, and that has as
 * much of the processors as it can have outside.  1: they are right.
 */
static double keep_time(const struct look *l, const struct watched_function *f,
			const struct sums *sum)
{
	const double threads = f->threads ? f->threads : 1;
	double own, pace;

	if (sum->after <= 0 || sum->gap_ticks <= 0 || sum->busy <= 0)
		return 1;
	own = 1 - sum->events * price_ns(l->w->t) * l->w->t->tsc_hz / 1e9 / sum->busy;
	own = own < SLOWEST ? SLOWEST : own;
	own *= sum->busy / (sum->ticks * threads);
	pace = (sum->beats / sum->ticks) / (sum->after / sum->gap_ticks);
	return pace > own ? pace / own : 1;
}

static void estimate(struct look *l, struct watched_function *f)
{
	const struct sums sum = sum_up(l, f);
	struct mix_apart mix;
	double ratio, too_many;

	if (!f->since) { /* it has never slept in this node */
		f->estimate = (double)f->calls;
		f->error = 0;
	}
	if (!f->since || sum.n < 2 || sum.beats <= 0)
		return;
	too_many = keep_time(l, f, &sum);
	if (too_many >= KEEP_TIME)
		return;
	mix = apart(l, f);
	if (mix.other >= OTHER || mix.factor >= FACTOR)
		return;
	ratio = sum.calls / sum.beats;
	f->estimate = sum.seen + ratio * sum.after;
	if (f->estimate < (double)f->calls)
		f->estimate = (double)f->calls;
	f->error = error_of_ratio(l, f, &sum) * sum.after + phases(f, &sum) + ratio * f->doubt +
		   (too_many - 1 + fmax(mix.other, mix.factor)) * ratio * sum.after;
}

void watched_estimate(struct watched *w)
{
	struct look l = {.w = w};

	l.lanes = xcalloc(w->t->nlanes + 1, sizeof(*l.lanes));
	l.stamps = xcalloc(w->v.n + 1, sizeof(*l.stamps));
	list_moments(&l);
	l.mix = mix_new(trace_function_limit(w->t));
	number_programs(&l);
	for (size_t lane = 0; lane < w->t->nlanes; lane++)
		read_lane(&l, lane);
	vec_for(&w->v, f) {
		take_lanes(&l, f);
		estimate(&l, f);
	}
	for (size_t lane = 0; lane < w->t->nlanes; lane++)
		xfree(l.lanes[lane].did);
	for (size_t node = 0; node < trace_parts(w->t); node++)
		vec_free(&l.moments[node].at);
	xfree(l.moments);
	xfree(l.lanes);
	xfree(l.stamps);
	xfree(l.calls);
	xfree(l.kinds);
	mix_free(l.mix);
}

/* SPDX-License-Identifier: MIT */
/*
 * clock_fit.c - see clock_fit.h.
 *
 * The bound of a line: at a reading it is off by no more than the reading's own bound and the line's distance from it.
 * If both clocks are straight, what is true at an early and at a late reading is true between them, and grows evenly
 * outside; the best such pair is taken.
 *
 * No two clocks that anybody adjusts drift apart by more than DRIFT: Linux slews by half of that.  Readings within a
 * millisecond tell less than that of the rate.
 */
#include "trace/times/clock_fit.h"

#include <math.h>

#include "base/search.h"

#define SLACK_NS 20.0 /* rounding of what was read */
#define DRIFT 1e-3

struct line {
	double tick0, ns0; /* the middle: relative to the first reading */
	double rate;       /* ns a tick */
};

static double ticks_from(const struct clock_reading *v, size_t i)
{
	return (double)(int64_t)(v[i].tick - v[0].tick);
}

static double ns_from(const struct clock_reading *v, size_t i)
{
	return (double)(int64_t)(v[i].ns - v[0].ns);
}

static double weight(const struct clock_reading *r)
{
	double e = (double)r->error_ns + SLACK_NS;

	return 1 / (e * e);
}

/* By least squares. */
static bool draw_line(struct line *l, const struct clock_reading *v, size_t n)
{
	double w = 0, x = 0, y = 0, xx = 0, xy = 0;

	for (size_t i = 0; i < n; i++) {
		w += weight(&v[i]);
		x += weight(&v[i]) * ticks_from(v, i);
		y += weight(&v[i]) * ns_from(v, i);
	}
	l->tick0 = x / w;
	l->ns0 = y / w;
	for (size_t i = 0; i < n; i++) {
		double dx = ticks_from(v, i) - l->tick0;

		xx += weight(&v[i]) * dx * dx;
		xy += weight(&v[i]) * dx * (ns_from(v, i) - l->ns0);
	}
	l->rate = xx > 0 ? xy / xx : 0;
	return l->rate > 0;
}

static double line_at(const struct line *l, double ticks)
{
	return l->ns0 + (ticks - l->tick0) * l->rate;
}

/* How far off the line may be at a reading. */
static double bound_at(const struct line *l, const struct clock_reading *v, size_t i)
{
	return fabs(line_at(l, ticks_from(v, i)) - ns_from(v, i)) + (double)v[i].error_ns + 1;
}

static bool passes_all(const struct line *l, const struct clock_reading *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bound_at(l, v, i) > 2 * (double)v[i].error_ns + SLACK_NS)
			return false;
	return true;
}

static size_t best_of(const struct line *l, const struct clock_reading *v, size_t from, size_t to)
{
	size_t best = from;

	for (size_t i = from; i < to; i++)
		if (bound_at(l, v, i) < bound_at(l, v, best))
			best = i;
	return best;
}

/* How wrong a rate can be that two bounds so far apart allow. */
static double rate_error(double bounds, double span, double rate, double hz)
{
	return fmin(bounds / span, fabs(rate - 1e9 / hz) + DRIFT * 1e9 / hz);
}

/* Of the whole span, from what is known at an early and a late reading. */
static double bound_of(const struct line *l, const struct clock_reading *v, size_t n, double hz,
		       double *growth)
{
	size_t third = (n + 2) / 3;
	size_t early = best_of(l, v, 0, third), late = best_of(l, v, n - third, n);
	double a = bound_at(l, v, early), b = bound_at(l, v, late);

	*growth = rate_error(a + b, ticks_from(v, late) - ticks_from(v, early), l->rate, hz);
	return fmax(a + *growth * ticks_from(v, early),
		    b + *growth * (ticks_from(v, n - 1) - ticks_from(v, late)));
}

/* Readings that lie close together say less of the rate than the clock itself: its line, through their middle. */
static void straighten(struct line *l, const struct clock_reading *v, size_t n, double hz)
{
	struct line own = *l;

	own.rate = 1e9 / hz;
	if (fabs(l->rate - own.rate) > DRIFT * own.rate && passes_all(&own, v, n))
		*l = own;
}

static void take_line(struct clock_fit *f, const struct line *l, const struct clock_reading *v,
		      size_t n, double hz)
{
	const size_t ends[] = {0, n - 1};
	double bound;

	for (size_t i = 0; i < 2; i++)
		*vec_push(&f->knots) =
			(struct clock_knot){v[ends[i]].tick, line_at(l, ticks_from(v, ends[i]))};
	f->is_line = true;
	bound = ceil(bound_of(l, v, n, hz, &f->growth));
	f->error_ns = bound < 0x1p63 ? (uint64_t)bound : UINT64_MAX;
}

/* Of the piece that ends at a reading. */
static double piece_error(const struct clock_reading *v, size_t i, double hz)
{
	const double ticks = ticks_from(v, i) - ticks_from(v, i - 1);

	return rate_error((double)(v[i].error_ns + v[i - 1].error_ns), ticks,
			  (ns_from(v, i) - ns_from(v, i - 1)) / ticks, hz);
}

/* Between the readings; the worst of their bounds is that of all.  The first piece and the last one go on. */
static void take_pieces(struct clock_fit *f, const struct clock_reading *v, size_t n, double hz)
{
	for (size_t i = 0; i < n; i++) {
		*vec_push(&f->knots) = (struct clock_knot){v[i].tick, ns_from(v, i)};
		if (v[i].error_ns > f->error_ns)
			f->error_ns = v[i].error_ns;
	}
	f->growth = fmax(piece_error(v, 1, hz), piece_error(v, n - 1, hz));
}

bool clock_fit_make(struct clock_fit *f, const struct clock_reading *v, size_t n, double hz)
{
	struct line l;

	*f = (struct clock_fit){0};
	for (size_t i = 1; i < n; i++)
		if (v[i].tick <= v[i - 1].tick || v[i].ns <= v[i - 1].ns)
			return false;
	if (!n || !(hz >= 1 && hz < 0x1p62))
		return false;
	f->base_ns = v[0].ns;
	if (n == 1) {
		*vec_push(&f->knots) = (struct clock_knot){v[0].tick, 0};
		*vec_push(&f->knots) = (struct clock_knot){v[0].tick + (uint64_t)hz, 1e9};
		f->error_ns = UINT64_MAX; /* nobody knows how fast they drift apart */
		return true;
	}
	if (draw_line(&l, v, n) && passes_all(&l, v, n)) {
		straighten(&l, v, n, hz);
		take_line(f, &l, v, n, hz);
	} else {
		take_pieces(f, v, n, hz);
	}
	return true;
}

uint64_t clock_fit_error(const struct clock_fit *f, uint64_t from_tick, uint64_t to_tick)
{
	double before, after, error;

	if (!f->knots.n || f->error_ns == UINT64_MAX)
		return UINT64_MAX;
	before = (double)(int64_t)(f->knots.v[0].tick - from_tick);
	after = (double)(int64_t)(to_tick - f->knots.v[f->knots.n - 1].tick);
	error = (double)f->error_ns + ceil(f->growth * fmax(0, fmax(before, after)));
	return error < 0x1p63 ? (uint64_t)error : UINT64_MAX;
}

void clock_fit_free(struct clock_fit *f)
{
	vec_free(&f->knots);
}

/* The piece that begins here holds. */
static const struct clock_knot *piece_of(const struct clock_fit *f, size_t after)
{
	size_t last = f->knots.n - 2;

	after = after ? after - 1 : 0;
	return &f->knots.v[after < last ? after : last];
}

double clock_fit_ns(const struct clock_fit *f, uint64_t tick)
{
	const struct clock_knot *k =
		piece_of(f, partition_point(i, f->knots.n, f->knots.v[i].tick <= tick));
	double rate = (k[1].ns - k[0].ns) / (double)(k[1].tick - k[0].tick);

	return k[0].ns + (double)(int64_t)(tick - k[0].tick) * rate;
}

double clock_fit_ticks(const struct clock_fit *f, double ns, uint64_t from_tick)
{
	const struct clock_knot *k =
		piece_of(f, partition_point(i, f->knots.n, f->knots.v[i].ns <= ns));
	double rate = (double)(k[1].tick - k[0].tick) / (k[1].ns - k[0].ns);

	return (double)(int64_t)(k[0].tick - from_tick) + (ns - k[0].ns) * rate;
}

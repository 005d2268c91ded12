/* SPDX-License-Identifier: MIT */
/* slack.c - see slack.h. */
#include "trace/analysis/slack.h"

#include "base/vec.h"

/* Of one that began or ended after the last reading: what may have come after it is not known. */
static uint64_t without_end(struct slack *s, struct trace_bounds b, uint64_t at)
{
	s->has_no_end = true;
	return at > b.lo ? at - b.lo : 0;
}

/* What the stretch of a moment adds, which is estimated at `at`; 0 if it has been counted, or is known to the tick. */
static uint64_t count(struct slack *s, struct slack_seen *seen, struct trace_bounds b, uint64_t at)
{
	if (b.hi == UINT64_MAX)
		return without_end(s, b, at);
	if (b.hi <= b.lo || b.lo == seen->reading[0] || b.lo == seen->reading[1])
		return 0;
	seen->reading[1] = seen->reading[0];
	seen->reading[0] = b.lo;
	return b.hi - b.lo;
}

static uint64_t width(struct slack *s, struct trace_bounds b, uint64_t at)
{
	return b.hi == UINT64_MAX ? without_end(s, b, at) : b.hi - b.lo;
}

struct trace_bounds slack_between(struct trace_bounds from, struct trace_bounds to)
{
	struct trace_bounds d = {0, UINT64_MAX};

	if (from.hi != UINT64_MAX && to.lo > from.hi)
		d.lo = to.lo - from.hi;
	if (to.hi != UINT64_MAX)
		d.hi = to.hi > from.lo ? to.hi - from.lo : 0;
	return d;
}

struct trace_bounds slack_around(const struct slack *s, uint64_t sum, uint64_t off)
{
	return (struct trace_bounds){sum > off ? sum - off : 0,
				     s->has_no_end ? UINT64_MAX : sum + off};
}

struct trace_bounds slack_around_average(const struct slack *s, uint64_t ns, uint64_t off,
					 uint64_t n)
{
	return s ? slack_around(s, ns, n ? off / n + 1 : 0) : (struct trace_bounds){ns, ns};
}

void slack_add_length(struct slack *s, struct trace_bounds d, bool is_open)
{
	const long double w = d.hi == UINT64_MAX ? 0 : (long double)(d.hi - d.lo);

	s->squares += w * w;
	if (!s->has_calls)
		s->longest = d;
	if (!s->has_calls || (!is_open && !s->has_ended))
		s->shortest = d;
	s->has_calls = true;
	s->has_ended |= !is_open;
	if (!is_open || !s->has_ended) {
		s->shortest.lo = d.lo < s->shortest.lo ? d.lo : s->shortest.lo;
		s->shortest.hi = d.hi < s->shortest.hi ? d.hi : s->shortest.hi;
	}
	s->longest.lo = d.lo > s->longest.lo ? d.lo : s->longest.lo;
	s->longest.hi = d.hi > s->longest.hi ? d.hi : s->longest.hi;
}

void slack_add(struct slack *s, const struct pair_call *c)
{
	uint64_t off = count(s, &s->for_total, c->entry, c->entry_tsc);

	off += count(s, &s->for_total, c->exit, c->exit_tsc);
	s->total += off;
	s->sum += c->recursive ? width(s, c->entry, c->entry_tsc) + width(s, c->exit, c->exit_tsc)
			       : off;
	slack_add_callee(s, c);
	if (!c->spans_loss)
		slack_add_length(s, slack_between(c->entry, c->exit), c->open);
}

void slack_add_callee(struct slack *s, const struct pair_call *c)
{
	s->self += count(s, &s->for_self, c->entry, c->entry_tsc);
	s->self += count(s, &s->for_self, c->exit, c->exit_tsc);
}

void slack_add_spread(struct slack *s, struct trace_bounds d)
{
	const unsigned lo = loghist_bin(d.lo), hi = loghist_bin(d.hi);

	loghist_add(&s->least, d.lo);
	loghist_add(&s->most, d.hi);
	for (unsigned i = 0; i <= LOGHIST_BITS; i++)
		s->elsewhere[i] += lo >> i != hi >> i;
}

void slack_add_interval(struct slack *s, const struct interval *i)
{
	const struct trace_bounds d = slack_between(i->begin_in, i->end_in);
	const uint64_t begin = (uint64_t)i->begin, end = begin + (uint64_t)i->ticks;

	if (i->is_outermost)
		s->sum += count(s, &s->for_total, i->begin_in, begin) +
			  count(s, &s->for_total, i->end_in, end);
	else
		s->sum += width(s, i->begin_in, begin) + width(s, i->end_in, end);
	slack_add_length(s, d, false);
	slack_add_spread(s, d);
}

uint64_t slack_elsewhere(const struct slack *s, unsigned bins)
{
	unsigned i = 0;

	while (i < LOGHIST_BITS && 1u << i < bins)
		i++;
	return s->elsewhere[i];
}

/* A percentile is the middle of its bin: it may be off by a 64th, the bounds are not to be. */
struct trace_bounds slack_percentile(const struct slack *s, unsigned percent)
{
	const uint64_t lo = loghist_percentile(&s->least, percent);
	const uint64_t hi = loghist_percentile(&s->most, percent);

	/* the last bins are those of UINT64_MAX: no trace is as long */
	return (struct trace_bounds){lo - lo / 64, hi >> 63 ? UINT64_MAX : hi + hi / 64};
}

struct slack *slack_at(struct slack **row)
{
	if (!*row)
		*row = xcalloc(1, sizeof(**row));
	return *row;
}

void slack_free(struct slack *s)
{
	if (!s)
		return;
	loghist_free(&s->least);
	loghist_free(&s->most);
	xfree(s);
}

/* SPDX-License-Identifier: MIT */
/* slack.c - see slack.h. */
#include "trace/analysis/slack.h"

#include "base/vec.h"

/* What a stretch adds; 0 if it has been counted, or is known to the tick, or has no end. */
static uint64_t count(struct slack_seen *seen, struct trace_bounds b)
{
	if (b.hi == UINT64_MAX || b.hi <= b.lo || b.lo == seen->reading[0] ||
	    b.lo == seen->reading[1])
		return 0;
	seen->reading[1] = seen->reading[0];
	seen->reading[0] = b.lo;
	return b.hi - b.lo;
}

static uint64_t width(struct trace_bounds b)
{
	return b.hi == UINT64_MAX ? 0 : b.hi - b.lo;
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

struct trace_bounds slack_around(uint64_t sum, uint64_t off)
{
	return (struct trace_bounds){sum > off ? sum - off : 0, sum + off};
}

void slack_add_length(struct slack *s, const struct pair_call *c)
{
	const struct trace_bounds d = slack_between(c->entry, c->exit);

	if (!s->has_calls) {
		s->has_calls = true;
		s->shortest = s->longest = d;
		return;
	}
	s->shortest.lo = d.lo < s->shortest.lo ? d.lo : s->shortest.lo;
	s->shortest.hi = d.hi < s->shortest.hi ? d.hi : s->shortest.hi;
	s->longest.lo = d.lo > s->longest.lo ? d.lo : s->longest.lo;
	s->longest.hi = d.hi > s->longest.hi ? d.hi : s->longest.hi;
}

void slack_add(struct slack *s, const struct pair_call *c)
{
	uint64_t off = count(&s->for_total, c->entry) + count(&s->for_total, c->exit);

	s->total += off;
	s->sum += c->recursive ? width(c->entry) + width(c->exit) : off;
	slack_add_callee(s, c);
	if (!c->spans_loss)
		slack_add_length(s, c);
}

void slack_add_callee(struct slack *s, const struct pair_call *c)
{
	s->self += count(&s->for_self, c->entry) + count(&s->for_self, c->exit);
}

void slack_add_spread(struct slack *s, const struct pair_call *c)
{
	const struct trace_bounds d = slack_between(c->entry, c->exit);

	if (c->spans_loss)
		return;
	loghist_add(&s->least, d.lo);
	loghist_add(&s->most, d.hi);
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

/* SPDX-License-Identifier: MIT */
/*
 * join_clock.c - the times of several traces on one line: that of the first trace whose samples have the
 * processor's counter.
 *
 *   same boot, processor's counter   one clock already
 *   same boot, a board's clock       by CLOCK_MONOTONIC, which both were held against
 *   else                             by the hosts' wall clocks
 *
 * Whatever the way, it stands beside the node, with what it may be wrong by.
 */
#include <math.h>
#include <string.h>

#include "trace/reader_impl.h"

static bool has_counter(const struct trace *t)
{
	return !trace_session(t, "bus") || trace_session_is(t, "bus", "lane");
}

static bool same_boot(const struct trace *a, const struct trace *b)
{
	const char *boot = trace_session(a, "boot_id");

	return boot && *boot && trace_session_is(b, "boot_id", boot);
}

static size_t find_reference(const struct trace_priv *p)
{
	for (size_t i = 0; i < p->njoined; i++)
		if (has_counter(p->joined[i].t))
			return i;
	return 0;
}

/* Nanoseconds of the key's clock at the start, later than those of the reference. */
static int64_t later_by(const struct trace *t, const struct trace *ref, const char *key)
{
	return (int64_t)(trace_session_number(t, key, 0) - trace_session_number(ref, key, 0));
}

/* Ticks of the reference, signed: hosts may have been started long after one another. */
static int64_t ticks_of(const struct trace *ref, int64_t ns)
{
	return (int64_t)llround((double)ns * ref->tsc_hz / 1e9);
}

/* When the trace begins, in ticks from the reference's begin. */
static int64_t begin_of(struct joined *j, const struct trace *ref)
{
	const struct trace *t = j->t;
	bool wall = !same_boot(t, ref);

	j->node.error_ns = UINT64_MAX;
	if (!wall && has_counter(t) && has_counter(ref)) {
		j->node.how = "one clock with the others of its host";
		j->node.error_ns = 0;
		return (int64_t)(t->start_tsc - ref->start_tsc);
	}
	j->node.how = wall ? "by the hosts' wall clocks" : "by CLOCK_MONOTONIC, which is its host's";
	return ticks_of(ref, later_by(t, ref, wall ? "start_real_ns" : "start_mono_ns"));
}

/* shift: what is added to the reference's own ticks. */
static void draw(struct joined *j, const struct trace *ref, int64_t begin, uint64_t shift)
{
	const struct trace *t = j->t;
	uint64_t to = ref->start_tsc + shift + (uint64_t)begin;

	if (j->node.error_ns == 0 && !shift)
		return; /* as it is */
	timeline_add(&j->clock, t->start_tsc, to);
	timeline_end(&j->clock, j->node.error_ns == 0 ? 1 : ref->tsc_hz / t->tsc_hz);
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
		if (end > t->end_tsc)
			t->end_tsc = end;
		t->complete &= j->t->complete;
	}
	if (!t->complete)
		t->end_tsc = 0;
}

void join_clocks(struct trace *t)
{
	struct trace_priv *p = priv_of(t);
	const struct trace *ref = p->joined[find_reference(p)].t;
	int64_t first = 0;
	uint64_t shift;

	for (size_t i = 0; i < p->njoined; i++) {
		int64_t begin = begin_of(&p->joined[i], ref);

		if (begin < first)
			first = begin;
	}
	/* no time may be before the clock's 0 */
	shift = (uint64_t)-first > ref->start_tsc ? (uint64_t)-first - ref->start_tsc : 0;
	for (size_t i = 0; i < p->njoined; i++)
		draw(&p->joined[i], ref, begin_of(&p->joined[i], ref), shift);
	t->tsc_hz = ref->tsc_hz;
	p->ns_mult = priv_of(ref)->ns_mult;
	p->ns_shift = priv_of(ref)->ns_shift;
	whole_span(t);
}

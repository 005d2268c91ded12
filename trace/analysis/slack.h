/* SPDX-License-Identifier: MIT */
/*
 * slack.h - how far times may be off where several samples share a reading of the clock (trace/sparse.h).
 *
 *   readings   R1 ──────────── R2 ──────────── R3       f began somewhere between R1 and R2, and ended between
 *   f                ?begin            ?end             R2 and R3: two stretches that it may have or not
 *
 * Within a stretch between two readings a function has nothing, all of it, or some.  It is known unless the function
 * (for self times: it, or one that it calls) begins or ends there.  So the sum over all calls is off by
 * no more than the stretches in which that happened, each counted once, however many calls there were.
 */
#ifndef TRACE_SLACK_H
#define TRACE_SLACK_H

#include "trace/analysis/intervals.h"
#include "trace/analysis/loghist.h"
#include "trace/analysis/pairs.h"

struct slack_seen { /* the last stretches that were counted */
	uint64_t reading[2];
};

struct slack {
	uint64_t total, self; /* either may be off by this */
	uint64_t sum;         /* likewise, of all calls' lengths, for the mean */
	bool has_no_end; /* some call began or ended after the last reading: the sums may be any longer */
	struct slack_seen for_total, for_self;
	bool has_calls;
	bool has_ended;                        /* some of them: the shortest is one of those */
	struct trace_bounds shortest, longest; /* between these it lies; high UINT64_MAX: unknown */
	long double squares; /* sum of those of the lengths' errors, for the deviation */
	/* Of each length, by slack_add_spread(). */
	struct loghist least, most;
	/* How many may lie in another one, of 1, 2, 4 ... bins together. */
	uint64_t elsewhere[LOGHIST_BITS + 1];
};

/* From one moment to a later one. */
struct trace_bounds slack_between(struct trace_bounds from, struct trace_bounds to);
/* The one of a row, made where there is none yet; for slack_free(). */
struct slack *slack_at(struct slack **row);
/* One more call of the function; and of one that it calls, or that interrupts it. */
void slack_add(struct slack *s, const struct pair_call *c);
/* For shortest, longest and squares; slack_add() does it but for calls that span a loss. */
void slack_add_length(struct slack *s, struct trace_bounds length, bool is_open);
void slack_add_callee(struct slack *s, const struct pair_call *c);
/* One more interval, for sum, shortest, longest and those below. */
void slack_add_interval(struct slack *s, const struct interval *i);
/* For percentiles and histograms. */
void slack_add_spread(struct slack *s, struct trace_bounds length);
/* What percent of the calls did not exceed: each call's least gives the least that this was, its most the most. */
struct trace_bounds slack_percentile(const struct slack *s, unsigned percent);
/* How many lengths may lie in another part of a histogram, whose parts are so many bins wide. */
uint64_t slack_elsewhere(const struct slack *s, unsigned bins);
void slack_free(struct slack *s); /* NULL: nothing */
/* A sum of the row that may be off by so much. */
struct trace_bounds slack_around(const struct slack *s, uint64_t sum, uint64_t off);
/* An average of n in ns, whose sum may be off by `off` ns.  s NULL: it is known. */
struct trace_bounds slack_around_average(const struct slack *s, uint64_t ns, uint64_t off,
					 uint64_t n);

#endif

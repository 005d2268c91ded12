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

#include "trace/analysis/loghist.h"
#include "trace/analysis/pairs.h"

struct slack_seen { /* the last stretches that were counted */
	uint64_t reading[2];
};

struct slack {
	uint64_t total, self,
		sum; /* either may be off by this; sum: of all calls' lengths, for the mean */
	struct slack_seen for_total, for_self;
	bool has_calls;
	struct trace_bounds shortest, longest; /* between these it lies; high UINT64_MAX: unknown */
	struct loghist least, most;            /* of each call's length, by slack_add_spread() */
};

/* From one moment to a later one. */
struct trace_bounds slack_between(struct trace_bounds from, struct trace_bounds to);
/* The one of a row, made where there is none yet; for slack_free(). */
struct slack *slack_at(struct slack **row);
/* One more call of the function; and of one that it calls, or that interrupts it. */
void slack_add(struct slack *s, const struct pair_call *c);
/* For shortest and longest; slack_add() does it but for calls that span a loss. */
void slack_add_length(struct slack *s, const struct pair_call *c);
void slack_add_callee(struct slack *s, const struct pair_call *c);
/* For percentiles, of the calls that slack_add() takes for shortest and longest. */
void slack_add_spread(struct slack *s, const struct pair_call *c);
/* What percent of the calls did not exceed: each call's least gives the least that this was, its most the most. */
struct trace_bounds slack_percentile(const struct slack *s, unsigned percent);
void slack_free(struct slack *s); /* NULL: nothing */
/* A sum that may be off by so much. */
struct trace_bounds slack_around(uint64_t sum, uint64_t off);

#endif

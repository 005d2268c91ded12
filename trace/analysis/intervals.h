/* SPDX-License-Identifier: MIT */
/*
 * intervals.h - finds the intervals of interval.info in a stream of samples.
 *
 *   samples ─► event ─► definitions that name it ─► open intervals of this source ─► fn()
 *
 * Classes 1 to 3 are matched within one source address (or one processor, or everywhere:
 * match_by), as nested ones: an end belongs to the latest begin that is still open.  So
 * recursion comes out right, and a begin whose end is missing spoils no other.  An interval
 * does not reach across a place where the time of its source goes back: there, another run or
 * another board begins (concatenated files).
 *
 * Class 4 is matched everywhere: the first start with the first end, the second with the
 * second.  In samples of one board, whose time never goes back, an end that has no start
 * before it belongs to none.  Where time does go back, the file was put together from those of
 * several boards; then starts and ends are each put in chronological order, and the k-th start
 * belongs to the k-th end, even if the clocks disagree so much that the length is negative.
 *
 * Nor does one of any class reach from one window (--trigger) into another: what came in between is not known.
 *
 * Times are 64-bit numbers that go on where the board's 56 bits wrap.
 *
 * Samples that are known to be of one clock and in order (a trace of kron's, merged) may say so:
 * then time does not end anything where it steps back a little within a thread, and class 4 is
 * matched at once, so that memory does not grow with the number of intervals.
 *
 * Samples in order may be of several clocks (hosts) that agree as far as is known of each.  Then an end of another
 * clock than its start's may come before it, by as much as the two may be wrong: such an interval is negative.
 */
#ifndef TRACE_INTERVALS_H
#define TRACE_INTERVALS_H

#include "trace/analysis/interval_info.h"
#include "trace/reader.h"

/* The words of --match, in this order. */
#define INTERVALS_MATCH_WORDS "source|cpu|any"
enum intervals_match { MATCH_SOURCE, MATCH_CPU, MATCH_ANY };

struct interval_sample {
	int64_t time;
	uint64_t data; /* user data: the event is its low bits */
	uint64_t mark; /* the caller's; comes back with the intervals that begin and end here */
	uint32_t source, cpu;
	uint32_t clock;         /* intervals_of_clocks() */
	uint64_t window;        /* between two with different ones something may be left out */
	struct trace_bounds in; /* when it was; comes back likewise */
};

/* One that was found.  Source and processor are those of its begin. */
struct interval {
	int64_t begin; /* ticks */
	int64_t ticks; /* end - begin */
	uint64_t begin_mark, end_mark;
	struct trace_bounds begin_in, end_in;
	uint32_t source, end_source;
	uint32_t cpu;
	bool is_outermost; /* of its definition, in what is matched in itself; not known of class 4 */
};

/* Is one of its ends an estimate? */
static inline bool interval_is_between(const struct interval *i)
{
	return i->begin_in.lo != i->begin_in.hi || i->end_in.lo != i->end_in.hi;
}

/* Events of one definition that are in no interval. */
struct intervals_left {
	uint64_t begun; /* begins (class 3: and middles) whose end never came */
	uint64_t ended; /* ends (class 3: and middles) that had no begin */
};

/* row: which of the definition's names. */
typedef void intervals_fn(void *arg, size_t def, int row, const struct interval *i);

struct intervals;

struct intervals *intervals_new(const struct interval_info *info, int match, unsigned event_bits,
				intervals_fn *fn, void *arg);
/* Before the first sample: they are of one clock and in order. */
void intervals_in_order(struct intervals *m);
/* Likewise, of n clocks: by how many ticks each may be wrong; INT64_MAX: nobody knows. */
void intervals_of_clocks(struct intervals *m, const int64_t *doubts, uint32_t n);
void intervals_sample(struct intervals *m, const struct interval_sample *s);
/*
 * Samples may also come source after source, each in order, where no definition is of class 4:
 * match them by MATCH_ANY and call this after each source.  What is open then has no end.
 * Memory does not grow with the number of sources so, and results are the same.
 */
void intervals_end_source(struct intervals *m);
/* After the last sample: class 4, and what is left open. */
void intervals_finish(struct intervals *m);
const struct intervals_left *intervals_left(const struct intervals *m, size_t def);
uint64_t intervals_other(const struct intervals *m); /* samples that no definition names */
uint64_t intervals_parts(const struct intervals *m); /* 1 + how often time went back */
void intervals_free(struct intervals *m);

#endif

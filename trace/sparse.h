/* SPDX-License-Identifier: MIT */
/*
 * sparse.h - the times of samples that copy a reading of the clock (kron record --clock every:N).
 *
 *   slots of a lane, in order:   R1  c  c  c  R2  c  c  ...      R: read the clock, even; c: a copy, odd
 *                                |  between R1 and R2  |
 *
 * A copy was taken after the reading that it copies, and before the next later one that follows it in the lane.
 * In between nothing is known but the order, so it is put at equal distances.  A thread that was off its
 * processor reads the clock before its turn: then the copies before are put at the distances that the lane has
 * had, for it is afterwards that it waited.  With the kernel's record of when it left they are between the
 * reading and that: whoever was switched away since a reading does not copy it
 * (runtime/dynamic/thunk_sparse.S).  A reading of an event that reads each time (--timed, -p) may mean that or
 * nothing: there the distances that the lane has had count as well, and grow until they fit.
 *
 * Knows one lane.  Bound: as many samples are held as share a reading.
 */
#ifndef TRACE_SPARSE_H
#define TRACE_SPARSE_H

#include "base/vec.h"
#include "trace/reader.h"

struct sample_parts { /* what the records right before a sample say of it */
	bool is_wide, has_memory;
	uint32_t high;
	struct trace_memory memory;
};

struct sparse_sample {
	struct kron_sample s;
	const uint32_t *counters;
	struct sample_parts parts;
	bool always_reads; /* as each sample of its event does */
	uint64_t tsc;      /* estimated */
	uint64_t lo, hi;   /* it lies between them, both included */
	bool is_settled;   /* these three are known */
};

/* The thread was off its processor; in == out: nobody knows how long. */
struct sparse_off {
	uint64_t out, in;
};

struct sparse {
	VEC(struct sparse_sample) held;
	size_t at;        /* the next one to be given */
	size_t unsettled; /* from here on; what comes before is settled */
	uint64_t base;    /* the latest reading so far */
	uint64_t gap;     /* what lies between two samples, smoothed; 0: not known */
	unsigned every;   /* so many samples share a reading; 0: not known */
	unsigned since;   /* samples since a reading of an event that does not read each time */
	/* May be set before the first one is put: when the thread was off, and by how much that may be wrong. */
	const struct sparse_off *off;
	size_t noff, off_at; /* off_at: where somebody looked last */
	uint64_t off_error;
	bool is_child; /* what stores here is a child that borrows the thread's memory, not the thread */
};

/* The next sample of the lane; tsc is its time as it stands there. */
void sparse_put(struct sparse *x, const struct sparse_sample *s);
/* There are no more: they end at this time, UINT64_MAX: nobody knows. */
void sparse_end(struct sparse *x, uint64_t end);
/* NULL: more are to be put first, or there are none. */
const struct sparse_sample *sparse_next(struct sparse *x);
/* The one `ahead` places after the last given one; NULL: it is not known yet. */
const struct sparse_sample *sparse_peek(const struct sparse *x, size_t ahead);
void sparse_free(struct sparse *x);

#endif

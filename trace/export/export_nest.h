/* SPDX-License-Identifier: MIT */
/*
 * export_nest.h - a thread's calls for formats whose begins and ends must nest: one track after the
 * other (trace/analysis/tracks.h), each in order of time.
 *
 * Tracks other than the thread's own are gathered and given out after it, as many at a time as fit
 * into some MiB; the lane is read again for the others.
 */
#ifndef TRACE_EXPORT_NEST_H
#define TRACE_EXPORT_NEST_H

#include "base/vec.h"
#include "trace/analysis/tracks.h"

struct export_nest {
	const struct trace *t;
	void *ctx;
	/* What follows is on this track; 0 comes first, and always. */
	void (*track)(void *ctx, uint32_t lane, uint32_t track);
	void (*begin)(void *ctx, uint32_t function, uint64_t tsc);
	/* Of c, how it ended.  Times of a track never run back, so tsc may be later than its end. */
	void (*end)(void *ctx, uint32_t function, uint64_t tsc, const struct track_call *c);
	/* A LOST record, on track 0, or a CPU record; may be NULL */
	void (*special)(void *ctx, const struct trace_event *e);
	/* of a probe that a user placed; may be NULL */
	void (*user_event)(void *ctx, const struct trace_event *e,
			   const struct trace_user_event *u);

	/* private */
	struct tracks *tracks;
	struct export_buffers *buffers;
	uint64_t last;
	uint32_t lane, from, to; /* tracks that are given out, or gathered */
	uint32_t cpu;
	bool gathers;
};

void export_nest_open(struct export_nest *n);
/* All calls of a lane; those that are still open end where trace_lane_end() says. */
void export_nest_lane(struct export_nest *n, uint32_t lane);
void export_nest_close(struct export_nest *n);

/* "NAME", or "NAME, stack 2": what people call a track; for xfree(). */
char *export_track_name(const char *name, uint32_t track);

/* ---- a set of numbers, of functions that were seen ---- */
struct export_set {
	uint64_t *slots; /* number + 1 */
	size_t n, nslots;
};
/* Whether it is new. */
bool export_set_add(struct export_set *s, uint32_t number);
void export_set_free(struct export_set *s);

#endif

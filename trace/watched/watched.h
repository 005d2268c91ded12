/* SPDX-License-Identifier: MIT */
/*
 * watched.h - functions that slept for part of the recording (trace.sleeps), and how many calls they may have had then.
 *
 *   start       sleep        wake sleep             wake sleep          end
 *   ├─ watched ──┤             ├──────┤               ├──────┤             │
 *        first                  window                 window
 *
 * watched_estimate.c says how.
 */
#ifndef TRACE_WATCHED_H
#define TRACE_WATCHED_H

#include "base/vec.h"
#include "trace/index.h"
#include "trace/reader.h"

struct watched_span {
	uint64_t from, to; /* TSC */
	/* watched_count(): */
	uint64_t calls;
	double beats, events,
		busy; /* of the threads that call it: beats, all events, ticks between these */
	double after; /* beats until the next one begins */
};
struct watched_function {
	uint32_t function, node;
	bool by_budget, is_asleep; /* at the end */
	uint64_t since;            /* when it went to sleep first; 0: never, but in another node */
	uint64_t end;              /* of its node's recording */
	uint64_t watched, whole;   /* ticks */
	size_t windows;
	VEC(struct watched_span) spans;
	/* watched_count() */
	VEC(uint32_t) lanes;    /* that were seen to call it */
	uint32_t threads;       /* of these: how many have done anything in windows */
	uint64_t calls;         /* that were seen, in spans and between */
	double doubt;           /* of the beats after: of threads that nobody has seen awake */
	double estimate, error; /* calls; < 0: not known */
};
struct watched {
	const struct trace *t;
	VEC(struct watched_function) v;
	struct index by_function; /* node and function: index in v */
};

/* Empty if none has slept. */
void watched_open(struct watched *w, const struct trace *t);
/* Reads the samples: calls, estimates. */
void watched_count(struct watched *w);
/* Of all nodes together; false: it has never slept. */
bool watched_of(const struct watched *w, uint32_t function, struct watched_function *out);
void watched_free(struct watched *w);

#endif

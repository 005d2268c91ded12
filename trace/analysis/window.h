/* SPDX-License-Identifier: MIT */
/*
 * window.h - the stretches of time around the samples at which a trigger fired.
 *
 *      pre        fires      post
 *   |-------------X-------------|        |-----X-----|
 *
 * Counted in samples, a window begins with the time of the sample that many back, and ends with that
 * of the sample that many ahead.  Samples of the very same time belong to it, too.  What was waited
 * for is in it whole: `pre` counts back from where the waiting began, `post` from where it ended.
 */
#ifndef TRACE_WINDOW_H
#define TRACE_WINDOW_H

#include "base/vec.h"
#include "trace/analysis/trigger.h"

struct trace_window {
	uint64_t from, to; /* tsc, both inclusive */
};

struct window_finder {
	struct trigger_span pre, post;
	double hz;                      /* of the clock; may be set anew as it gets known better */
	VEC(struct trace_window) found; /* in order, apart from each other */
	uint64_t fired;
	uint64_t *ring; /* times of the last samples */
	uint64_t n;     /* samples so far */
	uint64_t open;  /* samples that the newest window still takes */
};

/* Spans as texts, NULL: 1000 samples.  0 or -EINVAL with the sentence. */
int window_finder_init(struct window_finder *f, const char *pre, const char *post, struct err *err);
void window_finder_free(struct window_finder *f);
/* The next sample, in order of time. */
void window_finder_see(struct window_finder *f, uint64_t tsc);
/* Where a window begins whose trigger fires, or begins to wait, at tsc: the last sample seen. */
uint64_t window_finder_from(const struct window_finder *f, uint64_t tsc);
/* The trigger has fired at tsc, after the last sample seen or at it. */
void window_finder_open(struct window_finder *f, uint64_t from, uint64_t tsc);
/* The newest window has its end: nothing at or after this time is in it. */
bool window_finder_is_closed(const struct window_finder *f, uint64_t now);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * signal_frames.h - where handlers that run will go back to.
 *
 * The address is in the signal frame, which the kernel pushes between the interrupted function's frame and
 * the handler's.
 */
#ifndef COLLECT_LIVE_SIGNAL_FRAMES_H
#define COLLECT_LIVE_SIGNAL_FRAMES_H

#include "collect/kernel/process_maps.h"
#include "collect/live/threads.h"

struct signal_frame {
	uint64_t at; /* address of the word that holds pc */
	uint64_t pc;
	uint64_t sp, bp; /* the interrupted function's; 0: it is not a frame of a signal */
};
/* Of a handler that returns by way of the runtime, which corrects the frame then. */
struct wrapped_frame {
	uint64_t at; /* address of the word that holds the restorer's */
	uint64_t pc; /* where it will go on, whatever the handler was shown */
	uint64_t pc_at;
	unsigned signal;
};
struct signal_frames {
	VEC(struct signal_frame) v;
	VEC(struct wrapped_frame) wrapped;
	bool steps; /* one of them goes on with TF */
};

/* Adds the frames on the stacks of all stopped threads. */
void signal_frames_find(struct signal_frames *f, struct live_threads *t,
			const struct process_maps *maps);
void signal_frames_free(struct signal_frames *f);

#endif

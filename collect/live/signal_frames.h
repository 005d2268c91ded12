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
};
struct signal_frames {
	VEC(struct signal_frame) v;
	unsigned wrapped; /* of handlers that return by way of the runtime, which corrects them */
};

/* Adds the frames on the stacks of all stopped threads. */
void signal_frames_find(struct signal_frames *f, struct live_threads *t,
			const struct process_maps *maps);

#endif

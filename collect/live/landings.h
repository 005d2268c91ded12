/* SPDX-License-Identifier: MIT */
/*
 * landings.h - threads that stand at a jump of ours, in the program's text.
 *
 * Besides the windows' own first instructions these are landings and relays: in padding, or in the middle of what
 * another window has displaced.  Who stands there belongs to the stub, and nobody else would know.
 */
#ifndef COLLECT_LIVE_LANDINGS_H
#define COLLECT_LIVE_LANDINGS_H

#include "collect/live/signal_frames.h"

/* Where control comes from pc by jumps alone, if that is a block of this session; else pc. */
uint64_t landings_follow(const struct live_threads *t, const struct process_maps *maps,
			 uint64_t session, uint64_t pc);
/*
 * Threads and handlers' frames that stand at such a jump are put where it leads, which is what they would do next.
 * Before the jumps are taken out, and before anybody asks what stands where they do.  f NULL: the frames stay.
 */
void landings_leave(struct live_threads *t, struct signal_frames *f,
		    const struct process_maps *maps, uint64_t session);
/* The jumps are gone, and the frames were found anew: those of wrapped handlers go on where they did before. */
void landings_keep(struct signal_frames *now, const struct signal_frames *before);

#endif

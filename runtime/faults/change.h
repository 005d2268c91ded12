/* SPDX-License-Identifier: MIT */
/*
 * change.h - blocks come and go while the program runs, and all of its threads stand still: kron/live.h.
 */
#ifndef RUNTIME_CHANGE_H
#define RUNTIME_CHANGE_H

#include <kron/live.h>

/* KRON_LIVE_CHANGE. */
void rt_change(struct kron_live_call *call) __attribute__((visibility("hidden")));
/* call->pc[]: into a stub, if what stands there was displaced. */
void rt_change_move(struct kron_live_call *call) __attribute__((visibility("hidden")));
/* Says that all of them stand still now: proc->stood_ms. */
void rt_change_note_stop(struct kron_live_call *call) __attribute__((visibility("hidden")));

/* One call, with all other threads stopped; on a stack of ours. */
void kron_rt_live(struct kron_live_call *call) __attribute__((visibility("hidden")));
extern uint8_t kron_live_entry[] __attribute__((visibility("hidden")));

#endif

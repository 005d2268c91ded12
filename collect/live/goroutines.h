/* SPDX-License-Identifier: MIT */
/*
 * goroutines.h - where goroutines that Go's runtime has stopped will go on.
 *
 * It stops a goroutine at any instruction by a signal that makes it call runtime.asyncPreempt, as if
 * that call stood there.  So the address on its stack is one that no call returns to.
 */
#ifndef COLLECT_LIVE_GOROUTINES_H
#define COLLECT_LIVE_GOROUTINES_H

#include "collect/live/signal_frames.h"

/* [lo, hi): runtime.asyncPreempt.  -ENOTSUP: its code has a form that we do not know. */
int goroutines_find(struct signal_frames *f, struct live_threads *t,
		    const struct process_maps *maps, uint64_t lo, uint64_t hi, struct err *err);

#endif

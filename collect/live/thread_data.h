/* SPDX-License-Identifier: MIT */
/* thread_data.h - what %fs leads to in stopped threads. */
#ifndef COLLECT_LIVE_THREAD_DATA_H
#define COLLECT_LIVE_THREAD_DATA_H

#include <kron/live.h>

#include "collect/live/threads.h"

struct process_maps;

/* Fills call->data_from and data_end. */
void thread_data_find(struct kron_live_call *call, struct live_threads *t,
		      const struct process_maps *maps);

/*
 * call->tid_offset: where each thread's data has its number, at the same distance from %fs in all of them.
 * room: eight bytes of the process that may be written.  -ENOTSUP: there is no such place.
 */
int thread_data_find_number(struct kron_live_call *call, struct live_threads *t, uint64_t room,
			    struct err *err);

#endif

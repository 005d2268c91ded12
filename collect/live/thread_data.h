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

#endif

/* SPDX-License-Identifier: MIT */
/* newcomers.h - the processes that have been started since we were. */
#ifndef COLLECT_KERNEL_NEWCOMERS_H
#define COLLECT_KERNEL_NEWCOMERS_H

#include <sys/types.h>

/*
 * Calls see() for each that is there now, by the order in which the kernel gives out numbers; not
 * for threads, and not for those whose numbers have come round since.  Cheap where there are few.
 */
void newcomers_for_each(void (*see)(void *ctx, pid_t pid), void *ctx);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * semaphores.h - tells a program that somebody watches its USDT probes.
 *
 * A probe may have a counter beside it that the program looks at before it comes to the probe's
 * place (to save the work of preparing arguments): zero means that nobody is there.
 */
#ifndef COLLECT_SEMAPHORES_H
#define COLLECT_SEMAPHORES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * One more (step 1) or less (-1) in each counter of a process.  0 or -errno.  pidfd: of that
 * process, whatever has its number by now.
 */
int semaphores_change(pid_t pid, int pidfd, uint64_t bias, const uint64_t *vaddrs, size_t n,
		      int step, struct err *err);

#endif

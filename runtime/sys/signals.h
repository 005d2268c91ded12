/* SPDX-License-Identifier: MIT */
/*
 * signals.h - nothing of the program runs on this thread between the two calls.
 */
#ifndef RUNTIME_SIGNALS_H
#define RUNTIME_SIGNALS_H

#include <signal.h>
#include <stdint.h>
#include "runtime/sys/sys.h"

/* Signals that are never blocked, for a fault is fatal while its signal is; memory.c.  Set at START. */
extern uint64_t kron_rt_faults_open __attribute__((visibility("hidden")));

static inline uint64_t rt_signals_block(void)
{
	uint64_t all = ~kron_rt_faults_open;
	uint64_t old = 0;

	sys4(__NR_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&old, 8);
	return old;
}

static inline void rt_signals_restore(uint64_t mask)
{
	sys4(__NR_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, 8);
}

#endif

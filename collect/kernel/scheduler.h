/* SPDX-License-Identifier: MIT */
/*
 * scheduler.h - when a thread was put on its processor last, and who comes first.
 *
 * /proc/PID/task/TID/sched tells it by the scheduler's clock.  There is one for each processor: they differ
 * by what a hypervisor and interrupts took from each.  Only who runs on a processor can read its clock.
 * What is taken between a moment and now makes the moment look later by as much; /proc/stat tells how much that
 * can be, not when.
 */
#ifndef COLLECT_SCHEDULER_H
#define COLLECT_SCHEDULER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct thread_run {
	int cpu;           /* -1: not known */
	uint64_t at;       /* by the clock of its processor, in ns; 0: not known */
	uint64_t switches; /* how often it has gone to sleep */
};

struct thread_run thread_run_read(pid_t pid, pid_t tid);
/* The last of it alone, which takes a third of the time. */
uint64_t thread_switches_read(pid_t pid, pid_t tid);

struct processor_clock {
	int cpu;
	uint64_t now,
		mono; /* the same moment, here and by CLOCK_MONOTONIC, in ns; now is 0: not known */
};

/*
 * Reads the clocks of the processors v[i].cpu, by threads that run there.  It takes 100 ms at most: a processor where
 * others leave no time, and one where we may not run, has no clock.
 */
void processor_clocks_read(struct processor_clock *v, size_t n);
/*
 * The calling process gets a processor before others, as far as it may.  It is alone in its session: with
 * kernel.sched_autogroup_enabled a session has one weight among the others, whatever its processes have.
 */
void scheduler_come_first(void);

#endif

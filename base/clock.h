/* SPDX-License-Identifier: MIT */
/* clock.h - a clock of the kernel's, and the processor's, as one number. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds; signal-safe. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t clock_ms(clockid_t clock)
{
	return clock_ns(clock) / 1000000;
}

/* The time stamp counter.  <x86intrin.h> has it, too, and takes a compiler longer than most files. */
static inline uint64_t clock_tsc(void)
{
	return __builtin_ia32_rdtsc();
}

#endif

/* SPDX-License-Identifier: MIT */
/* clock.c - see clock.h */
#define _GNU_SOURCE
#include "board/bus/clock.h"
#include "base/clock.h"

#include <time.h>

#define SECOND 1000000000ull
#define MS 1000000ull

void time_point_take(struct time_point *t)
{
	struct tightest tight = {0};

	while (tightest_begin(&tight)) {
		uint64_t mono = clock_ns(CLOCK_MONOTONIC);

		if (!tightest_end(&tight))
			continue;
		t->mono_ns = mono;
		t->real_ns = clock_ns(CLOCK_REALTIME);
	}
	t->tsc = tight.tsc;
}

double tsc_hz(const struct time_point *start, const struct time_point *end)
{
	uint64_t ns = end->mono_ns - start->mono_ns;

	return ns ? (double)(end->tsc - start->tsc) * (double)SECOND / (double)ns : 0;
}

uint64_t tsc_hz_since(const struct time_point *start, unsigned ms)
{
	struct time_point end;
	uint64_t age;

	do {
		time_point_take(&end);
		age = end.mono_ns - start->mono_ns;
		if (age < ms * MS) {
			struct timespec left = {.tv_nsec = (long)((ms * MS - age) % SECOND)};

			nanosleep(&left, NULL);
		}
	} while (age < ms * MS);
	return (uint64_t)(tsc_hz(start, &end) + 0.5);
}

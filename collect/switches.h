/* SPDX-License-Identifier: MIT */
/*
 * switches.h - when the kernel took traced threads off a processor, and put them back.
 *
 *   kernel ── PERF_RECORD_SWITCH ──► a ring for each CPU ── switches_round ──► trace: switches
 *             PERF_RECORD_EXIT   ──►                                    └──► who wants to know
 *
 * perf_event_open(2), one event that counts nothing for each CPU, inherited by everything that
 * the program starts.  The traced processes do not take part.
 */
#ifndef COLLECT_SWITCHES_H
#define COLLECT_SWITCHES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "board/bus/clock.h"
#include "collect/journal.h"

struct switches;

/*
 * By the thread that will start the program, before it does: the events are its own, disabled,
 * and what it starts by exec has them enabled.  clock reads the samples' clock.  The sentence of a
 * refusal says what is not allowed.
 */
typedef void (*switches_clock_fn)(void *ctx, struct time_point *t);
int switches_open(struct switches **out, switches_clock_fn clock, void *ctx, struct err *err);
/*
 * Also the threads of this process, which stand still, and what they start from now on.  By one thread at a time; -E2BIG: there are so
 * many that they would stand for too long.
 */
int switches_add_process(struct switches *s, pid_t pid, struct err *err);
/* What came since the last time to the trace; true: come back soon.  Nothing happens too soon after
 * the last time, but for the last one: then all that there is. */
bool switches_round(struct switches *s, struct journal *j, bool last);
/* Tell when threads end, too, on the samples' clock: the last one of a process is its end.  Called
 * in switches_round(). */
typedef void (*switches_exit_fn)(void *ctx, pid_t pid, pid_t tid, uint64_t ticks);
void switches_on_exit(struct switches *s, switches_exit_fn fn, void *ctx);
struct switches_count {
	uint64_t records, lost; /* lost: the kernel had no room */
};
void switches_count(const struct switches *s, struct switches_count *out);
void switches_close(struct switches *s); /* NULL is fine */

#endif

/* SPDX-License-Identifier: MIT */
/*
 * function_probes.h - `kron ctl probe rm -F GLOB`, `add -F GLOB`, and --budget: functions that the recording traces
 * sleep, and wake again.
 *
 * What sleeps has the bytes of its file, where it ran already; what starts later jumps over its probes.
 */
#ifndef COLLECT_FUNCTION_PROBES_H
#define COLLECT_FUNCTION_PROBES_H

#include "collect/changes/changes.h"
#include "collect/modules/function_sleep.h"

/* 0 and a sentence: some of them stay as they are. */
int function_probes_turn(struct changes *all, const char *glob, bool wakes, struct err *err);

/* For the trace: those of s have turned in one direction, at some time from since till until. */
void function_probes_note(struct changes *all, uint64_t since, uint64_t until, bool wakes,
			  bool by_budget, struct function_sleep *s);
/* What a trigger waits for would seem never to come: -EBUSY if it is one of these, which the glob means. */
int function_probes_check_waiting(const struct changes *all, const struct function_sleep *s,
				  const char *glob, struct err *err);

/* changes_hold_functions() */
int function_probes_hold(struct changes *all, const uint8_t *held, uint32_t n, uint64_t *turned,
			 struct err *err);

#endif

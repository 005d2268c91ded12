/* SPDX-License-Identifier: MIT */
/*
 * bus.h - probes on the buses without lanes, and stores to the board.
 */
#ifndef RUNTIME_BUS_H
#define RUNTIME_BUS_H

#include "runtime/core/rt.h"

/* ---- source.c ---- */
/* A probe on the exact bus. */
void kron_rt_exact(uint32_t event, uint32_t payload, uint32_t gate)
	__attribute__((visibility("hidden")));
/* Make this thread's source address known.  False: it cannot be; its trigger counts as lost. */
bool kron_rt_meet(void) __attribute__((visibility("hidden")));
/* A trigger on the device bus could not be made. */
void kron_rt_lose(void) __attribute__((visibility("hidden")));

/* A store to a trigger word by a thread that the board knows. */
void rt_trigger(uint32_t word, uint64_t data) __attribute__((visibility("hidden")));

/* ---- thunk_bus.S: the critical section of kron_rt_probe_hardware ---- */
extern const uint8_t kron_rt_hardware_start[] __attribute__((visibility("hidden")));
extern const uint8_t kron_rt_hardware_end[] __attribute__((visibility("hidden")));

/* ---- counts.c ---- */
/* On the lane bus. */
void rt_count(uint32_t counter, uint64_t times) __attribute__((visibility("hidden")));

/* ---- action.c ---- */
/* One more call of the function with this number (calls.c). */
void rt_count_call(uint32_t number) __attribute__((visibility("hidden")));
/* code: KRON_ACTION(); flags: the program's, of which DF is known. */
void kron_rt_action(uint64_t code, uint64_t data, uint64_t flags)
	__attribute__((visibility("hidden")));

/* ---- pages.c ---- */
/* code: KRON_ACTION_REFERENCES(). */
void rt_pages_count(uint64_t code, uint64_t data, uint64_t flags)
	__attribute__((visibility("hidden")));

#endif

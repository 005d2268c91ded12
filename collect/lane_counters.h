/* SPDX-License-Identifier: MIT */
/*
 * lane_counters.h - Resource samples in chunks of the pool become what they are everywhere else:
 *
 *   pool    sample | 0, 1 | 2, 3 | ... | 14, 15        nine slots of 20 bytes (kron/board.h)
 *   trace   sample of type Resource | 0 | 1 | ... | 15        84 bytes
 */
#ifndef COLLECT_LANE_COUNTERS_H
#define COLLECT_LANE_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kron/board.h>

/* Is this record two of a Resource sample's counters? */
static inline bool lane_counters_is(uint32_t event)
{
	return event >= KRON_EVENT_COUNTERS && event < KRON_EVENT_COUNTERS + KRON_COUNTERS / 2;
}
/* Is there anything to do? */
bool lane_counters_are_there(const void *samples, size_t nbytes);
/* Returns how many bytes out has then: at most nbytes.  Counters without their sample go. */
size_t lane_counters_fold(void *out, const void *samples, size_t nbytes);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * reading.h - what stands in the columns of `kron monitor`.
 *
 *   what is counted so far ──less the reading before──► the interval's
 *   a value                ──────────────────────────► as it is
 *   idle and all ticks     ──less, and divided───────► percent
 */
#ifndef TRACE_MONITOR_READING_H
#define TRACE_MONITOR_READING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

enum reading_kind {
	READING_COUNT,   /* how often so far */
	READING_NS,      /* nanoseconds so far */
	READING_BYTES,   /* bytes so far */
	READING_PERCENT, /* n of `of` ticks so far */
	READING_VALUE,   /* of a variable, at this moment */
};

enum value_type { VALUE_UNSIGNED, VALUE_SIGNED, VALUE_HEX, VALUE_DOUBLE };

struct column {
	char *name;
	enum reading_kind kind;
	enum value_type type; /* READING_VALUE */
};

struct reading {
	uint64_t n; /* VALUE_DOUBLE: its bits */
	uint64_t of;
	bool known;
	bool is_estimate; /* its counter was shared, and counted a part of the time */
	bool has_overrun; /* or may have: the counter was too narrow for the interval */
};

struct columns {
	VEC(struct column) v;
};

#endif

/* SPDX-License-Identifier: MIT */
/* number.h - numbers of one kind made of those of another, whatever they are. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdint.h>

/* C leaves open what becomes of a double that does not fit: here the nearest, and 0 of a NaN. */
static inline uint64_t number_u64(double v)
{
	if (!(v > 0))
		return 0;
	return v < 18446744073709551616.0 ? (uint64_t)v : UINT64_MAX;
}

#endif

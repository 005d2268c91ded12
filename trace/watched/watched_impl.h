/* SPDX-License-Identifier: MIT */
/* watched_impl.h - between watched.c and watched_estimate.c. */
#ifndef TRACE_WATCHED_IMPL_H
#define TRACE_WATCHED_IMPL_H

#include "trace/watched/watched.h"

/* Where a function of a node is in w->by_function. */
static inline uint64_t watched_key(uint32_t node, uint32_t function)
{
	return (uint64_t)node << 32 | function;
}

/* Reads the samples.  The spans have their ends. */
void watched_estimate(struct watched *w);

#endif

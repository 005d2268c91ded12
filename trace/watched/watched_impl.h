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

/* ---- of which functions the beats are (watched_mix.c) ---- */

struct mix;
enum { MIX_NEITHER, MIX_IN, MIX_OUT };

struct mix *mix_new(uint32_t nfunctions);
/* A thread; its beats, interval after interval; and it ends. */
void mix_begin(struct mix *m, uint32_t node, uint32_t program);
void mix_take(struct mix *m, uint32_t interval, uint32_t function);
void mix_end(struct mix *m);
/* How far apart those of these programs are (by number), where intervals are IN and where they are OUT; 0: not at all. */
struct mix_apart {
	double factor, other;
};
struct mix_apart mix_apart(struct mix *m, uint32_t node, const bool *programs,
			   const uint8_t *kinds);
void mix_free(struct mix *m);

/* Reads the samples.  The spans have their ends. */
void watched_estimate(struct watched *w);

#endif

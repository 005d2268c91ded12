/* SPDX-License-Identifier: MIT */
/*
 * holes.h - may the writer of a hole in a FULL chunk still come back?
 *
 * Problem.  A signal handler interrupts a probe between its claim and its store; probes of the
 * handler fill the chunk and hand it over with a hole in it.  Mostly the handler returns and
 * the hole is filled.  But the handler may leave by siglongjmp, and then nobody ever fills it;
 * a chunk that is kept for as long as the thread lives would be lost to the pool, one for
 * every such jump.
 *
 * Example.  Payloads are stack pointers, here as depths; main flow, hole, handler, jump:
 *
 *     ... 100  140  [140]  2000  2050  2000  100  140 ...
 *          before ^  hole   ^ after           ^ the handler's frames are gone
 *
 * Mostly the probe had already stored its payload (the long instruction in it comes later).
 * While it is on the stack, everything that runs lies below it; so a later sample at its depth
 * or above was taken after the handler had ended.  Had it ended by returning, the hole would
 * be filled.
 *
 * Where there is no payload, the first sample after the hole must do, which is the handler's:
 * a later one above it, and not below the last one before the hole.
 *
 * Only samples a little above count, because a handler may run on another stack, which lies
 * anywhere.
 *
 * Wrong only for code that changes stacks inside a handler and comes back later.
 */
#ifndef BOARD_HOLES_H
#define BOARD_HOLES_H

#include <stdbool.h>
#include <kron/segment.h>

static inline bool kron_sample_is_trigger(const struct kron_sample *s)
{
	return s->head != 0 && s->event < KRON_EVENT_SPECIAL;
}

#define KRON_HOLE_SAME_STACK 65536u /* bytes */

/* Is there a trigger in s[from...] whose stack pointer is at `depth` or a little above? */
static inline bool kron_has_sample_above(const struct kron_sample *s, uint32_t from, uint32_t depth)
{
	uint32_t i;

	for (i = from; i < KRON_CHUNK_SAMPLES; i++) {
		/* Low halves of addresses: their difference is right where they are near. */
		if (kron_sample_is_trigger(&s[i]) && s[i].payload - depth < KRON_HOLE_SAME_STACK)
			return true;
	}
	return false;
}

/* s[KRON_CHUNK_SAMPLES] of a FULL chunk, s[hole].head == 0.  False: it may yet be filled. */
static inline bool kron_hole_is_abandoned(const struct kron_sample *s, uint32_t hole)
{
	uint32_t after = hole + 1;
	uint32_t before = hole;
	uint32_t depth;

	if (s[hole].payload)
		return kron_has_sample_above(s, hole + 1, s[hole].payload);
	while (after < KRON_CHUNK_SAMPLES && !kron_sample_is_trigger(&s[after]))
		after++;
	while (before > 0 && !kron_sample_is_trigger(&s[before]))
		before--;
	if (after == KRON_CHUNK_SAMPLES)
		return false;
	depth = s[after].payload + 1;
	if (kron_sample_is_trigger(&s[before]) && s[before].payload - depth < KRON_HOLE_SAME_STACK)
		depth = s[before].payload;
	return kron_has_sample_above(s, after + 1, depth);
}

#endif

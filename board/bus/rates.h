/* SPDX-License-Identifier: MIT */
/*
 * rates.h - which events come how often, on a board that is being recorded on (bus lane).
 *
 *   chunks in the pool ──look──> samples of each event that are new since the last look
 *
 * Looks into the chunks from outside and disturbs nobody: loads only.  What the recorder takes
 * between two looks is not seen.  How many samples there were in all is known all the same, from
 * the chunks' numbers, so the shares that were seen tell of the whole.
 */
#ifndef BUS_RATES_H
#define BUS_RATES_H

#include "base/vec.h"
#include "board/bus/bus.h"

struct rates_event {
	uint32_t event;
	uint64_t seen;
};

struct rates {
	struct bus *bus;
	const uint8_t *pool; /* mapped, read only */
	uint64_t pool_bytes;
	struct rates_place *places; /* by chunk: how far we have looked */
	uint32_t nplaces;
	uint64_t next_seq, lost;

	/* of the last look */
	VEC(struct rates_event) events; /* by number */
	uint64_t seen;                  /* samples in them */
	uint64_t samples;               /* an estimate of all */
	uint64_t lost_now;
	uint64_t threads; /* that have a chunk, or have filled one since the look before */
	VEC(uint32_t) numbers;
	VEC(uint64_t) owners; /* of chunks, as in their words */
};

/* -EINVAL: nobody records there, or not on bus lane; the sentence says which. */
int rates_open(struct rates *r, struct bus *b, struct err *err);
/* false: the recording has ended. */
bool rates_look(struct rates *r);
void rates_close(struct rates *r);

#endif

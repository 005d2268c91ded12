/* SPDX-License-Identifier: MIT */
/*
 * local_memory.h - takes the samples out of a board's local memory, oldest first.
 *
 *   simple, or not yet full           circular and full
 *   0            pointer              0        pointer              400000
 *   | samples .....|    unused   |    | newest ...|cut| oldest ........|
 *
 * Samples of 20 and 84 bytes do not divide 16 MiB: in a circular memory that has wrapped the
 * oldest sample is mostly overwritten in part.  Where the first whole one begins is found by
 * sample_find().  While sampling is on, the newest may not be all there; and what is overwritten
 * while it is being read is not believed.
 *
 * The pointer counts wraps with two bits, so after the fourth it looks as if there had been
 * none.  Then the samples themselves must say: do those at the memory's end go on at word 0?
 */
#ifndef BUS_LOCAL_MEMORY_H
#define BUS_LOCAL_MEMORY_H

#include "board/bus/bus.h"

struct local_range {
	bool has_start, has_end;
	uint32_t start, end; /* words; end is the first that is not wanted, at most 400000 */
};

struct local_memory {
	uint32_t *words; /* n of them, in the order in which the board stored them */
	size_t n;
	uint32_t map; /* Memory Address Pointer when reading began */
	bool wrapped;
	/* words left out */
	size_t overwritten; /* the board stored newer ones while these were read */
	size_t oldest;      /* of a sample whose beginning is overwritten */
	size_t newest;      /* of a sample that is not all there yet */
	/* what words[] holds */
	uint64_t trace, resource;
	size_t damaged; /* words in no sample */
};

/*
 * Without a range: everything that is stored.  With one, the words from start to end; these
 * are taken as they are, but for the newest sample where no end is given.  A range whose start
 * is past its end wraps round, if the memory has wrapped.  0, -EINVAL with a sentence.
 */
int local_memory_read(struct local_memory *m, struct bus *b, const struct local_range *range,
		      struct err *err);
void local_memory_free(struct local_memory *m);

#endif

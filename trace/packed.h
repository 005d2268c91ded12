/* SPDX-License-Identifier: MIT */
/*
 * packed.h - samples in fewer bytes, and the walk over the samples of a chunk, packed or not.
 *
 * In one lane most samples differ from the one before in little: some ticks later, another event,
 * another payload.  So a packed chunk is a row of pieces of 8 or 24 bytes, little-endian:
 *
 *   short   ticks since the sample before (16 bits, not 0xffff), event (16), payload (32); all
 *           else is as in the sample before
 *   whole   0x0000ffff (32), then the sample as it is (160): the first one, another header byte
 *           or source, more ticks or less than none, a larger event; also a hole, which is all
 *           zero and leaves "the sample before" as it was
 *
 * What was packed comes out again to the bit.  A third of the bytes is what a disk, and the page
 * cache, have less to do while the program runs.
 */
#ifndef TRACE_PACKED_H
#define TRACE_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kron/board.h>

/*
 * Packs nbytes of samples to out: how many bytes there, or 0 if they would be more than room, or
 * if the samples are not all of 20 bytes (Resource samples are longer).
 */
size_t packed_make(uint8_t *out, size_t room, const void *samples, size_t nbytes);

struct sample_walk {
	const uint8_t *at, *end; /* NULL: not begun */
	bool packed;
	struct kron_sample s; /* the last one of a packed chunk */
};

void sample_walk_start(struct sample_walk *w, const uint8_t *data, size_t nbytes, bool packed);
/*
 * The next sample, valid until the next call on the same walk; NULL at the end.  Holes and words
 * that are no sample are skipped, the latter counted in *damaged (may be NULL) by bytes.
 */
const struct kron_sample *sample_walk_next(struct sample_walk *w, uint64_t *damaged);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * packed.h - samples in fewer bytes, and the walk over the samples of a chunk, packed or not.
 *
 * A program does again what it did before: after the same three events mostly comes the same
 * event, with the stack pointer moved by as much.  So packer and walk keep a table of guesses,
 * empty at a chunk's start: what came last after such a history, an event and the step of the
 * payload (modulo 2^32).  A packed chunk is a row of pieces, little-endian:
 *
 *   T           T < 0xf0: as guessed, T ticks after the sample before; 7 to 9 of 10 samples
 *   0xf0+H L    H < 8: as guessed, 256 * H + L ticks after it
 *   0xf8        ticks (8 bits), event (16), step / 8 (8, signed)
 *   0xf9        ticks (16), event (16), step (32)
 *   0xfa        ticks (32), step (32), event (32)
 *   0xfe        nothing: fills up to a multiple of 4 bytes
 *   0xff        the sample as it is (160): the first one, another header byte or source, a time
 *               that is earlier or much later; also a hole, which is all zero and leaves all as
 *               it was
 *
 * 0xf8 to 0xfa write a new guess.  A history is 10 bits: h = (h << 3 ^ m(event)) & 1023, where
 * m(e) is the upper 10 bits of e * 0x9e3779b1 modulo 2^32; 0 at the start.
 *
 * The step of a KRON_EVENT_WIDE is from the one before it, that of all others from the last of these:
 * so the upper halves of payloads, which seldom change, and the lower ones are each guessed well.
 *
 * What was packed comes out again to the bit.  A tenth of the bytes is what a disk, and the page
 * cache, have to do while the program runs, and what a reader has to read.
 */
#ifndef TRACE_PACKED_H
#define TRACE_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kron/board.h>

#define PACKED_HISTORY_BITS 10
#define PACKED_ALIGN 4 /* a packed chunk is as many bytes or a multiple */

/*
 * Packs nbytes of samples to out: how many bytes there, or 0 if they would be more than room, or
 * if the samples are not all of 20 bytes (Resource samples are longer).
 */
size_t packed_make(uint8_t *out, size_t room, const void *samples, size_t nbytes);

/* What was packed, to the bit, holes all zero: how many bytes; it ends where there is no room. */
size_t packed_restore(void *out, size_t room, const uint8_t *data, size_t nbytes);

struct sample_walk {
	const uint8_t *at, *end; /* NULL: not begun */
	bool packed;
	struct kron_sample s; /* the last one of a packed chunk; and what comes after it: */
	uint32_t history;
	uint32_t payload[2];                         /* the last one; of a KRON_EVENT_WIDE */
	uint64_t guesses[1u << PACKED_HISTORY_BITS]; /* event << 32 | step */
};

void sample_walk_start(struct sample_walk *w, const uint8_t *data, size_t nbytes, bool packed);
/*
 * The next sample, valid until the next call on the same walk; NULL at the end.  Holes and words
 * that are not samples are skipped, the latter counted in *damaged (may be NULL) by bytes.
 */
const struct kron_sample *sample_walk_next(struct sample_walk *w, uint64_t *damaged);

#endif

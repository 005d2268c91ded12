/* SPDX-License-Identifier: MIT */
/*
 * start.h - the start-up code that `kron patch` adds to a static program.
 *
 *   e_entry ─► entry ─┬─ nothing asked for ────────────────────► jmp, to the program's own entry
 *                     └─ KRON_RT or KRON_BOARD: attach, wake ─┘
 *
 * It is the runtime, compiled without thread data and linked for address 0 without a single
 * relocation, so it runs wherever it is loaded, before the program has relocated itself:
 *
 *   +0          struct kron_start, code, constants      in the file, read and execute
 *   +data_off   data_len bytes                          not in the file; the code maps zero
 *                                                       pages there, read and write, if it is
 *                                                       asked to do anything
 */
#ifndef KRON_START_H
#define KRON_START_H

#include <stdint.h>
#include <kron/segment.h>

#define KRON_START_MAGIC 0x545241545352544bull /* "KTRSTART" read as bytes */

struct kron_start {
	uint64_t magic;
	uint32_t entry; /* what e_entry is to be: offset from here */
	uint32_t leave; /* of the jump's rel32 that kron patch fills in: to the program's entry */
	uint32_t data_off; /* multiple of the page size */
	uint32_t data_len; /* likewise */
	uint32_t hook;     /* of the code that a sleeping block's hooks call */
	uint32_t frame;    /* of its .eh_frame */
	uint32_t frame_len;
	/* filled in by kron patch: */
	uint32_t wake; /* offset of struct kron_wake from here; 0: there is none */
	uint32_t wake_len;
	uint32_t flags;     /* KRON_START_* */
	uint32_t block_len; /* of the file's block, which lies in front of us */
	uint32_t reserved;
};
_Static_assert(sizeof(struct kron_start) == 56, "static.ld");

/* Goroutines: stacks of 2 KiB, and handlers that have one of their own. */
#define KRON_START_SMALL_STACKS 1u
/* A dynamic program: kron record brings libkron-rt.so, so only KRON_BOARD is for us. */
#define KRON_START_DYNAMIC 2u
/* The text has the jumps and the block hooks: handlers of faults are wrapped even if nothing else
 * is asked for. */
#define KRON_START_WRAPS 4u
/* A library: `entry` stands in front of its first initialisation function, whose first
 * instructions are where `leave` leads.  Only KRON_BOARD is for us. */
#define KRON_START_LIBRARY 8u

/*
 * What must change to wake the probes where no collector is asked: KRON_BOARD names a board, and
 * samples are bus cycles of its model.
 *
 *   kron_wake │ kron_wake_range … │ edits of the first range │ of the second …
 *
 * A range is a run of pages, the block or a part of the text.  An edit is two bytes, how many
 * bytes to skip, one byte, how many to change, and that many bytes to be exclusive-ored with
 * what is there; once more brings the old bytes back.  None to change, but less than
 * KRON_WAKE_GAP_MAX to pass by: there sleeps a probe of an entry or exit (kron/wire.h), and four
 * bytes of its event and one of its level follow.
 */
struct kron_wake_range {
	int64_t at;         /* from struct kron_start; page-aligned */
	uint64_t len;       /* likewise */
	uint32_t edits;     /* offset from struct kron_wake */
	uint32_t edits_len; /* bytes */
	uint64_t sum; /* kron_wake_sum() of the bytes that will be changed, as they are before */
};
struct kron_wake {
	uint32_t nranges; /* the first is the block */
	uint32_t reserved;
	struct kron_wake_range range[];
};
#define KRON_WAKE_SUM 0xcbf29ce484222325ull
#define KRON_WAKE_EDIT 3u
#define KRON_WAKE_GAP_MAX 0xffffu
#define KRON_WAKE_LEN_MAX 0xffu

/* A probe of wire.h: what its bytes are exclusive-ored with, where `call` is its rel32. */
#define KRON_WAKE_PROBE 37u
#define KRON_WAKE_PROBE_CALL 27u /* where the call ends */
#define KRON_WAKE_PROBE_INFO 5u
static inline void kron_wake_probe(uint8_t *out, const uint8_t *info, uint32_t call)
{
	const uint32_t gate = KRON_GATE_ADDR(info[4]);

	for (unsigned i = 0; i < KRON_WAKE_PROBE; i++)
		out[i] = 0;
	out[0] = 0xeb ^ 0x48;
	out[1] = (KRON_WAKE_PROBE - 2) ^ 0x8d;
	for (unsigned i = 0; i < 4; i++) {
		out[10 + i] = (uint8_t)(gate >> 8 * i);
		out[18 + i] = info[i];
		out[23 + i] = (uint8_t)(call >> 8 * i);
	}
}

static inline uint64_t kron_wake_sum(uint64_t sum, uint8_t byte)
{
	return (sum ^ byte) * 0x100000001b3ull;
}

#endif

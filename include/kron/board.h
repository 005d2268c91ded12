/* SPDX-License-Identifier: MIT */
/*
 * board.h - the MultiKron board as a program sees it: address map, registers, samples.
 *
 * Sources: NISTIR 5571 (the MultiKron II chip), tables B1, B2 and B4; NISTIR 5993 (the PCI
 * board), Table 1.  Where the reports contradict themselves, the reading that kron follows
 * stands beside the constant.  This header is freestanding: it includes no libc header that
 * needs one, and both the traced process and the tools read it.
 */
#ifndef KRON_BOARD_H
#define KRON_BOARD_H

#include <stdint.h>

/* ---- address map (NISTIR 5993, Table 1), byte offsets from the start of the window ---- */

#define KRON_BOARD_SIZE 0x02000000u /* 32 MiB of PCI address space */
#define KRON_BOARD_CHIP 0x00001000u /* the chip's 128 words, 0x1000-0x11fc */

/*
 * NISTIR 5571 numbers the chip's 128 addresses by word.  Reading: on the PCI board they are
 * 4-byte words at byte offset 0x1000 + 4 x word.
 */
#define KRON_CHIP_BYTE(word) (KRON_BOARD_CHIP + 4u * (word))

/* ---- chip words (NISTIR 5571, Table B4) ---- */

enum kron_chip_word {
	KRON_WORD_RESET = 0,     /* write: software reset, the timestamp goes on */
	KRON_WORD_CSR = 1,       /* Control and Status Register, Table B1 */
	KRON_WORD_TIMESTAMP = 2, /* 56 bits, read only outside test mode */
	KRON_WORD_FILTER = 4,    /* Filter Register, one bit a level */
	KRON_WORD_WAIT = 5,      /* Wait Counter; any write zeroes it */
	KRON_WORD_OVERRUN = 6,   /* Overrun Counter; any write zeroes it */
	KRON_WORD_HIGH = 7,      /* High Order 32 bit register (32-bit mode) */
	KRON_WORD_TRACE = 96,    /* + level: take a Trace sample */
	KRON_WORD_RESOURCE = 112 /* + level: take a Resource sample */
};

#define KRON_LEVELS 16u /* filter levels: the low four bits of the chip address */

/* ---- CSR (Table B1): what a read returns, and the write-1 commands ---- */

#define KRON_CSR_SAMPLING (1u << 0)  /* write 1: enable sampling */
#define KRON_CSR_STOP (1u << 1)      /* write 1: disable sampling (default on reset) */
#define KRON_CSR_WAIT (1u << 2)      /* write 1: wait on a full FIFO */
#define KRON_CSR_DISCARD (1u << 3)   /* write 1: discard on a full FIFO (default) */
#define KRON_CSR_FIFO_FULL (1u << 6) /* read only */
#define KRON_CSR_OVERRUN (1u << 8)   /* read only */

/* ---- samples (Table B2) ----
 *
 * Reading: the FIFO's five 32-bit groups run from the most to the least significant bit and
 * the header is sent first, so a Trace sample in board memory is five words, each stored as
 * the CPU reads it (little-endian here):
 *
 *   offset  word
 *        0  header << 24 | timestamp 55..32
 *        4  timestamp 31..0
 *        8  source address
 *       12  user data 63..32    kron: the payload
 *       16  user data 31..0     kron: the event number
 *
 * A Resource sample is the same with Resource Counters 0-15 behind it, one word each.
 */
struct kron_sample {
	uint32_t head;    /* header byte << 24 | timestamp 55..32; stored last; 0 = no sample */
	uint32_t time_lo; /* timestamp 31..0 */
	uint32_t source;  /* node << 22 | thread id */
	uint32_t payload; /* user data 63..32 */
	uint32_t event;   /* user data 31..0 */
};
_Static_assert(sizeof(struct kron_sample) == 20, "a Trace sample is 160 bits");

#define KRON_SAMPLE_SIZE 20u
#define KRON_RESOURCE_SIZE 84u

/*
 * Header byte, most significant bit first: CPU ID (3), sample type (2), shadow register
 * overflow (1), FIFO overflow (1), N/A (1, zero).
 * Reading: Table B2 says 10 = Trace and 11 = Resource, the prose the reverse; the table holds.
 */
#define KRON_HEAD_CPU_SHIFT 29
#define KRON_HEAD_CPU_MASK 7u
#define KRON_HEAD_TYPE_SHIFT 27
#define KRON_HEAD_TYPE_MASK 3u
#define KRON_HEAD_TYPE_TRACE 2u
#define KRON_HEAD_TYPE_RESOURCE 3u
#define KRON_HEAD_SHADOW_OVERFLOW (1u << 26)
#define KRON_HEAD_FIFO_OVERFLOW (1u << 25) /* samples before this one were lost */
#define KRON_HEAD_TIME_MASK 0x00ffffffu

#define KRON_HEAD_TRACE(cpu)                                             \
	((((uint32_t)(cpu)&KRON_HEAD_CPU_MASK) << KRON_HEAD_CPU_SHIFT) | \
	 (KRON_HEAD_TYPE_TRACE << KRON_HEAD_TYPE_SHIFT))

/* Source address: node (10 bits) << 22 | thread id (22 bits, Linux' pid_max). */
#define KRON_SOURCE_TID_BITS 22
#define KRON_SOURCE_TID_MASK 0x003fffffu
#define KRON_SOURCE(node, tid) \
	((uint32_t)(node) << KRON_SOURCE_TID_BITS | ((uint32_t)(tid)&KRON_SOURCE_TID_MASK))

/* ---- events: kron's use of the user data's low 32 bits ----
 *
 * Function n of the trace's table has entry event 2n and exit event 2n+1.  The payload of
 * both is the low 32 bits of the stack pointer as it points to the return address: entry and
 * exit of one frame carry the same value, which lets a reader close frames that a longjmp, an
 * exception or an unprobed return left without an exit.
 *
 * Numbers from KRON_EVENT_SPECIAL up are records that the runtime itself writes.  They are
 * not triggers and count neither as samples nor as losses.
 */
#define KRON_EVENT_ENTRY(fn) (2u * (fn))
#define KRON_EVENT_EXIT(fn) (2u * (fn) + 1u)
#define KRON_EVENT_SPECIAL 0xffffff00u
#define KRON_EVENT_LOST 0xffffff01u /* payload: triggers lost on this lane before this place */
#define KRON_EVENT_CPU 0xffffff02u  /* payload: the full number of the CPU from here on */

#endif

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

#define KRON_BOARD_SIZE 0x02000000u   /* 32 MiB of PCI address space */
#define KRON_BOARD_CHIP 0x00001000u   /* the chip's 128 words, 0x1000-0x11fc */
#define KRON_BOARD_RESET 0x00001200u  /* board Software Reset: any write */
#define KRON_BOARD_CONFIG 0x00001204u /* Configuration Register, Table 2 */
#define KRON_BOARD_MAP 0x00001208u    /* Memory Address Pointer: 24 bits, counts words */
#define KRON_BOARD_TEST 0x0000120cu   /* TEST Operation */
#define KRON_BOARD_VC 0x00004000u     /* MultiKron_vc, 0x4000-0x7ffc, if installed */
#define KRON_BOARD_VC_SIZE 0x00004000u
#define KRON_BOARD_MEMORY 0x01000000u /* local memory */
#define KRON_BOARD_MEMORY_SIZE 0x01000000u
#define KRON_BOARD_MEMORY_WORDS (KRON_BOARD_MEMORY_SIZE / 4u)

/*
 * NISTIR 5571 numbers the chip's 128 addresses by word.  Reading: on the PCI board they are
 * 4-byte words at byte offset 0x1000 + 4 x word.
 */
#define KRON_CHIP_BYTE(word) (KRON_BOARD_CHIP + 4u * (word))

/* ---- Configuration Register (NISTIR 5993, Table 2) ---- */

#define KRON_CONFIG_CPU_ID 0x000000ffu   /* bits 0-7: the CPU ID lines, one hot */
#define KRON_CONFIG_TEST (1u << 8)       /* 1: the CPU empties the board FIFO by hand */
#define KRON_CONFIG_LOCAL (1u << 9)      /* 1: samples to local memory, 0: to the cable */
#define KRON_CONFIG_EXT_CPU (1u << 10)   /* 1: CPU ID from the external lines */
#define KRON_CONFIG_WAIT_CPU (1u << 11)  /* a wait state; read by the chip at a reset */
#define KRON_CONFIG_TESTB (1u << 12)     /* 0: the chip is in test mode */
#define KRON_CONFIG_MK_OE (1u << 13)     /* 1: the chips' outputs are enabled */
#define KRON_CONFIG_WRAPB (1u << 14)     /* 1: simple buffer, 0: circular */
#define KRON_CONFIG_EN_EXT (1u << 15)    /* 1: external clock and reset */
#define KRON_CONFIG_DIS_STATE (1u << 16) /* 1: no new sequence of the FIFO state machine */
#define KRON_CONFIG_TS_RATIO (1u << 18)  /* 1: NODECLK / 3 for the timestamp, 0: / 4 */
#define KRON_CONFIG_DIV2 (1u << 19)      /* 1: NODECLK = oscillator / 2 */
#define KRON_CONFIG_WAIT_MEM (1u << 20)  /* MultiKron_vc memory wait state */
#define KRON_CONFIG_WRITABLE 0x00ffffffu /* bits 0-23; zero after a reset */
#define KRON_CONFIG_VERSION 0x90000000u  /* bits 24-31, read only */
#define KRON_CONFIG_DEFAULT 0x00003201u  /* "recommended default value" */
#define KRON_OSCILLATOR_HZ 40000000u     /* the local oscillator */

/* ---- Memory Address Pointer: the next free word; its top two bits count the wraps ---- */

#define KRON_MAP_MASK 0x00ffffffu
#define KRON_MAP_WORD 0x003fffffu
#define KRON_MAP_WRAPS_SHIFT 22

/* ---- chip words (NISTIR 5571, Table B4) ---- */

enum kron_chip_word {
	KRON_WORD_RESET = 0,     /* write: software reset, the timestamp goes on */
	KRON_WORD_CSR = 1,       /* Control and Status Register, Table B1 */
	KRON_WORD_TIMESTAMP = 2, /* 56 bits, written only in test mode */
	KRON_WORD_FILTER = 4,    /* Filter Register, one bit a level */
	KRON_WORD_WAIT = 5,      /* Wait Counter; any write zeroes it (not in test mode) */
	KRON_WORD_OVERRUN = 6,   /* Overrun Counter; likewise */
	KRON_WORD_HIGH = 7,      /* High Order 32 bit register (32-bit mode) */
	KRON_WORD_ENABLE = 8,    /* Enable Register, 16 fields of four bits, Table B7 */
	KRON_WORD_MODE = 10,     /* Mode Register, Table B5 */
	KRON_WORD_CLOCK = 12,    /* Clock Select Register, Table B6 */
	/* 16-21 and writes to 25-29: in test mode only */
	KRON_WORD_INCR_TIMESTAMP = 16,
	KRON_WORD_INCR_WAIT = 17,
	KRON_WORD_INCR_OVERRUN = 18,
	KRON_WORD_NETWORK_OFF = 19, /* disable output network */
	KRON_WORD_NETWORK_ON = 20,
	KRON_WORD_ADVANCE = 21,   /* advance FIFO and free Resource Counter shadow registers */
	KRON_WORD_FIFO = 25,      /* 25-29: FIFO groups A-E */
	KRON_WORD_SOURCE = 32,    /* 32-39: Source Address Registers */
	KRON_WORD_COUNTER = 64,   /* 64-79: Resource Counters; read with copy */
	KRON_WORD_INCREMENT = 80, /* 80-95: write: increment; read: counter without copy */
	KRON_WORD_TRACE = 96,     /* + level: take a Trace sample */
	KRON_WORD_RESOURCE = 112  /* + level: take a Resource sample */
};
#define KRON_CHIP_WORDS 128u

/*
 * MultiKron_vc.  Its report, NISTIR 5743, is not among the sources.  NISTIR 5993 says: 64 bits wide, with a
 * holding register of its own; 8,192 virtual counters, kept in pages in an SRAM, and a wait state for
 * storing and retrieving each counter of a page.  Reading, all of the rest: sixteen counters are in
 * the chip, and these are one of 512 pages; words as the MultiKron II's where that has the same, which are
 * RESET, CSR, TIMESTAMP, HIGH, ENABLE, MODE, CLOCK, INCR_TIMESTAMP, COUNTER and INCREMENT, and two more.
 */
#define KRON_VC_BYTE(word) (KRON_BOARD_VC + 4u * (word))
#define KRON_VC_PAGE 14u  /* 0-511: store the page that is in the chip, retrieve this one */
#define KRON_VC_COUNT 15u /* write 0-8191: the same for this counter's page, and increment it */
#define KRON_VC_COUNTERS 8192u
#define KRON_VC_PAGES (KRON_VC_COUNTERS / 16u)
#define KRON_SOURCES 8u   /* Source Address Registers, CPU ID lines */
#define KRON_COUNTERS 16u /* Resource Counters */

#define KRON_LEVELS 16u /* filter levels: the low four bits of the chip address */

/* ---- CSR (Table B1): what a read returns, and the write-1 commands ----
 * Unused bits read as 0 here, as 1 in every other register (Readings). */

#define KRON_CSR_SAMPLING (1u << 0)    /* write 1: enable sampling; read: enabled */
#define KRON_CSR_STOP (1u << 1)        /* write 1: disable sampling (default on reset) */
#define KRON_CSR_WAIT (1u << 2)        /* write 1: wait on a full FIFO or busy shadows */
#define KRON_CSR_DISCARD (1u << 3)     /* write 1: discard (default) */
#define KRON_CSR_READ_WAIT (1u << 4)   /* write 1: read-with-copy waits for the shadows */
#define KRON_CSR_READ_NOWAIT (1u << 5) /* write 1: it returns bad data (default) */
#define KRON_CSR_FIFO_FULL (1u << 6)   /* 6-12: read only */
#define KRON_CSR_SHADOW_BUSY (1u << 7)
#define KRON_CSR_OVERRUN (1u << 8)
#define KRON_CSR_SHADOW_OVERRUN (1u << 9)
#define KRON_CSR_BIT161 (1u << 10) /* the sample at the FIFO's output is a Resource sample */
#define KRON_CSR_WAIT_STATES (1u << 12)
#define KRON_CSR_WAIT_MEM (1u << 13) /* reading: MultiKron_vc's, WAIT_MEM as of the last reset */
#define KRON_CSR_MODE32 (1u << 14)   /* write 1: 32-bit mode; read: it is on */
#define KRON_CSR_MODE64 (1u << 15)   /* write 1: 64-bit mode; read: it is on */

/* ---- the Resource Counters' fields, four bits a counter; 0 = no change ---- */

enum kron_counter_enable { KRON_ENABLE_OFF = 1, KRON_ENABLE_ON = 2, KRON_ENABLE_RESET = 3 };
enum kron_counter_mode { /* bits 0-2; 5, 6, 7 are the same as 1, 2, 3 */
			 KRON_MODE_CLOCK = 1,
			 KRON_MODE_SOFTWARE = 2,
			 KRON_MODE_GATED =
				 3, /* internal clock while the external signal is active */
			 KRON_MODE_EXTERNAL = 4, /* default: rising edges of the external signal */
			 KRON_MODE_DOUBLE = 8    /* bit 3: 64 bits, on even counters */
};
enum kron_counter_clock {
	KRON_CLOCK_NODE = 1,
	KRON_CLOCK_NODE_10 = 2,
	KRON_CLOCK_NODE_100 = 3,
	KRON_CLOCK_TIMESTAMP = 4 /* default */
};

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
 * A Resource sample is the same followed by Resource Counters 0-15, one word each.
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

/* The 56 bits of its time that a sample holds. */
static inline uint64_t kron_sample_time(const struct kron_sample *s)
{
	return (uint64_t)(s->head & KRON_HEAD_TIME_MASK) << 32 | s->time_lo;
}

/* The same, made whole by a time that is less than 2^55 ticks away. */
static inline uint64_t kron_sample_time_near(const struct kron_sample *s, uint64_t near)
{
	return near + (uint64_t)((int64_t)((kron_sample_time(s) - near) << 8) >> 8);
}

/* A Resource sample as it lies in board memory and in mk.dat. */
struct kron_resource_sample {
	struct kron_sample sample;
	uint32_t counter[KRON_COUNTERS];
};
_Static_assert(sizeof(struct kron_resource_sample) == KRON_RESOURCE_SIZE, "672 bits");

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
/*
 * An exit by a jump into another function has a number of its own, which says whose exit it is and
 * where the jump leads (the trace's table `jumps`): odd, above those of all functions.  On buses
 * without a collector that writes such a table it is the function's exit event.
 */
#define KRON_EVENT_JUMPS 0x80000000u
#define KRON_EVENT_JUMP(j) (KRON_EVENT_JUMPS + 2u * (j) + 1u)
#define KRON_EVENT_SPECIAL 0xffffff00u
#define KRON_EVENT_LOST 0xffffff01u /* payload: triggers lost on this lane before this place */
#define KRON_EVENT_CPU 0xffffff02u  /* payload: the full number of the CPU from here on */
/*
 * A child that borrows its parent's memory until it becomes another program (vfork, posix_spawn)
 * runs on its parent's thread data, so its samples lie in its parent's lane.  These records say
 * from where to where.  Their `source` names the process that wrote them.
 */
#define KRON_EVENT_VFORK 0xffffff03u       /* a child on this stack follows; payload: S of vfork */
#define KRON_EVENT_SPAWN 0xffffff04u       /* ... on another one; S of posix_spawn, clone */
#define KRON_EVENT_CHILD_ENDS 0xffffff05u  /* by exec or _exit, now; its stack pointer */
#define KRON_EVENT_CHILD_LIVES 0xffffff06u /* the exec has failed: it goes on */
/*
 * Frames are left for good, by an exception: those that lie from the first one's stack pointer on up to the
 * second one's, with which the thread goes on now.  By longjmp, which may change stacks, the second one alone.
 */
#define KRON_EVENT_UNWINDS 0xffffff07u /* payload: of the unwinder's frame */
#define KRON_EVENT_UNWOUND \
	0xffffff08u /* payload: of the frame that goes on, below its return address */
/*
 * A lane's places are all of one size, so a Resource sample in a chunk of the pool is a Trace
 * sample followed by eight of these, of the same time: Resource Counters 2k and 2k+1 as
 * `source` and `payload` of KRON_EVENT_COUNTERS + k.  One that follows no sample means nothing.
 * Whoever takes samples out of the pool makes 84 bytes of them (collect/lane_counters.h).
 */
#define KRON_EVENT_COUNTERS 0xffffff10u
#define KRON_RESOURCE_SLOTS (1u + KRON_COUNTERS / 2)
/*
 * A wide sample, of the lanes only: its payload has 64 bits.  This record stands right before it, of
 * the same time, and has the upper 32 as `payload`.  One that no such sample follows means nothing.
 */
#define KRON_EVENT_WIDE 0xffffff20u
#define KRON_WIDE_SLOTS 2u
/*
 * Likewise a sample whose value comes from memory and is a text, or could not be read.  Right before it stand,
 * all of its time, records KRON_EVENT_TEXT + k with 4 bytes of the text each, from its first on, and then
 * KRON_EVENT_MEMORY, which says how many bytes the text has, and KRON_MEMORY_* besides.  An array is a text
 * whose bytes may be any.
 */
#define KRON_EVENT_MEMORY 0xffffff21u
#define KRON_EVENT_TEXT 0xffffff30u
#define KRON_TEXT_MAX 64u
#define KRON_MEMORY_LENGTH 0xffu
#define KRON_MEMORY_IS_TEXT 0x100u
#define KRON_MEMORY_CUT 0x200u /* the text goes on after KRON_TEXT_MAX bytes */
#define KRON_MEMORY_UNREADABLE \
	0x400u /* there is no value: the sample's payload is 0 and means nothing */
#define KRON_MEMORY_PARTS (KRON_TEXT_MAX / 4 + 1)
/* From KRON_EVENT_WIDE up to here records are parts of the sample that follows them. */
#define KRON_EVENT_PARTS_END 0xffffff40u
static inline int kron_event_is_part(uint32_t event)
{
	return event - KRON_EVENT_WIDE < KRON_EVENT_PARTS_END - KRON_EVENT_WIDE;
}
static inline int kron_event_is_unwinding(uint32_t event)
{
	return event == KRON_EVENT_UNWINDS || event == KRON_EVENT_UNWOUND;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * lane.h - what the probe thunk (thunk.S) and lane.c share: the lane of one thread.
 *
 * The claim word.  A claim is one instruction, xadd of RT_CLAIM_STEP, and its result alone
 * says whether the slot is real.  Nothing else may take part in that test: a signal handler
 * may fill the chunk, hand it over and install another between any two instructions of the
 * code that it interrupts, so a limit that is read separately would belong to another chunk.
 *
 *   bits  0-47   address of the next slot, + 20 with every claim
 *   bits 48-63   65536 - slots left, + 1 with every claim: bit 63 is set while slots are left
 *                and falls when the last one is gone
 *
 * Whatever was claimed in vain, address and count together still say where the chunk ends
 * (rt_claim_end), so the word alone names the chunk that the lane is at, too: to take a chunk into
 * use and to let go of one is one compare-and-exchange of this word.
 *
 *   0                the lane is wiped: that of a forked child, or of nobody
 *   RT_CLAIM_NONE    a lane without a chunk
 *   else, bit 63 = 0 all slots of its chunk are claimed
 *
 * What was claimed in vain is taken back by the slow path, so that the count never climbs up to
 * bit 63.
 *
 * A lane is written by its thread (and its handlers) only, so no instruction of the thunk is locked.
 */
#ifndef RUNTIME_LANE_H
#define RUNTIME_LANE_H

/* thunk.inc: C may run on one of these stacks of ours. */
#define RT_STACK_SHIFT 14
#define RT_STACKS 64

/* thunk.inc: what a thunk pushes, or a hook; what C needs beyond it, on lanes and with a board. */
#define RT_STACK_THUNK 56
#define RT_STACK_HOOK 120
#define RT_STACK_LANE 768
#define RT_STACK_MEMORY 1152
#define RT_STACK_BOARD 2560

#define RT_CLAIM_STEP 0x0001000000000014
#define RT_CLAIM_COUNT_SHIFT 48
#define RT_WIDE_SLOTS 2

#define RT_LANE_CLAIM 0
#define RT_LANE_SOURCE 8
#define RT_LANE_TID 12
#define RT_LANE_HEAD 16
#define RT_LANE_CPU 20
#define RT_LANE_SCRATCH 24
#define RT_LANE_STAMP 24
#define RT_LANE_KNOWN 44
#define RT_LANE_COUNTS 48
#define RT_LANE_CALLS 80
#define RT_LANE_PAGES 112

/* Bus device: lines in the control block, registers in the window, struct rseq. */
#define RT_LINE_SHIFT 6
#define RT_LINE_OWNER 0x6d0000c0
#define RT_LINE_CPU 0x6d0000c4
#define RT_HARDWARE_SOURCE 0x6b001080
#define RT_HARDWARE_TRACE 0x6b001180
#define RT_RSEQ_CPU 4 /* cpu_id */
#define RT_RSEQ_CS 8  /* rseq_cs */
#define RT_RSEQ_SIG 0x53053053

/* Page counters: wire.h, segment.h. */
#define RT_ACTION_REPEATED 0x40000000
#define RT_ACTION_LINES 0x20000000
#define RT_ACTION_BY_FUNCTION 0x10000000
#define RT_NO_PAGE 0x6d210000
#define RT_PAGE_TABLE_MASK 0x7ff8
#define RT_FUNCTION_TABLE_MASK 0x3fff8
#define RT_PAGE_SALT 0x9e3779b1
#define RT_PAGE_SALT_SHIFT 17

/* Counts: board.h, wire.h, segment.h. */
#define RT_ACTION_GATED 0x1000
#define RT_ACTION_COUNT 0x2000
#define RT_ACTION_CALLS 0x4000
#define RT_ACTION_NUMBER 5
#define RT_GATES 0x6d000080
#define RT_GATE_TAKE 1
#define RT_WORD_INCREMENT 80
#define RT_CALLS_PARTS 4
#define RT_CALLS_IN_CHUNK 8190
#define RT_CALLS_FIRST 16

/* enum kron_hook */
#define RT_HOOK_SYSTEM_CALL 20

#ifndef __ASSEMBLER__
#include <stdint.h>
#include <kron/board.h>
#include <kron/segment.h>

struct rt_lane {
	uint64_t claim;  /* bus exact: triggers that this thread has made */
	uint32_t source; /* goes into every sample */
	uint32_t tid;    /* owner; 0 = wiped or never used, RT_TID_DEAD = may be reused; atomic, but
			  * for the owner, who finds nothing else while it lives */
	uint32_t head;   /* header byte for this CPU; written before cpu */
	uint32_t cpu;    /* full CPU number that head was made for, which the chunk's last record
			  * of a CPU says; RT_CPU_NONE: the next sample makes one */
	union {
		/* constant time: a sample that is not taken goes here */
		uint32_t scratch[KRON_SAMPLE_SIZE / 4];
		/* sparse clock: head and time that copies get (thunk_sparse.S); 0: none.  0 before cpu changes. */
		uint64_t stamp __attribute__((packed, aligned(4)));
	};
	uint32_t known;   /* source.c: our source address once the source table has it, else 0 */
	uint64_t *counts; /* action.c: the thread's counters, NULL = none yet */
	uint64_t lost;    /* triggers lost since the last sample that was taken; atomic */
	/* The slow path's, another cache line: lane.c. */
	_Alignas(64) uint64_t work; /* where the token of the one at work lies; 0: nobody is */
	uint32_t taken;             /* chunk that it has taken, or is about to take, + 1 */
	uint32_t leaving;           /* chunk that the lane was at and that is to be FULL, + 1 */
	struct kron_calls *calls[KRON_CALLS_PARTS]; /* calls.c; NULL = none yet */
	int64_t *pages;     /* pages.c: the thread's table of pages, NULL = none yet */
	uint64_t page_free; /* where its next record goes; at a chunk's end: nowhere */
};
_Static_assert(sizeof(struct rt_lane) == 128, "cache lines of its own");
_Static_assert(__builtin_offsetof(struct rt_lane, calls) ==
		       __builtin_offsetof(struct rt_lane, counts) + 8 * KRON_CALLS_WORD,
	       "one word leads to both (wire.h)");
_Static_assert(__builtin_offsetof(struct rt_lane, claim) == RT_LANE_CLAIM, "thunk.S");
_Static_assert(__builtin_offsetof(struct rt_lane, source) == RT_LANE_SOURCE, "thunk.S");
_Static_assert(__builtin_offsetof(struct rt_lane, head) == RT_LANE_HEAD, "thunk.S");
_Static_assert(__builtin_offsetof(struct rt_lane, cpu) == RT_LANE_CPU, "thunk.S");
_Static_assert(RT_LANE_HEAD % 8 == 0 && RT_LANE_CPU == RT_LANE_HEAD + 4, "one word for lane.c");
_Static_assert(__builtin_offsetof(struct rt_lane, tid) == RT_LANE_TID, "thunk_static.S");
_Static_assert(__builtin_offsetof(struct rt_lane, scratch) == RT_LANE_SCRATCH, "thunk_constant.S");
_Static_assert(__builtin_offsetof(struct rt_lane, stamp) == RT_LANE_STAMP && RT_LANE_STAMP % 8 == 0,
	       "thunk_sparse.S");
_Static_assert(__builtin_offsetof(struct rt_lane, known) == RT_LANE_KNOWN, "thunk_bus.S");
_Static_assert(__builtin_offsetof(struct rt_lane, pages) == RT_LANE_PAGES &&
		       __builtin_offsetof(struct rt_lane, counts) == RT_LANE_COUNTS &&
		       __builtin_offsetof(struct rt_lane, calls) == RT_LANE_CALLS,
	       "thunk_bus.S");
_Static_assert(KRON_GATE_ADDR(0) == RT_GATES && KRON_GATE_TAKE == RT_GATE_TAKE &&
		       KRON_WORD_INCREMENT == RT_WORD_INCREMENT &&
		       KRON_CALLS_PARTS == RT_CALLS_PARTS &&
		       KRON_CALLS_IN_CHUNK == RT_CALLS_IN_CHUNK && KRON_CALLS_MAX <= 0x8000 &&
		       __builtin_offsetof(struct kron_calls, n) == RT_CALLS_FIRST,
	       "thunk_bus.S");
_Static_assert(KRON_CTL_ADDR + __builtin_offsetof(struct kron_ctl, line) +
			       __builtin_offsetof(struct kron_line, owner) ==
		       RT_LINE_OWNER,
	       "thunk_bus.S");
_Static_assert(__builtin_offsetof(struct kron_line, cpu) == RT_LINE_CPU - RT_LINE_OWNER &&
		       sizeof(struct kron_line) == 1 << RT_LINE_SHIFT,
	       "thunk_bus.S");
_Static_assert(RT_HARDWARE_SOURCE == KRON_WINDOW_ADDR + KRON_CHIP_BYTE(KRON_WORD_SOURCE) &&
		       RT_HARDWARE_TRACE == KRON_WINDOW_ADDR + KRON_CHIP_BYTE(KRON_WORD_TRACE),
	       "thunk_bus.S");
_Static_assert(RT_NO_PAGE == KRON_NO_PAGE_ADDR && RT_PAGE_TABLE_MASK == KRON_PAGE_TABLE_SIZE - 8 &&
		       __builtin_offsetof(struct kron_page, reads) == 8 &&
		       __builtin_offsetof(struct kron_page, writes) == 16 &&
		       __builtin_offsetof(struct kron_page, function) == 28 &&
		       RT_FUNCTION_TABLE_MASK == KRON_FUNCTION_TABLE_SIZE - 8 &&
		       KRON_PAGE_SALT(1) == RT_PAGE_SALT >> RT_PAGE_SALT_SHIFT,
	       "thunk_bus.S");
_Static_assert((RT_CLAIM_STEP & 0xffff) == KRON_SAMPLE_SIZE, "a claim is one sample");
_Static_assert(RT_WIDE_SLOTS == KRON_WIDE_SLOTS, "thunk.S");

#define RT_TID_DEAD 0xffffffffu
#define RT_CPU_NONE 0xffffffffu

/* No address that a program may have. */
#define RT_CLAIM_NONE (1ull << 47)

/* The claim word of a lane whose next slot is at addr, with `left` slots to go. */
static inline uint64_t rt_claim_word(uint64_t addr, uint32_t left)
{
	return ((65536ull - left) << RT_CLAIM_COUNT_SHIFT) + addr;
}

static inline int rt_claim_has_room(uint64_t claim)
{
	return (int64_t)claim < 0;
}

/* Of a claim that has room: slots from its own on. */
static inline uint32_t rt_claim_left(uint64_t claim)
{
	return 65536u - (uint32_t)(claim >> RT_CLAIM_COUNT_SHIFT);
}

static inline uint64_t rt_claim_addr(uint64_t claim)
{
	return claim & ((1ull << RT_CLAIM_COUNT_SHIFT) - 1);
}

/*
 * The end of the chunk; what is not a chunk's comes out as it was before claims in vain.  It is also
 * the claim word of a lane that has just claimed its last slot.
 */
static inline uint64_t rt_claim_end(uint64_t claim)
{
	int64_t left = -(int64_t)(int16_t)(claim >> RT_CLAIM_COUNT_SHIFT);

	return rt_claim_addr(claim) + (uint64_t)(left * KRON_SAMPLE_SIZE);
}
#endif

#endif

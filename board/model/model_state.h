/* SPDX-License-Identifier: MIT */
/*
 * model_state.h - what a board remembers; included by model.h alone.
 *
 *   ┌ registers, clocks, counters ┐┌ chip FIFO ─────┐┌ vc ┐┌ arena ────────────────────────────┐
 *   │ always in use               ││ entry[0]: head ││    ││ what came out │ free │ board FIFO │
 *   └─────────────────────────────┘└────────────────┘└────┘└───────────────┴──────┴────────────┘
 *   0                              entry                   store                  rd           wr
 *
 * What is rarely full stands last, so that a copy need not take it (model_used_bytes()).  vc
 * means nothing, and is not copied, where no MultiKron_vc is installed.  A
 * byte that leaves the board FIFO for local memory or the cable only changes sides of the gap in
 * the arena: words for memory come first, and after them what went over the cable but for its first
 * 16 bits, which have a place of their own.  For only the sequence that was under way when the
 * call began can go another way than all that follow it.
 *
 * Only board/model/model*.c touches the fields, but for store[] (model_stores()).
 */
#ifndef BOARD_MODEL_STATE_H
#define BOARD_MODEL_STATE_H

/* One place of the chip FIFO: groups A-E; bit 161 is in fifo_resource. */
struct model_entry {
	uint32_t group[5];
};

/* Sixteen counters, their control registers and their shadow registers. */
struct model_counters {
	uint64_t enable; /* sixteen fields each */
	uint64_t mode;
	uint64_t clock;
	uint64_t prescaler;    /* NODECLK at which /10 and /100 began: the last chip reset */
	uint64_t counted_node; /* node and ts up to which counter[] has counted */
	uint64_t counted_ts;
	uint32_t counter[KRON_COUNTERS];
	uint32_t shadow[KRON_COUNTERS];
};

struct model_vc {
	struct model_counters page_in; /* the page that is in the chip */
	uint64_t timestamp;
	uint32_t high;
	uint16_t csr; /* KRON_CSR_ WAIT_STATES, WAIT_MEM, MODE32 */
	uint16_t page;
	/* a page for the SRAM, to be taken by the caller (model_vc_stores()) */
	uint16_t page_out;
	uint16_t nout; /* KRON_COUNTERS, or 0: none */
	uint32_t out[KRON_COUNTERS];
};

enum model_sequence { MODEL_IDLE = 0, MODEL_TO_MEMORY = 1, MODEL_TO_CABLE = 2 };

#define MODEL_ARENA_BYTES (4u * MODEL_STORES_MAX)
/* What all places of the chip FIFO can send, were each a Resource sample. */
#define MODEL_CHIP_BYTES_MAX (MODEL_CHIP_FIFO_MAX * KRON_RESOURCE_SIZE)

struct model_state {
	struct model_geometry geometry;

	/* ---- clocks ---- */
	uint64_t time;      /* oscillator ticks since power-on */
	uint64_t node;      /* NODECLKs since power-on */
	uint64_t ts;        /* timestamp clocks since power-on */
	uint64_t timestamp; /* the counter; bits 56-63 are garbage */
	uint8_t half;       /* with DIV2: the tick between two NODECLKs */
	uint8_t ts_phase;   /* NODECLKs since the last timestamp clock */

	/* ---- chip: output network ---- */
	uint8_t network_off; /* by word 19 */
	uint8_t sent;        /* bytes of the head sample that are out */
	uint64_t network;    /* NODECLK at which the next byte goes, if there is one */
	uint8_t nfifo;       /* samples in the chip FIFO */
	uint8_t shadow_busy;
	uint16_t fifo_resource; /* bit n: bit 161 of entry n */

	/* ---- chip: registers ---- */
	uint16_t csr; /* KRON_CSR_ SAMPLING, WAIT, READ_WAIT, OVERRUN..., WAIT_STATES, MODE32 */
	uint16_t filter;
	uint16_t external;     /* levels of X15-X0 */
	uint8_t memory_full;   /* simple buffer: the last word is written */
	uint8_t sequence;      /* enum model_sequence */
	uint64_t sequence_end; /* tick */
	uint32_t high;         /* High Order 32 bit register */
	uint32_t wait;
	uint32_t overrun;
	uint32_t config; /* bits 0-23 */
	uint32_t map;
	struct model_counters counters;
	uint32_t source[KRON_SOURCES];

	/* ---- words for local memory, to be taken by the caller (model_stores()) ---- */
	uint32_t store_first; /* word of store[0]; the others follow it, round the end */
	uint16_t nstores;
	uint16_t ncpu; /* the CPU's own write: up to two words, after the others */
	uint32_t cpu_word;
	uint32_t cpu_value[2];

	/* ---- the cable, in values of 16 bits, counted modulo 2^32 ---- */
	uint32_t cable_sent;
	uint32_t cable_taken; /* by the far end: the others wait there */
	uint16_t ncable; /* sent by this call, to be taken by the caller (model_cable_value()) */
	uint16_t cable_first; /* the first of them */

	/* ---- board FIFO: bytes rd to wr of the arena ---- */
	uint16_t rd;
	uint16_t wr;

	struct model_entry entry[MODEL_CHIP_FIFO_MAX]; /* head first */
	struct model_vc vc;
	uint32_t store[MODEL_STORES_MAX]; /* the arena */
};
_Static_assert(sizeof(struct model_state) <= 4032, "fits a slot of board/model/access.h");
_Static_assert(MODEL_BOARD_FIFO_MAX + MODEL_CHIP_BYTES_MAX <= MODEL_ARENA_BYTES,
	       "one call can move both FIFOs to memory");

#endif

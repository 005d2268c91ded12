/* SPDX-License-Identifier: MIT */
/*
 * model.h - the model of a MultiKron board: state, clock, bus cycles.
 *
 *        bus cycle ──► chip: registers ── trigger ──► chip FIFO ── 1 byte / 2 NODECLK ──┐
 *                            counters ── shadows ─────────┘                             ▼
 *                                                     local memory ◄── words ── board FIFO
 *
 * Pure and freestanding: no clock is read, no memory but *s and *c is touched, nothing waits.
 * Time is handed in, in ticks of the board's oscillator since power-on (a NODECLK is one tick,
 * two with DIV2); the same calls give the same state, always.  So every row of the reports' tables
 * is a unit test.  board/model/access.h makes it a board that many processes use at once.
 *
 * Sources: NISTIR 5571 (the chip) and NISTIR 5993 (the board); doc/CONFORMANCE.md has a row
 * for each rule and the test that shows it.
 */
#ifndef BOARD_MODEL_H
#define BOARD_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <kron/board.h>
#include <kron/segment.h>

/* ---- what a board can be built with ---- */
struct model_geometry {
	uint32_t chip_fifo;  /* samples, 1 to MODEL_CHIP_FIFO_MAX; "small" and never stated: 4 */
	uint32_t board_fifo; /* bytes, 4 to MODEL_BOARD_FIFO_MAX; 1024 */
	/* Ticks for one sequence of the FIFO state machine (it runs on the PCI clock, whatever the
	 * chip's): 4 bytes to memory, 2 bytes to the cable; 1 to MODEL_DRAIN_MAX.  The reports do
	 * not say; default 5: four FIFO reads at 33 MHz, pipelined. */
	uint32_t drain_memory;
	uint32_t drain_cable;
	uint32_t cable; /* 0: nothing is at the cable's far end; else so many values of 16 bits
			 * find room there until somebody takes them, at most MODEL_CABLE_MAX */
	uint32_t vc;    /* 1: a MultiKron_vc is installed */
};
#define MODEL_CHIP_FIFO_MAX 16u
#define MODEL_BOARD_FIFO_MAX 1024u
#define MODEL_DRAIN_MAX 1000000u
#define MODEL_CABLE_MAX (KRON_CABLE_BYTES / 8u)
/* chip_fifo, board_fifo, drain_memory, drain_cable, cable, vc */
#define MODEL_GEOMETRY_DEFAULT ((struct model_geometry){4, MODEL_BOARD_FIFO_MAX, 5, 5, 0, 0})

/* Words that one call may move to local memory out of both FIFOs, and values of 16 bits to the cable. */
#define MODEL_STORES_MAX 640u
#define MODEL_CABLE_STORES_MAX (2u * MODEL_STORES_MAX)

struct model_store {
	uint32_t word; /* index into local memory */
	uint32_t value;
};

/*
 * The whole model, about 3 KiB, no pointers: access.h copies it for each bus cycle.  Fields
 * are the model's own (model.c); others read them through cycles or the functions below.
 * It may come from shared memory that a stranger wrote: model_is_sane() first.
 */
struct model_state;

#include "board/model/model_state.h"

/* ---- one bus cycle ---- */
struct model_cycle {
	uint32_t offset; /* byte offset in the board's address space, a multiple of 4 */
	uint8_t bytes;   /* 4 or 8 (8: one 64-bit transfer) */
	bool write;
	uint8_t cpu_lines; /* external lines XCPU[7..0]: one hot, or 0 (read as line 0) */
	bool set_source;   /* the operating system's part: first store `source` in the register
			    * of the active CPU ID line (needs EXT_CPU and one line) */
	uint32_t source;
	uint64_t data;        /* in: written; out: read */
	const uint32_t *page; /* what the SRAM has of model_vc_page(); NULL: zeros */
	/* out */
	uint64_t done;      /* tick at which the board acknowledges: >= now, later = it waited */
	bool no_answer;     /* nobody acknowledges (MK_OE off, or a wait that can never end): a
			    * bus time-out.  A read has all ones, a write is gone. */
	bool taken;         /* a trigger: the sample is in the FIFO */
	bool gates_changed; /* CSR, Filter Register or Configuration Register were written */
};

/* Power-on: every register as after a hardware reset, time 0. */
void model_power_on(struct model_state *s, const struct model_geometry *g);

/* Indices and lengths within their bounds, so that no call can go astray on it. */
bool model_is_sane(const struct model_state *s);

/*
 * Let the clocks run to `now`, in ticks (never back: an earlier `now` counts as the latest).
 *
 * This and each other call that takes `now` may leave words for local memory in *s.  The caller
 * takes them, model_store(s, 0) to model_store(s, model_stores(s) - 1) in this order; the
 * next call forgets them.
 */
void model_advance(struct model_state *s, uint64_t now);

/*
 * model_advance(now), then the cycle.  A cycle that waits moves the model's time on to
 * c->done; the caller sees to it that this much time passes before it goes on.  Reads of local
 * memory are the caller's: the model has only the pointer to it; writes to it come out as
 * stores.
 */
void model_cycle(struct model_state *s, uint64_t now, struct model_cycle *c);

/*
 * The MultiKron_vc's SRAM is the caller's, as local memory is: which page the cycle will retrieve from it,
 * 0 to KRON_VC_PAGES - 1, for model_cycle.page; -1: none.  And the page that the last call has stored:
 * model_vc_stores() words, each of a virtual counter, to be taken as those for local memory.
 */
int model_vc_page(const struct model_state *s, const struct model_cycle *c);

static inline uint32_t model_vc_stores(const struct model_state *s)
{
	return s->geometry.vc ? s->vc.nout : 0;
}

/* i < model_vc_stores(s); `word` is the number of the counter */
static inline struct model_store model_vc_store(const struct model_state *s, uint32_t i)
{
	return (struct model_store){(s->vc.page_out % KRON_VC_PAGES) * KRON_COUNTERS + i,
				    s->vc.out[i % KRON_COUNTERS]};
}

/* The far end of the cable has taken the `n` oldest values that wait there; no more than there are. */
void model_cable_take(struct model_state *s, uint64_t now, uint32_t n);

/* Those that wait there. */
static inline uint32_t model_cable_waiting(const struct model_state *s)
{
	return s->cable_sent - s->cable_taken;
}

/* What the last call has sent, i < s->ncable, *s sane: the byte that left the FIFO first is the upper one. */
static inline uint16_t model_cable_value(const struct model_state *s, uint32_t i)
{
	const uint8_t *p = (const uint8_t *)s->store + 4u * s->nstores + 2u * i;

	return i ? (uint16_t)(p[-2] << 8 | p[-1]) : s->cable_first;
}

/* A write to Software Reset and one to the Configuration Register, both at `now`. */
void model_reset(struct model_state *s, uint64_t now, uint32_t config);

/* An external counter signal X0-X15 changes its level (edges, gated clocks) at `now`. */
void model_set_external(struct model_state *s, uint64_t now, unsigned counter, bool high);

static inline uint32_t model_stores(const struct model_state *s)
{
	return (uint32_t)s->nstores + s->ncpu;
}

/* i < model_stores(s), *s sane */
static inline struct model_store model_store(const struct model_state *s, uint32_t i)
{
	struct model_store w;

	if (i < s->nstores) {
		w.word = (s->store_first + i) & KRON_MAP_WORD;
		w.value = s->store[i];
	} else {
		w.word = (s->cpu_word + (i - s->nstores)) & KRON_MAP_WORD;
		w.value = s->cpu_value[(i - s->nstores) & 1];
	}
	return w;
}

/*
 * The number of leading bytes that the next call needs: what a copy must take whose words
 * for local memory are no longer wanted.  Never more than sizeof(*s), whatever is in *s.
 */
uint32_t model_used_bytes(const struct model_state *s);
/* Of these and of the words for local memory, what counts: as many bytes at the beginning, the rest
 * of it in store[].  *s sane. */
uint32_t model_head_bytes(const struct model_state *s);
uint32_t model_arena_bytes(const struct model_state *s);

/* ---- looking without touching: for gates, status displays and tests ---- */
uint32_t model_csr(const struct model_state *s); /* as a read would return it */
uint32_t model_filter(const struct model_state *s);
uint32_t model_config(const struct model_state *s);
uint32_t model_map(const struct model_state *s); /* Memory Address Pointer */
uint64_t model_timestamp(const struct model_state *s);
uint64_t model_counter(const struct model_state *s, unsigned counter); /* without copy */
/* Of the page that is in the MultiKron_vc; only where one is installed. */
uint64_t model_vc_counter(const struct model_state *s, unsigned counter);

/* Nothing is in the FIFOs, nor on its way out of them. */
static inline bool model_is_idle(const struct model_state *s)
{
	return s->nfifo == 0 && s->rd == s->wr && s->sequence == MODEL_IDLE;
}

#endif

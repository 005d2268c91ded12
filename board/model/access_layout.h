/* SPDX-License-Identifier: MIT */
/*
 * access_layout.h - the model part of a segment, byte by byte; for board/access*.c and tests.
 *
 *   offset from KRON_MODEL_OFFSET
 *     0x0000   header: what never changes          64 bytes
 *     0x0040   active, urgent                      64 bytes, the line that all fight for
 *     0x0080   virtual clock                       64 bytes
 *     0x1000   slot 0, slot 1, ...                 ACCESS_STRIDE bytes each
 *     0x70000  SRAM of the MultiKron_vc            8 bytes a counter, tagged as local memory
 *     0x80000  the far end of the cable            8 bytes for 16 bits, tagged likewise: a ring
 *
 * A stride that is an odd number of cache lines spreads the slots over the sets of a cache.
 */
#ifndef BOARD_ACCESS_LAYOUT_H
#define BOARD_ACCESS_LAYOUT_H

#include <stddef.h>

#include "board/model/access.h"

#define ACCESS_MAGIC 0x317665644e4f524bull /* "KRONdev1" read as bytes */
#define ACCESS_VERSION 3u

/*
 * Owner word of a slot:
 *   bit 63 = 1   owned: bits 0-21 the owner's thread id (0: not to be told), bits 22-62 the
 *                address / 64 of the mark on its stack (0: none), struct access_mark
 *   bit 63 = 0   published: bits 0-55 the generation that it holds or held, or was to hold
 *
 * A published slot is free when its generation has been reached and the slot is not active:
 * then it was replaced, or its owner has lost the race for that generation.
 */
#define ACCESS_OWNED (1ull << 63)
#define ACCESS_OWNER_TID 0x3fffffull
#define ACCESS_OWNER_MARK_SHIFT 22
#define ACCESS_ADDRESS_MAX (1ull << 47)

/* Active word: generation << 8 | slot.  Generation 0 is never active: zeroed slots are free. */
#define ACCESS_SLOT_BITS 8
#define ACCESS_SLOT_MASK 0xffull
#define ACCESS_GENERATION_MAX (1ull << 55)

struct access_slot {
	uint64_t owner;
	/* The rest belongs to the owner; once published nobody writes it. */
	uint64_t gates;       /* what gates depend on: access_gates() */
	uint64_t anchor_tsc;  /* real clock: this time stamp ... */
	uint64_t anchor_tick; /* ... is this tick */
	uint64_t time;        /* the latest tick that the model has seen */
	uint32_t used;        /* bytes of state that count */
	uint32_t prev;        /* the slot that this one replaced */
	uint32_t nstores;     /* of these state.store[] */
	uint32_t ncpu;        /* and state.cpu_value[] */
	uint32_t nvc;         /* of state.vc.out[] */
	uint32_t ncable;      /* of model_cable_value() */
	struct model_state state;
};
_Static_assert(offsetof(struct access_slot, state) == 64, "one line before the state");

#define ACCESS_STRIDE ((((sizeof(struct access_slot) + 63u) / 64u) | 1u) * 64u)
#define ACCESS_SLOTS_OFFSET 4096u
#define ACCESS_SRAM_OFFSET (KRON_MODEL_SIZE - 8u * KRON_VC_COUNTERS)
#define ACCESS_SLOTS ((unsigned)((ACCESS_SRAM_OFFSET - ACCESS_SLOTS_OFFSET) / ACCESS_STRIDE))
_Static_assert(ACCESS_SLOTS >= 64 && ACCESS_SLOTS <= ACCESS_SLOT_MASK, "a slot has 8 bits");

struct model {
	uint64_t magic;
	uint32_t version;
	uint32_t clock;       /* enum access_clock */
	uint64_t tsc_mult;    /* ticks = cycles * tsc_mult >> ACCESS_TSC_SHIFT */
	uint32_t stride;      /* ACCESS_STRIDE: a model of another size does not fit */
	uint32_t slots;       /* ACCESS_SLOTS */
	uint32_t state_bytes; /* sizeof(struct model_state) */
	uint32_t home;        /* pid namespace of its maker; 0: not known */
	_Alignas(64) uint64_t active;
	uint64_t urgent; /* who has lost too often: the others let it go first */
	_Alignas(64) uint64_t virtual_now;
};
_Static_assert(sizeof(struct model) <= ACCESS_SLOTS_OFFSET, "header");
#define ACCESS_TSC_SHIFT 56
#define ACCESS_MULT_MIN (1ull << 41) /* a TSC of 1.3 THz */

/* While a thread owns a slot, this stands on its stack at a multiple of 64. */
struct access_mark {
	_Alignas(64) volatile uint64_t value;
};
#define ACCESS_MARK(slot, tid) (0x6b726f6e00000000ull ^ (uint64_t)(slot) << 24 ^ (uint64_t)(tid))

static inline struct access_slot *access_slot(const struct board *b, unsigned slot)
{
	return (struct access_slot *)((uint8_t *)b->model + ACCESS_SLOTS_OFFSET +
				      slot * ACCESS_STRIDE);
}
/* A word for each virtual counter, also where no MultiKron_vc is installed. */
static inline uint64_t *access_sram(const struct board *b)
{
	return (uint64_t *)((uint8_t *)b->model + ACCESS_SRAM_OFFSET);
}
/* Has pages only where geometry.cable is not 0; value n of all that were sent is in word n % MODEL_CABLE_MAX. */
static inline uint64_t *access_cable(const struct board *b)
{
	return (uint64_t *)((uint8_t *)b->model + KRON_MODEL_SIZE);
}
static inline uint64_t access_generation(uint64_t active)
{
	return active >> ACCESS_SLOT_BITS;
}
static inline unsigned access_slot_number(uint64_t active)
{
	return (unsigned)(active & ACCESS_SLOT_MASK);
}
/* The word is from a segment that anybody may have damaged. */
static inline bool access_active_is_sane(uint64_t active)
{
	return access_slot_number(active) < ACCESS_SLOTS && access_generation(active) != 0 &&
	       access_generation(active) < ACCESS_GENERATION_MAX;
}
static inline uint64_t access_active(const struct board *b)
{
	/* Pairs with the swap in access_publish(): what it published can be read. */
	return __atomic_load_n(&b->model->active, __ATOMIC_ACQUIRE);
}
#define ACCESS_READ(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define ACCESS_WRITE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

/*
 * Of a slot that may be overwritten meanwhile, or into one.  By words, for `rep movs` costs more to
 * begin than a state's few lines to copy, and more again to read what was just written.
 */
static inline void access_copy_words(void *to, const void *from, uint64_t bytes)
{
	typedef uint64_t __attribute__((may_alias)) word_t;
	const word_t *x = from;
	word_t *y = to;
	uint64_t i;

#pragma GCC unroll 8
	for (i = 0; i < bytes / 8; i++)
		ACCESS_WRITE(&y[i], ACCESS_READ(&x[i]));
}

/* ---- access_slots.c ---- */

/* A cycle's hold on a slot. */
struct access_hold {
	struct access_mark mark;
	uint64_t owner; /* the word that says that we have it; 0: we have none */
	unsigned slot;
	uint32_t tid;
	uint32_t epoch;
	struct access_mark place_mark; /* access_places.c */
	unsigned place;
};
/* Who we are, for h->owner; no slot yet. */
void access_hold_init(const struct board *b, struct access_hold *h);
/* A slot that is ours alone; false: for seconds there was none.  `active` of a moment ago. */
bool access_claim(const struct board *b, struct access_hold *h, uint64_t active);
/* Give it up without publishing it. */
void access_release(const struct board *b, struct access_hold *h);
/* Make the slot the active state after `active`.  False: somebody was faster; h->owner is 0 if
 * the slot went, too.  True: the slot is no longer ours. */
bool access_publish(const struct board *b, struct access_hold *h, uint64_t active);
/* Will nobody give it back that `owner` says is owned, this slot or place? */
bool access_can_reclaim(const struct access_hold *h, unsigned number, uint64_t owner);
uint32_t access_namespace(void); /* a number for our pid namespace; 0: not known */

/* ---- access_places.c ---- */
/* Memory for the model, no other process's and no other frame's, until it is given back. */
struct access_place {
	uint64_t owner;               /* as of a slot; 0: free */
	uint64_t active;              /* `work` is the state of this active word ... */
	const struct model *board;    /* ... of this board; NULL: it is none */
	uint64_t era;                 /* ... as access_places_era was */
	uint32_t page[KRON_COUNTERS]; /* out of the SRAM, for a cycle that selects it */
	_Alignas(64) struct access_slot work;
};
/* NULL: there is none. */
struct access_place *access_place_take(const struct board *b, struct access_hold *h);
void access_place_give(struct access_place *p);
/* What places hold is of boards that were mapped before: another may lie at the same address now.
 * Counted, because writing to each of them would touch all of their pages. */
extern uint64_t access_places_era __attribute__((visibility("hidden")));
static inline void access_places_forget(void)
{
	__atomic_fetch_add(&access_places_era, 1, __ATOMIC_RELAXED);
}

/* ---- access_memory.c ---- */
enum access_carry { ACCESS_DAMAGED = -1, ACCESS_CARRIED = 0, ACCESS_MOVED_ON = 1 };
/* Carry out the words for local memory of the active state.  MOVED_ON: another state is active
 * by now, and so somebody has carried them out. */
enum access_carry access_carry_out(const struct board *b, uint64_t active);
void access_load_memory(const struct board *b, uint32_t first, uint32_t n, uint32_t *out);
void access_load_cable(const struct board *b, uint32_t first, uint32_t n, uint16_t *out);
/* n virtual counters as they are in the SRAM, which is not what the page in the chip has. */
void access_load_sram(const struct board *b, uint32_t first, uint32_t n, uint32_t *out);

/* ---- access_clock.c ---- */
struct access_clock_point {
	uint64_t tsc;
	uint64_t tick;
};
static inline uint64_t access_tsc(void)
{
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}
static inline uint64_t access_tick(uint64_t mult, const struct access_clock_point *anchor,
				   uint64_t tsc)
{
	uint64_t cycles = tsc - anchor->tsc;

	/* Another CPU's counter may be a little behind. */
	if ((int64_t)cycles < 0)
		return anchor->tick;
	return anchor->tick + (uint64_t)((unsigned __int128)cycles * mult >> ACCESS_TSC_SHIFT);
}
/* A time that is further from now than this (1.7 s) is not a wait, but a TSC that began anew (a
 * machine that slept) or a damaged segment. */
#define ACCESS_WAIT_MAX (1ull << 26)
/* The TSCs of two CPUs differ by less than this (cycles), or it began anew. */
#define ACCESS_SKEW_MAX (1ull << 24)
/* Of the active state, with the latest tick that it has seen; false: damaged. */
bool access_read_anchor(const struct board *b, struct access_clock_point *anchor, uint64_t *time);
uint64_t access_tsc_mult(uint64_t tsc_hz);
/* Let time pass until tick `done`. */
void access_wait(const struct board *b, const struct access_clock_point *anchor, uint64_t done);

/* ---- the gates' registers in one word: filter, 1 << 16 sampling, config << 32 ---- */
static inline uint64_t access_gates(const struct model_state *s)
{
	return (model_filter(s) & 0xffffu) | ((model_csr(s) & KRON_CSR_SAMPLING) ? 1u << 16 : 0) |
	       (uint64_t)model_config(s) << 32;
}
/* As access_gates(), of the active state; false: damaged. */
bool access_read_gates(const struct board *b, uint64_t *gates);
/* The gates' registers in the control block are others than those in the model. */
static inline bool access_gates_differ(const struct kron_ctl *ctl, uint64_t gates)
{
	return ACCESS_READ(&ctl->filter) != (gates & 0xffff) ||
	       ACCESS_READ(&ctl->csr) != (gates >> 16 & 1) * KRON_CSR_SAMPLING ||
	       ACCESS_READ(&ctl->config) != gates >> 32;
}

#endif

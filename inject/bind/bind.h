/* SPDX-License-Identifier: MIT */
/*
 * bind.h - fixes a plan for one process: addresses, event numbers, filter levels.
 *
 * Pure: it gets the load bias and the address of the trampoline block, and gives the block's
 * bytes and the patch array.  bind_size() first, to find a gap of that size (space.h).
 */
#ifndef INJECT_BIND_H
#define INJECT_BIND_H

#include "inject/plan/plan.h"

#define BIND_EXIT 0x80000000u

struct binding {
	const struct plan *plan;
	const uint8_t *selected;    /* one byte a function: trace it?  NULL = none (hooks only);
				     * SELECTED_CALLSITES: yes, but nothing of it here */
	bool hooks;                 /* bind the hooks too */
	bool unwinds;               /* those that tell of unwound calls, too: calls are recorded */
	bool alone;                 /* there is no libkron-rt.so: the start-up code has the hooks */
	bool handlers_only;         /* alone: those that wrap handlers; of a dynamic program */
	uint32_t event_base;        /* number of the plan's function 0 in the trace's table */
	uint32_t jump_base;         /* likewise of its jump 0 */
	bool has_jumps;             /* exits that are jumps have numbers of their own */
	uint8_t level;              /* filter level of the probes */
	const uint8_t *levels;      /* one byte a function: its own; NULL = `level` for all */
	const uint8_t *timed;       /* likewise: it has timed_thunk; NULL = none has */
	uint64_t bias;              /* load bias of the module */
	uint64_t block;             /* address of the trampoline block, page-aligned */
	uint64_t table;             /* likewise of the words that far jumps go by, below 2 GiB */
	uint64_t from, to;          /* sites wholly within these vaddrs only; 0, 0: all of them */
	uint64_t thunk, hook_thunk; /* addresses in the process's libkron-rt.so */
	bool whole;   /* give each site of the plan its place in the block, selected or not */
	bool dormant; /* every probe and hook jumps over itself: for a file on disk */
	uint64_t
		own_hook; /* dormant: where hooks that wrap handlers lead all the same; 0: nowhere */
	/* Probes and places that jump over themselves; NULL: none does. */
	bool (*sleeps)(void *ctx, const struct plan_probe *p);
	void *sleeps_ctx;
	bool no_places;    /* places sleep, the others do not */
	bool no_patches;   /* nothing but the block is wanted */
	const uint8_t *id; /* KRON_BLOCK_ID_LEN bytes for the block's head, or NULL */
	/* For places; a plan without any needs none of it. */
	uint64_t payload_thunk, action_thunk, memory_thunk; /* likewise */
	uint64_t wide_thunk;    /* 0: payload_thunk, the bus has 32 bits for a payload */
	uint64_t timed_thunk;   /* 0: thunk */
	enum kron_thunk way;    /* what `thunk` and `payload_thunk` do */
	int32_t counts;         /* struct kron_hello */
	const uint32_t *events; /* numbers of the session's user events; of a function
					       * with BIND_EXIT: its exit */
	size_t nevents;         /* all that the plan's places name */
	/* Of the same plan and sites, for the next bind_make(), which takes its list; NULL: there is none. */
	struct bind_layout *layout;
};

#define SELECTED_CALLSITES 2

struct bound {
	uint8_t *block;
	uint32_t *stub_at; /* by site: offset of its stub in the block, 0 = not bound */
	size_t block_len;  /* multiple of the page size */
	uint64_t *table;   /* a word a far jump: the stub's address */
	size_t table_len;  /* in bytes, multiple of the page size; 0: there is none */
	struct kron_patch *patches;
	size_t npatches;
	uint64_t patch_addr; /* what their offsets count from, page-aligned */
	uint64_t patch_len;  /* page-aligned span */
	uint64_t probes_bound;
	size_t block_room, patch_room; /* what block and patches take, in bytes */
};

/*
 * A block on disk and the live block that takes its place have the same layout: both are bound
 * whole, from the same plan.  A dormant probe differs in its first two bytes only.
 */

/* By site: where in the block its stub will be, 0 = nowhere.  Returns where the last one ends, 0
 * when nothing is selected. */
uint32_t bind_lay_out(const struct binding *b, uint32_t *stub_at);
/* Bytes that the block will need, multiple of the page size, 0 when nothing is selected. */
size_t bind_size(const struct binding *b);
/* How many of them come before the tables. */
size_t bind_stubs_size(const struct binding *b);
/* Bytes of the table for its far jumps, multiple of the page size, 0 when there are none. */
size_t bind_table_size(const struct binding *b);
/* -ERANGE when some rel32 does not reach. */
int bind_make(struct bound *out, const struct binding *b, struct err *err);
/* What it wrote is to be there, what it found is to be written; the rest of its window may be another's. */
void bind_turn_round(struct kron_patch *p);
/* Is the function traced where it is? */
bool bind_is_selected(const struct binding *b, uint32_t function);
bool bind_sleeps(const struct binding *b, const struct plan_probe *p);
/* How many patches a site has: its landing's and its relays', then its window's.  Sites' stand in order. */
size_t bind_count_patches(const struct plan_site *s);
/* What takes it back (bind_release.c), from what bind_make() made of the same binding. */
void bind_release(struct bound *out, const struct binding *b);
/* One byte a patch: its window belongs to a function of which something is awake, or to what that stands on. */
uint8_t *bind_awake(const struct bound *bound, const struct binding *b);
/*
 * The same as bind_make() one part after the other, for a block that is never in memory as a whole: head and
 * stubs, more stubs, at last the tables.  Blocks that are bound from the same plan and for the same
 * sites have the same parts.
 */
struct bind_part {
	const uint8_t *bytes;
	uint32_t at, len;                 /* in the block */
	const struct kron_patch *patches; /* of its sites */
	size_t npatches;
	uint64_t patch_addr; /* what their offsets count from */
};
struct bind_parts;
struct bind_parts *bind_open(const struct binding *b);
/* 1; 0 after the last one; -ERANGE.  What it points to is gone with the next one. */
int bind_next(struct bind_parts *p, struct bind_part *out, struct err *err);
void bind_close(struct bind_parts *p);
/* Marks site i, and those that it stands on: whose dead bytes hold its landing, and whose first
 * byte is its distance. */
void bind_support(const struct plan *plan, uint8_t *bound, size_t i);
/* Is one of those that it would mark marked? */
bool bind_support_meets(const struct plan *plan, const uint8_t *marked, size_t i);
void bound_free(struct bound *b);

#endif

/* SPDX-License-Identifier: MIT */
/* emit.h - a draft on its way into a stub, shared by emit*.c.  Private to them. */
#ifndef INJECT_EMIT_H
#define INJECT_EMIT_H

#include "inject/plan/action.h"
#include "inject/plan/action_pages.h"
#include "inject/plan/planner.h"

/* Counts of one action that are made at one place (emit_places.c). */
struct made_count {
	uint64_t vaddr; /* with `where`: the point */
	uint8_t where;  /* enum draft_where */
	uint32_t probe; /* the first of them */
	uint16_t times;
	struct dead dead;
};

struct emitter {
	struct planner *pl;
	const struct draft *d;
	const uint8_t *code; /* of the window */
	uint64_t loop_to;    /* as relocate_emit() wants it */
	/* the draft's probes by vaddr, then as they were put; those of the instruction at work
	 * are [from, to) */
	const struct draft_probe *probes[DRAFT_LONG_PROBES];
	unsigned nprobes, from, to;
	struct stub s;
	uint16_t entrance; /* in the stub, after what only returns pass */
	/* counts by point, and the next one to be made */
	struct made_count made[DRAFT_LONG_PROBES];
	unsigned nmade, next_made;
	/* fixups of hot parts whose cold parts are still to come */
	struct {
		uint16_t fixup;
		uint16_t window_off; /* of the instruction that it belongs to */
		uint32_t probe;
	} hot[DRAFT_LONG_PROBES];
	unsigned nhot;
	/* references by their first instruction, and the next ones to be made; then the slow parts
	 * that are still to come */
	struct made_pages pages[INSN_ACCESSES * WINDOW_LONG_INSNS];
	unsigned npages, next_page;
	struct pages_slow slow[INSN_ACCESSES * WINDOW_LONG_INSNS];
	unsigned nslow;
};

/* emit_places.c.  The instruction at vaddr of the window, with data flow where that matters. */
void emit_decode(const struct emitter *e, uint64_t vaddr, struct insn *in);

/* Before the window's first instruction: where to make its counts. */
void emit_places_begin(struct emitter *e);
/* What the request wants in front of the instruction, or after it. */
void emit_places(struct emitter *e, const struct insn *in, enum draft_where where);
/* An entry that counts, in front of the instruction. */
void emit_call(struct emitter *e, uint32_t probe, const struct insn *in);
/* Is something wanted when the conditional jump is taken?  That, at its own address. */
bool emit_has_taken(const struct emitter *e, const struct insn *in);
void emit_taken(struct emitter *e, const struct insn *in);
/* After the stub's last jump. */
void emit_places_end(struct emitter *e);
/* What nobody will read from next on: neither the program nor a sample, which shows registers
 * that may be dead to the program. */
struct dead emit_dead_before(const struct emitter *e, uint64_t next);

/* emit_pages.c, likewise. */
void emit_pages_begin(struct emitter *e);
void emit_pages(struct emitter *e, const struct insn *in);
void emit_pages_end(struct emitter *e);

#endif

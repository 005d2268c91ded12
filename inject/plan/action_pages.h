/* SPDX-License-Identifier: MIT */
/*
 * action_pages.h - machine code that counts what instructions read and write, by page.
 *
 *   [save what is live]
 *   lea  operand,%a
 *   [lahf; seto %al]
 *   mov  %a,%b
 *   shr  $9,%b                 lines of 64 bytes: $3
 *   and  $0x7ff8,%b
 *   add  %fs:table,%b          FIXUP_PAGES                       ┐ ACTION_PAGES_FIXUP_LEN
 *   mov  (%b),%b               the record, from KRON_NO_PAGE_ADDR │ bytes, whatever the
 *   xor  KRON_NO_PAGE_ADDR(%b),%a     how far into its page       │ registers
 *   cmp  $(4096 - span),%a            lines: 64                   │
 *   ja   slow                  another page, or two               ┘
 *   incq reads(%b), writes(%b)
 *   [restore]
 *
 *   By function a record belongs to one page and one function, and the entry's number depends on both:
 *
 *   and  $0x3fff8,%b
 *   xor  $salt,%b              in front of the fixup                                4 bytes
 *   add  %fs:table,%b ... ja slow
 *   cmpl $function,KRON_NO_PAGE_ADDR + 28(%b)                                       after it, 15 in all
 *   jne  slow
 *
 *   slow   [restore], and for each access:
 *          lea -128(%rsp),%rsp; push %rcx; push %rax; lea operand,%rax; push %rax;
 *          mov $references,%eax, by function movabs $references,%rax; call block + KRON_BLOCK_ACTION; pop; pop; pop; sub or lea
 *          jmp back
 *
 * The record is loaded by one instruction, and its address belongs to one page for good: a handler
 * in between may put another record into the table, and what is counted is right all the same.
 * A string instruction with a prefix, and a segment's operand, are counted by the slow part alone.
 */
#ifndef INJECT_ACTION_PAGES_H
#define INJECT_ACTION_PAGES_H

#include "inject/code/liveness.h"
#include "inject/plan/stub.h"

#define ACTION_PAGES_FIXUP_LEN 28u
/* By function: how far it reaches in front of the fixup, and after it. */
#define ACTION_PAGES_SALT_LEN 4u
#define ACTION_PAGES_FUNCTION_LEN 43u

/* Accesses by one base register, which are counted together. */
#define PAGES_GROUP 8u
struct pages_group {
	struct insn_access v[PAGES_GROUP]; /* as if all were made where the first one is */
	unsigned n, places;                /* accesses; instructions */
	bool is_repeated;
	bool lines;        /* are counted, not pages */
	uint32_t function; /* by function: 1 + its index in the plan; else 0 */
};
/* What struct place_action has as its value. */
#define PAGES_CALL_TOO 1u /* the call after it, too */
#define PAGES_LINES 2u
#define PAGES_BY_FUNCTION 4u

/* Where a group is counted (emit_pages.c). */
struct made_pages {
	uint64_t vaddr; /* in front of this instruction */
	uint32_t probe;
	struct pages_group g;
};

/* What is to be done when the fast part does not know the page. */
struct pages_slow {
	struct pages_group g;
	uint16_t window_off; /* of the instruction that it belongs to */
	uint8_t saved[3];    /* registers on the stack */
	uint8_t nsaved;
	bool saves_flags;    /* in %ax */
	bool goes_on;        /* another group follows, and wants them saved */
	uint32_t jump, back; /* in the stub: the rel32 that leads here; where it goes on */
	uint32_t other_jump; /* likewise; 0: there is none */
};

enum refusal action_pages_refusal(enum place_where where, const struct insn *in,
				  const uint8_t *code);

/*
 * A call that is displaced costs the return that goes with it a misprediction.  So what it pushes is
 * counted at the instruction in front of it, if nothing else leads to the call: *before.
 */
bool action_pages_call_before(const struct code_map *map, uint64_t call, uint64_t *before);

/* ---- planner ---- */

/* Is what follows it executed if it is? */
bool action_pages_goes_on(const struct insn *in);
/* How far the instruction moves the stack pointer, if that can be told; else 0. */
int action_pages_step(const uint8_t *code, unsigned len);
bool action_pages_moves_stack(const struct insn *in, const uint8_t *code);

/* What the instruction touches, which action_pages_refusal() has not refused: how many groups. */
unsigned action_pages_take(struct pages_group out[INSN_ACCESSES], const struct insn *in,
			   const uint8_t *code);
/* Of a group that is counted alone there, what it takes to save what is live. */
unsigned action_pages_cost(struct dead dead);
/*
 * The first ones of `n` groups, in front of one instruction, which save what is live but once: how many.
 * The slow parts that are to come are added to slow[*nslow].
 */
unsigned action_pages_emit(struct stub *s, const struct made_pages *made, unsigned n,
			   struct dead dead, struct pages_slow *slow, unsigned *nslow,
			   uint16_t window_off);
/* After the stub's last jump. */
void action_pages_emit_slow(struct stub *s, const struct pages_slow *slow);

/* ---- binder ---- */

/*
 * counts: as in struct action_ground; 0: the slow part does all.  function: struct kron_page's, of this fixup;
 * 0 where it is not by function.
 */
static inline uint32_t action_pages_function(uint32_t event_base, const struct plan_fixup *f)
{
	return f->value ? event_base + (uint32_t)f->value : 0;
}
void action_pages_fill(uint8_t *at, int64_t counts, uint32_t function);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * action.h - machine code for the probes of a request: what stands in a stub at a place.
 *
 * TRACE and RESOURCE look the same on every bus; the planner writes them and bind.c fills in
 * the event (FIXUP_EVENT) and the way to the thunk (FIXUP_BLOCK_REL32):
 *
 *   lea  -128(%rsp),%rsp         red zone
 *   push %rcx
 *   movzbl gate(level),%ecx
 *   jrcxz 1f                     flags stay
 *   push %rax
 *   push payload                 several instructions for an address
 *   [conditions]                 inject/plan/action_if.h
 *   [lea 0x100(%rcx),%ecx]       RESOURCE
 *   mov  $event,%eax
 *   call block + KRON_BLOCK_PAYLOAD, or KRON_BLOCK_WIDE
 *   lea  8(%rsp),%rsp
 *   pop  %rax
 *   1: pop %rcx
 *   lea  128(%rsp),%rsp
 *
 * Where the value is in memory the payload is the address that the way to it begins with, and the runtime
 * reads it:
 *
 *   call block + KRON_BLOCK_MEMORY
 *   jmp  2f
 *   struct kron_memory           with the conditions that are for the value
 *   2: lea  8(%rsp),%rsp
 *
 * COUNT and STORE depend on the bus, which only bind.c knows.  The planner leaves room for the
 * hot part where the place is and for the cold part after the stub's last jump, and says in
 * the fixup (FIXUP_PLACE) what may be used without saving it.  Hot parts of all buses have the
 * same layout, so that the stack's depth is known without the bus:
 *
 *   [save what is live: lea -128(%rsp),%rsp; push %rax; push %rcx; lahf; seto %al;
 *    where flags are dead, add $-128,%rsp; push %rax]
 *   [testb $KRON_GATE_TAKE,gate; je 1f]
 *   lane, COUNT      mov %fs:counts,%r; mov (%r),%r; test %r,%r; jz cold; incq 8*j(%r)
 *   lane, CALLS      mov %fs:counts,%r; mov 32+8*k(%r),%r; test %r,%r; jz cold; incq 16+8*j(%r)
 *   device           movl $value,register (movq where it has 64 bits)
 *   else             jmp cold
 *   1: [restore]
 *
 *   cold             [lea -128(%rsp),%rsp;] push $times; call common; jmp back [; .long number]
 *   common           push %rax; push value; mov $code,%eax; call block + KRON_BLOCK_ACTION;
 *                    lea 8(%rsp),%rsp; pop %rax; ret $136 or, where the hot part has moved the
 *                    stack, $8
 *
 * Commons stand at the block's beginning, two for each action, and serve all its places.  That of
 * CALLS pushes its own return address for a value: the number of the function, of which there are too
 * many for a byte, stands KRON_ACTION_NUMBER bytes after it.
 *
 * %fs:counts leads to the thread's counters through one word that is zero in a thread without
 * any and in a forked child (wire.h).  The increment is one instruction, so a handler on the
 * same thread loses nothing.
 *
 * A dormant sequence begins with a jump over itself and is not filled in.
 */
#ifndef INJECT_ACTION_H
#define INJECT_ACTION_H

#include <kron/segment.h>

#include "inject/code/liveness.h"
#include "inject/plan/stub.h"

/* Of a FIXUP_PLACE, in its value and aux. */
#define ACTION_BANK_BITS (3u << 17)
struct action_room {
	uint32_t probe;
	uint16_t cold;  /* offset of the cold part in the stub; 0: no COUNT or STORE */
	uint16_t times; /* COUNT: what it adds at once */
	uint8_t hot;    /* bytes of the hot part, of the whole sequence without a cold one */
	uint8_t bank;   /* COUNT: which of the thread's counters of this number */
	struct dead dead;
};
void action_room_put(struct plan_fixup *f, const struct action_room *room);
void action_room_get(struct action_room *room, const struct plan_fixup *f);

/* Why the place's action cannot be done at this instruction: REFUSAL_NONE if it can. */
enum refusal action_refusal(const struct place_action *a, enum place_where where,
			    const struct insn *in, const uint8_t *code);

/* ---- planner ---- */

/* A TRACE or RESOURCE; `in`: the instruction whose operand a PAYLOAD_ADDRESS is.
 * Flags need not be known to be dead where nothing is compared. */
void action_emit_sample(struct stub *s, const struct place_action *a, uint32_t probe,
			const struct insn *in, const uint8_t *code, bool flags_are_dead);
/* Which of a thread's counters of one number: that of the n-th count or store of a site.  Counts
 * that follow each other want different ones, which need not wait for each other. */
static inline uint8_t action_bank(uint64_t site, unsigned n)
{
	return (site + n) % KRON_COUNT_BANKS;
}
/* The hot part of a COUNT or STORE; returns the number of its fixup. */
unsigned action_emit_hot(struct stub *s, const struct place_action *a, uint32_t probe,
			 unsigned times, unsigned bank, struct dead dead);
/* Its cold part: here.  It belongs to the instruction at window_off. */
void action_emit_cold(struct stub *s, const struct place_action *a, unsigned fixup,
		      unsigned window_off);

/* ---- binder ---- */

#define ACTION_COMMON_LEN 32u
#define ACTION_COMMON_CALL 12u

/* Bytes that the hot part needs on whatever bus; those of the cold part. */
unsigned action_hot_len(const struct place_action *a, const struct action_room *room);
unsigned action_cold_len(const struct place_action *a, const struct action_room *room);
/* Is it an action that commons are for? */
static inline bool action_has_common(const struct place_action *a)
{
	return a->kind == ACTION_COUNT || a->kind == ACTION_STORE || a->kind == ACTION_CALLS;
}

/* What a process brings along. */
struct action_ground {
	enum kron_thunk way;
	int32_t counts;  /* %fs offset of the word that leads to the counters; 0: there is none */
	uint32_t number; /* CALLS: of the counter */
};
/*
 * Fill in a COUNT or STORE of the stub whose bytes begin at `stub`.  Returns where in it the cold
 * part's rel32 to the action's common is (*common: how far past its first one), or 0 when that
 * is not used.
 */
unsigned action_fill(uint8_t *stub, const struct plan_fixup *f, const struct place_action *a,
		     const struct action_ground *ground, unsigned *common);
/* The commons of an action.  Their calls' rel32 are at ACTION_COMMON_CALL in each. */
void action_fill_common(uint8_t out[2 * ACTION_COMMON_LEN], const struct place_action *a);

/* How deep in the stack, in units of 8 bytes, at position pos of a piece of one of our shapes. */
unsigned action_shape_depth(enum kron_shape shape, unsigned pos);

#define ACTION_COLD_CODE 17u
#define ACTION_COLD_MAX (ACTION_COLD_CODE + 4u)
#define ACTION_TIMES_MAX 127u
#define ACTION_HOT_MAX 96u

#endif

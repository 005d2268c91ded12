/* SPDX-License-Identifier: MIT */
/*
 * stub.h - a stub under construction: bytes, fixups, instruction map.
 */
#ifndef INJECT_STUB_H
#define INJECT_STUB_H

#include "inject/plan/plan.h"

#define STUB_PROBE_LEN 37u
#define STUB_HOOK_LEN 27u
/* offsets in a probe and in a hook that bind.c fills in */
#define STUB_PROBE_GATE 10u
#define STUB_PROBE_EVENT 18u
#define STUB_PROBE_CALL 23u
#define STUB_HOOK_NUMBER 8u
#define STUB_HOOK_CALL 13u

/* What a long window with DRAFT_LONG_PROBES needs; offsets of fixups and maps have 16 bits. */
#define STUB_CODE_MAX 65535u
#define STUB_FIXUPS_MAX 2048u
#define STUB_MAPS_MAX 6144u

struct stub {
	uint32_t len, nfixups, nmaps;
	bool position_independent; /* as in struct plan_options */
	uint8_t code[STUB_CODE_MAX];
	struct plan_fixup fixups[STUB_FIXUPS_MAX];
	struct plan_map maps[STUB_MAPS_MAX];
	uint32_t settled; /* maps before this one know their instruction */
};

void stub_start(struct stub *s);
void stub_bytes(struct stub *s, const void *bytes, unsigned n);
static inline void stub_u32(struct stub *s, uint32_t v)
{
	stub_bytes(s, &v, sizeof(v));
}
/* Four zero bytes with a fixup; addend as in struct plan_fixup. */
void stub_fixup32(struct stub *s, enum fixup_kind kind, unsigned addend, uint64_t value);
/* jmp rel32 to a vaddr of the module, or to the stub of the site there */
void stub_jump(struct stub *s, uint64_t vaddr);
/* Probes and hooks, number `probe` of the plan: the sequences of wire.h. */
void stub_probe(struct stub *s, uint32_t probe);
void stub_hook(struct stub *s, uint32_t probe);
/* The instruction at window offset off starts here.  Sequences before it belong to it, but for
 * those that are settled already. */
void stub_map(struct stub *s, unsigned window_off);
/* The sequences since the last stub_map() belong to the instruction at off. */
void stub_settle(struct stub *s, unsigned window_off);
/*
 * A sequence of this shape starts here.  Every sequence that moves the stack pointer has one,
 * or unwinders and fault handlers see a wrong stack: add the shape to enum kron_shape (wire.h)
 * and its steps to inject/bind/unwind_shapes.c.
 */
void stub_shape(struct stub *s, enum kron_shape shape);
/* The instruction that stub_map() has just named becomes a sequence of this shape. */
void stub_reshape(struct stub *s, enum kron_shape shape);

#endif

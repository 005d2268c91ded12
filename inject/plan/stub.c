/* SPDX-License-Identifier: MIT */
/* stub.c - appends to a stub; the probe sequences are those of include/kron/wire.h. */
#include "inject/plan/stub.h"

#include <assert.h>
#include <string.h>

void stub_start(struct stub *s)
{
	s->len = s->nfixups = s->nmaps = s->settled = 0;
	s->position_independent = false;
}

void stub_bytes(struct stub *s, const void *bytes, unsigned n)
{
	assert(s->len + n <= sizeof(s->code));
	memcpy(s->code + s->len, bytes, n);
	s->len += n;
}

static void add_fixup(struct stub *s, enum fixup_kind kind, unsigned addend, uint64_t value)
{
	assert(s->nfixups < STUB_FIXUPS_MAX);
	s->fixups[s->nfixups++] = (struct plan_fixup){
		.off = s->len,
		.kind = kind,
		.addend = addend,
		.value = value,
	};
}

void stub_fixup32(struct stub *s, enum fixup_kind kind, unsigned addend, uint64_t value)
{
	add_fixup(s, kind, addend, value);
	stub_bytes(s, "\0\0\0", 4);
}

void stub_jump(struct stub *s, uint64_t vaddr)
{
	stub_bytes(s, "\xe9", 1); /* jmp rel32 */
	stub_fixup32(s, FIXUP_CHAIN_REL32, 4, vaddr);
}

void stub_shape(struct stub *s, enum kron_shape shape)
{
	assert(s->nmaps < STUB_MAPS_MAX);
	s->maps[s->nmaps++] = (struct plan_map){.stub_off = s->len, .shape = shape};
}

void stub_settle(struct stub *s, unsigned window_off)
{
	for (; s->settled < s->nmaps; s->settled++)
		s->maps[s->settled].window_off = window_off;
}

void stub_map(struct stub *s, unsigned window_off)
{
	stub_shape(s, KRON_SHAPE_INSN);
	stub_settle(s, window_off);
}

void stub_reshape(struct stub *s, enum kron_shape shape)
{
	if (s->nmaps && s->maps[s->nmaps - 1].stub_off == s->len)
		s->maps[s->nmaps - 1].shape = shape;
}

void stub_probe(struct stub *s, uint32_t probe)
{
	static const uint8_t code[STUB_PROBE_LEN] = {
		0x48, 0x8d, 0x64, 0x24, 0x80,                   /* lea  -128(%rsp),%rsp */
		0x51,                                           /* push %rcx */
		0x0f, 0xb6, 0x0c, 0x25, 0,    0,    0,    0,    /* movzbl gate,%ecx */
		0xe3, 0x0c,                                     /* jrcxz 1f */
		0x50,                                           /* push %rax */
		0xb8, 0,    0,    0,    0,                      /* mov  $event,%eax */
		0xe8, 0,    0,    0,    0,                      /* call thunk */
		0x58,                                           /* pop  %rax */
		0x59,                                           /* 1: pop %rcx */
		0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00, /* lea 128(%rsp),%rsp */
	};

	stub_shape(s, KRON_SHAPE_PROBE);
	add_fixup(s, FIXUP_PROBE, 0, probe);
	stub_bytes(s, code, sizeof(code));
}

void stub_hook(struct stub *s, uint32_t probe)
{
	static const uint8_t code[STUB_HOOK_LEN] = {
		0x48, 0x8d, 0x64, 0x24, 0x80,                   /* lea  -128(%rsp),%rsp */
		0x51,                                           /* push %rcx */
		0x50,                                           /* push %rax */
		0xb8, 0,    0,    0,    0,                      /* mov  $hook,%eax */
		0xe8, 0,    0,    0,    0,                      /* call hook thunk */
		0x58,                                           /* pop  %rax */
		0x59,                                           /* pop  %rcx */
		0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00, /* lea 128(%rsp),%rsp */
	};

	_Static_assert(sizeof(code) == STUB_HOOK_LEN, "hook sequence");
	stub_shape(s, KRON_SHAPE_HOOK);
	add_fixup(s, FIXUP_HOOK, 0, probe);
	stub_bytes(s, code, sizeof(code));
}

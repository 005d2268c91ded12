/* SPDX-License-Identifier: MIT */
/* relocate.c - see relocate.h for the table of forms. */
#include "inject/plan/relocate.h"

#include <assert.h>
#include <string.h>

#define REG_RSP 4

/*
 * Direct branches are written anew from their target, whatever their prefixes: hints, bnd and
 * the padding of TLS calls do nothing.  The opcode stands right before the displacement.
 */
static bool is_known_branch(const struct insn *in, const uint8_t *code)
{
	uint8_t op;

	if (in->disp_off < 1 || in->disp_off + in->disp_size != in->len)
		return false;
	op = code[in->disp_off - 1];
	if (in->kind == INSN_CALL)
		return op == 0xe8;
	if (in->kind == INSN_JMP)
		return op == 0xe9 || op == 0xeb;
	if (in->is_loop) /* e0-e2 loops, e3 jrcxz; a 67 prefix makes them count ecx and stays */
		return in->disp_size == 1 && op >= 0xe0 && op <= 0xe3;
	if (in->disp_size == 1)
		return (op & 0xf0) == 0x70;
	return in->disp_off >= 2 && code[in->disp_off - 2] == 0x0f && (op & 0xf0) == 0x80;
}

/*
 * Where the ff of an indirect call stands after its prefixes, or -1 when there is a prefix
 * that changes sizes.
 */
static int indirect_opcode_offset(const struct insn *in, const uint8_t *code)
{
	for (int i = 0; i + 1 < in->len; i++) {
		switch (code[i]) {
		case 0x2e:          /* cs: */
		case 0x3e:          /* notrack, ds: */
		case 0xf2:          /* bnd */
		case 0x64:          /* fs: */
		case 0x65:          /* gs: */
		case 0x40 ... 0x4f: /* REX */
			continue;
		case 0xff:
			return i;
		default:
			return -1;
		}
	}
	return -1;
}

static bool has_address_size_prefix(const struct insn *in, const uint8_t *code)
{
	static const uint8_t prefixes[] = {0x66, 0xf2, 0xf3, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65};
	int i = 0;

	while (i < in->len && memchr(prefixes, code[i], sizeof(prefixes)))
		i++;
	return i < in->len && code[i] == 0x67;
}

static bool is_movable_indirect_call(const struct insn *in, const uint8_t *code)
{
	int op = indirect_opcode_offset(in, code);

	/* ff /2 is the near form, /3 is far */
	return op >= 0 && (code[op + 1] >> 3 & 7) == 2 && in->reg != REG_RSP &&
	       in->mem_disp <= INT32_MAX - 8;
}

static bool is_movable(const struct insn *in, const uint8_t *code)
{
	if (in->rip_relative && (in->disp_size != 4 || has_address_size_prefix(in, code)))
		return false; /* eip-relative wraps at 4 GiB */
	switch ((enum insn_kind)in->kind) {
	case INSN_JMP:
	case INSN_CALL:
	case INSN_JCC:
		return is_known_branch(in, code);
	case INSN_CALL_INDIRECT:
		return is_movable_indirect_call(in, code);
	case INSN_OTHER_TRANSFER:
		return false;
	case INSN_PLAIN:
	case INSN_JMP_INDIRECT:
	case INSN_RET:
	case INSN_TRAP: /* its signal is shown where it was: runtime/faults/faults.c */
	case INSN_SYSCALL:
	case INSN_PADDING:
		return true;
	}
	return false;
}

enum refusal relocate_refusal(const struct insn *in, const uint8_t *code)
{
	return is_movable(in, code) ? REFUSAL_NONE : REFUSAL_NOT_RELOCATABLE;
}

/* The instruction's own bytes, with the disp32 of a rip-relative operand fixed up. */
static void emit_copy(struct stub *s, const struct insn *in, const uint8_t *code)
{
	if (!in->rip_relative) {
		stub_bytes(s, code, in->len);
		return;
	}
	stub_bytes(s, code, in->disp_off);
	stub_fixup32(s, FIXUP_MODULE_REL32, in->len - in->disp_off, in->target);
	stub_bytes(s, code + in->disp_off + 4, in->len - in->disp_off - 4);
}

struct destination {
	enum fixup_kind kind;
	uint64_t value;
};

static void emit_jmp(struct stub *s, struct destination to)
{
	stub_bytes(s, "\xe9", 1);
	stub_fixup32(s, to.kind, 4, to.value);
}

static void emit_jcc(struct stub *s, const struct insn *in, const uint8_t *code,
		     struct destination to)
{
	uint8_t condition = code[in->disp_off - 1] & 15;

	stub_bytes(s, (uint8_t[]){0x0f, 0x80 | condition}, 2); /* jcc rel32 */
	stub_fixup32(s, to.kind, 4, to.value);
}

/* loop and jrcxz reach 127 bytes only: hop over a jump. */
static void emit_loop(struct stub *s, const struct insn *in, const uint8_t *code,
		      struct destination to)
{
	stub_bytes(s, code, in->len - 1u);
	stub_bytes(s, "\x02", 1);     /* loop 1f */
	stub_bytes(s, "\xeb\x05", 2); /* jmp  2f */
	emit_jmp(s, to);              /* 1: jmp target; 2: */
}

/*
 * At label 1 below, where nobody knows the load bias.  The red zone is the caller's until its
 * call, and some assembly keeps values there for its own subroutines, so it is not written to.
 */
static void emit_relative_address(struct stub *s, uint64_t vaddr)
{
	stub_bytes(s, "\x48\x8d\x64\x24\x80", 5); /* lea  -128(%rsp),%rsp */
	stub_bytes(s, "\x50", 1);                 /* push %rax */
	stub_bytes(s, "\x48\x8d\x05", 3);         /* lea  vaddr(%rip),%rax */
	stub_fixup32(s, FIXUP_MODULE_REL32, 4, vaddr);
	stub_bytes(s, "\x48\x89\x84\x24\x88\0\0\0", 8); /* mov  %rax,136(%rsp) */
	stub_bytes(s, "\x58", 1);                       /* pop  %rax */
	stub_bytes(s, "\x48\x8d\xa4\x24\x80\0\0\0", 8); /* lea  128(%rsp),%rsp */
}

/*
 * The return address is that of the original, but the processor's own stack of return
 * addresses must stay in step, or every return up to main is mispredicted (measured: 62 ns
 * for eight frames, against 11 for the one return that is).  So a real call is made and what
 * it pushed replaced.  The callee never comes back to the jmp; it is where the processor
 * guesses on, so it leads there where the program will really go on.
 */
static void emit_return_address(struct stub *s, uint64_t vaddr, bool no_flags)
{
	bool relative = s->position_independent && !no_flags;

	stub_reshape(s, relative ? KRON_SHAPE_CALL_RELATIVE : KRON_SHAPE_CALL);
	stub_bytes(s, "\xe8\x05\0\0\0", 5); /* call 1f */
	stub_jump(s, vaddr);                /* jmp  original return address */
	if (no_flags) {
		stub_bytes(s, "\x48\x81\x04\x24", 4); /* 1: addq $vaddr - (1b - 5),(%rsp) */
		stub_fixup32(s, FIXUP_MODULE_REL32, (uint8_t) - (4 + 5), vaddr);
		return;
	}
	if (relative) {
		emit_relative_address(s, vaddr);
		return;
	}
	stub_bytes(s, "\xc7\x04\x24", 3); /* 1: movl $lo,(%rsp) */
	stub_fixup32(s, FIXUP_MODULE_LO32, 0, vaddr);
	stub_bytes(s, "\xc7\x44\x24\x04", 4); /* movl $hi,4(%rsp) */
	stub_fixup32(s, FIXUP_MODULE_HI32, 0, vaddr);
}

/* The pushed return address has moved the stack pointer from under the operand. */
static void emit_jump_by_stack(struct stub *s, const struct insn *in, const uint8_t *code, int op)
{
	int32_t disp = (int32_t)in->mem_disp + 8;

	stub_bytes(s, code, (unsigned)op + 1);              /* prefixes, ff */
	stub_bytes(s, (uint8_t[]){2 << 6 | 4 << 3 | 4}, 1); /* /4, disp32, SIB */
	stub_bytes(s, code + op + 2, 1);                    /* the same index, rsp */
	stub_bytes(s, &disp, sizeof(disp));
}

static void emit_indirect_call(struct stub *s, const struct insn *in, const uint8_t *code,
			       bool no_flags)
{
	uint8_t bytes[16];
	int op = indirect_opcode_offset(in, code);

	emit_return_address(s, in->addr + in->len, no_flags);
	if (in->mem_base == REG_RSP) {
		emit_jump_by_stack(s, in, code, op);
		return;
	}
	memcpy(bytes, code, in->len);
	bytes[op + 1] = (bytes[op + 1] & ~(7 << 3)) | 4 << 3; /* call is ff /2, jmp ff /4 */
	emit_copy(s, in, bytes);
}

/* syscall leaves the address after it in rcx.  (int and sysenter do not.) */
static void emit_syscall(struct stub *s, const struct insn *in, const uint8_t *code)
{
	emit_copy(s, in, code);
	if (code[in->len - 2] != 0x0f || code[in->len - 1] != 0x05)
		return;
	stub_bytes(s, "\x48\x8d\x0d", 3); /* lea next(%rip),%rcx */
	stub_fixup32(s, FIXUP_MODULE_REL32, 4, in->addr + in->len);
}

void relocate_emit(struct stub *s, const struct insn *in, const uint8_t *code, uint64_t loop_head,
		   uint64_t loop_to, bool no_flags)
{
	struct destination to = {FIXUP_CHAIN_REL32, in->target};

	if (loop_to != RELOCATE_NO_LOOP && in->target == loop_head)
		to = (struct destination){FIXUP_SITE_REL32, loop_to};
	switch ((enum insn_kind)in->kind) {
	case INSN_JMP:
		emit_jmp(s, to);
		break;
	case INSN_JCC:
		if (in->is_loop)
			emit_loop(s, in, code, to);
		else
			emit_jcc(s, in, code, to);
		break;
	case INSN_CALL:
		emit_return_address(s, in->addr + in->len, no_flags);
		stub_jump(s, in->target);
		break;
	case INSN_CALL_INDIRECT:
		emit_indirect_call(s, in, code, no_flags);
		break;
	case INSN_PADDING:
		break;
	case INSN_SYSCALL:
		emit_syscall(s, in, code);
		break;
	case INSN_PLAIN:
	case INSN_JMP_INDIRECT:
	case INSN_RET:
	case INSN_TRAP:
		emit_copy(s, in, code);
		break;
	case INSN_OTHER_TRANSFER:
		assert(!"refused instructions are not emitted");
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * Unit tests of inject/code/insn.c: kinds and operands of chosen encodings, then every instruction
 * of bash and libc against objdump.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "inject/elf/elf_image.h"
#include "inject/code/insn.h"
#include "inject/code/insn_impl.h"

#define AT 0x401000ull
#define BYTES(...) ((const uint8_t[16]){__VA_ARGS__})

static struct insn decoded(const uint8_t *code, unsigned len)
{
	struct insn in, scanned;

	assert_true(insn_decode(&in, code, 16, AT));
	assert_int_equal(in.len, len);
	assert_int_equal(in.addr, AT);
	assert_true(insn_confirm(&in, code));
	assert_true(insn_scan(&scanned, code, 16, AT));
	assert_int_equal(scanned.len, in.len);
	assert_int_equal(scanned.kind, in.kind);
	assert_int_equal(scanned.target, in.target);
	assert_int_equal(scanned.op, in.op);
	/* one byte less is not enough */
	assert_false(insn_decode(&in, code, len - 1, AT));
	assert_true(insn_decode(&in, code, len, AT));
	return in;
}

static void kinds(void **state)
{
	static const struct {
		uint8_t code[16];
		uint8_t len, kind;
	} v[] = {
		{{0x55}, 1, INSN_PLAIN},
		{{0xe8, 1, 0, 0, 0}, 5, INSN_CALL},
		{{0x67, 0xe8, 1, 0, 0, 0}, 6, INSN_CALL},
		{{0x66, 0x66, 0x48, 0xe8, 1, 0, 0, 0}, 8, INSN_CALL},
		{{0xff, 0xd0}, 2, INSN_CALL_INDIRECT},
		{{0xff, 0x15, 1, 0, 0, 0}, 6, INSN_CALL_INDIRECT},
		{{0xeb, 2}, 2, INSN_JMP},
		{{0xe9, 1, 0, 0, 0}, 5, INSN_JMP},
		{{0xf2, 0xe9, 1, 0, 0, 0}, 6, INSN_JMP},
		{{0xff, 0xe0}, 2, INSN_JMP_INDIRECT},
		{{0x41, 0xff, 0xe3}, 3, INSN_JMP_INDIRECT},
		{{0x3e, 0xff, 0xe0}, 3, INSN_JMP_INDIRECT},
		{{0x74, 2}, 2, INSN_JCC},
		{{0x0f, 0x8f, 1, 0, 0, 0}, 6, INSN_JCC},
		{{0x2e, 0x0f, 0x84, 1, 0, 0, 0}, 7, INSN_JCC},
		{{0xe3, 2}, 2, INSN_JCC},
		{{0xe2, 2}, 2, INSN_JCC},
		{{0xc3}, 1, INSN_RET},
		{{0xf3, 0xc3}, 2, INSN_RET},
		{{0xf2, 0xc3}, 2, INSN_RET},
		{{0xc2, 8, 0}, 3, INSN_RET},
		{{0xcb}, 1, INSN_OTHER_TRANSFER},
		{{0x48, 0xcf}, 2, INSN_OTHER_TRANSFER},
		{{0xff, 0x28}, 2, INSN_OTHER_TRANSFER},
		{{0xc7, 0xf8, 1, 0, 0, 0}, 6, INSN_OTHER_TRANSFER},
		{{0xcc}, 1, INSN_TRAP},
		{{0x0f, 0x0b}, 2, INSN_TRAP},
		{{0xf4}, 1, INSN_TRAP},
		{{0x0f, 0x05}, 2, INSN_SYSCALL},
		{{0xcd, 0x80}, 2, INSN_SYSCALL},
		{{0x90}, 1, INSN_PADDING},
		{{0x66, 0x90}, 2, INSN_PADDING},
		{{0x0f, 0x1f, 0x40, 0}, 4, INSN_PADDING},
		{{0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}, 10, INSN_PADDING},
		/* look like no-ops and are none */
		{{0xf3, 0x90}, 2, INSN_PLAIN},             /* pause */
		{{0x41, 0x90}, 2, INSN_PLAIN},             /* xchg %eax,%r8d */
		{{0xf3, 0x0f, 0x1e, 0xfa}, 4, INSN_PLAIN}, /* endbr64 */
		/* VEX and EVEX opcodes are not one-byte opcodes */
		{{0xc5, 0xf8, 0x77}, 3, INSN_PLAIN},
		{{0x62, 0xf1, 0x7c, 0x48, 0x10, 0xc1}, 6, INSN_PLAIN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++)
		assert_int_equal(decoded(v[i].code, v[i].len).kind, v[i].kind);
}

static void refused(void **state)
{
	struct insn in;

	(void)state;
	/* processors of two makers decode these to different lengths */
	assert_false(insn_decode(&in, BYTES(0x66, 0xe8, 1, 0, 0, 0), 16, AT));
	assert_false(insn_decode(&in, BYTES(0x66, 0xe9, 1, 0, 0, 0), 16, AT));
	assert_false(insn_decode(&in, BYTES(0x66, 0x0f, 0x84, 1, 0, 0, 0), 16, AT));
	assert_false(insn_scan(&in, BYTES(0x66, 0xe9, 1, 0, 0, 0), 16, AT));
	/* not in 64-bit code */
	assert_false(insn_decode(&in, BYTES(0x06), 16, AT));
	assert_false(insn_decode(&in, BYTES(0x0f, 0x04), 16, AT));
	assert_false(insn_decode(&in, BYTES(0x55), 0, AT));
}

static void branches(void **state)
{
	struct insn in;

	(void)state;
	in = decoded(BYTES(0xe9, 0xfb, 0xff, 0xff, 0xff), 5);
	assert_int_equal(in.target, AT);
	assert_int_equal(in.disp_off, 1);
	assert_int_equal(in.disp_size, 4);
	in = decoded(BYTES(0x75, 0x80), 2);
	assert_int_equal(in.target, AT + 2 - 128);
	assert_int_equal(in.disp_off, 1);
	assert_int_equal(in.disp_size, 1);
	assert_false(in.is_loop);
	assert_true(decoded(BYTES(0xe0, 2), 2).is_loop);
	assert_true(decoded(BYTES(0x67, 0xe3, 2), 3).is_loop);
	assert_true(decoded(BYTES(0x3e, 0xff, 0xe0), 3).notrack);
	in = decoded(BYTES(0xff, 0x24, 0xc5, 0x40, 0xac, 0x75, 0), 7); /* jmp *T(,%rax,8) */
	assert_int_equal(in.reg, -1);
	assert_int_equal(in.mem_base, -1);
	assert_int_equal(in.mem_index, 0);
	assert_int_equal(in.mem_scale, 8);
	assert_int_equal(in.mem_disp, 0x75ac40);
	in = decoded(BYTES(0x41, 0xff, 0xe3), 3);
	assert_int_equal(in.reg, 11);
}

static void operands(void **state)
{
	struct insn in;

	(void)state;
	in = decoded(BYTES(0x48, 0x8d, 0x15, 0xb0, 0x3a, 0x14, 0), 7); /* lea x(%rip),%rdx */
	assert_int_equal(in.op, INSN_OP_LEA);
	assert_true(in.rip_relative);
	assert_int_equal(in.target, AT + 7 + 0x143ab0);
	assert_int_equal(in.disp_off, 3);
	assert_int_equal(in.dest_reg, 2);
	assert_int_equal(in.regs_written, 1 << 2);
	assert_false(in.reads_memory);
	in = decoded(BYTES(0x49, 0x63, 0x04, 0x86), 4); /* movslq (%r14,%rax,4),%rax */
	assert_int_equal(in.op, INSN_OP_MOVSXD);
	assert_int_equal(in.mem_base, 14);
	assert_int_equal(in.mem_index, 0);
	assert_int_equal(in.mem_scale, 4);
	assert_true(in.reads_memory);
	in = decoded(BYTES(0x48, 0x98), 2); /* cltq */
	assert_int_equal(in.op, INSN_OP_MOVSXD);
	assert_int_equal(in.src_reg, 0);
	in = decoded(BYTES(0x4c, 0x01, 0xf0), 3); /* add %r14,%rax */
	assert_int_equal(in.op, INSN_OP_ADD);
	assert_int_equal(in.dest_reg, 0);
	assert_int_equal(in.src_reg, 14);
	in = decoded(BYTES(0x3c, 0x5a), 2); /* cmp $0x5a,%al */
	assert_int_equal(in.op, INSN_OP_CMP);
	assert_int_equal(in.first_reg, 0);
	assert_int_equal(in.dest_reg, -1);
	assert_int_equal(in.imm, 0x5a);
	assert_false(in.has_imm);
	in = decoded(BYTES(0x48, 0xc7, 0xc0, 0xff, 0xff, 0xff, 0xff), 7); /* mov $-1,%rax */
	assert_true(in.has_imm);
	assert_true(in.imm == UINT64_MAX);
	in = decoded(BYTES(0x48, 0x89, 0x43, 0x08), 4); /* mov %rax,8(%rbx) */
	assert_false(in.reads_memory);
	assert_int_equal(in.regs_written, 0);
	in = decoded(BYTES(0x64, 0x48, 0x33, 0x04, 0x25, 0x30, 0, 0, 0), 9); /* xor %fs:0x30,%rax */
	assert_int_equal(in.mem_seg, 0x64);
	/* rip-relative operands after VEX and EVEX prefixes */
	in = decoded(BYTES(0xc5, 0xf9, 0x6f, 0x05, 0x10, 0, 0, 0), 8);
	assert_true(in.rip_relative);
	assert_int_equal(in.target, AT + 8 + 0x10);
	in = decoded(BYTES(0x62, 0xf1, 0x7d, 0x48, 0x6f, 0x05, 0x10, 0, 0, 0), 10);
	assert_true(in.rip_relative);
	assert_int_equal(in.target, AT + 10 + 0x10);
	/* an instruction with both a rip-relative operand and an immediate */
	in = decoded(BYTES(0x80, 0x3d, 0x10, 0, 0, 0, 7), 7); /* cmpb $7,x(%rip) */
	assert_int_equal(in.target, AT + 7 + 0x10);
	assert_int_equal(in.disp_off, 2);
}

/* A register that may stay as it was is read, not overwritten. */
static void left_alone(void **state)
{
	static const uint8_t codes[][16] = {
		{0xf3, 0x48, 0x0f, 0x1e, 0xc8}, /* rdsspq %rax: nothing without a shadow stack */
		{0xf3, 0x0f, 0x1e, 0xc8},       /* rdsspd %eax */
		{0x0f, 0xbc, 0xc1},             /* bsf %ecx,%eax: of zero */
		{0xf3, 0x0f, 0xbc, 0xc1},       /* tzcnt, bsf to older processors */
		{0xf3, 0x0f, 0xbd, 0xc1},       /* lzcnt, bsr to those */
		{0x0f, 0x02, 0xc1},             /* lar %ecx,%eax: of no segment */
		{0x0f, 0x03, 0xc1},             /* lsl */
		{0x0f, 0x44, 0xc1},             /* cmove */
		{0xec},                         /* in (%dx),%al: VMware reads them all */
		{0x0f, 0x01, 0xd9},             /* vmmcall */
	};
	struct insn in;

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		assert_true(insn_decode(&in, codes[i], 16, AT));
		assert_true(in.regs_read & 1);
	}
	assert_true(insn_decode(&in, BYTES(0x89, 0xc8), 16, AT)); /* mov %ecx,%eax */
	assert_false(in.regs_read & 1);
	assert_true(in.regs_killed & 1);
}

/* The second decoder takes clang's ud1 traps for longer than they are. */
/* What can neither fail nor be seen to happen early or late. */
static void quiet(void **state)
{
	(void)state;
	assert_true(decoded(BYTES(0x85, 0x3c, 0x24), 3).is_quiet);              /* test (%rsp) */
	assert_false(decoded(BYTES(0x85, 0x3f), 2).is_quiet);                   /* test (%rdi) */
	assert_true(decoded(BYTES(0x0f, 0xba, 0x24, 0x24, 3), 5).is_quiet);     /* bt $3,(%rsp) */
	assert_false(decoded(BYTES(0x44, 0x0f, 0xa3, 0x1c, 0x24), 5).is_quiet); /* bt %r11d */
	assert_true(decoded(BYTES(0x0f, 0xa3, 0xc1), 3).is_quiet);              /* bt %eax,%ecx */
}

static void disagreement(void **state)
{
	static const uint8_t ud1[16] = {0x67, 0x0f, 0xb9, 0x40, 0x02, 0x90, 0x90, 0x90, 0x90};
	struct insn in;

	(void)state;
	assert_true(insn_decode(&in, ud1, 16, AT));
	assert_int_equal(in.len, 5);
	assert_int_equal(in.kind, INSN_TRAP);
	/* and what is not told as it is, is not confirmed */
	assert_true(insn_decode(&in, BYTES(0xe9, 1, 0, 0, 0), 16, AT));
	in.kind = INSN_CALL;
	assert_false(insn_confirm(&in, BYTES(0xe9, 1, 0, 0, 0)));
	in.kind = INSN_JMP;
	in.target++;
	assert_false(insn_confirm(&in, BYTES(0xe9, 1, 0, 0, 0)));
	in.target--;
	in.len = 4;
	assert_false(insn_confirm(&in, BYTES(0xe9, 1, 0, 0, 0)));
	/* kmovd: unknown to the second decoder, which is no objection */
	assert_true(insn_decode(&in, BYTES(0xc5, 0xfb, 0x93, 0xc0), 16, AT));
	assert_true(insn_confirm(&in, BYTES(0xc5, 0xfb, 0x93, 0xc0)));
}

static void text(void **state)
{
	char out[64];

	(void)state;
	assert_string_equal(insn_text(out, sizeof(out), BYTES(0x48, 0x89, 0xe5), 3, AT),
			    "movq %rsp, %rbp");
	assert_string_equal(insn_text(out, sizeof(out), BYTES(0xc3), 1, AT), "retq");
	assert_string_equal(insn_text(out, sizeof(out), BYTES(0x06), 1, AT), "(bad)");
	assert_string_equal(insn_text(out, 5, BYTES(0xc3), 1, AT), "retq");
}

/* ---- against objdump ---- */

/* Past the prefixes that objdump writes as words. */
static const char *skip_prefixes(const char *m)
{
	static const char *const words[] = {"notrack ", "bnd ",    "rep ", "repz ", "data16 ",
					    "rex.W ",   "addr32 ", "cs ",  "ds ",   "lock "};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words);) {
		size_t n = strlen(words[i]);

		if (strncmp(m, words[i], n)) {
			i++;
			continue;
		}
		m += n + strspn(m + n, " ");
		i = 0;
	}
	return m;
}

static int kind_of(const char *m)
{
	char name[16];
	const char *ops;

	m = skip_prefixes(m);
	sscanf(m, "%15s", name);
	ops = m + strlen(name);
	ops += strspn(ops, " ");
	if (!strcmp(name, "call"))
		return *ops == '*' ? INSN_CALL_INDIRECT : INSN_CALL;
	if (!strcmp(name, "jmp"))
		return *ops == '*' ? INSN_JMP_INDIRECT : INSN_JMP;
	if (name[0] == 'j' || !strncmp(name, "loop", 4))
		return INSN_JCC;
	if (!strcmp(name, "ret"))
		return INSN_RET;
	if (!strncmp(name, "nop", 3) || (!strcmp(name, "xchg") && !strncmp(ops, "%ax,%ax", 7)))
		return INSN_PADDING;
	if (!strncmp(name, "ud", 2) || !strcmp(name, "int3") || !strcmp(name, "hlt"))
		return INSN_TRAP;
	if (!strcmp(name, "syscall") || !strcmp(name, "int"))
		return INSN_SYSCALL;
	if (!strcmp(name, "xbegin") || !strncmp(name, "iret", 4) || !strncmp(name, "lret", 4))
		return INSN_OTHER_TRANSFER;
	return INSN_PLAIN;
}

/* One line of objdump -d -w: "  addr:\tbytes \tmnemonic operands". */
static void compare_line(const struct elf_image *img, char *line, unsigned long *count)
{
	char *bytes = strchr(line, '\t'), *mnemonic = bytes ? strchr(bytes + 1, '\t') : NULL;
	uint64_t addr = strtoull(line, NULL, 16);
	struct insn in, scanned;
	const uint8_t *p;
	unsigned len = 0;

	if (!mnemonic || line[0] != ' ')
		return;
	for (char *c = bytes + 1; c < mnemonic; c++)
		len += *c != ' ' && (c[1] == ' ' || c[1] == '\t');
	p = elf_image_at(img, addr, len);
	if (!p || !insn_decode(&in, p, elf_image_room(img, addr), addr) || in.len != len ||
	    in.kind != kind_of(mnemonic + 1) || !insn_confirm(&in, p))
		fail_msg("differs from objdump: %s", line);
	assert_true(insn_scan(&scanned, p, len, addr) && scanned.kind == in.kind);
	++*count;
}

static void compare_file(const char *path)
{
	struct elf_image *img;
	struct err err;
	char command[256], *line = NULL;
	size_t size = 0;
	unsigned long count = 0;
	FILE *f;

	if (elf_image_open(&img, path, &err)) {
		print_message("%s\n", err.msg);
		return;
	}
	snprintf(command, sizeof(command), "objdump -d -w -j .text %s", path);
	f = popen(command, "r");
	assert_non_null(f);
	while (getline(&line, &size, f) > 0)
		compare_line(img, line, &count);
	assert_int_equal(pclose(f), 0);
	print_message("%s: %lu instructions\n", path, count);
	assert_true(count > 50000);
	free(line);
	elf_image_close(img);
}

static void same_as_objdump(void **state)
{
	(void)state;
	if (system("command -v objdump >/dev/null")) {
		print_message("objdump is not installed\n");
		return;
	}
	compare_file("/bin/bash");
	compare_file("/lib/x86_64-linux-gnu/libc.so.6");
}

/* ---- insn_quick.c says what Zydis says, of everything that it says anything of ---- */

static uint64_t draw(void)
{
	static uint64_t x = 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

/* Its length alone, of those that sweeps want no more of. */
static void check_skim(const uint8_t *code, const struct insn *in)
{
	bool wanted = in->kind != INSN_PLAIN || in->op == INSN_OP_LEA || in->rip_relative;
	unsigned len = insn_skim(code, 32);

	assert_int_equal(insn_skim(code, 15), 0);
	if (wanted)
		assert_int_equal(len, 0);
	else if (len)
		assert_int_equal(len, in->len);
}

/* True: it is decoded there, as by Zydis, and with not a byte less. */
static bool is_quick(const uint8_t *code)
{
	struct insn quick, all, again;

	/* memcmp() sees the holes, too */
	memset(&quick, 0, sizeof(quick));
	memset(&all, 0, sizeof(all));
	memset(&again, 0, sizeof(again));
	if (!insn_scan_quick(&quick, code, 32, AT)) {
		assert_int_equal(insn_skim(code, 32), 0);
		return false;
	}
	check_skim(code, &quick);
	if (!insn_scan_all(&all, code, 32, AT) || memcmp(&quick, &all, sizeof(all))) {
		fprintf(stderr, "#");
		for (int i = 0; i < 16; i++)
			fprintf(stderr, " %02x", code[i]);
		fprintf(stderr, "\n");
		fail();
	}
	assert_false(insn_scan_quick(&again, code, quick.len - 1u, AT));
	memset(&again, 0, sizeof(again));
	assert_true(insn_scan_quick(&again, code, quick.len, AT));
	assert_memory_equal(&quick, &again, sizeof(quick));
	return true;
}

static void quick_is_right(void **state)
{
	static const uint8_t prefixes[][3] = {
		{0},
		{1, 0x66},
		{1, 0xf3},
		{1, 0xf2},
		{1, 0x64},
		{1, 0x65},
		{2, 0x66, 0x64},
		{2, 0x64, 0x66},
		{2, 0xf3, 0x65},
		{2, 0x65, 0xf2},
		{2, 0x66, 0xf3},
		{2, 0xf2, 0x66},
		{2, 0x66, 0x66},
		{1, 0xf0},
		{1, 0x67},
		{1, 0x2e},
	};
	uint8_t code[32];
	unsigned quick = 0;

	(void)state;
	/* prefix, REX or none, map, opcode, ModRM; what follows is drawn */
	for (unsigned i = 0; i < 16u * 17 * 2 * 256 * 256; i++) {
		unsigned p = i >> 17 & 15, rex = i >> 21, at = 0;

		for (unsigned k = 0; k < sizeof(code); k += 8) {
			uint64_t v = draw();

			memcpy(code + k, &v, 8);
		}
		for (unsigned k = 0; k < prefixes[p][0]; k++)
			code[at++] = prefixes[p][1 + k];
		if (rex)
			code[at++] = (uint8_t)(0x3f + rex);
		if (i >> 16 & 1)
			code[at++] = 0x0f;
		code[at++] = (uint8_t)(i >> 8);
		code[at] = (uint8_t)i;
		quick += is_quick(code);
	}
	assert_true(quick > 5000000);
}

/* The long no-ops of assemblers, with as many prefixes as there may be, and more. */
static void stretched(void **state)
{
	unsigned quick = 0;

	(void)state;
	for (unsigned i = 0; i < 12u * 12 * 2 * 256; i++) {
		unsigned n = i >> 9 & 15, segment = i >> 13, at = 0;
		uint8_t code[32];

		for (; at < n; at++)
			code[at] = at == segment ? 0x2e : 0x66;
		code[at++] = 0x0f;
		code[at++] = i >> 8 & 1 ? 0x1f : 0x6f;
		code[at++] = (uint8_t)i;
		while (at < sizeof(code))
			code[at++] = (uint8_t)draw();
		if (is_quick(code) && n > 1)
			quick++;
	}
	assert_int_equal(quick, 6 * 9 * 32); /* two to seven prefixes; ModRM's middle is 0 */
}

/* And nearly all of what there is. */
static void quick_is_usual(void **state)
{
	struct elf_image *img;
	struct err err;
	unsigned long quick = 0, all = 0;

	(void)state;
	assert_int_equal(elf_image_open(&img, "/bin/bash", &err), 0);
	for (size_t i = 0; i < img->nsections; i++) {
		const struct elf_section *s = &img->sections[i];
		struct insn in;

		if (strcmp(s->name, ".text"))
			continue;
		for (uint64_t at = 0; at + 32 < s->size; at += in.len, all++) {
			const uint8_t *code = img->bytes + s->off + at;

			if (is_quick(code))
				quick++;
			if (!insn_scan(&in, code, 32, AT))
				in.len = 1;
		}
	}
	assert_true(all > 10000);
	assert_true(quick > all / 100 * 96);
	elf_image_close(img);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds),           cmocka_unit_test(refused),
		cmocka_unit_test(branches),        cmocka_unit_test(operands),
		cmocka_unit_test(disagreement),    cmocka_unit_test(text),
		cmocka_unit_test(same_as_objdump), cmocka_unit_test(quiet),
		cmocka_unit_test(left_alone),      cmocka_unit_test(quick_is_right),
		cmocka_unit_test(stretched),       cmocka_unit_test(quick_is_usual),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

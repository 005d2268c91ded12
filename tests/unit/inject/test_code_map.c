/* SPDX-License-Identifier: MIT */
/*
 * Unit tests of the code map: one small assembled program for each rule, then the instruction
 * boundaries and rets of real binaries against objdump.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "inject/code/code_map.h"
#include "tests/unit/inject/assemble.h"

struct mapped {
	struct assembled a;
	struct functions f;
	struct code_map *m;
};

#define SHARED "-shared"
#define DEPENDENT "-no-pie -static"
#define FUNC(name) ".globl " #name "\n.type " #name ", @function\n" #name ":\n.cfi_startproc\n"
#define END(name) ".cfi_endproc\n.size " #name ", . - " #name "\n"

static void map_source(struct mapped *t, const char *source, const char *options)
{
	struct err err = {""};

	assert_true(assemble(&t->a, source, options));
	assert_int_equal(functions_find(&t->f, t->a.img, &err), 0);
	assert_int_equal(code_map_build(&t->m, t->a.img, &t->f, &err), 0);
}

static void unmap(struct mapped *t)
{
	code_map_free(t->m);
	functions_free(&t->f);
	assembled_close(&t->a);
}

static uint8_t flags(const struct mapped *t, const char *name)
{
	return code_map_flags(t->m, label(&t->a, name));
}

static const struct code_function *function(const struct mapped *t, const char *name)
{
	const struct function *fn = functions_at(&t->f, label(&t->a, name));

	assert_non_null(fn);
	return &t->m->per_function[fn - t->f.v];
}

/* Kind of the exit at this label; -1 none; 100 + refusal if refused. */
static int exit_at(const struct mapped *t, const char *name)
{
	uint64_t vaddr = label(&t->a, name);

	for (size_t i = 0; i < t->m->nexits; i++)
		if (t->m->exits[i].vaddr == vaddr)
			return t->m->exits[i].refusal ? 100 + t->m->exits[i].refusal
						      : t->m->exits[i].kind;
	return -1;
}

static void direct_branches(void **state)
{
	struct mapped t;

	(void)state;
	map_source(&t,
		   FUNC(one) "L_start: test %edi,%edi\n"
			     "je L_target\n"
			     "L_call: call two\n"
			     "L_after: inc %eax\n"
			     "L_target: loop L_call\n"
			     "L_inner: xbegin L_abort\n"
			     "L_transaction:"
			     "ret\n"
			     "L_abort: ret\n" END(one)
				     FUNC(two) "L_two: xor %eax,%eax\n"
					       "L_body: dec %edi\n"
					       "jne L_two\n" /* a global name may go by the PLT */
					       "ret\n" END(two)
						       FUNC(three) "nop\n"
								   "jmp L_body\n" END(three),
		   SHARED);
	assert_true(flags(&t, "L_target") & CODE_TARGET);
	assert_true(flags(&t, "L_call") & CODE_TARGET);
	assert_true(flags(&t, "L_after") & CODE_AFTER_CALL);
	assert_false(flags(&t, "L_after") & CODE_TARGET);
	assert_true(flags(&t, "L_abort") & CODE_TARGET);
	assert_int_equal(exit_at(&t, "L_transaction"), CODE_EXIT_RET);
	assert_false(code_map_is_target(t.m, label(&t.a, "L_inner")));
	assert_true(flags(&t, "L_inner") & CODE_INSN);
	assert_false(code_map_flags(t.m, label(&t.a, "L_inner") + 1) & CODE_INSN);
	assert_true(code_map_flags(t.m, label(&t.a, "L_inner") + 1) & CODE_IN_FUNCTION);
	/* a jump from another function counts like one of its own */
	assert_true(flags(&t, "L_body") & CODE_TARGET);
	assert_true(function(&t, "two")->loops_to_start);
	assert_false(function(&t, "one")->loops_to_start);
	assert_int_equal(code_map_previous(t.m, label(&t.a, "L_after")), label(&t.a, "L_call"));
	assert_int_equal(code_map_previous(t.m, label(&t.a, "L_start")), 0);
	unmap(&t);
}

static void padding(void **state)
{
	struct mapped t;

	(void)state;
	map_source(
		&t,
		FUNC(one) "test %edi,%edi\n"
			  "je L_live\n"
			  "ret\n"
			  "L_pad: nopw 0(%rax,%rax)\n"
			  "L_trap: int3\n"
			  "L_live: nop\n"
			  "call two\n"
			  "L_returned: nop\n"
			  "ret\n" END(
				  one) "L_between: nopl 0(%rax)\n"
				       ".p2align 4,0x90\n" FUNC(
					       two) "int3\n"
						    "L_resumed: nop\n"
						    "ret\n" END(two) "L_zeros: .skip 16, 0\n" FUNC(
							    three) "jmp *%rax\n"
								   "L_named: nop\n"
								   "ret\n" END(three)
		/* falls off its end */
		FUNC(four) "inc %eax\n" END(four) "L_run_into: nop\n" FUNC(five) "ret\n" END(
			five) ".data\n.quad L_named\n",
		SHARED);
	assert_true(flags(&t, "L_pad") & CODE_PADDING);
	assert_true(code_map_flags(t.m, label(&t.a, "L_pad") + 4) & CODE_PADDING);
	assert_true(flags(&t, "L_trap") & CODE_PADDING);
	assert_false(flags(&t, "L_live") & CODE_PADDING);
	assert_false(flags(&t, "L_returned") & CODE_PADDING);
	assert_true(flags(&t, "L_between") & CODE_PADDING);
	assert_true(code_map_flags(t.m, label(&t.a, "two") - 1) & CODE_PADDING);
	assert_false(flags(&t, "L_resumed") & CODE_PADDING);
	assert_false(flags(&t, "L_zeros") & CODE_PADDING);
	assert_false(flags(&t, "L_named") & CODE_PADDING);
	assert_false(flags(&t, "L_run_into") & CODE_PADDING);
	unmap(&t);
}

/* Filler in front of code that nobody names may be that code's first instruction. */
static void padding_before_unknown_code(void **state)
{
	struct mapped t;

	(void)state;
	map_source(
		&t,
		".p2align 5\n" FUNC(one) "ret\n" END(one) "L_first: .skip 15, 0x90\n"
							  "L_second: nop\nnop\n"
							  "mov %edi,%eax\n"
							  "ret\n"
							  ".p2align 4\n" FUNC(two) "ret\n" END(two),
		SHARED);
	assert_true(flags(&t, "L_first") & CODE_PADDING);
	assert_true(code_map_flags(t.m, label(&t.a, "L_second") - 1) & CODE_PADDING);
	assert_false(flags(&t, "L_second") & CODE_PADDING);
	unmap(&t);
}

static void overlapping_code(void **state)
{
	struct mapped t;

	(void)state;
	map_source(
		&t,
		FUNC(one) "je L_behind\n"
			  "L_lock: lock\n"
			  "L_behind: incl (%rdi)\n"
			  "ret\n" END(one) FUNC(
				  two) "je L_two + 1\n"
				       "L_two: mov $0x90909090,%eax\n"
				       "ret\n" END(two) FUNC(
					       three) "L_three: mov $0x90909090,%eax\n"
						      "je L_three + 2\n"
						      "ret\n" END(three) FUNC(
							      four) "L_four: mov $0x90909090,%eax\n"
								    "ret\n" END(four) FUNC(
									    five) "jmp L_four + 3\n" END(five)
									    FUNC(six) ".byte 0x66,0xe9,0,0,0,0\n"
										      "ret\n" END(six) FUNC(
											      seven) ".byte 0x06\n"
												     "ret\n" END(
													     seven)
		/* its last instruction does not fit in */
		FUNC(eight) ".byte 0xe9,0,0\n" END(eight) ".byte 0,0\n",
		SHARED);
	assert_false(function(&t, "one")->undecodable);
	assert_true(flags(&t, "L_behind") & CODE_TARGET);
	assert_true(function(&t, "two")->undecodable);
	assert_true(function(&t, "three")->undecodable);
	assert_true(function(&t, "four")->undecodable);
	assert_false(function(&t, "five")->undecodable);
	assert_true(function(&t, "six")->undecodable);
	assert_true(function(&t, "seven")->undecodable);
	assert_true(function(&t, "eight")->undecodable);
	unmap(&t);
}

#define LABEL(name) ".globl " #name "\n.type " #name ", @function\n"
#define BARE(name) LABEL(name) #name ":\n"
#define BARE_END(name) ".size " #name ", . - " #name "\n"

/* Inside an FDE its start settles where instructions are. */
static void symbols_against_a_frame(void **state)
{
	struct mapped t;

	(void)state;
	map_source(&t,
		   FUNC(one) "L_one: mov $0x12345678,%eax\n" LABEL(
			   second) "second: mov %eax,%edx\n"
				   "L_lock: lock\n" LABEL(
					   unlocked) "unlocked: incl (%rdi)\n"
						     "ret\n" END(one)
							     LABEL(lie) ".set lie, L_one + 2\n",
		   SHARED);
	assert_int_equal(t.f.nlies, 1);
	assert_string_equal(t.f.lies[0].name, "lie");
	assert_int_equal(t.f.lies[0].vaddr, label(&t.a, "L_one") + 2);
	assert_int_equal(t.f.n, 3);
	assert_int_equal(t.f.v[0].start, label(&t.a, "L_one"));
	assert_int_equal(t.f.v[1].start, label(&t.a, "second"));
	assert_int_equal(t.f.v[2].start, label(&t.a, "unlocked"));
	assert_false(function(&t, "one")->undecodable);
	/* control falls from one into the next: what is in a register may be from anywhere */
	assert_true(function(&t, "one")->joined && function(&t, "second")->joined);
	unmap(&t);
}

/* Elsewhere it is what is called, and what overlaps. */
static void symbols_against_the_code(void **state)
{
	struct mapped t;

	(void)state;
	map_source(&t,
		   FUNC(caller) "call L_called\n"
				"ret\n" END(caller)
		   /* its own symbol is gone, and another one stands in the middle of it */
		   "L_called: mov %edi,%eax\n"
		   "L_inside: mov $0xc3c3c3c3,%edx\n"
		   "L_rest: ret\n" LABEL(lie) ".set lie, L_inside + 1\n.size lie, 5\n"
					      ".p2align 4\n"
		   /* both may be meant: neither is believed */
		   BARE(host) "L_host: mov $0x90909090,%eax\n"
			      "ret\n" BARE_END(host) LABEL(
				      other) ".set other, L_host + 1\n.size other, 5\n"
					     ".p2align 4\n" BARE(honest) "xor %eax,%eax\n"
									 "ret\n" BARE_END(honest),
		   SHARED);
	assert_true(function(&t, "lie")->contradicted && function(&t, "lie")->undecodable);
	assert_true(function(&t, "host")->undecodable);
	assert_true(function(&t, "other")->contradicted && function(&t, "other")->undecodable);
	assert_false(function(&t, "honest")->undecodable || function(&t, "caller")->undecodable);
	unmap(&t);
}

static void constants(void **state)
{
	struct mapped t;

	(void)state;
	map_source(&t,
		   FUNC(one) "L_start: mov %edi,%eax\n"
			     "L_by_lea: inc %eax\n"
			     "L_by_word: inc %eax\n"
			     "symbol: inc %eax\n"
			     "L_by_unknown: inc %eax\n"
			     "L_free: inc %eax\n"
			     "ret\n" END(one) FUNC(two) "lea L_by_lea(%rip),%rax\n"
							"ret\n" END(two)
		   /* code that no symbol and no FDE names */
		   "nop\n"
		   "test %edi,%edi\n"
		   "jne L_by_unknown\n"
		   "ret\n"
		   ".data\n.quad L_by_word\n",
		   SHARED);
	assert_true(flags(&t, "L_start") & CODE_CONSTANT);
	assert_true(flags(&t, "L_by_lea") & CODE_CONSTANT);
	assert_true(flags(&t, "L_by_word") & CODE_CONSTANT);
	assert_true(flags(&t, "symbol") & CODE_CONSTANT);
	assert_true(flags(&t, "L_by_unknown") & CODE_TARGET);
	assert_false(code_map_is_target(t.m, label(&t.a, "L_free")));
	unmap(&t);
}

static void constants_of_fixed_code(void **state)
{
	struct mapped t;

	(void)state;
	map_source(&t,
		   FUNC(_start) "mov %edi,%eax\n"
				"L_by_mov: inc %eax\n"
				"L_by_movabs: inc %eax\n"
				"L_by_store: inc %eax\n"
				"L_by_push: inc %eax\n"
				"L_by_disp: inc %eax\n"
				"L_by_word: inc %eax\n"
				"L_free: inc %eax\n"
				"ret\n" END(_start)
					FUNC(two) "mov $L_by_mov,%edi\n"
						  "movabs $L_by_movabs,%rax\n"
						  "movq $L_by_store,8(%rsp)\n"
						  "push $L_by_push\n"
						  "lea L_by_disp(%rdi),%rax\n"
						  "pop %rdi\n"
						  "ret\n" END(two) ".data\n.quad L_by_word\n",
		   DEPENDENT);
	assert_true(flags(&t, "L_by_mov") & CODE_CONSTANT);
	assert_true(flags(&t, "L_by_movabs") & CODE_CONSTANT);
	assert_true(flags(&t, "L_by_store") & CODE_CONSTANT);
	assert_true(flags(&t, "L_by_push") & CODE_CONSTANT);
	assert_true(flags(&t, "L_by_disp") & CODE_CONSTANT);
	assert_true(flags(&t, "L_by_word") & CODE_CONSTANT);
	assert_false(code_map_is_target(t.m, label(&t.a, "L_free")));
	unmap(&t);
}

#define SEQUENCES(section)                                                                                            \
	FUNC(one)                                                                                                     \
	"L_before: mov %edi,%eax\n"                                                                                   \
	"L_in: inc %eax\n"                                                                                            \
	"L_last: mov %eax,(%rsi)\n"                                                                                   \
	"L_behind: ret\n"                                                                                             \
	".byte 0x0f,0xb9,0x3d\n.long 0x53053053\n"                                                                    \
	"L_abort: xor %eax,%eax\n"                                                                                    \
	"L_free: ret\n" END(one) FUNC(two) "L_unsigned: mov %edi,%eax\n"                                              \
					   "ret\n" END(two) section                                                   \
		"\n.p2align 5\n"                                                                                      \
		".long 0, 0\n.quad L_in, L_behind - L_in, L_abort\n" /* looks the same: a number and two functions */ \
		".data\n.p2align 5\n.long 0, 0\n.quad L_unsigned, 3, L_abort + 2\n"

static void restartable_sequences(void **state)
{
	static const char *const options[] = {SHARED, DEPENDENT " -Wl,-e,one"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct mapped t;

		map_source(&t, SEQUENCES(".section __rseq_cs,\"aw\""), options[i]);
		assert_false(flags(&t, "L_before") & CODE_RSEQ);
		assert_true(flags(&t, "L_in") & CODE_RSEQ);
		assert_true(flags(&t, "L_last") & CODE_RSEQ);
		assert_false(flags(&t, "L_behind") & CODE_RSEQ);
		assert_true(flags(&t, "L_abort") & CODE_RSEQ);
		assert_true(flags(&t, "L_abort") & CODE_CONSTANT);
		assert_true(code_map_flags(t.m, label(&t.a, "L_abort") - 4) & CODE_RSEQ);
		assert_false(flags(&t, "L_free") & CODE_RSEQ);
		assert_false(flags(&t, "L_unsigned") & CODE_RSEQ);
		unmap(&t);
	}
}

/* A signed descriptor counts in any section. */
static void sequences_anywhere(void **state)
{
	struct mapped t;

	(void)state;
	map_source(&t, SEQUENCES(".data"), SHARED);
	assert_true(flags(&t, "L_in") & CODE_RSEQ);
	assert_true(flags(&t, "L_abort") & CODE_RSEQ);
	assert_false(flags(&t, "L_before") & CODE_RSEQ);
	assert_false(flags(&t, "L_unsigned") & CODE_RSEQ);
	unmap(&t);
}

static void exits(void **state)
{
	struct mapped t;

	(void)state;
	map_source(
		&t,
		FUNC(one) "test %edi,%edi\n"
			  "L_jcc: je two\n"
			  "js L_tail\n"
			  "jp L_plt\n"
			  "jl L_slot\n"
			  "jg L_cold_jump\n"
			  "L_ret: ret\n"
			  "L_dead: ret\n"
			  "L_tail: jmp two\n"
			  "L_plt: jmp outside@PLT\n"
			  "L_slot: jmp *outside@GOTPCREL(%rip)\n"
			  "L_cold_jump: jmp one.cold\n"
			  "L_back: mov (%rdi),%rax\n"
			  "L_vtable: jmp *8(%rax)\n" END(one)
				  FUNC(two) "L_forever: jmp L_forever\n" END(two) FUNC(
					  three) "call two\n" END(three)
					  FUNC(four) "L_rep: repz ret\n" END(
						  four) ".section .text.unlikely,\"ax\"\n"
							".type one.cold, @function\none.cold:\n.cfi_startproc\n"
							"test %esi,%esi\n"
							"L_cold_jcc: je L_back\n"
							"L_cold_back: jmp L_back\n"
							"L_cold_ret: ret\n" END(one.cold),
		SHARED);
	assert_int_equal(exit_at(&t, "L_ret"), CODE_EXIT_RET);
	assert_int_equal(exit_at(&t, "L_dead"), -1);
	assert_int_equal(exit_at(&t, "L_rep"), CODE_EXIT_RET);
	assert_int_equal(exit_at(&t, "L_jcc"), 100 + REFUSAL_JCC_TAIL);
	assert_int_equal(exit_at(&t, "L_tail"), CODE_EXIT_TAIL);
	assert_int_equal(exit_at(&t, "L_plt"), CODE_EXIT_TAIL);
	assert_int_equal(exit_at(&t, "L_slot"), CODE_EXIT_TAIL_INDIRECT);
	assert_int_equal(exit_at(&t, "L_vtable"), CODE_EXIT_TAIL_INDIRECT);
	assert_int_equal(exit_at(&t, "L_cold_jump"), -1);
	assert_int_equal(exit_at(&t, "L_cold_jcc"), -1);
	assert_int_equal(exit_at(&t, "L_cold_back"), -1);
	assert_int_equal(exit_at(&t, "L_cold_ret"), -1); /* dead */
	assert_int_equal(exit_at(&t, "L_forever"), -1);
	for (size_t i = 0; i < t.m->nexits; i++) {
		const struct function *holder = functions_at(&t.f, t.m->exits[i].vaddr);

		assert_int_equal(t.m->exits[i].function, holder->parent);
		assert_true(!i || t.m->exits[i - 1].vaddr < t.m->exits[i].vaddr);
	}
	unmap(&t);
}

static void computed_jumps(void **state)
{
	struct mapped t;

	(void)state;
	map_source(&t,
		   /* arithmetic on a code address */
		   FUNC(one) "lea L_base(%rip),%rax\n"
			     "imul $24,%rdi\n"
			     "add %rdi,%rax\n"
			     "L_one: jmp *%rax\n"
			     "L_base: nop\n"
			     "ret\n"
			     ".p2align 4,0x90\n"
			     "L_other: ret\n" END(one)
		   /* a pointer that libc unmangles is a pointer */
		   FUNC(two) "mov (%rdi),%rdx\n"
			     "ror $0x11,%rdx\n"
			     "xor %fs:0x30,%rdx\n"
			     "L_two: jmp *%rdx\n" END(two)
		   /* a label in a pointer: it may stay or leave */
		   FUNC(three) "mov (%rdi),%rax\n"
			       "L_three: jmp *%rax\n"
			       "L_inside: ret\n" END(three)
		   /* the same with a frame: it stays */
		   FUNC(four) "push %rbx\n.cfi_adjust_cfa_offset 8\n"
			      "mov (%rdi),%rax\n"
			      "L_four: jmp *%rax\n"
			      "L_framed: pop %rbx\n.cfi_adjust_cfa_offset -8\n"
			      "ret\n" END(four)
		   /* into a row of pieces of 16 bytes */
		   FUNC(five) "and $3,%edi\n"
			      "lea L_row(%rip),%rax\n"
			      "shl $4,%edi\n"
			      "add %rdi,%rax\n"
			      "L_five: jmp *%rax\n"
			      ".p2align 4,0x90\n"
			      "L_row: mov $1,%eax\n"
			      "ret\n"
			      ".p2align 4,0x90\n"
			      "L_row1: mov $2,%eax\n"
			      "L_between: ret\n"
			      ".p2align 4,0x90\n" END(five) ".data\n.quad L_inside, L_framed\n",
		   SHARED);
	assert_true(function(&t, "one")->unresolved_indirect);
	assert_int_equal(exit_at(&t, "L_one"), 100 + REFUSAL_AMBIGUOUS_JUMP);
	assert_int_equal(exit_at(&t, "L_other"), CODE_EXIT_RET);
	assert_false(code_map_flags(t.m, label(&t.a, "L_other") - 1) & CODE_PADDING);
	assert_false(function(&t, "two")->unresolved_indirect);
	assert_int_equal(exit_at(&t, "L_two"), CODE_EXIT_TAIL_INDIRECT);
	assert_false(function(&t, "three")->unresolved_indirect);
	assert_int_equal(exit_at(&t, "L_three"), 100 + REFUSAL_AMBIGUOUS_JUMP);
	assert_int_equal(exit_at(&t, "L_four"), -1);
	assert_false(function(&t, "four")->unresolved_indirect);
	assert_false(function(&t, "five")->unresolved_indirect);
	assert_int_equal(exit_at(&t, "L_five"), -1);
	assert_true(code_map_flags(t.m, label(&t.a, "L_row")) & CODE_CONSTANT);
	assert_true(code_map_flags(t.m, label(&t.a, "L_row1")) & CODE_CONSTANT);
	assert_false(code_map_is_target(t.m, label(&t.a, "L_between")));
	unmap(&t);
}

static void data_in_code(void **state)
{
	struct mapped t;

	(void)state;
	map_source(&t,
		   FUNC(one) "movaps L_constant(%rip),%xmm0\n"
			     "L_ret: ret\n"
			     ".p2align 4,0x90\n"
			     "L_constant: .quad 0x1122334455667788, 0x90909090c3c3c3c3\n"
			     "L_behind: mov $1,%eax\n"
			     "ret\n" END(one),
		   SHARED);
	assert_true(code_map_flags(t.m, label(&t.a, "L_constant")) & CODE_DATA);
	assert_true(code_map_flags(t.m, label(&t.a, "L_behind") - 1) & CODE_DATA);
	assert_false(code_map_flags(t.m, label(&t.a, "L_ret")) & CODE_DATA);
	assert_false(code_map_flags(t.m, label(&t.a, "L_constant")) & CODE_PADDING);
	unmap(&t);
}

/* ---- real binaries ---- */

struct tally {
	unsigned long insns, rets, dead;
};

static bool is_exit(const struct code_map *m, uint64_t vaddr)
{
	size_t lo = 0, hi = m->nexits;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->exits[mid].vaddr < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < m->nexits && m->exits[lo].vaddr == vaddr;
}

static void compare_line(const struct code_map *m, const char *line, struct tally *t)
{
	uint64_t addr = strtoull(line, NULL, 16);
	const char *mnemonic = strchr(line, '\t');

	if (line[0] != ' ' || !mnemonic || !(code_map_flags(m, addr) & CODE_IN_FUNCTION))
		return;
	if (!(code_map_flags(m, addr) & CODE_INSN))
		fail_msg("no instruction where objdump has one: %s", line);
	t->insns++;
	mnemonic++;
	if (!strncmp(mnemonic, "ret", 3) || !strncmp(mnemonic, "repz ret", 8)) {
		t->rets++;
		t->dead += !is_exit(m, addr);
	}
}

static void compare_file(const char *path)
{
	struct mapped t;
	struct tally tally = {0};
	struct err err;
	char command[256], *line = NULL;
	size_t size = 0, unresolved = 0, undecodable = 0;
	FILE *f;

	if (elf_image_open(&t.a.img, path, &err)) {
		print_message("%s\n", err.msg);
		return;
	}
	assert_int_equal(functions_find(&t.f, t.a.img, &err), 0);
	assert_int_equal(code_map_build(&t.m, t.a.img, &t.f, &err), 0);
	snprintf(command, sizeof(command), "objdump -d --no-show-raw-insn -j .text %s", path);
	f = popen(command, "r");
	assert_non_null(f);
	while (getline(&line, &size, f) > 0)
		compare_line(t.m, line, &tally);
	assert_int_equal(pclose(f), 0);
	free(line);
	for (size_t i = 0; i < t.f.n; i++) {
		unresolved += t.m->per_function[i].unresolved_indirect;
		undecodable += t.m->per_function[i].undecodable;
	}
	print_message("%s: %zu functions, %zu undecodable, %zu unresolved; %lu instructions, "
		      "%lu rets, %lu of them dead\n",
		      path, t.f.n, undecodable, unresolved, tally.insns, tally.rets, tally.dead);
	assert_true(tally.insns > 50000);
	assert_true(tally.rets > 1000);
	assert_true(tally.dead * 500 <= tally.rets);
	/* after a call that does not return, Debian 13's longjmp of _FORTIFY_SOURCE has 05 05 05 */
	assert_true(undecodable * 1000 <= t.f.n);
	assert_true(unresolved * 1000 <= t.f.n);
	code_map_free(t.m);
	functions_free(&t.f);
	elf_image_close(t.a.img);
}

/* "te" after "n" would jump into an instruction; a jump that may be reached does. */
static void text_in_a_gap(void **state)
{
	struct mapped t;
	uint64_t two;

	(void)state;
	map_source(&t,
		   FUNC(one) "ret\n" END(
			   one) ".p2align 4,0x90\n"
				".ascii \"AES for Intel te\"\n"
				".fill 81, 1, 0x90\n" /* je leads 113 bytes past the text's start */
		   FUNC(two) "L_two: movabs $0x1122334455667788,%rax\n"
			     "movabs $0x1122334455667788,%rcx\n"
			     "ret\n" END(two) ".p2align 4,0x90\n"
					      ".ascii \"l\"\n"
					      ".p2align 4,0x90\n"
					      "je L_two + 3\n",
		   SHARED);
	two = label(&t.a, "L_two");
	assert_false(code_map_is_target(t.m, two + 16));
	assert_true(code_map_is_target(t.m, two + 3));
	unmap(&t);
}

static void real_binaries(void **state)
{
	(void)state;
	if (!is_installed("objdump")) {
		print_message("objdump is not installed\n");
		return;
	}
	compare_file("/bin/bash");
	compare_file("/lib/x86_64-linux-gnu/libc.so.6");
	compare_file("/usr/bin/perl");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(direct_branches),
		cmocka_unit_test(padding),
		cmocka_unit_test(padding_before_unknown_code),
		cmocka_unit_test(overlapping_code),
		cmocka_unit_test(symbols_against_a_frame),
		cmocka_unit_test(symbols_against_the_code),
		cmocka_unit_test(constants),
		cmocka_unit_test(constants_of_fixed_code),
		cmocka_unit_test(restartable_sequences),
		cmocka_unit_test(sequences_anywhere),
		cmocka_unit_test(exits),
		cmocka_unit_test(computed_jumps),
		cmocka_unit_test(data_in_code),
		cmocka_unit_test(text_in_a_gap),
		cmocka_unit_test(real_binaries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

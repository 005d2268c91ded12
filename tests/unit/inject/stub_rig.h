/* SPDX-License-Identifier: MIT */
/*
 * stub_rig.h - patches the functions of snippets.S in this process and runs them with random
 * registers, flags, stack and data.  For test_stub.c and test_places.c.
 */
#ifndef TESTS_UNIT_STUB_RIG_H
#define TESTS_UNIT_STUB_RIG_H

#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include <kron/board.h>
#include <kron/segment.h>

#include "base/vec.h"
#include "inject/bind/bind.h"
#include "inject/plan/plan.h"

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI };
struct regs {
	uint64_t r[16];
	uint64_t flags;
};
struct seen {
	struct regs regs;
	uint64_t event;
};

/* snippets.S; those with a leading underscore are ours to define there */
extern struct regs run_in, run_out;
extern void *run_fn;
extern struct seen seen[64];
extern uint64_t seen_n;
extern uint64_t word[3];
void run_snippet(void);
void test_thunk(void);

#define FLAGS_MASK 0xcd5u /* CF PF AF ZF SF DF OF */
#define LEVEL 5u
#define EVENT_BASE 1000u
#define ROUNDS 300

/* ---- what each snippet must give, read from snippets.S ---- */

enum shape {
	RETURNS,  /* entry, then an exit at a ret */
	LEAVES,   /* entry, then an exit at a jump to a function that is not traced */
	TO_ONE,   /* tail jump to snip_one */
	TO_SHORT, /* tail jump to snip_tail_short_target */
	TO_ONE_IF_NEGATIVE,
	TO_TARGET_IF_NEGATIVE,
	RECURSES /* %esi & 7 times */
};
static const struct {
	const char *name;
	enum shape shape;
	unsigned pops; /* of ret imm16 */
} snippets[] = {
	{"one", RETURNS, 0},
	{"many", RETURNS, 0},
	{"ret_only", RETURNS, 0},
	{"xor_ret", RETURNS, 0},
	{"mov_ret", RETURNS, 0},
	{"short_padding", RETURNS, 0},
	{"short_guest", RETURNS, 0},
	{"short_evicts", RETURNS, 0},
	{"arrivals", RETURNS, 0},
	{"short_grows", RETURNS, 0},
	{"short_after_call", RETURNS, 0},
	{"dots", RETURNS, 0},
	{"after_nop", RETURNS, 0},
	{"joined", RETURNS, 0},
	{"lock_skip", RETURNS, 0},
	{"pairs", RETURNS, 0},
	{"ret_imm", RETURNS, 16},
	{"rep_ret", RETURNS, 0},
	{"many_exits", RETURNS, 0},
	{"flags_in", RETURNS, 0},
	{"flags_out", RETURNS, 0},
	{"flags_all", RETURNS, 0},
	{"rip_load", RETURNS, 0},
	{"rip_store", RETURNS, 0},
	{"rip_imm8", RETURNS, 0},
	{"rip_lea", RETURNS, 0},
	{"rip_sse", RETURNS, 0},
	{"rsp_relative", RETURNS, 0},
	{"red_zone", RETURNS, 0},
	{"string", RETURNS, 0},
	{"memory", RETURNS, 0},
	{"frame", RETURNS, 0},
	{"syscall", RETURNS, 0},
	{"syscall_flags", RETURNS, 0},
	{"jcc_short", RETURNS, 0},
	{"jcc_long", RETURNS, 0},
	{"jrcxz_in", RETURNS, 0},
	{"loop_in", RETURNS, 0},
	{"jmp_short", RETURNS, 0},
	{"loop_head", RETURNS, 0},
	{"loop_head_far", RETURNS, 0},
	{"loop_head_self", RETURNS, 0},
	{"call_last", RETURNS, 0},
	{"call_register", RETURNS, 0},
	{"call_first", RETURNS, 0},
	{"call_register_first", RETURNS, 0},
	{"call_high", RETURNS, 0},
	{"call_by_stack", RETURNS, 0},
	{"recurse", RECURSES, 0},
	{"tail_long", TO_ONE, 0},
	{"tail_short", TO_SHORT, 0},
	{"tail_short_target", RETURNS, 0},
	{"tail_register", LEAVES, 0},
	{"tail_memory", LEAVES, 0},
	{"tail_conditional", TO_ONE_IF_NEGATIVE, 0},
	{"tail_conditional_short", TO_TARGET_IF_NEGATIVE, 0},
	{"tail_conditional_target", RETURNS, 0},
	{"switch", RETURNS, 0},
	{"pop_return", RETURNS, 0},
};
#define NSNIPPETS (sizeof(snippets) / sizeof(snippets[0]))

/* ---- the plan of this program ---- */

static struct plan *plan;
static uint64_t bias;
static uint8_t *selected;

static const char *function_name(uint32_t function)
{
	return plan->strings + plan->functions[function].name;
}

static uint64_t snippet_addr(const char *name)
{
	for (size_t i = 0; i < plan->nfunctions; i++)
		if (!strncmp(function_name(i), "snip_", 5) && !strcmp(function_name(i) + 5, name))
			return bias + plan->functions[i].vaddr;
	fail_msg("the plan does not know snip_%s", name);
	return 0;
}

static int own_bias(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size;
	*(uint64_t *)ctx = info->dlpi_addr; /* the program comes first */
	return 1;
}

/* ---- patching this process ---- */

static struct bound bound;

static void write_patches(bool on)
{
	uint8_t *text = (uint8_t *)bound.patch_addr;

	assert_int_equal(mprotect(text, bound.patch_len, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	for (size_t i = 0; on && i < bound.npatches; i++)
		assert_memory_equal(text + bound.patches[i].off, bound.patches[i].old_bytes,
				    bound.patches[i].old_len);
	for (size_t i = 0; i < bound.npatches; i++) {
		const struct kron_patch *p = &bound.patches[i];

		memcpy(text + p->off, on ? p->new_bytes : p->old_bytes,
		       on ? p->new_len : p->old_len);
	}
	assert_int_equal(mprotect(text, bound.patch_len, PROT_READ | PROT_EXEC), 0);
}

static void patch_with(struct binding b, int64_t distance)
{
	uint64_t from = (bias + plan->text_lo + distance) & -4096ull;
	size_t size = bind_size(&b);
	struct err err;
	void *at = MAP_FAILED;

	for (; at == MAP_FAILED; from += 1 << 20)
		at = mmap((void *)from, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	b.block = (uint64_t)at;
	if (bind_make(&bound, &b, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(bound.block_len, size);
	memcpy(at, bound.block, size);
	assert_int_equal(mprotect(at, size, PROT_READ | PROT_EXEC), 0);
	write_patches(true);
}

/* Entries and exits of the snippets. */
__attribute__((unused)) static void patch(int64_t distance)
{
	patch_with(
		(struct binding){
			.plan = plan,
			.selected = selected,
			.event_base = EVENT_BASE,
			.level = LEVEL,
			.bias = bias,
			.thunk = (uint64_t)test_thunk,
		},
		distance);
}

__attribute__((unused)) static void unpatch(void)
{
	write_patches(false);
	bound_free(&bound);
}

static void set_gate(uint8_t value)
{
	*(volatile uint8_t *)(uintptr_t)KRON_GATE_ADDR(LEVEL) = value;
}

/* ---- one run ---- */

#define STACK 16384
#define SCRATCH 4096
struct world {
	struct regs out;
	uint8_t stack[STACK], scratch[SCRATCH];
	uint64_t word[3];
};
static _Alignas(64) uint8_t stack[STACK], scratch[SCRATCH];

static uint64_t seed;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Small and large numbers, so that branches go both ways. */
static uint64_t random_value(void)
{
	uint64_t v = next_random();

	switch (next_random() % 4) {
	case 0:
		return v % 4;
	case 1:
		return v >> 32;
	default:
		return v;
	}
}

static void random_world(uint64_t from)
{
	static const uint64_t data[3] = {0x1122334455667788, 0x0102030405060708,
					 0x1112131415161718};

	seed = from * 0x9e3779b97f4a7c15 + 1;
	for (int i = 0; i < 16; i++)
		run_in.r[i] = random_value();
	for (size_t i = 0; i < STACK; i += 8)
		memcpy(stack + i, &(uint64_t){next_random()}, 8);
	for (size_t i = 0; i < SCRATCH; i += 8)
		memcpy(scratch + i, &(uint64_t){next_random()}, 8);
	memcpy(word, data, sizeof(data));
	run_in.r[RDI] = (uint64_t)scratch + SCRATCH / 2;
	run_in.r[RSP] = (uint64_t)stack + STACK - 512;
	run_in.flags = (next_random() & FLAGS_MASK) | 0x202;
}

static void run(const char *name, uint64_t from, struct world *w)
{
	uint64_t zone;

	random_world(from);
	run_fn = (void *)snippet_addr(name);
	seen_n = 0;
	run_snippet();
	/* below the red zone of the snippet the stack is nobody's */
	zone = run_in.r[RSP] - 8 - 128 - (uint64_t)stack;
	memset(stack, 0, zone);
	run_out.flags &= FLAGS_MASK;
	w->out = run_out;
	memcpy(w->stack, stack, STACK);
	memcpy(w->scratch, scratch, SCRATCH);
	memcpy(w->word, word, sizeof(w->word));
}

#define check(condition, ...)                                                                    \
	do {                                                                                     \
		if (!(condition))                                                                \
			fail_msg("snip_%s, round %d: %s", snippets[i].name, round, __VA_ARGS__); \
	} while (0)

static bool same_regs(const struct regs *a, const struct regs *b)
{
	for (int i = 0; i < 16; i++)
		if (i != RSP && a->r[i] != b->r[i])
			return false;
	return (a->flags & FLAGS_MASK) == (b->flags & FLAGS_MASK);
}

static void check_same(int i, int round, const struct world *want, const struct world *got)
{
	check(same_regs(&want->out, &got->out), "registers or flags");
	check(want->out.r[RSP] == got->out.r[RSP], "stack pointer");
	check(!memcmp(want->stack, got->stack, STACK), "stack or red zone");
	check(!memcmp(want->scratch, got->scratch, SCRATCH), "memory");
	check(!memcmp(want->word, got->word, sizeof(want->word)), "rip-relative data");
}

/* The gates' page, and the plan of this program: its snippets are selected. */
static int rig_start(const struct plan_options *opt)
{
	struct elf_image *img;
	struct err err;

	dl_iterate_phdr(own_bias, &bias);
	if (elf_image_open(&img, "/proc/self/exe", &err) || plan_make(&plan, img, opt, &err)) {
		print_error("%s\n", err.msg);
		return -1;
	}
	elf_image_close(img);
	selected = xcalloc(plan->nfunctions, 1);
	for (size_t i = 0; i < plan->nfunctions; i++)
		selected[i] = !strncmp(function_name(i), "snip_", 5);
	return 0;
}

static int rig_map_gates(void)
{
	return mmap((void *)(uintptr_t)(KRON_GATE_ADDR(0) & -4096u), 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED
		       ? -1
		       : 0;
}

static void rig_end(void)
{
	plan_free(plan);
	xfree(selected);
}

#endif

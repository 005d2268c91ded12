/* SPDX-License-Identifier: MIT */
/* test_plan.c - plans as data: the same bytes every time, their hooks, and how functions are left. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/inject/plan_rig.h"

/* ---- planning ---- */

static void same_input_same_bytes(void **state)
{
	struct plan *a = plan_of_libc(false), *b = plan_of_libc(false);
	size_t na, nb;
	uint8_t *x = saved(a, &na), *y = saved(b, &nb);

	(void)state;
	assert_int_equal(na, nb);
	assert_memory_equal(x, y, na);
	xfree(x);
	xfree(y);
	plan_free(a);
	plan_free(b);
}

static void counts_add_up(void **state)
{
	struct plan *p = plan_of_libc(false);

	(void)state;
	for (int kind = PROBE_ENTRY; kind <= PROBE_HOOK; kind++) {
		struct plan_counts c;
		uint64_t refused = 0, taken = 0;

		plan_count(p, kind, &c);
		for (int i = 0; i < REFUSAL_COUNT; i++)
			refused += c.refused[i];
		for (int i = 0; i < TACTIC_COUNT; i++)
			taken += c.by_tactic[i];
		assert_int_equal(c.found, c.patched + refused);
		assert_int_equal(c.patched, taken);
		assert_int_equal(c.refused[REFUSAL_NONE], 0);
		assert_int_equal(c.by_tactic[TACTIC_NONE], 0);
	}
	plan_free(p);
}

static void probes_of_a_function_stand_together(void **state)
{
	struct plan *p = plan_of_libc(false);

	(void)state;
	for (size_t i = 0; i < p->nfunctions; i++) {
		const struct plan_function *f = &p->functions[i];
		unsigned entries = 0;
		uint64_t last = 0;

		for (uint32_t k = 0; k < f->nprobes; k++) {
			const struct plan_probe *probe = &p->probes[f->first_probe + k];

			assert_int_equal(probe->function, i);
			if (probe->kind == PROBE_ENTRY) {
				entries++;
				assert_int_equal(probe->vaddr, f->vaddr);
			} else if (probe->kind == PROBE_EXIT) {
				assert_int_equal(entries, 1);
				assert_true(probe->vaddr > last);
				last = probe->vaddr;
			} else {
				assert_int_equal(entries, 0);
			}
		}
		assert_int_equal(entries, 1);
	}
	plan_free(p);
}

/* ---- hooks ---- */

static void libc_has_its_hooks(void **state)
{
	struct plan *p = plan_of_libc(true);
	unsigned found = 0;

	(void)state;
	for (size_t i = 0; i < p->nprobes; i++) {
		assert_int_equal(p->probes[i].kind, PROBE_HOOK);
		assert_true(p->probes[i].site != UINT32_MAX);
		found |= 1u << p->probes[i].hook;
	}
	/* all but ld.so's own, and the one of files from kron patch; longjmp */
	assert_int_equal(found, (((1u << KRON_HOOK_SYMBOLS) - 1) &
				 ~(1u << KRON_HOOK_DL_STATE | 1u << KRON_HOOK_HANDLERS)) |
					1u << KRON_HOOK_LONGJMP);
	plan_free(p);
}

/* How many hooks the file has of this kind, or of that. */
static unsigned hooks_of(const char *path, enum kron_hook h, enum kron_hook or_else)
{
	struct plan *p = plan_file_of(path, true);
	unsigned found = 0;

	for (size_t i = 0; i < p->nprobes; i++) {
		assert_true(p->probes[i].hook == h || p->probes[i].hook == or_else);
		assert_true(p->probes[i].site != UINT32_MAX);
		found += p->probes[i].hook == h;
	}
	plan_free(p);
	return found;
}

static void loader_has_its_hook(void **state)
{
	(void)state;
	assert_int_equal(
		hooks_of("/lib64/ld-linux-x86-64.so.2", KRON_HOOK_DL_STATE, KRON_HOOK_LONGJMP), 1);
}

static void the_unwinder_has_hooks(void **state)
{
	(void)state;
	assert_int_equal(hooks_of("/lib/x86_64-linux-gnu/libgcc_s.so.1", KRON_HOOK_UNWIND,
				  KRON_HOOK_UNWIND),
			 4); /* _Unwind_RaiseException, ForcedUnwind, Resume, Resume_or_Rethrow */
}

/* As other compilers and libraries end their unwinders and longjmp; nobody calls them. */
__asm__(".pushsection .text\n"
	".macro end name:req\n"
	".type \\name, @function\n"
	".globl \\name\n"
	".p2align 4\n"
	"\\name:\n"
	".endm\n"
	".macro end_of name:req\n"
	".size \\name, . - \\name\n"
	".endm\n"
	"end old_gcc\n lea 8(%rbp,%rcx), %rcx\n mov (%rbp), %rbp\n mov %rcx, %rsp\n ret\n end_of old_gcc\n"
	"end llvm\n mov 32(%rdi), %rbp\n mov 56(%rdi), %rsp\n pop %rdi\n ret\n end_of llvm\n"
	"end llvm_jumps\n mov 56(%rdi), %rsp\n pop %rdi\n pop %rcx\n jmp *%rcx\n end_of llvm_jumps\n"
	"end probed\n mov %r8, %rsp\n mov %r9, %rbp\n nop\n jmp *%rdx\n end_of probed\n"
	"end musl\n mov 48(%rdi), %rsp\n jmp *56(%rdi)\n end_of musl\n"
	/* what only looks like one: another register, and a constant */
	"end other\n mov %rcx, %rsp\n pop %rdx\n jmp *%rdx\n end_of other\n"
	"end constant\n movabs $0xe1ff59cc89489090, %rax\n ret\n end_of constant\n"
	".popsection\n");

static void other_programs_have_those_of_unwinders(void **state)
{
	struct plan *p = plan_file_of("/proc/self/exe", true);
	unsigned found[KRON_HOOK_COUNT] = {0};

	(void)state;
	for (size_t i = 0; i < p->nprobes; i++) {
		assert_true(p->probes[i].site != UINT32_MAX);
		found[p->probes[i].hook]++;
	}
	assert_int_equal(p->nprobes, 5);
	assert_int_equal(found[KRON_HOOK_UNWIND], 1);
	assert_int_equal(found[KRON_HOOK_UNWIND_LLVM], 2);
	assert_int_equal(found[KRON_HOOK_LONGJMP], 1);
	assert_int_equal(found[KRON_HOOK_LONGJMP_MUSL], 1);
	plan_free(p);
}

/* ---- jumps ---- */

/* Functions that are left in every way; nobody calls them. */
__asm__(".pushsection .text\n"
	".macro way name:req\n"
	".type \\name, @function\n"
	".globl \\name\n"
	".p2align 4\n"
	"\\name:\n"
	".endm\n"
	".macro over name:req\n"
	".size \\name, . - \\name\n"
	".endm\n"
	"way way_leaf\n mov %edi, %eax\n way_leaf_middle: add $1, %eax\n ret\n over way_leaf\n"
	"way way_direct\n add $1, %edi\n jmp way_leaf\n over way_direct\n"
	"way way_inside\n add $1, %edi\n jmp way_leaf_middle\n over way_inside\n"
	"way way_stub\n add $1, %edi\n jmp getpid@PLT\n over way_stub\n"
	"way way_slot\n add $1, %edi\n jmp *getppid@GOTPCREL(%rip)\n over way_slot\n"
	"way way_pointer\n add $1, %edi\n jmp *%rsi\n over way_pointer\n"
	"way way_either\n test %edi, %edi\n je way_leaf\n add $1, %edi\n js way_direct\n"
	"jmp way_leaf\n over way_either\n"
	"way way_itself\n add $1, %edi\n jne way_itself\n ret\n over way_itself\n"
	"way way_dies\n sub $8, %rsp\n call abort@PLT\n over way_dies\n"
	".popsection\n");

static const struct plan_function *function_of(const struct plan *p, const char *name)
{
	for (size_t i = 0; i < p->nfunctions; i++)
		if (!strcmp(p->strings + p->functions[i].name, name))
			return &p->functions[i];
	fail_msg("no function %s", name);
	return NULL;
}

/* "ret leaf -leaf ?": how it is left, exit by exit. */
static void expect_ways(const struct plan *p, const char *name, const char *want)
{
	const struct plan_function *f = function_of(p, name);
	char got[128] = "";

	for (uint32_t i = 0; i < f->nprobes; i++) {
		const struct plan_probe *probe = &p->probes[f->first_probe + i];
		const struct plan_jump *j = probe->action ? &p->jumps[probe->action - 1] : NULL;
		const char *to = !j                            ? "ret"
				 : j->to == PLAN_JUMP_ANYWHERE ? "?"
				 : j->to == PLAN_JUMP_NAME
					 ? p->strings + j->target
					 : p->strings + p->functions[j->target].name;

		if (probe->kind != PROBE_EXIT)
			continue;
		assert_true(!j || j->function == probe->function);
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s%s", *got ? " " : "",
			 j && j->to == PLAN_JUMP_INSIDE ? "-" : "", to);
	}
	if (strcmp(got, want))
		fail_msg("%s: %s instead of %s", name, got, want);
}

static void exits_say_how(void **state)
{
	struct plan *p = plan_file_of("/proc/self/exe", false);
	const struct plan_function *either = function_of(p, "way_either");

	(void)state;
	expect_ways(p, "way_leaf", "ret");
	expect_ways(p, "way_direct", "way_leaf");
	expect_ways(p, "way_inside", "-way_leaf");
	expect_ways(p, "way_stub", "getpid");
	expect_ways(p, "way_slot", "getppid");
	expect_ways(p, "way_pointer", "?");
	expect_ways(p, "way_either", "way_leaf way_direct way_leaf");
	expect_ways(p, "way_itself", "ret");
	expect_ways(p, "way_dies", "");
	/* exits that lead to the same have the same number */
	assert_int_equal(p->probes[either->first_probe + 1].action,
			 p->probes[either->first_probe + 3].action);
	assert_true(function_of(p, "way_dies")->sources & FUNCTION_CALLS);
	assert_false(function_of(p, "way_leaf")->sources & FUNCTION_CALLS);
	plan_free(p);
}

static bool has_alias(const struct plan *p, const struct plan_function *f, const char *name)
{
	const char *at = p->strings + f->aliases;

	for (size_t n; *at; at += n + (at[n] == '\n')) {
		n = strcspn(at, "\n");
		if (n == strlen(name) && !memcmp(at, name, n))
			return true;
	}
	return !strcmp(p->strings + f->name, name);
}

/* By which other modules may call it, all of them. */
static void functions_have_all_their_names(void **state)
{
	static const char *const names[] = {"free", "__libc_free", "cfree", "memalign",
					    "__libc_memalign"};
	struct plan *p = plan_of_libc(false);
	void *libc =
		dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD); /* sanitizers have their own free() */

	(void)state;
	assert_non_null(libc);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *at = dlsym(libc, names[i]);
		struct link_map *map;
		bool found = false;
		Dl_info info;

		if (!at) /* an old name that this libc does not have any more */
			continue;
		assert_true(dladdr1(at, &info, (void **)&map, RTLD_DL_LINKMAP));
		for (size_t k = 0; k < p->nfunctions; k++)
			if (map->l_addr + p->functions[k].vaddr == (uint64_t)at)
				found = has_alias(p, &p->functions[k], names[i]);
		if (!found)
			fail_msg("nothing there is called %s", names[i]);
	}
	assert_false(has_alias(p, function_of(p, "getpid"), "getppid"));
	dlclose(libc);
	plan_free(p);
}

static void lying_jumps_are_refused(void **state)
{
	struct plan *p = plan_file_of("/proc/self/exe", false);
	const struct plan_function *f = function_of(p, "way_direct");
	struct plan_probe *probe = &p->probes[f->first_probe + 1];
	struct plan_jump *j = &p->jumps[probe->action - 1], good = *j;
	uint32_t action = probe->action;

	(void)state;
	assert_true(plan_is_sound(p));
	j->target = (uint32_t)p->nfunctions;
	assert_false(plan_is_sound(p));
	j->to = PLAN_JUMP_INSIDE;
	assert_false(plan_is_sound(p));
	*j = good;
	j->to = PLAN_JUMP_NAME;
	j->target = (uint32_t)p->strings_len;
	assert_false(plan_is_sound(p));
	*j = good;
	j->to = PLAN_JUMP_TOS;
	assert_false(plan_is_sound(p));
	*j = good;
	j->function++;
	assert_false(plan_is_sound(p));
	j->function = (uint32_t)p->nfunctions;
	assert_false(plan_is_sound(p));
	*j = good;
	probe->action = (uint32_t)p->njumps + 1;
	assert_false(plan_is_sound(p));
	probe->action = 0; /* it returns: no lie that anybody could see */
	assert_true(plan_is_sound(p));
	probe->action = action;
	p->functions[0].aliases = (uint32_t)p->strings_len;
	assert_false(plan_is_sound(p));
	plan_free(p);
}

/* Wherever one begins, and whatever lies around it: hooks_next() stops there. */
static void no_hooked_instruction_is_passed_by(void **state)
{
	static const uint8_t all[][5] = {
		{0x0f, 0x05},                   /* syscall */
		{0x0f, 0xa1},                   /* pop %fs */
		{0x41, 0x0f, 0xa1},             /* with a prefix that means nothing */
		{0x8e, 0xe0},                   /* mov %eax,%fs */
		{0x49, 0x8e, 0x64, 0x24, 0x08}, /* mov 8(%r12),%fs */
		{0xf3, 0x0f, 0xae, 0xd0},       /* wrfsbase %eax */
		{0xf3, 0x48, 0x0f, 0xae, 0xd7}, /* wrfsbase %rdi */
	};
	static const uint8_t around[] = {0x90, 0x0f, 0x48, 0xf3, 0x8e};
	uint8_t code[64];

	(void)state;
	for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
		for (size_t c = 0; c < sizeof(around); c++)
			for (size_t n = sizeof(all[0]); n <= sizeof(code); n++)
				for (size_t at = 0; at + sizeof(all[0]) <= n; at++) {
					uint64_t next = 0;

					memset(code, around[c], sizeof(code));
					memcpy(code + at, all[k], sizeof(all[0]));
					while ((next = hooks_next(code, next, n)) < at)
						next++;
					assert_int_equal(next, at);
				}
	memset(code, 0x90, sizeof(code));
	assert_in_range(hooks_next(code, 0, sizeof(code)), sizeof(code) - 17, sizeof(code));
	assert_int_equal(hooks_next(code, 3, 3), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_input_same_bytes),
		cmocka_unit_test(counts_add_up),
		cmocka_unit_test(probes_of_a_function_stand_together),
		cmocka_unit_test(libc_has_its_hooks),
		cmocka_unit_test(no_hooked_instruction_is_passed_by),
		cmocka_unit_test(loader_has_its_hook),
		cmocka_unit_test(the_unwinder_has_hooks),
		cmocka_unit_test(other_programs_have_those_of_unwinders),
		cmocka_unit_test(exits_say_how),
		cmocka_unit_test(functions_have_all_their_names),
		cmocka_unit_test(lying_jumps_are_refused),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}

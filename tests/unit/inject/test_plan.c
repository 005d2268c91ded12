/* SPDX-License-Identifier: MIT */
/*
 * test_plan.c - plans as data: the same bytes every time, saved and loaded, damaged files
 * refused, bound for selections and hooks; and gaps in address spaces.
 *
 * plan_file.c is compiled into this test, so that a damaged file can be given a checksum that
 * is right: only then do the checks behind it get something to do.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <kron/board.h>
#include <kron/segment.h>

#include "inject/bind/bind.h"
#include "inject/bind/space.h"
#include "inject/code/insn.h"
#include "inject/disk/plan_file.c"
#include "inject/plan/hooks.h"

#define BIAS 0x555555554000ull
#define BLOCK 0x555540000000ull
#define THUNK 0x7ffff7c00100ull
#define HOOK_THUNK 0x7ffff7c00200ull

/* ---- helpers ---- */

static struct plan *plan_file_of(const char *path, bool hooks_only)
{
	struct plan_options opt = {.hooks_only = hooks_only};
	struct elf_image *img;
	struct plan *p = NULL;
	struct err err;

	if (elf_image_open(&img, path, &err) || plan_make(&p, img, &opt, &err))
		fail_msg("%s", err.msg);
	elf_image_close(img);
	return p;
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size;
	if (!strstr(info->dlpi_name, "/libc.so.6"))
		return 0;
	*(char **)ctx = xstrdup(info->dlpi_name);
	return 1;
}

static struct plan *plan_of_libc(bool hooks_only)
{
	char *path = NULL;
	struct plan *p;

	dl_iterate_phdr(find_libc, &path);
	assert_non_null(path);
	p = plan_file_of(path, hooks_only);
	xfree(path);
	return p;
}

static int memory_file(void)
{
	int fd = memfd_create("plan", 0);

	assert_true(fd >= 0);
	return fd;
}

static const struct plan_key key = {.source = "what it is made from", .request = 7, .tactics = 3};

static uint8_t *saved(const struct plan *p, size_t *n)
{
	int fd = memory_file();
	struct stat st;
	uint8_t *bytes;

	assert_int_equal(plan_save(p, &key, fd, NULL), 0);
	assert_int_equal(fstat(fd, &st), 0);
	*n = st.st_size;
	bytes = xmalloc(*n);
	assert_int_equal(pread(fd, bytes, *n, 0), *n);
	close(fd);
	return bytes;
}

static int load_bytes(struct plan **out, const void *bytes, size_t n)
{
	int fd = memory_file(), r;
	struct err err;

	assert_int_equal(pwrite(fd, bytes, n, 0), n);
	r = plan_load(out, &key, fd, &err);
	if (r)
		assert_int_equal(r, -EINVAL);
	close(fd);
	return r;
}

static struct binding binding_of(const struct plan *p, const uint8_t *selected, bool hooks)
{
	return (struct binding){
		.plan = p,
		.selected = selected,
		.hooks = hooks,
		.event_base = 7,
		.level = 2,
		.bias = BIAS,
		.block = BLOCK,
		.thunk = THUNK,
		.hook_thunk = HOOK_THUNK,
	};
}

static uint8_t *select_all(const struct plan *p)
{
	return memset(xmalloc(p->nfunctions + 1), 1, p->nfunctions + 1);
}

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
	/* all but ld.so's own, and the one of files from kron patch */
	assert_int_equal(found, ((1u << KRON_HOOK_SYMBOLS) - 1) &
					~(1u << KRON_HOOK_DL_STATE | 1u << KRON_HOOK_HANDLERS));
	plan_free(p);
}

static void loader_has_its_hook(void **state)
{
	struct plan *p = plan_file_of("/lib64/ld-linux-x86-64.so.2", true);

	(void)state;
	assert_int_equal(p->nprobes, 1);
	assert_int_equal(p->probes[0].hook, KRON_HOOK_DL_STATE);
	assert_true(p->probes[0].site != UINT32_MAX);
	plan_free(p);
}

static void other_programs_have_no_hooks(void **state)
{
	struct plan *p = plan_file_of("/proc/self/exe", true);

	(void)state;
	assert_int_equal(p->nfunctions, 0);
	assert_int_equal(p->nsites, 0);
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

/* ---- binding ---- */

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v;
}

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

static void head_leads_to_the_thunks(void **state)
{
	struct plan *p = plan_of_libc(true);
	struct binding b = binding_of(p, NULL, true);
	struct bound out;
	struct insn in;

	(void)state;
	assert_int_equal(bind_make(&out, &b, NULL), 0);
	assert_int_equal(out.block_len, bind_size(&b));
	assert_int_equal(out.block_len % 4096, 0);
	assert_true(insn_decode(&in, out.block + KRON_BLOCK_THUNK, 15, BLOCK + KRON_BLOCK_THUNK));
	assert_int_equal(in.kind, INSN_JMP_INDIRECT);
	assert_int_equal(get64(out.block + (in.target - BLOCK)), THUNK);
	assert_true(insn_decode(&in, out.block + KRON_BLOCK_HOOK, 15, BLOCK + KRON_BLOCK_HOOK));
	assert_int_equal(in.kind, INSN_JMP_INDIRECT);
	assert_int_equal(get64(out.block + (in.target - BLOCK)), HOOK_THUNK);
	bound_free(&out);
	plan_free(p);
}

/* What the sites take: more than one where a window is long. */
static size_t count_patches(const struct plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->nsites; i++)
		n += (p->sites[i].landing != 0) + p->sites[i].nrelays +
		     (p->sites[i].window + KRON_PATCH_OLD_MAX - 1) / KRON_PATCH_OLD_MAX;
	return n;
}

/* A patch checks these bytes; returns where it will lie. */
static uint64_t check_old(const struct bound *out, const struct kron_patch *patch, uint64_t vaddr,
			  const uint8_t *old, unsigned old_len)
{
	uint64_t addr = out->patch_addr + patch->off;

	assert_int_equal(addr, BIAS + vaddr);
	assert_int_equal(patch->old_len,
			 old_len < KRON_PATCH_OLD_MAX ? old_len : KRON_PATCH_OLD_MAX);
	assert_memory_equal(patch->old_bytes, old, patch->old_len);
	return addr;
}

/* jmp rel32 behind so many prefixes; returns to where. */
static uint64_t check_jump(const struct kron_patch *patch, uint64_t addr, unsigned prefixes)
{
	assert_int_equal(patch->new_len, prefixes + 5);
	assert_int_equal(patch->new_bytes[prefixes], 0xe9);
	return addr + patch->new_len + (int32_t)get32(patch->new_bytes + prefixes + 1);
}

/* jmp rel8, or its first byte: what stands behind it is its distance then. */
static void check_short(const struct kron_patch *patch, uint64_t addr, unsigned prefixes,
			uint64_t landing)
{
	int64_t distance = (int64_t)(landing - (addr + prefixes + 2));

	assert_int_equal(patch->new_bytes[prefixes], 0xeb);
	assert_int_equal(distance, (int8_t)distance);
	if (patch->new_len == prefixes + 2)
		assert_int_equal((int8_t)patch->new_bytes[prefixes + 1], distance);
	else
		assert_int_equal(patch->new_len, prefixes + 1);
}

/* Those of one site, from number n on: to a stub, or to the landing that goes to a stub. */
static size_t check_patches(const struct bound *out, size_t n, const struct plan *p,
			    const struct plan_site *s, uint64_t end)
{
	const struct kron_patch *patch = &out->patches[n];
	const uint8_t *old = plan_old_bytes(p, s);
	uint64_t to = 0, addr;

	if (s->landing) {
		addr = check_old(out, patch, s->landing, s->landing_bytes, 5);
		to = check_jump(patch++, addr, 0);
	}
	for (unsigned k = 0; k < s->nrelays; k++) {
		uint64_t next = k + 1u < s->nrelays ? plan_relay_vaddr(p, s, k + 1) : s->landing;

		addr = check_old(out, patch, plan_relay_vaddr(p, s, k), plan_relay(p, s, k).bytes,
				 PLAN_RELAY);
		check_short(patch++, addr, 0, BIAS + next);
	}
	addr = check_old(out, patch, s->vaddr, old, s->window);
	if (s->landing)
		check_short(patch++, addr, s->prefix != 0, BIAS + plan_short_target(p, s));
	else
		to = check_jump(patch++, addr, s->prefix != 0);
	for (unsigned at = KRON_PATCH_OLD_MAX; at < s->window; at += KRON_PATCH_OLD_MAX)
		check_old(out, patch++, s->vaddr + at, old + at, s->window - at);
	assert_true(to >= BLOCK + KRON_BLOCK_HEAD && to < BLOCK + end);
	return patch - out->patches;
}

/*
 * Every stub decodes from end to end; calls go to the block's head, jumps to the stub itself,
 * another stub, or the module; every patch is a jump to a stub or to a landing.
 */
static void stubs_lead_where_they_should(void **state)
{
	struct plan *p = plan_of_libc(false);
	uint8_t *all = select_all(p);
	struct binding b = binding_of(p, all, true);
	struct bound out;
	uint64_t calls = 0, end;

	(void)state;
	assert_int_equal(bind_make(&out, &b, NULL), 0);
	assert_int_equal(out.npatches, count_patches(p));
	end = out.stub_at[p->nsites - 1] + p->sites[p->nsites - 1].code_len;
	for (uint64_t at = out.stub_at[0]; at < end;) {
		struct insn in;

		assert_true(insn_decode(&in, out.block + at, out.block_len - at, BLOCK + at));
		if (in.kind == INSN_CALL && in.target != BLOCK + at + 10) { /* or over a jmp */
			assert_true(in.target == BLOCK || in.target == BLOCK + KRON_BLOCK_HOOK);
			calls += in.target == BLOCK;
		}
		if (in.kind == INSN_JMP || in.kind == INSN_JCC)
			assert_true((in.target > BLOCK && in.target < BLOCK + end) ||
				    (in.target >= BIAS + p->reach_lo &&
				     in.target < BIAS + p->reach_hi));
		at += in.len;
	}
	assert_int_equal(calls, out.probes_bound);
	for (size_t i = 0, n = 0; i < p->nsites; i++)
		n = check_patches(&out, n, p, &p->sites[i], end);
	bound_free(&out);
	xfree(all);
	plan_free(p);
}

/* Text as patches find it and leave it; false: not what they expect. */
static bool write_patches(uint8_t *text, const struct bound *b)
{
	for (size_t i = 0; i < b->npatches; i++)
		if (memcmp(text + b->patches[i].off, b->patches[i].old_bytes,
			   b->patches[i].old_len))
			return false;
	for (size_t i = 0; i < b->npatches; i++)
		memcpy(text + b->patches[i].off, b->patches[i].new_bytes, b->patches[i].new_len);
	return true;
}

/*
 * Who comes to a stub goes to the text; no instruction begins where the jump was written, for somebody
 * may be about to execute it.  Returns whether it was.
 */
static bool check_released(const struct bound *out, size_t i, const uint8_t *before,
			   const struct plan_site *s)
{
	uint64_t at = out->stub_at[i];
	const uint8_t *stub = out->block + at;
	struct insn first;
	int32_t distance;

	assert_true(insn_decode(&first, before + at, 15, BLOCK + at));
	if (first.len < 5) {
		assert_memory_equal(stub, before + at, s->code_len);
		return false;
	}
	memcpy(&distance, stub + 1, sizeof(distance));
	assert_int_equal(stub[0], 0xe9);
	assert_true(BLOCK + at + 5 + (uint64_t)(int64_t)distance == BIAS + s->vaddr);
	assert_memory_equal(stub + 5, before + at + 5, s->code_len - 5u);
	return true;
}

/* All but the hooks: the text is the file's. */
static void what_is_bound_is_given_back(void **state)
{
	struct plan *p = plan_of_libc(false);
	uint8_t *all = select_all(p), *text, *before, *kept = xcalloc(p->nsites + 1, 1);
	struct binding b = binding_of(p, all, true);
	struct elf_image *img;
	struct bound out;
	uint64_t lo, changed = 0, released = 0, room;
	char *path = NULL;

	(void)state;
	dl_iterate_phdr(find_libc, &path);
	assert_int_equal(elf_image_open(&img, path, NULL), 0);
	assert_int_equal(bind_make(&out, &b, NULL), 0);
	lo = out.patch_addr - BIAS;
	text = xcalloc(out.patch_len, 1);
	room = elf_image_room(img, lo);
	memcpy(text, elf_image_at(img, lo, 1), room < out.patch_len ? room : out.patch_len);
	assert_true(write_patches(text, &out));
	before = xmalloc(out.block_len);
	memcpy(before, out.block, out.block_len);
	bind_release(&out, &b);
	assert_true(write_patches(text, &out));
	for (size_t i = 0; i < p->nsites; i++)
		if (p->sites[i].has_hook)
			bind_support(p, kept, i);
	for (size_t i = 0; i < p->nsites; i++) {
		const struct plan_site *s = &p->sites[i];

		changed += memcmp(text + (s->vaddr - lo), plan_old_bytes(p, s), s->window) != 0;
		released += !kept[i] && check_released(&out, i, before, s);
	}
	assert_true(changed > 0 && changed <= KRON_HOOK_COUNT);
	assert_true(released > p->nfunctions / 2);
	xfree(before);
	elf_image_close(img);
	bound_free(&out);
	xfree(text);
	xfree(kept);
	xfree(path);
	xfree(all);
	plan_free(p);
}

static uint64_t count_probes(const struct plan *p, uint32_t function)
{
	uint64_t n = 0;

	for (size_t i = 0; i < p->nprobes; i++)
		n += p->probes[i].function == function && p->probes[i].kind != PROBE_HOOK &&
		     p->probes[i].site != UINT32_MAX;
	return n;
}

static void selection_and_hooks_are_independent(void **state)
{
	struct plan *p = plan_of_libc(false);
	uint8_t *none = xcalloc(p->nfunctions + 1, 1);
	struct binding b = binding_of(p, none, false);
	struct bound out;
	uint32_t hooked = 0;

	(void)state;
	for (size_t i = 0; i < p->nprobes; i++)
		if (p->probes[i].kind == PROBE_HOOK)
			hooked = p->probes[i].function;
	assert_int_equal(bind_size(&b), 0);
	b.hooks = true; /* hooks alone: no probe runs */
	assert_int_equal(bind_make(&out, &b, NULL), 0);
	assert_int_equal(out.probes_bound, 0);
	assert_true(out.npatches > 0 && out.npatches <= KRON_HOOK_COUNT);
	bound_free(&out);
	none[hooked] = 1; /* a hook's function without its hook */
	b.hooks = false;
	assert_int_equal(bind_make(&out, &b, NULL), 0);
	assert_int_equal(out.probes_bound, count_probes(p, hooked));
	bound_free(&out);
	xfree(none);
	plan_free(p);
}

static void too_far_is_an_error(void **state)
{
	struct plan *p = plan_of_libc(false);
	uint8_t *all = select_all(p);
	struct binding b = binding_of(p, all, true);
	struct bound out;
	struct err err;

	(void)state;
	b.block = BIAS - (1ull << 31) - (64 << 20);
	assert_int_equal(bind_make(&out, &b, &err), -ERANGE);
	b.block = BIAS + (1ull << 31);
	assert_int_equal(bind_make(&out, &b, &err), -ERANGE);
	xfree(all);
	plan_free(p);
}

/* ---- files ---- */

static void load_gives_what_was_saved(void **state)
{
	struct plan *p = plan_of_libc(false), *q;
	size_t n, m;
	uint8_t *x = saved(p, &n), *y;

	(void)state;
	assert_int_equal(load_bytes(&q, x, n), 0);
	y = saved(q, &m);
	assert_int_equal(n, m);
	assert_memory_equal(x, y, n);
	assert_int_equal(q->nfunctions, p->nfunctions);
	assert_true(p->njumps > 0);
	assert_int_equal(q->njumps, p->njumps);
	assert_int_equal(q->text_hi, p->text_hi);
	assert_int_equal(q->build_id_len, p->build_id_len);
	plan_free(p);
	plan_free(q);
	xfree(x);
	xfree(y);
}

static void empty_plan_can_be_saved(void **state)
{
	struct plan *p = plan_file_of("/proc/self/exe", true), *q;
	size_t n;
	uint8_t *x = saved(p, &n);

	(void)state;
	assert_int_equal(load_bytes(&q, x, n), 0);
	assert_int_equal(q->nsites, 0);
	plan_free(p);
	plan_free(q);
	xfree(x);
}

static void cut_files_are_refused(void **state)
{
	struct plan *p = plan_of_libc(true), *q;
	size_t n;
	uint8_t *x = saved(p, &n);

	(void)state;
	for (size_t len = 0; len < n; len += len < 256 ? 1 : 61)
		assert_int_equal(load_bytes(&q, x, len), -EINVAL);
	plan_free(p);
	xfree(x);
}

static void flipped_bits_are_refused(void **state)
{
	struct plan *p = plan_of_libc(true), *q;
	size_t n;
	uint8_t *x = saved(p, &n);

	(void)state;
	for (size_t i = 0; i < n; i += i < 200 ? 1 : 7) {
		x[i] ^= 1 << i % 8;
		assert_int_equal(load_bytes(&q, x, n), -EINVAL);
		x[i] ^= 1 << i % 8;
	}
	plan_free(p);
	xfree(x);
}

/* Damage with a right checksum: refused, or harmless. */
static void lying_files_do_no_harm(void **state)
{
	struct plan *p = plan_of_libc(true), *q;
	size_t n;
	uint8_t *good = saved(p, &n), *x = xmalloc(n);
	struct header h;
	unsigned loaded = 0, refused = 0;

	(void)state;
	srand(1);
	for (int round = 0; round < 6000; round++) {
		size_t at = 64 + rand() % (n - 64 - 8);
		static const uint64_t values[] = {0,          1,          0xff,       0xffff,
						  0x7fffffff, UINT32_MAX, 1ull << 32, UINT64_MAX};
		uint64_t value = values[rand() % 8];

		memcpy(x, good, n);
		memcpy(x + at, &value, 1 << rand() % 4);
		memcpy(&h, x, sizeof(h));
		h.checksum = file_checksum((const struct header *)x);
		memcpy(x, &h, sizeof(h));
		if (load_bytes(&q, x, n) == 0) {
			struct binding b = binding_of(q, select_all(q), true);
			struct bound out = {0};
			struct plan_counts c;

			loaded++;
			plan_count(q, PROBE_HOOK, &c);
			if (bind_make(&out, &b, NULL) == 0)
				bound_free(&out);
			xfree((void *)b.selected);
			plan_free(q);
		} else {
			refused++;
		}
	}
	assert_true(loaded > 100 && refused > 100);
	plan_free(p);
	xfree(good);
	xfree(x);
}

/* ---- space ---- */

#define GIB (1ull << 30)

static uint64_t find(const struct space_mapping *maps, size_t n, size_t module, size_t len)
{
	return space_find(maps, n, maps[module].start, maps[module].end, len);
}

static void space_is_right_below_a_pie(void **state)
{
	const struct space_mapping maps[] = {
		{0x555555554000, 0x555555600000, false, false},
		{0x555555600000, 0x555555700000, true, false},
		{0x7ffff7c00000, 0x7ffff7fff000, false, false},
		{0x7ffffffde000, 0x7ffffffff000, false, true},
	};

	(void)state;
	assert_int_equal(find(maps, 4, 0, 8192), 0x555555552000);
	assert_int_equal(find(maps, 4, 2, 4097), 0x7ffff7bfe000);
}

static void space_under_a_low_program(void **state)
{
	const struct space_mapping maps[] = {
		{0x400000, 0x800000, false, false},
		{0x900000, 0xa00000, true, false},
		{0x7ffff7c00000, 0x7ffff7fff000, false, false},
	};
	uint64_t at;

	(void)state;
	assert_int_equal(find(maps, 3, 0, 0x10000), 0x3f0000);
	/* no room below: as high as can be, since the heap grows */
	at = find(maps, 3, 0, 0x500000);
	assert_true(at > 0x900000 + GIB);
	assert_true(at + 0x500000 <= KRON_WINDOW_ADDR || at >= KRON_WINDOW_ADDR + KRON_WINDOW_SIZE);
	assert_true(at + 0x500000 - 0x400000 < 2 * GIB);
}

static void space_there_is_none(void **state)
{
	const struct space_mapping full[] = {
		{0x10000, 0x555555554000, false, false},
		{0x555555554000, 0x555555600000, false, false},
		{0x555555600000, 0x7ffffffff000, false, false},
	};
	const struct space_mapping huge[] = {{0x100000000, 0x100000000 + 2 * GIB, false, false}};

	(void)state;
	assert_int_equal(find(full, 3, 1, 4096), 0);
	assert_int_equal(find(huge, 1, 0, 4096), 0);
	assert_int_equal(space_find(NULL, 0, 0x2000, 0x1000, 4096), 0);
	assert_int_equal(space_find(NULL, 0, 0x555555554000, 0x555555555000, 0), 0);
}

/* Room on both sides as far as there is any; a gap that fits at all is better than none. */
static void space_apart_from_others(void **state)
{
	const struct space_mapping maps[] = {
		{0x7ffff7a00000, 0x7ffff7b00000, false, false},
		{0x7ffff7d00000, 0x7ffff7fff000, false, false},
	};
	const uint64_t lo = maps[1].start, hi = maps[1].end, len = 0x10000;

	(void)state;
	assert_int_equal(space_find_apart(maps, 2, lo, hi, len, 0), lo - len);
	assert_int_equal(space_find_apart(maps, 2, lo, hi, len, 0x1000), lo - len - 0x1000);
	/* 2 MiB between the two: 1 MiB on both sides fits below the lower one only */
	assert_int_equal(space_find_apart(maps, 2, lo, hi, len, 1 << 20),
			 maps[0].start - len - (1 << 20));
	assert_int_equal(space_find_apart(maps, 2, lo, hi, len, 1 << 19), lo - len - (1 << 19));
	/* nowhere within reach is that much free */
	assert_int_equal(space_find_apart(maps, 2, lo, hi, len, GIB + GIB / 2),
			 maps[0].start - len - (GIB + GIB / 2) / 2);
}

/* For words that absolute addresses reach: below the board's window, else above it. */
static void space_below_two_gib(void **state)
{
	const uint64_t window = KRON_WINDOW_ADDR, behind = window + KRON_WINDOW_SIZE;
	const struct space_mapping pie[] = {{0x555555554000, 0x555555600000, false, false}};
	const struct space_mapping low[] = {
		{0x400000, 0x800000, false, false},
		{0x900000, 0xa00000, true, false}, /* a GiB for the heap: into the window's place */
		{window - 0x1000, window, false, false},
	};
	const struct space_mapping high[] = {{0x10000, behind, false, false}};
	const struct space_mapping full[] = {{0x10000, 0x80000000, false, false}};

	(void)state;
	assert_int_equal(space_find_low(NULL, 0, 0x1000), window - 0x1000);
	assert_int_equal(space_find_low(pie, 1, 0x1001), window - 0x2000);
	assert_int_equal(space_find_low(low, 3, 0x1000), window - 0x2000);
	assert_int_equal(space_find_low(full, 1, 0x1000), 0);
	assert_int_equal(space_find_low(high, 1, 0x1000), 0x80000000 - 0x1000);
	assert_int_equal(space_find_low(NULL, 0, 0), 0);
}

/* The postcondition, said again in another way, on random address spaces. */
static void space_keeps_its_promises(void **state)
{
	(void)state;
	srand(2);
	for (int round = 0; round < 20000; round++) {
		struct space_mapping maps[12];
		uint64_t at = round % 2 ? 0x400000 : 0x555500000000ull, len, got;
		size_t n = 1 + rand() % 12, module = rand() % n;

		for (size_t i = 0; i < n; i++) {
			at += (uint64_t)(rand() % 0x30000) * 4096 * (rand() % 2);
			maps[i] = (struct space_mapping){at, 0, rand() % 8 == 0, rand() % 8 == 0};
			at += (1 + (uint64_t)(rand() % 0x8000)) * 4096;
			maps[i].end = at;
		}
		len = 1 + rand() % (64 << 20);
		got = find(maps, n, module, len);
		if (!got)
			continue;
		assert_int_equal(got % 4096, 0);
		for (size_t i = 0; i < n; i++) {
			assert_true(got + len <= maps[i].start || got >= maps[i].end);
			if (maps[i].is_heap)
				assert_false(got >= maps[i].end && got < maps[i].end + GIB / 2 &&
					     (i + 1 == n || got < maps[i + 1].start));
		}
		assert_true(got + len <= KRON_WINDOW_ADDR ||
			    got >= KRON_WINDOW_ADDR + KRON_WINDOW_SIZE);
		assert_true(got + len <= maps[module].start + 2 * GIB);
		assert_true(maps[module].end <= got + 2 * GIB);
	}
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
		cmocka_unit_test(other_programs_have_no_hooks),
		cmocka_unit_test(exits_say_how),
		cmocka_unit_test(functions_have_all_their_names),
		cmocka_unit_test(lying_jumps_are_refused),
		cmocka_unit_test(head_leads_to_the_thunks),
		cmocka_unit_test(stubs_lead_where_they_should),
		cmocka_unit_test(what_is_bound_is_given_back),
		cmocka_unit_test(selection_and_hooks_are_independent),
		cmocka_unit_test(too_far_is_an_error),
		cmocka_unit_test(load_gives_what_was_saved),
		cmocka_unit_test(empty_plan_can_be_saved),
		cmocka_unit_test(cut_files_are_refused),
		cmocka_unit_test(flipped_bits_are_refused),
		cmocka_unit_test(lying_files_do_no_harm),
		cmocka_unit_test(space_is_right_below_a_pie),
		cmocka_unit_test(space_under_a_low_program),
		cmocka_unit_test(space_there_is_none),
		cmocka_unit_test(space_apart_from_others),
		cmocka_unit_test(space_below_two_gib),
		cmocka_unit_test(space_keeps_its_promises),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}

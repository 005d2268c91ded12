/* SPDX-License-Identifier: MIT */
/* test_bind.c - plans bound for selections and hooks: each patch leads where it should. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "inject/code/insn.h"
#include "tests/unit/inject/plan_rig.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(head_leads_to_the_thunks),
		cmocka_unit_test(stubs_lead_where_they_should),
		cmocka_unit_test(what_is_bound_is_given_back),
		cmocka_unit_test(selection_and_hooks_are_independent),
		cmocka_unit_test(too_far_is_an_error),
	};

	return cmocka_run_group_tests_name("bind", tests, NULL, NULL);
}

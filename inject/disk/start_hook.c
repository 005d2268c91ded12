/* SPDX-License-Identifier: MIT */
/* start_hook.c - see start_hook.h. */
#include <string.h>

#include "base/vec.h"
#include "inject/elf/elf_image_impl.h"
#include "inject/plan/relocate.h"
#include "inject/disk/start_hook.h"
#include "inject/plan/stub.h"

#define ARRAY_MAX 16u /* entries of DT_INIT_ARRAY that are looked at */

/* ---- may it be here? ---- */

/* What runs there is simple: no calls, for what returns into a stub has no frame there. */
static bool is_displaceable(const struct insn *in, const uint8_t *code)
{
	switch ((enum insn_kind)in->kind) {
	case INSN_PLAIN:
	case INSN_PADDING:
	case INSN_JMP:
	case INSN_JCC:
	case INSN_RET:
		return !in->is_loop && relocate_refusal(in, code) == REFUSAL_NONE &&
		       insn_confirm(in, code);
	default:
		return false;
	}
}

/* Nothing but the instruction before leads to it. */
static bool is_entered(const struct code_map *map, uint64_t from, uint64_t end)
{
	for (uint64_t at = from; at < end; at++)
		if (code_map_is_target(map, at))
			return true;
	return false;
}

/* After the last instruction: the compiler's filler, or space between two sections. */
static bool is_nobodys(const struct code_map *map, uint64_t from, uint64_t end)
{
	for (uint64_t at = from; at < end; at++)
		if (!(code_map_flags(map, at) & CODE_PADDING) &&
		    (!map->img->nsections || elf_image_section_at(map->img, at) ||
		     !elf_image_room(map->img, at)))
			return false;
	return !is_entered(map, from, end);
}

static bool make_window(struct start_hook *out, const struct code_map *map, uint64_t vaddr)
{
	struct insn in;

	*out = (struct start_hook){.vaddr = vaddr};
	while (out->len < START_HOOK_JUMP && !out->ends) {
		uint64_t at = vaddr + out->len, room = elf_image_room(map->img, at);
		const uint8_t *code = elf_image_at(map->img, at, room < 15 ? room : 15);

		if (!code || !insn_decode(&in, code, room < 15 ? room : 15, at) ||
		    !is_displaceable(&in, code))
			return false;
		out->len += in.len;
		out->ends = in.kind == INSN_JMP || in.kind == INSN_RET;
	}
	if (code_map_flags(map, vaddr) & CODE_TARGET) /* a loop would come by each time */
		return false;
	return !is_entered(map, vaddr + 1, vaddr + out->len) &&
	       (out->len >= START_HOOK_JUMP ||
		is_nobodys(map, vaddr + out->len, vaddr + START_HOOK_JUMP));
}

static bool overlaps(const struct start_hook *h, uint64_t vaddr, uint64_t len)
{
	uint64_t n = h->len > START_HOOK_JUMP ? h->len : START_HOOK_JUMP;

	return vaddr < h->vaddr + n && h->vaddr < vaddr + len;
}

/* Its bytes, and those that its jump takes beyond them. */
static bool is_taken(const struct start_hook *h, const struct plan *plan, const uint8_t *selected)
{
	for (size_t i = 0; i < plan->nsites; i++) {
		const struct plan_site *s = &plan->sites[i];
		unsigned n = s->patch_len + 1u;

		if (selected && !s->has_place && !s->has_hook && s->function < plan->nfunctions &&
		    !selected[s->function])
			continue;
		if (overlaps(h, s->vaddr, s->window > n ? s->window : n) ||
		    (s->landing && overlaps(h, s->landing, PLAN_LANDING)))
			return true;
	}
	return false;
}

/* Indirect calls lead to an endbr64, where there is one: it stays. */
static bool can_be_at(struct start_hook *out, const struct code_map *map, uint64_t vaddr)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const uint8_t *p = elf_image_at(map->img, vaddr, sizeof(endbr64));

	if (!p || !elf_image_is_exec(map->img, vaddr))
		return false;
	if (!memcmp(p, endbr64, sizeof(endbr64))) {
		vaddr += sizeof(endbr64);
		if (code_map_is_target(map, vaddr))
			return false;
	}
	return make_window(out, map, vaddr);
}

size_t start_hooks_find(struct start_hook out[START_HOOKS_MAX], const struct code_map *map)
{
	uint64_t vaddr, size = 0;
	size_t n = 0;

	if (elf_dynamic(map->img, DT_INIT, &vaddr) && vaddr)
		n += can_be_at(out, map, vaddr);
	if (!elf_dynamic(map->img, DT_INIT_ARRAY, &vaddr) ||
	    !elf_dynamic(map->img, DT_INIT_ARRAYSZ, &size))
		return n;
	for (uint64_t i = 0; i < size / 8 && i < ARRAY_MAX && n < START_HOOKS_MAX; i++) {
		uint64_t function = elf_image_word(map->img, vaddr + 8 * i);

		n += function && can_be_at(&out[n], map, function);
	}
	return n;
}

const struct start_hook *start_hook_choose(const struct start_hook *hooks, size_t n,
					   const struct plan *plan, const uint8_t *selected)
{
	for (size_t i = 0; i < n; i++)
		if (!is_taken(&hooks[i], plan, selected))
			return &hooks[i];
	return NULL;
}

/* ---- the code ---- */

static bool place(uint8_t *out, const struct stub *s, uint64_t vaddr)
{
	memcpy(out, s->code, s->len);
	for (uint32_t i = 0; i < s->nfixups; i++) {
		const struct plan_fixup *f = &s->fixups[i];
		int64_t distance = (int64_t)(f->value - (vaddr + f->off)) - (int8_t)f->addend;
		int32_t rel32 = (int32_t)distance;

		if ((f->kind != FIXUP_MODULE_REL32 && f->kind != FIXUP_CHAIN_REL32) ||
		    rel32 != distance)
			return false;
		memcpy(out + f->off, &rel32, sizeof(rel32));
	}
	return true;
}

size_t start_hook_emit(uint8_t *out, const struct start_hook *hook, const struct elf_image *img,
		       uint64_t vaddr)
{
	struct stub *s = xcalloc(1, sizeof(*s));
	const uint8_t *code = elf_image_at(img, hook->vaddr, hook->len);
	struct insn in;
	size_t len = 0;

	stub_start(s);
	for (unsigned at = 0; code && at < hook->len; at += in.len) {
		if (!insn_decode(&in, code + at, hook->len - at, hook->vaddr + at))
			code = NULL;
		else
			relocate_emit(s, &in, code + at, 0, RELOCATE_NO_LOOP, false);
	}
	if (!hook->ends)
		stub_jump(s, hook->vaddr + hook->len);
	if (code && s->len <= START_HOOK_CODE_MAX && place(out, s, vaddr))
		len = s->len;
	xfree(s);
	return len;
}

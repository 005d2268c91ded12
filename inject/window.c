/* SPDX-License-Identifier: MIT */
/* window.c - builds a window instruction by instruction; every rule is a predicate. */
#include "inject/window.h"

#include "inject/relocate.h"

bool window_insn_ends(const struct insn *in)
{
	return in->kind == INSN_JMP || in->kind == INSN_JMP_INDIRECT || in->kind == INSN_RET ||
	       in->kind == INSN_TRAP;
}

static bool is_call(const struct insn *in)
{
	return in->kind == INSN_CALL || in->kind == INSN_CALL_INDIRECT;
}

enum refusal window_entered_at(const struct code_map *map, uint64_t vaddr)
{
	uint8_t flags = code_map_flags(map, vaddr);

	if (flags & CODE_AFTER_CALL)
		return REFUSAL_AFTER_CALL;
	if (flags & (CODE_TARGET | CODE_CONSTANT))
		return REFUSAL_BRANCH_TARGET;
	return REFUSAL_NONE;
}

int window_index(const struct window *w, uint64_t vaddr)
{
	for (int i = 0; i < w->n; i++)
		if (w->insns[i].addr == vaddr)
			return i;
	return -1;
}

static bool is_taken(const struct window_scope *scope, uint64_t vaddr)
{
	return scope->taken[vaddr - scope->map->lo];
}

static bool is_free_padding(const struct window_scope *scope, uint64_t vaddr)
{
	return code_map_flags(scope->map, vaddr) & CODE_PADDING &&
	       window_entered_at(scope->map, vaddr) == REFUSAL_NONE && !is_taken(scope, vaddr);
}

unsigned window_padding(const struct window_scope *scope, uint64_t vaddr)
{
	unsigned n = 0;

	while (n < scope->jump && is_free_padding(scope, vaddr + n))
		n++;
	return n;
}

/* What the map says about the bytes of one more instruction. */
static enum refusal refuse_bytes(const struct window *w, const struct window_scope *scope,
				 const struct insn *in)
{
	enum refusal r;

	for (uint64_t at = in->addr; at < in->addr + in->len; at++) {
		if (code_map_flags(scope->map, at) & CODE_RSEQ)
			return REFUSAL_RSEQ;
		if (is_taken(scope, at))
			return REFUSAL_OVERLAP;
		/* a branch into the middle of an instruction still finds the old bytes there
		 * if they lie behind the jump */
		if (at == w->addr || at >= w->addr + scope->jump)
			continue;
		r = window_entered_at(scope->map, at);
		if (r)
			return r;
	}
	return REFUSAL_NONE;
}

/* Operands do not matter here beyond what a scan tells: twice as fast as code_map_insn(). */
bool window_decode(const struct code_map *map, uint64_t vaddr, struct insn *out)
{
	uint64_t room = elf_image_room(map->img, vaddr);

	return room && insn_scan(out, elf_image_at(map->img, vaddr, 1), room, vaddr);
}

static enum refusal add_insn(struct window *w, const struct window_scope *scope, uint64_t at)
{
	struct insn *in = &w->insns[w->n];
	enum refusal r;

	if (w->n == WINDOW_INSNS || at >= scope->hi)
		return REFUSAL_NO_ROOM;
	if (w->n) {
		r = window_entered_at(scope->map, at);
		if (r)
			return r;
		if (scope->one_only)
			return REFUSAL_INDIRECT_JUMP;
	}
	if (!(code_map_flags(scope->map, at) & CODE_INSN) || !window_decode(scope->map, at, in))
		return REFUSAL_UNDECODABLE;
	if (at + in->len > scope->hi || w->len + in->len > KRON_PATCH_OLD_MAX)
		return REFUSAL_NO_ROOM;
	r = refuse_bytes(w, scope, in);
	if (r)
		return r;
	w->n++;
	w->len += in->len;
	w->ends = window_insn_ends(in) || is_call(in);
	return REFUSAL_NONE;
}

/* A branch of the window into the window, other than to its start, which goes round by the
 * jump.  The map knows such targets, so this only guards against a map that does not. */
static bool has_inner_branch(const struct window *w)
{
	for (int i = 0; i < w->n; i++) {
		const struct insn *in = &w->insns[i];

		if ((in->kind == INSN_JMP || in->kind == INSN_JCC || in->kind == INSN_CALL) &&
		    in->target > w->addr && in->target < w->addr + w->len)
			return true;
	}
	return false;
}

static enum refusal confirm_insns(const struct window *w, const struct window_scope *scope)
{
	const uint8_t *code = elf_image_at(scope->map->img, w->addr, w->len);
	enum refusal r;

	if (!code)
		return REFUSAL_OUT_OF_FILE;
	if (has_inner_branch(w))
		return REFUSAL_BRANCH_TARGET;
	for (int i = 0; i < w->n; i++) {
		const uint8_t *bytes = code + (w->insns[i].addr - w->addr);

		r = relocate_refusal(&w->insns[i], bytes);
		if (r)
			return r;
		if (!insn_confirm(&w->insns[i], bytes))
			return REFUSAL_DECODERS_DISAGREE;
	}
	return REFUSAL_NONE;
}

/* What stands where padding would have to go on. */
static enum refusal why_no_padding(const struct window_scope *scope, uint64_t at)
{
	enum refusal r = at < scope->hi ? window_entered_at(scope->map, at) : REFUSAL_NONE;

	return r ? r : REFUSAL_NO_ROOM;
}

enum refusal window_make(struct window *w, const struct window_scope *scope, uint64_t addr,
			 uint64_t through)
{
	unsigned padding;
	enum refusal r;

	*w = (struct window){.addr = addr};
	while (addr + w->len <= through || w->len < scope->jump) {
		if (w->ends)
			break;
		r = add_insn(w, scope, addr + w->len);
		if (r)
			return r;
	}
	if (addr + w->len <= through)
		return REFUSAL_NO_ROOM; /* the block ends before `through` */
	w->code_len = w->len;
	if (w->len < scope->jump) {
		/* a return address would point into the jump, even if nobody returns there */
		if (is_call(&w->insns[w->n - 1]))
			return REFUSAL_AFTER_CALL;
		padding = window_padding(scope, addr + w->len);
		if (w->len + padding < scope->jump)
			return why_no_padding(scope, addr + w->len + padding);
		w->len = scope->jump;
	}
	return confirm_insns(w, scope);
}

/* SPDX-License-Identifier: MIT */
/* window.c - builds a window instruction by instruction; every rule is a predicate. */
#include "inject/plan/window.h"

#include "inject/plan/relocate.h"

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

bool window_has(const struct window *w, const struct code_map *map, uint64_t vaddr)
{
	return vaddr >= w->addr && vaddr < w->addr + w->code_len &&
	       code_map_flags(map, vaddr) & CODE_INSN;
}

static bool is_taken(const struct window_scope *scope, uint64_t vaddr)
{
	return scope->bytes[vaddr - scope->map->lo] != BYTE_FREE;
}

static bool is_free_padding(const struct window_scope *scope, uint64_t vaddr)
{
	return code_map_flags(scope->map, vaddr) & CODE_PADDING &&
	       window_entered_at(scope->map, vaddr) == REFUSAL_NONE && !is_taken(scope, vaddr);
}

unsigned window_padding(const struct window_scope *scope, const struct insn *in)
{
	uint64_t vaddr = in->addr + in->len;
	unsigned n = 0;

	if (in->kind == INSN_TRAP && vaddr < scope->hi)
		return 0;
	while (n < scope->jump && is_free_padding(scope, vaddr + n))
		n++;
	return n;
}

/* What the map says about the bytes of one more instruction. */
static enum refusal refuse_bytes(struct window *w, const struct window_scope *scope,
				 const struct insn *in)
{
	uint16_t dead = w->dead;
	enum refusal r;

	for (uint64_t at = in->addr; at < in->addr + in->len; at++) {
		if (code_map_flags(scope->map, at) & CODE_RSEQ)
			return REFUSAL_RSEQ;
		if (code_map_flags(scope->map, at) & CODE_DATA)
			return REFUSAL_DATA;
		if (is_taken(scope, at))
			return REFUSAL_OVERLAP;
		/* a branch into the middle of an instruction still finds the old bytes there
		 * if they lie after the jump */
		r = window_entered_at(scope->map, at);
		if (r && at >= w->addr + scope->jump && at - w->addr < dead)
			dead = at - w->addr;
		if (r && at != w->addr && at < w->addr + scope->jump)
			return r;
	}
	w->dead = dead;
	return REFUSAL_NONE;
}

bool window_decode(const struct code_map *map, uint64_t vaddr, struct insn *out)
{
	return code_map_scan(map, vaddr, out);
}

/* A copy of the code may have one of the pages changed and the other not. */
static bool is_across_pages(const struct window_scope *scope, uint64_t addr)
{
	return scope->jump == WINDOW_FAR && addr / 4096 != (addr + WINDOW_FAR - 1) / 4096;
}

/* A window under construction. */
struct making {
	struct window *w;
	struct insn last;
	uint64_t inner;    /* the lowest target of its branches after its start */
	enum refusal late; /* why an instruction cannot be displaced, whatever the room */
	bool reaches;      /* stop before such an instruction */
};

/*
 * A branch of the window into the window, other than to its start, which goes round by the
 * jump.  The map knows such targets, so this only guards against a map that does not.
 */
static void note_inner(struct making *m, const struct insn *in)
{
	bool jumps = in->kind == INSN_JMP || in->kind == INSN_JCC || in->kind == INSN_CALL;

	if (jumps && in->target > m->w->addr && in->target < m->inner)
		m->inner = in->target;
}

static enum refusal confirm(const struct making *m, const struct window_scope *scope)
{
	const struct insn *in = &m->last;
	const uint8_t *bytes = elf_image_at(scope->map->img, in->addr, in->len);
	enum refusal r = bytes ? relocate_refusal(in, bytes) : REFUSAL_OUT_OF_FILE;

	if (r)
		return r;
	return insn_confirm(in, bytes) ? REFUSAL_NONE : REFUSAL_DECODERS_DISAGREE;
}

static enum refusal add_insn(struct making *m, const struct window_scope *scope)
{
	struct window *w = m->w;
	struct insn *in = &m->last;
	uint64_t at = w->addr + w->len;
	enum refusal r;

	if (w->n == (scope->is_long ? WINDOW_LONG_INSNS : WINDOW_INSNS) || at >= scope->hi)
		return REFUSAL_NO_ROOM;
	if (w->n) {
		r = window_entered_at(scope->map, at);
		if (r)
			return r;
		if (scope->one_only)
			return REFUSAL_INDIRECT_JUMP;
		/* a jump past a lock prefix comes out here, unprobed */
		if (scope->is_long && w->dead < w->len)
			return REFUSAL_BRANCH_TARGET;
	}
	if (!(code_map_flags(scope->map, at) & CODE_INSN) || !window_decode(scope->map, at, in))
		return REFUSAL_UNDECODABLE;
	if (at + in->len > scope->hi ||
	    w->len + in->len > (scope->is_long ? WINDOW_LONG_MAX : WINDOW_MAX))
		return REFUSAL_NO_ROOM;
	r = refuse_bytes(w, scope, in);
	if (r)
		return r;
	if (!m->late)
		m->late = confirm(m, scope);
	if (m->reaches && m->late)
		return m->late;
	note_inner(m, in);
	w->n++;
	w->len += in->len;
	w->ends = window_insn_ends(in) || is_call(in);
	return REFUSAL_NONE;
}

/* What stands where padding would have to go on. */
static enum refusal why_no_padding(const struct window_scope *scope, uint64_t at)
{
	enum refusal r = at < scope->hi ? window_entered_at(scope->map, at) : REFUSAL_NONE;

	return r ? r : REFUSAL_NO_ROOM;
}

/* Padding after a window that is shorter than the jump. */
static enum refusal add_padding(struct making *m, const struct window_scope *scope)
{
	struct window *w = m->w;
	unsigned padding;

	w->code_len = w->len;
	if (w->len >= scope->jump)
		return REFUSAL_NONE;
	/* a return address would point into the jump, even if nobody returns there */
	if (is_call(&m->last))
		return REFUSAL_AFTER_CALL;
	padding = window_padding(scope, &m->last);
	if (w->len + padding < scope->jump)
		return why_no_padding(scope, w->addr + w->len + padding);
	w->len = scope->jump;
	return REFUSAL_NONE;
}

enum refusal window_make(struct window *w, const struct window_scope *scope, uint64_t addr,
			 uint64_t through)
{
	struct making m = {.w = w, .inner = UINT64_MAX};
	enum refusal r;

	*w = (struct window){.addr = addr, .dead = UINT16_MAX};
	if (is_across_pages(scope, addr))
		return REFUSAL_COPIED;
	while (addr + w->len <= through || w->len < scope->jump) {
		if (w->ends)
			break;
		r = add_insn(&m, scope);
		if (r)
			return r;
	}
	if (addr + w->len <= through)
		return REFUSAL_NO_ROOM; /* the block ends before `through` */
	r = add_padding(&m, scope);
	if (r)
		return r;
	if (m.inner < addr + w->len)
		return REFUSAL_BRANCH_TARGET;
	return m.late;
}

enum refusal window_reach(struct window *w, const struct window_scope *scope, uint64_t addr,
			  uint64_t through)
{
	struct making m = {.w = w, .inner = UINT64_MAX, .reaches = true};
	enum refusal stop = REFUSAL_NONE, r;

	*w = (struct window){.addr = addr, .dead = UINT16_MAX};
	if (is_across_pages(scope, addr))
		return REFUSAL_COPIED;
	while (!w->ends && !stop && (addr + w->len <= through || w->len < scope->jump))
		stop = add_insn(&m, scope);
	if (!w->n)
		return stop;
	r = w->ends || w->len >= scope->jump ? add_padding(&m, scope) : stop;
	if (r)
		return r;
	return m.inner < addr + w->len ? REFUSAL_BRANCH_TARGET : REFUSAL_NONE;
}

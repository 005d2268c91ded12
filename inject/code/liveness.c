/* SPDX-License-Identifier: MIT */
/*
 * liveness.c - walks forward from a place until everything is decided.
 *
 *   place ──► insn: reads? live.  kills? dead ──► next ──► ... ──► jcc ─┬─► taken
 *                                                                       └─► not taken
 *                                        dead only if it is on both ◄────┘
 *
 * What is undecided when the budget ends is live.
 */
#include "inject/code/liveness.h"

#include <string.h>

#include "base/vec.h"

#define BUDGET 40u /* instructions a question */
#define CALLER_BUDGET 200u
#define FORKS 4u /* conditional jumps one after the other */
#define RSP 4
/* %rbx, %rbp, %r12-%r15: what an unwinder restores from.  Where an instruction may fault, an
 * exception may lead to a landing pad (-fnon-call-exceptions), and that finds them. */
#define KEPT 0xf028u

#define NOBODY UINT32_MAX

/* Flags that function `from` returns are what `to` returned: by a jump, or a call before ret. */
struct handed {
	uint32_t from, to; /* NOBODY: not known */
};

struct liveness {
	const struct code_map *map;
	uint8_t *returns_flags; /* by function: a caller reads the flags that it returns */
	bool any_may;           /* a caller that does so cannot be told its callee */
	VEC(struct handed) handed;
};

/* One way on from the place. */
struct walk {
	const struct liveness *l;
	uint16_t open_regs; /* neither read nor killed so far */
	uint8_t open_flags;
	uint16_t dead_regs;
	uint8_t dead_flags;
	unsigned *budget;
	unsigned forks;
};

static void walk_on(struct walk *w, uint64_t at);

static bool decode(const struct liveness *l, uint64_t at, struct insn *in)
{
	return code_map_flags(l->map, at) & CODE_INSN && code_map_insn(l->map, at, in);
}

/* In no function, and a jump through memory, perhaps after endbr64: a PLT entry. */
static bool is_plt(const struct liveness *l, uint64_t at)
{
	struct insn in;

	if (functions_at(l->map->functions, at))
		return false;
	for (int i = 0; i < 2; i++) {
		if (!elf_image_at(l->map->img, at, 16) ||
		    !insn_decode(&in, elf_image_at(l->map->img, at, 16), 16, at))
			return false;
		if (in.kind == INSN_JMP_INDIRECT)
			return in.rip_relative;
		if (memcmp(elf_image_at(l->map->img, at, 4), "\xf3\x0f\x1e\xfa", 4))
			return false;
		at += in.len;
	}
	return false;
}

static void apply(struct walk *w, const struct insn *in)
{
	uint16_t killed;
	uint8_t flags;

	if (!in->is_pure)
		w->open_regs &= (uint16_t)~KEPT;
	w->open_regs &= (uint16_t)~in->regs_read;
	w->open_flags &= (uint8_t)~in->flags_read;
	killed = in->regs_killed & w->open_regs;
	flags = in->flags_killed & w->open_flags;
	w->dead_regs |= killed;
	w->dead_flags |= flags;
	w->open_regs &= (uint16_t)~killed;
	w->open_flags &= (uint8_t)~flags;
}

/* Both ways of a conditional jump. */
static void fork_at(struct walk *w, const struct insn *in)
{
	struct walk taken = *w, not_taken = *w;

	if (!w->forks)
		return;
	taken.forks = not_taken.forks = w->forks - 1;
	walk_on(&taken, in->target);
	walk_on(&not_taken, in->addr + in->len);
	w->dead_regs |= taken.dead_regs & not_taken.dead_regs;
	w->dead_flags |= taken.dead_flags & not_taken.dead_flags;
}

static bool may_return_flags(const struct liveness *l, uint64_t at)
{
	const struct function *f = functions_at(l->map->functions, at);

	if (l->any_may || !f)
		return true;
	if (f->is_part && f->parent < l->map->functions->n)
		f = &l->map->functions->v[f->parent];
	return l->returns_flags[f - l->map->functions->v];
}

static void flags_are_dead(struct walk *w)
{
	w->dead_flags |= w->open_flags;
	w->open_flags = 0;
}

/* Control goes on at `to`, false: nobody knows where. */
static bool step(struct walk *w, const struct insn *in, uint64_t *to)
{
	switch ((enum insn_kind)in->kind) {
	case INSN_PLAIN:
	case INSN_PADDING:
		*to = in->addr + in->len;
		return true;
	case INSN_CALL:
		w->open_regs = 0;
		/* fall through */
	case INSN_JMP:
		if (is_plt(w->l, in->target))
			flags_are_dead(w);
		*to = in->target;
		return true;
	case INSN_JCC:
		fork_at(w, in);
		return false;
	case INSN_RET:
		if (!may_return_flags(w->l, in->addr))
			flags_are_dead(w);
		return false;
	case INSN_CALL_INDIRECT:
	case INSN_JMP_INDIRECT:
	case INSN_SYSCALL:
	case INSN_TRAP:
	case INSN_OTHER_TRANSFER:
		break;
	}
	return false;
}

static void walk_on(struct walk *w, uint64_t at)
{
	struct insn in;

	while ((w->open_regs || w->open_flags) && *w->budget && decode(w->l, at, &in)) {
		--*w->budget;
		apply(w, &in);
		if (!step(w, &in, &at))
			break;
	}
}

struct dead liveness_before(const struct liveness *l, uint64_t vaddr)
{
	unsigned budget = BUDGET;
	struct walk w = {
		.l = l,
		.open_regs = (uint16_t) ~(1u << RSP),
		.open_flags = INSN_FLAGS,
		.budget = &budget,
		.forks = FORKS,
	};

	walk_on(&w, vaddr);
	return (struct dead){w.dead_regs, w.dead_flags == INSN_FLAGS};
}

/* ---- who reads flags on return? ---- */

/* What becomes of the flags that a call returns with. */
enum fate { FATE_LOST, FATE_READ, FATE_RETURNED };

static enum fate fate_of_flags(const struct liveness *l, uint64_t at)
{
	uint8_t open = INSN_FLAGS;
	struct insn in;

	for (unsigned i = 0; i < CALLER_BUDGET && open; i++) {
		if (!decode(l, at, &in)) /* no code: a call that never returns */
			return functions_at(l->map->functions, at) ? FATE_READ : FATE_LOST;
		if (in.kind == INSN_SYSCALL) { /* flags are not an argument, and come back */
			at += in.len;
			continue;
		}
		if (in.flags_read & open || in.is_loop)
			return FATE_READ;
		open &= (uint8_t)~in.flags_killed;
		if (in.kind == INSN_RET)
			return FATE_RETURNED;
		if (in.kind == INSN_JMP)
			at = in.target;
		else if (in.kind == INSN_PLAIN || in.kind == INSN_PADDING)
			at += in.len;
		else if (in.kind == INSN_CALL && is_plt(l, in.target))
			return FATE_LOST; /* another module keeps to the ABI */
		else
			return FATE_READ; /* code by hand may hand flags on into a call */
	}
	return open ? FATE_READ : FATE_LOST;
}

static uint32_t number_of(const struct liveness *l, uint64_t at)
{
	const struct function *f = functions_at(l->map->functions, at);

	if (!f)
		return NOBODY;
	if (f->is_part && f->parent < l->map->functions->n)
		return f->parent;
	return f - l->map->functions->v;
}

static void look_at_return(struct liveness *l, uint64_t return_address)
{
	enum fate fate = fate_of_flags(l, return_address);
	uint64_t call = code_map_previous(l->map, return_address);
	struct handed h = {number_of(l, return_address), NOBODY};
	struct insn in;

	if (fate == FATE_LOST)
		return;
	if (call && decode(l, call, &in) && in.kind == INSN_CALL) {
		h.to = number_of(l, in.target);
		if (h.to == NOBODY)
			return; /* the PLT: another module's, which keeps to the ABI */
	}
	if (fate == FATE_RETURNED)
		*vec_push(&l->handed) = h;
	else if (h.to == NOBODY)
		l->any_may = true;
	else
		l->returns_flags[h.to] = 1;
}

/* A jump out of a function: what it leads to returns in the function's stead. */
static void look_at_tail(struct liveness *l, const struct code_exit *e)
{
	struct handed h = {e->function, NOBODY};
	struct insn in;

	if (e->kind == CODE_EXIT_RET)
		return;
	if (e->kind == CODE_EXIT_TAIL && decode(l, e->vaddr, &in)) {
		h.to = number_of(l, in.target);
		if (h.to == NOBODY)
			return;
	}
	*vec_push(&l->handed) = h;
}

/* A function that returns flags may have them from another one. */
static void follow_handed(struct liveness *l)
{
	bool more = true;

	while (more && !l->any_may) {
		more = false;
		vec_for(&l->handed, h) {
			if (h->from == NOBODY || !l->returns_flags[h->from])
				continue;
			if (h->to == NOBODY) {
				l->any_may = true;
			} else if (!l->returns_flags[h->to]) {
				l->returns_flags[h->to] = 1;
				more = true;
			}
		}
	}
}

struct liveness *liveness_new(const struct code_map *map)
{
	struct liveness *l = xcalloc(1, sizeof(*l));

	l->map = map;
	l->returns_flags = xcalloc(map->functions->n + 1, 1);
	for (uint64_t at = map->lo; at < map->hi; at++)
		if (map->flags[at - map->lo] & CODE_AFTER_CALL)
			look_at_return(l, at);
	for (size_t i = 0; i < map->nexits; i++)
		look_at_tail(l, &map->exits[i]);
	follow_handed(l);
	vec_free(&l->handed);
	return l;
}

void liveness_free(struct liveness *l)
{
	if (l)
		xfree(l->returns_flags);
	xfree(l);
}

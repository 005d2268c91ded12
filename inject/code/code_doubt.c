/* SPDX-License-Identifier: MIT */
/*
 * code_doubt.c - symbols without a frame that say that a function starts inside of an instruction.
 *
 * Inside an FDE its start settles where instructions are (functions.c).  Elsewhere there are only
 * symbols, and what the code says:
 *
 *   called, pointed to      |mov.....|add..|jne.....|ret|        believed
 *   symbol                      |.......|...                     contradicted
 *
 * In each region without FDEs where something does not fit, code is followed from all places that
 * calls, pointers and jumps of functions with an FDE lead to, then straight on from each
 * symbol.  Who starts inside an instruction that is believed, or decodes it in another way, is
 * contradicted; where
 * two symbols contradict each other and nothing speaks for one of them, both are.  Regions where
 * all fits, as in every honest file, are not looked at.
 *
 * A function that is contradicted is left alone with all of its bytes; what its code was taken to
 * say about other places stays: too many targets do no harm.
 */
#include <stdlib.h>
#include <string.h>

#include "inject/code/code_map_impl.h"
#include "base/search.h"

#define LOCK_PREFIX 0xf0
#define PASSES_MAX 4
#define LOOK_MAX 64 /* instructions */
#define SMALL 512u  /* functions */

enum {
	IS_KNOWN = 1,   /* an instruction that is believed starts here */
	IN_KNOWN = 2,   /* a byte of such a one, not its first */
	IS_CLAIMED = 4, /* the same for those that follow from a symbol */
	IN_CLAIMED = 8,
	IS_START = 16,        /* of a function of the region */
	IS_CONTRADICTED = 32, /* such a one, by another symbol */
	IS_WALKED = 64        /* code of nobody was followed from here on */
};

struct region { /* [lo, hi) has no FDE; functions [first, end) have no other bytes */
	struct map_builder *b;
	uint32_t first, end;
	uint64_t lo, hi;
	uint8_t *state; /* hi - lo */
	VEC(uint64_t) work;
	bool is_new;         /* calls have been found that nobody knew of */
	VEC(uint64_t) jumps; /* indirect ones in bytes of nobody */
};

static uint8_t *state(const struct region *r, uint64_t vaddr)
{
	return &r->state[vaddr - r->lo];
}

static bool has(const struct region *r, uint64_t vaddr)
{
	return vaddr >= r->lo && vaddr < r->hi;
}

static bool decode(const struct region *r, uint64_t at, struct insn *in)
{
	uint64_t room = elf_image_room(r->b->img, at);
	const uint8_t *p;

	if (room > r->hi - at)
		room = r->hi - at;
	p = room ? elf_image_at(r->b->img, at, room) : NULL;
	return p && elf_image_is_exec(r->b->img, at) && insn_scan(in, p, room, at);
}

/* Code may jump over a lock prefix. */
static bool is_behind_lock(const struct region *r, const struct insn *in, uint64_t vaddr)
{
	return vaddr == in->addr + 1 && *elf_image_at(r->b->img, in->addr, 1) == LOCK_PREFIX;
}

static void mark(const struct region *r, const struct insn *in, uint8_t is, uint8_t inside)
{
	*state(r, in->addr) |= is;
	for (uint64_t at = in->addr + 1; at < in->addr + in->len; at++)
		if (!is_behind_lock(r, in, at))
			*state(r, at) |= inside;
}

static bool goes_on(const struct region *r, const struct insn *in)
{
	return in->kind != INSN_JMP && in->kind != INSN_JMP_INDIRECT && in->kind != INSN_RET &&
	       in->kind != INSN_TRAP && has(r, in->addr + in->len);
}

/* ---- what is believed ---- */

static bool is_called(const struct map_builder *b, uint64_t vaddr)
{
	uint64_t off = vaddr - b->m->lo;

	return b->called[off / 8] >> (off & 7) & 1;
}

/* In position-dependent code any number may look like a pointer: there they prove nothing against
 * a function. */
static bool is_named(const struct map_builder *b, uint64_t vaddr)
{
	uint8_t flags = *map_flag(b, vaddr);

	if (is_called(b, vaddr))
		return true;
	return flags & CODE_TAKEN &&
	       (!b->position_dependent || flags & CODE_INSN || !(flags & CODE_IN_FUNCTION));
}

/*
 * The first place from vaddr on that is named, with misfits: where the map has no instruction; hi:
 * there is
 * none.  Eight bytes at once, for there are many: who is called is a target, too.
 */
static uint64_t find_named(const struct map_builder *b, uint64_t vaddr, uint64_t hi, bool misfits)
{
	const uint64_t ones = UINT64_MAX / 0xff; /* CODE_INSN in each byte */

	for (; vaddr < hi; vaddr++) {
		uint64_t eight;

		while (vaddr + 8 <= hi) {
			memcpy(&eight, map_flag(b, vaddr), sizeof(eight));
			if ((eight / CODE_TARGET | eight / CODE_TAKEN) &
			    (misfits ? ~eight : UINT64_MAX) & ones)
				break;
			vaddr += 8;
		}
		if (vaddr < hi && is_named(b, vaddr) &&
		    !(misfits && *map_flag(b, vaddr) & CODE_INSN))
			return vaddr;
	}
	return hi;
}

/* Of a place outside of the region: as far as no sweep has seen it, and that matters. */
static void tell(struct region *r, const struct insn *in)
{
	struct map_builder *b = r->b;
	uint64_t off = in->target - b->m->lo;
	uint8_t flags = *map_flag(b, in->addr);
	uint32_t to = map_has(b, in->target) ? map_function(b, in->target) : FUNCTION_NONE;

	if (flags & CODE_IN_FUNCTION && !(flags & CODE_INSN))
		map_mark(b, in->target, CODE_TARGET);
	if (in->kind != INSN_CALL || !map_has(b, in->target) || is_called(b, in->target) ||
	    (to != FUNCTION_NONE && b->f->v[to].has_fde))
		return;
	map_mark(b, in->target, CODE_TARGET);
	b->called[off / 8] |= (uint8_t)(1u << (off & 7));
	r->is_new = true;
}

/* Is it a target that code may have?  Who jumps into the middle of an instruction is none. */
static bool is_sensible(const struct map_builder *b, const struct insn *in)
{
	uint32_t to;

	if (in->kind != INSN_JMP && in->kind != INSN_JCC && in->kind != INSN_CALL)
		return true;
	if (!elf_image_is_exec(b->img, in->target) || !map_has(b, in->target))
		return false;
	to = map_function(b, in->target);
	return to == FUNCTION_NONE || !b->f->v[to].has_fde || *map_flag(b, in->target) & CODE_INSN;
}

/* A pointer may lead to a table among code: is it code as far as the next jump? */
static bool looks_like_code(const struct region *r, uint64_t at)
{
	static const uint8_t zeros[2];
	struct insn in;

	for (unsigned i = 0; i < LOOK_MAX; i++, at += in.len) {
		if (!decode(r, at, &in) || in.op == INSN_OP_PORT || in.kind == INSN_TRAP ||
		    in.kind == INSN_OTHER_TRANSFER || !is_sensible(r->b, &in) ||
		    (in.len == 2 && !memcmp(elf_image_at(r->b->img, at, 2), zeros, 2)))
			return false;
		if (!goes_on(r, &in) || *state(r, at) & IS_START)
			return true;
	}
	return true;
}

static void note_target(struct region *r, const struct insn *in)
{
	if (in->kind != INSN_JMP && in->kind != INSN_JCC && in->kind != INSN_CALL)
		return;
	if (has(r, in->target))
		*vec_push(&r->work) = in->target;
	else /* no function may have made it known */
		tell(r, in);
}

/* The instructions that were passed last, on a straight way. */
struct passed {
	uint64_t at[4];
	unsigned n;
};

/* jmp *slot(%rip), or mov slot(%rip),%reg; ...; jmp *%reg: this is not a switch. */
static bool is_by_slot(const struct region *r, const struct passed *p, uint64_t at)
{
	struct insn jump, in;

	if (!code_map_insn(r->b->m, at, &jump) || jump.has_mem)
		return jump.rip_relative;
	for (unsigned i = p->n; i-- > 0 && p->n - i <= 4;)
		if (code_map_insn(r->b->m, p->at[i % 4], &in) && in.regs_written >> jump.reg & 1)
			return in.op == INSN_OP_MOV && in.rip_relative && in.op_size == 8;
	return false;
}

static void note_passed(struct region *r, struct passed *p, const struct insn *in)
{
	if (in->kind == INSN_JMP_INDIRECT &&
	    !(code_map_flags(r->b->m, in->addr) & CODE_IN_FUNCTION) && !is_by_slot(r, p, in->addr))
		*vec_push(&r->jumps) = in->addr;
	p->at[p->n++ % 4] = in->addr;
}

static void follow(struct region *r, uint64_t at)
{
	struct passed passed = {.n = 0};
	struct insn in;

	while (!(*state(r, at) & IS_KNOWN) && decode(r, at, &in)) {
		mark(r, &in, IS_KNOWN, IN_KNOWN);
		note_target(r, &in);
		note_passed(r, &passed, &in);
		if (!goes_on(r, &in))
			return;
		at += in.len;
		if (*state(r, at) & IS_START) {
			uint32_t i = map_function(r->b, at);

			r->b->m->per_function[i].joined = true;
		}
	}
}

static void follow_all(struct region *r, uint64_t from)
{
	*vec_push(&r->work) = from;
	while (r->work.n)
		follow(r, r->work.v[--r->work.n]);
}

/* ---- what symbols claim ---- */

/* Does control run over the function's end into bytes of nobody? */
static bool runs_out(const struct map_builder *b, uint32_t i)
{
	const struct function *fn = &b->f->v[i];
	uint64_t last = fn->end;
	const uint8_t *next;
	unsigned kind;

	if ((i + 1 < b->f->n && fn[1].start == fn->end) || !map_has(b, fn->end))
		return false;
	while (last > fn->start && !(*map_flag(b, --last) & CODE_INSN))
		;
	next = elf_image_at(b->img, fn->end, 1);
	kind = map_shape(b, last) >> 4;
	if (!next || !map_falls_through(b, last) || kind == INSN_TRAP)
		return false;
	if (kind != INSN_CALL && kind != INSN_CALL_INDIRECT)
		return true;
	/* a call that does not return, and filler */
	return *next != 0x90 && *next != 0xcc && *next != 0x66 && *next != 0x0f && *next;
}

/*
 * Straight on from `from` to the next start: to `end`, then as far as control falls through, or all
 * the
 * way where code of nobody is known to follow.  Returns whether it hit a start, or what is
 * believed, inside of an instruction.
 */
static bool claim(struct region *r, uint64_t from, uint64_t end, bool all_the_way)
{
	struct passed passed = {.n = 0};
	bool is_on = true, hits = false;
	struct insn in;

	for (uint64_t at = from; has(r, at) && (at < end || is_on || all_the_way); at += in.len) {
		if ((at != from && *state(r, at) & IS_START) || !decode(r, at, &in))
			break;
		if (!end && *state(r, at) & IS_WALKED)
			break; /* the rest is the same, and its jumps are known */
		mark(r, &in, IS_CLAIMED | (end ? 0 : IS_WALKED), IN_CLAIMED);
		note_passed(r, &passed, &in);
		is_on = goes_on(r, &in);
		for (uint64_t inside = at + 1; inside < at + in.len; inside++)
			hits |= *state(r, inside) & (IS_START | IS_KNOWN) &&
				!is_behind_lock(r, &in, inside);
	}
	return hits;
}

static void claim_all(struct region *r)
{
	const struct map_builder *b = r->b;

	for (uint32_t i = r->first; i < r->end; i++) {
		const struct function *fn = &b->f->v[i];

		if (claim(r, fn->start, fn->end,
			  b->m->per_function[i].undecodable || runs_out(b, i)))
			*state(r, fn->start) |= IS_CONTRADICTED;
	}
	for (size_t i = 0; i < r->jumps.n; i++) { /* after a switch come its cases */
		struct insn in;

		if (decode(r, r->jumps.v[i], &in) && has(r, in.addr + in.len))
			claim(r, in.addr + in.len, 0, true);
	}
}

/* Is a believed instruction of the function none in the map? */
static bool is_decoded_otherwise(const struct region *r, const struct function *fn)
{
	for (uint64_t at = fn->start; at < fn->end; at++)
		if (*state(r, at) & IS_KNOWN && !(*map_flag(r->b, at) & CODE_INSN) &&
		    !(at > fn->start && *elf_image_at(r->b->img, at - 1, 1) == LOCK_PREFIX))
			return true;
	return false;
}

static bool is_contradicted(const struct region *r, uint32_t i)
{
	const struct function *fn = &r->b->f->v[i];
	uint8_t s = *state(r, fn->start);

	if (s & IN_KNOWN || is_decoded_otherwise(r, fn))
		return true;
	return !(s & IS_KNOWN) && s & (IN_CLAIMED | IS_CONTRADICTED);
}

/* Somebody calls it; or it stands after a filler that compilers never put inside of functions. */
static bool is_sure_start(const struct map_builder *b, uint64_t vaddr)
{
	const uint8_t *before = elf_image_at(b->img, vaddr - 1, 1);

	return is_called(b, vaddr) || (before && *before == 0xcc);
}

void spread_jump(struct map_builder *b, uint64_t vaddr)
{
	struct code_function *cf = b->m->per_function;
	const struct function *v = b->f->v;
	uint32_t up = (uint32_t)partition_point(i, b->f->n, v[i].start <= vaddr);

	for (uint32_t i = up; i-- > 0 && !v[i].has_fde;) {
		cf[i].unresolved_indirect = true;
		if (is_sure_start(b, v[i].start))
			break;
	}
	for (uint32_t i = up; i < b->f->n && !v[i].has_fde && !is_sure_start(b, v[i].start); i++)
		cf[i].unresolved_indirect = true;
}

static void judge(struct region *r)
{
	struct code_function *cf = r->b->m->per_function;

	for (uint64_t at = r->lo; (at = find_named(r->b, at, r->hi, false)) < r->hi; at++)
		if (is_called(r->b, at) || looks_like_code(r, at))
			follow_all(r, at);
	vec_for(&r->b->branches, br)
		if (has(r, br->to) && r->b->f->v[br->function].has_fde)
			follow_all(r, br->to);
	claim_all(r);
	for (uint32_t i = r->first; i < r->end; i++)
		if (!cf[i].undecodable && is_contradicted(r, i))
			cf[i].contradicted = true;
	for (uint32_t i = r->first; i < r->end; i++)
		cf[i].undecodable |= cf[i].contradicted;
	vec_for(&r->jumps, at)
		spread_jump(r->b, *at);
}

/* ---- which regions ---- */

/* Of the region's function number i and the gap before it; r->end: of the last gap. */
static bool is_odd(const struct region *r, uint32_t i)
{
	const struct map_builder *b = r->b;
	const struct function *v = b->f->v;
	uint64_t at = i == r->first ? r->lo : v[i - 1].end, hi = i == r->end ? r->hi : v[i].end;

	if (i < r->end && (b->m->per_function[i].undecodable || runs_out(b, i)))
		return true;
	return find_named(b, at, hi, true) < hi;
}

static void look_at(struct region *r)
{
	struct map_builder *b = r->b;

	r->state = xcalloc(r->hi - r->lo, 1);
	for (uint32_t i = r->first; i < r->end; i++)
		*state(r, b->f->v[i].start) |= IS_START;
	judge(r);
	xfree(r->state);
	vec_free(&r->work);
	vec_free(&r->jumps);
}

/* Does the region hold enough of it that whatever else is said there proves little? */
static bool is_all_odd(const struct region *r)
{
	uint32_t n = r->end - r->first, odd = 0;

	for (uint32_t i = r->first; n > SMALL && i <= r->end; i++)
		odd += is_odd(r, i);
	return odd > n / 16;
}

/* Functions [first, end) with the gaps before and after them. */
static struct region part_of(const struct region *r, uint32_t first, uint32_t end)
{
	const struct function *v = r->b->f->v;
	struct region part = *r;

	if (first > r->first) {
		part.first = first;
		part.lo = v[first - 1].end;
	}
	if (end < r->end) {
		part.end = end;
		part.hi = v[end].start;
	}
	return part;
}

/* Where something does not fit, and at the neighbours. */
static void look_around(struct region *r)
{
	bool is_whole = r->end - r->first <= SMALL || is_all_odd(r);

	for (uint32_t i = r->first, last; i <= r->end; i = last + 1) {
		struct region part;

		last = i;
		if (!is_odd(r, i))
			continue;
		for (uint32_t k = i + 1; k <= r->end && k <= last + 2; k++)
			if (is_odd(r, k))
				last = k;
		part = is_whole ? *r : part_of(r, i ? i - 1 : 0, last + 2);
		look_at(&part);
		r->is_new |= part.is_new;
		if (is_whole)
			return;
	}
}

static void find_end(struct region *r)
{
	const struct function *v = r->b->f->v;
	uint32_t n = (uint32_t)r->b->f->n;

	for (r->end = r->first; r->end < n && !v[r->end].has_fde;)
		r->end++;
	r->hi = r->end < n ? v[r->end].start : r->b->m->hi;
}

static struct region first_region(struct map_builder *b)
{
	struct region r = {.b = b, .lo = b->m->lo};

	find_end(&r);
	return r;
}

/* After the function with an FDE that ended it. */
static bool next_region(struct region *r)
{
	if (r->end >= r->b->f->n)
		return false;
	r->lo = r->b->f->v[r->end].end;
	r->first = r->end + 1;
	find_end(r);
	return true;
}

/* Does control run from function i into the next one?  The entries of one FDE take turns. */
static bool runs_on(const struct map_builder *b, uint32_t i)
{
	const struct function *fn = &b->f->v[i];
	uint64_t last = fn->end;

	if (i + 1 == b->f->n || fn[1].start != fn->end || !map_has(b, fn->start))
		return false;
	if (fn[1].has_fde)
		return fn[1].fde_rank == FUNCTION_NONE;
	while (last > fn->start && !(*map_flag(b, --last) & CODE_INSN))
		;
	return map_falls_through(b, last);
}

void join_functions(struct map_builder *b)
{
	for (uint32_t i = 0; i < b->f->n; i++)
		if (runs_on(b, i))
			b->m->per_function[i].joined = b->m->per_function[i + 1].joined = true;
	vec_for(&b->branches, br) {
		uint32_t to, lo = br->function, hi;

		if (b->f->v[lo].has_fde)
			continue;
		hi = to = map_function(b, br->to);
		if (to == FUNCTION_NONE || to == lo || b->f->v[to].start == br->to)
			continue;
		if (to < lo)
			lo = to, hi = br->function;
		for (uint32_t i = lo; i <= hi && !b->f->v[i].has_fde; i++)
			b->m->per_function[i].joined = true;
	}
}

/* Is there any function without an FDE where something does not fit? */
static bool has_odd(struct map_builder *b)
{
	struct region r = first_region(b);

	do
		for (uint32_t i = r.first; i < r.end; i++)
			if (is_odd(&r, i))
				return true;
	while (next_region(&r));
	return false;
}

void doubt_symbols(struct map_builder *b)
{
	bool is_new = has_odd(b);

	/* a region may lead to another one before it */
	for (unsigned pass = 0; is_new && pass < PASSES_MAX; pass++) {
		struct region r = first_region(b);

		do
			look_around(&r);
		while (next_region(&r));
		is_new = r.is_new;
	}
}

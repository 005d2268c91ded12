/* SPDX-License-Identifier: MIT */
/*
 * resolve_callsites.c - the calls of a function in a module: of one of its own, and of another
 * module's through the linker's stubs or its table.
 *
 *   call f        call f@plt ─► jmp *slot(%rip)        call *slot(%rip)
 */
#include <stdlib.h>

#include "base/search.h"
#include "inject/resolve/resolve_impl.h"

struct targets {
	VEC(uint64_t) starts; /* sorted */
	VEC(uint64_t) slots;  /* sorted */
};

static __thread struct targets *collecting;

static void take_function(struct resolver *r, uint32_t function)
{
	*vec_push(&collecting->starts) = r->fns->v[function].start;
}

static bool has(const uint64_t *v, size_t n, uint64_t vaddr)
{
	return n && bsearch(&vaddr, v, n, sizeof(vaddr), compare_uint64);
}

static void find_slots(struct resolver *r, struct targets *t)
{
	if (!r->slots)
		r->slots = callsite_links_make_slots(r->img);
	vec_for(&r->slots->imports, im)
		if (*im->name && names_match_symbol(&r->spec->function, im->name))
			*vec_push(&t->slots) = im->slot;
}

/* Own functions that match: to find none is no mistake where an import has the name. */
static void find_starts(struct resolver *r, struct targets *t)
{
	size_t notes = r->out->notes.n;
	bool told = r->told;

	collecting = t;
	names_for_each(r, take_function);
	collecting = NULL;
	if (!t->slots.n)
		return;
	r->told = told;
	while (r->out->notes.n > notes)
		xfree(r->out->notes.v[--r->out->notes.n].text);
}

/* The slot of the linker's stub at vaddr ("jmp *slot(%rip)", perhaps after endbr64), else 0. */
static uint64_t slot_of_stub(const struct elf_image *img, uint64_t vaddr)
{
	for (int i = 0; i < 3; i++) { /* endbr64, and what old linkers put before the jump */
		uint64_t room = elf_image_room(img, vaddr);
		const uint8_t *p = room ? elf_image_at(img, vaddr, room < 16 ? room : 16) : NULL;
		struct insn in;

		if (!p || !insn_decode(&in, p, room < 16 ? room : 16, vaddr))
			return 0;
		if (in.kind == INSN_JMP_INDIRECT)
			return in.rip_relative ? in.target : 0;
		if (in.kind != INSN_PADDING && in.kind != INSN_PLAIN)
			return 0;
		vaddr += in.len;
	}
	return 0;
}

static bool is_wanted(const struct resolver *r, const struct targets *t, const struct insn *in)
{
	const struct function *f;

	if (in->kind == INSN_CALL_INDIRECT)
		return in->rip_relative && has(t->slots.v, t->slots.n, in->target);
	if (in->kind != INSN_CALL)
		return false;
	if (has(t->starts.v, t->starts.n, in->target))
		return true;
	f = functions_at(r->fns, in->target);
	return t->slots.n && (!f || f->is_stub) &&
	       has(t->slots.v, t->slots.n, slot_of_stub(r->img, in->target));
}

static void find_calls(struct resolver *r, const struct targets *t)
{
	struct insn in;

	for (size_t i = 0; i < r->fns->n; i++) {
		const struct function *f = &r->fns->v[i];

		for (uint64_t at = f->start; at < f->end; at++)
			if (code_map_flags(r->map, at) & CODE_INSN &&
			    code_map_insn(r->map, at, &in) && is_wanted(r, t, &in))
				resolver_add(r, at, r->spec->after ? PLACE_AFTER : PLACE_BEFORE,
					     r->spec->after ? "%after" : "%call");
	}
}

void callsite_find_callers(struct resolver *r)
{
	struct targets t = {0};

	find_slots(r, &t);
	find_starts(r, &t);
	if (t.slots.n)
		qsort(t.slots.v, t.slots.n, sizeof(uint64_t), compare_uint64);
	if (t.starts.n)
		qsort(t.starts.v, t.starts.n, sizeof(uint64_t), compare_uint64);
	if (t.slots.n || t.starts.n)
		find_calls(r, &t);
	if (r->before == resolver_count(r) && !r->told)
		resolver_note(r, true, "%s never calls it directly", r->path);
	vec_free(&t.slots);
	vec_free(&t.starts);
}

/* SPDX-License-Identifier: MIT */
/* resolve_places.c - places in a function, by what the code map and the decoder say. */
#include <inttypes.h>

#include "inject/code/classes.h"
#include "base/search.h"
#include "inject/plan/action_pages.h"
#include "inject/plan/callsite.h"
#include "inject/resolve/resolve_impl.h"

/* ---- classes of instructions ---- */

static bool has_operand(const struct insn *in)
{
	return in->has_mem && (in->loads || in->stores);
}

static void add_insn(struct resolver *r, uint64_t vaddr)
{
	struct insn in;

	if (r->spec->payload == SPEC_PAYLOAD_ADDRESS &&
	    (!code_map_insn(r->map, vaddr, &in) || !has_operand(&in))) {
		r->no_operand++;
		return;
	}
	resolver_add(r, vaddr, r->spec->after ? PLACE_AFTER : PLACE_BEFORE,
		     r->spec->after ? "%after" : "");
}

static enum place_class class_of(const struct probe_spec *s)
{
	static const uint8_t classes[] = {
		[SPEC_BLOCKS] = CLASS_BLOCKS,     [SPEC_CALLS] = CLASS_CALLS,
		[SPEC_LOADS] = CLASS_LOADS,       [SPEC_STORES] = CLASS_STORES,
		[SPEC_INSNS] = CLASS_INSNS,       [SPEC_BRANCHES] = CLASS_BRANCHES,
		[SPEC_ACCESSES] = CLASS_ACCESSES,
	};

	return classes[s->place];
}

/* Pages: what a call pushes is counted in front of the instruction before it, mostly. */
static uint64_t place_of(const struct resolver *r, uint64_t vaddr, const struct function *f)
{
	uint64_t before;

	if (r->spec->kind == SPEC_PAGES && r->spec->place == SPEC_ACCESSES &&
	    action_pages_call_before(r->map, vaddr, &before) && before >= f->start)
		return before;
	return vaddr;
}

static void add_class(struct resolver *r, const struct function *f)
{
	struct class_places found = {0};
	uint64_t last = 0;

	class_list_function(&found, r->map, class_of(r->spec), f);
	vec_for(&found.v, at) {
		uint64_t place = place_of(r, *at, f);

		if (place != last)
			add_insn(r, place);
		last = place;
	}
	vec_free(&found.v);
}

/* ---- exits ---- */

/* The first exit at or after this address. */
static size_t first_exit(const struct code_map *m, uint64_t vaddr)
{
	return partition_point(i, m->nexits, m->exits[i].vaddr < vaddr);
}

static void add_exits(struct resolver *r, const struct function *f)
{
	const struct code_map *m = r->map;

	for (size_t i = first_exit(m, f->start); i < m->nexits && m->exits[i].vaddr < f->end; i++) {
		if (m->exits[i].kind != CODE_EXIT_RET && r->spec->payload == SPEC_PAYLOAD_RETVAL)
			r->tails++;
		else if (m->exits[i].refusal == REFUSAL_JCC_TAIL)
			resolver_add(r, m->exits[i].vaddr, PLACE_TAKEN, "%return");
		else if (m->exits[i].refusal == REFUSAL_AMBIGUOUS_JUMP)
			r->ambiguous++;
		else
			resolver_add(r, m->exits[i].vaddr, PLACE_BEFORE, "%return");
	}
}

static bool has_tail(const struct resolver *r, uint32_t function)
{
	const struct code_map *m = r->map;

	for (uint32_t i = function; i != UINT32_MAX; i = r->next_part[i]) {
		const struct function *f = &r->fns->v[i];

		for (size_t k = first_exit(m, f->start);
		     k < m->nexits && m->exits[k].vaddr < f->end; k++)
			if (m->exits[k].kind != CODE_EXIT_RET)
				return true;
	}
	return false;
}

/* Another function returns the value, on some ways at least: who calls it sees them all. */
static bool is_for_callsites(const struct resolver *r, uint32_t function)
{
	if (!resolver_may_call(r) || !has_tail(r, function))
		return false;
	for (size_t i = 0; i < r->aliases.n; i++)
		if (r->aliases.v[i].function == function && callsite_knows(r->aliases.v[i].raw))
			return true;
	return false;
}

void places_in_function(struct resolver *r, uint32_t function)
{
	if (is_for_callsites(r, function)) {
		resolver_add_callsite(r, r->fns->v[function].start, PLACE_AFTER, false);
		return;
	}
	if (r->spec->place == SPEC_ENTRY) {
		resolver_add(r, r->fns->v[function].start, PLACE_BEFORE, "");
		return;
	}
	for (uint32_t i = function; i != UINT32_MAX; i = r->next_part[i]) {
		const struct function *f = &r->fns->v[i];

		if (r->spec->place == SPEC_RETURN)
			add_exits(r, f);
		else
			add_class(r, f);
	}
}

/* ---- one instruction ---- */

static void add_at(struct resolver *r, uint64_t vaddr, const struct function *f)
{
	uint64_t before = vaddr, next = vaddr;

	if (code_map_flags(r->map, vaddr) & CODE_INSN) {
		add_insn(r, vaddr);
		return;
	}
	while (before > f->start && !(code_map_flags(r->map, before) & CODE_INSN))
		before--;
	while (next < f->end && !(code_map_flags(r->map, next) & CODE_INSN))
		next++;
	resolver_note(r, true,
		      "no instruction begins there; those around it begin at +0x%" PRIx64
		      " and +0x%" PRIx64,
		      before - f->start, next - f->start);
}

void places_at_offset(struct resolver *r, uint32_t function)
{
	const struct function *f = &r->fns->v[function];

	if (r->spec->offset >= f->end - f->start) {
		resolver_note(r, true, "the function has 0x%" PRIx64 " bytes only",
			      f->end - f->start);
		return;
	}
	add_at(r, f->start + r->spec->offset, f);
}

void places_at_address(struct resolver *r)
{
	const struct function *f = functions_at(r->fns, r->spec->offset);

	if (!f || f->is_stub) {
		resolver_note(r, true, "0x%" PRIx64 " lies in no function of %s", r->spec->offset,
			      r->path);
		return;
	}
	add_at(r, r->spec->offset, f);
}

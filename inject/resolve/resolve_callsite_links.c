/* SPDX-License-Identifier: MIT */
/*
 * resolve_callsite_links.c - functions of other files, probed where this one calls them.
 *
 *   call f@plt ─► stub: jmp *slot(%rip)        call *slot(%rip)        jmp *slot(%rip)
 *                       here                   here                    here
 *
 * For a file that is alone (callsite_links.h): what lies in others cannot be touched, but the
 * calls are here.  Whoever has the function in the end, these are its calls.  For results a stub
 * must call itself (callsite_knows()); a call is its own stub, and nothing comes after a tail call.
 */
#include <string.h>

#include "inject/plan/callsite.h"
#include "inject/resolve/resolve_impl.h"

/* A payload of an instruction's operand is not what a caller knows. */
static bool is_for_calls(const struct resolver *r)
{
	const struct probe_spec *s = r->spec;

	return r->links && s->place <= SPEC_RETURN && !s->source &&
	       s->payload != SPEC_PAYLOAD_ADDRESS;
}

static bool is_object(const char *file, void *ctx)
{
	const struct probe_spec *s = ctx;
	const struct module_name name = {.path = file};
	const char *slash = s->object.match == MATCH_NAME ? strrchr(s->object.text, '/') : NULL;

	return probe_spec_wants(s, &name, false) || (slash && !strcmp(slash + 1, file));
}

/* Without an OBJ, or with this file's, a name that the file has not itself: whoever has it. */
static bool is_meant(const struct resolver *r, const struct callsite_import *im)
{
	const struct probe_spec *s = r->spec;

	if (!*im->name || !names_match_symbol(&s->function, im->name))
		return false;
	return probe_spec_wants(s, r->name, true) ||
	       callsite_links_is_from(r->links, im, is_object, (void *)s);
}

/* At a call the stack is 8 bytes higher than where it leads to. */
static void take_address(struct resolver *r, bool is_call)
{
	if (r->spec->payload == SPEC_PAYLOAD_STACK)
		resolver_payload(r, PAYLOAD_SP, 0, is_call ? (uint64_t)-8 : 0);
}

struct taking {
	bool any;      /* places, of alternatives too */
	size_t silent; /* stubs that must not call */
	const char *name;
};

static void take_stub(struct resolver *r, struct taking *t, uint64_t jump, const char *name)
{
	bool result = r->spec->place == SPEC_RETURN;

	t->any = true;
	if (result && (!callsite_knows(name) || r->spec->kind > SPEC_RESOURCE)) {
		t->silent++;
		t->name = name;
		return;
	}
	take_address(r, false);
	resolver_add_call(r, jump, result ? PLACE_AFTER : PLACE_BEFORE, name);
}

/* The calls and jumps by the slot of this import that go by no stub. */
static void take_calls(struct resolver *r, struct taking *t, uint32_t import, const char *name)
{
	bool result = r->spec->place == SPEC_RETURN;

	for (size_t i = 0; i < r->links->calls.n; i++) {
		const struct callsite_call *c = &r->links->calls.v[i];

		if (c->import != import || c->state != CALLSITE_YES)
			continue;
		t->any = true;
		if (result && c->jumps) {
			r->tails++;
			continue;
		}
		take_address(r, !c->jumps);
		resolver_add_call(r, c->vaddr, result ? PLACE_AFTER : PLACE_BEFORE, name);
	}
}

static void take_import(struct resolver *r, struct taking *t, uint32_t i, const char *name)
{
	if (r->links->imports.v[i].jump)
		take_stub(r, t, r->links->imports.v[i].jump, name);
	take_calls(r, t, i, name);
}

static void note_silent(struct resolver *r, const struct taking *t)
{
	if (!t->silent)
		return;
	if (r->spec->kind > SPEC_RESOURCE)
		resolver_note(r, resolver_count(r) == r->before,
			      "only samples can be taken where %s returns to a linker's stub",
			      t->name);
	else
		resolver_note(
			r, resolver_count(r) == r->before,
			"what %s returns cannot be seen in a linker's stub: it is none of the "
			"functions that are known to return there; %s%%after can",
			t->name, t->name);
}

bool callsite_take(struct resolver *r)
{
	struct taking t = {0};

	for (uint32_t i = 0; is_for_calls(r) && i < r->links->imports.n; i++)
		if (is_meant(r, &r->links->imports.v[i]))
			take_import(r, &t, i, r->links->imports.v[i].name);
	note_silent(r, &t);
	return t.any;
}

/* By a slot that the dynamic linker fills by asking the resolver, or by its name. */
bool callsite_take_ifunc(struct resolver *r, uint64_t resolver, const char *name)
{
	struct taking t = {0};

	for (uint32_t i = 0; is_for_calls(r) && i < r->links->imports.n; i++) {
		const struct callsite_import *im = &r->links->imports.v[i];

		if (*im->name ? !strcmp(im->name, name) : im->target == resolver)
			take_import(r, &t, i, name);
	}
	note_silent(r, &t);
	return t.any;
}

/* ---- functions of the file's own that take no probe ---- */

static bool is_entry(const struct plan *plan, const struct plan_probe *p)
{
	return p->kind == PROBE_PLACE && p->where == PLACE_BEFORE &&
	       p->function != PLAN_NO_FUNCTION && p->vaddr == plan->functions[p->function].vaddr &&
	       plan->actions[p->action].payload != PAYLOAD_ADDRESS;
}

static size_t place_of(const struct resolution *r, const struct plan_probe *p)
{
	size_t i = 0;

	while (i < r->places.n &&
	       (r->places.v[i].vaddr != p->vaddr || r->places.v[i].where != p->where ||
		r->places.v[i].action != p->action || r->places.v[i].event != p->event))
		i++;
	return i;
}

/* The first stub takes the place over, others get one of their own. */
static bool go_to_stubs(struct resolution *r, size_t place, uint64_t function,
			const struct callsite_links *links)
{
	bool moved = false;

	for (size_t i = 0; place < r->places.n && i < links->imports.n; i++) {
		const struct callsite_import *im = &links->imports.v[i];
		const struct callsite_export *e =
			im->jump && *im->name ? callsite_links_find(links, im->name, im->version)
					      : NULL;
		struct place_request at = r->places.v[place];

		if (!e || e->value != function)
			continue;
		at.vaddr = im->jump;
		*vec_push(&r->calls) = (uint32_t)(moved ? r->places.n : place);
		if (moved)
			*vec_push(&r->places) = at;
		else
			r->places.v[place] = at;
		moved = true;
	}
	return moved;
}

bool resolve_refused(struct resolution *r, const struct plan *plan,
		     const struct callsite_links *links)
{
	bool any = false;

	for (size_t i = 0; i < plan->nprobes; i++) {
		const struct plan_probe *p = &plan->probes[i];

		if (p->site == UINT32_MAX && is_entry(plan, p))
			any |= go_to_stubs(r, place_of(r, p), p->vaddr, links);
	}
	return any;
}

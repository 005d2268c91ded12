/* SPDX-License-Identifier: MIT */
/* resolve.c - see resolve.h; resolve_impl.h says which file does what. */
#include "inject/resolve/resolve.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "inject/plan/callsite.h"
#include "inject/resolve/resolve_impl.h"
#include "inject/elf/usdt.h"

#define NONE UINT32_MAX

static const uint8_t argument_registers[] = {7, 6, 2, 1, 8, 9}; /* rdi rsi rdx rcx r8 r9 */

uint8_t resolver_argument(uint64_t number)
{
	return argument_registers[number - 1];
}

static void first_payload(struct resolver *r)
{
	const struct probe_spec *s = r->spec;

	if (s->variable) /* of each place anew: variable_settle() */
		return;
	switch (s->payload) {
	case SPEC_PAYLOAD_REGISTER:
		resolver_payload(r, PAYLOAD_REG, (uint8_t)s->value, 0);
		return;
	case SPEC_PAYLOAD_RETVAL:
		resolver_payload(r, PAYLOAD_REG, 0, 0);
		return;
	case SPEC_PAYLOAD_ADDRESS:
		resolver_payload(r, PAYLOAD_ADDRESS, 0, 0);
		return;
	case SPEC_PAYLOAD_STACK:
		resolver_payload(r, PAYLOAD_SP, 0, 0);
		return;
	case SPEC_PAYLOAD_IMMEDIATE:
		resolver_payload(r, PAYLOAD_IMM, 0, s->value);
		return;
	case SPEC_PAYLOAD_ARGUMENT: /* of a USDT probe: each note says where it is */
		if (s->place != SPEC_USDT) {
			resolver_payload(r, PAYLOAD_REG, resolver_argument(s->value), 0);
			return;
		}
		break;
	}
	resolver_payload(r, PAYLOAD_ZERO, 0, 0);
}

/* ---- one probe ---- */

static bool is_module_offset(const struct resolver *r)
{
	const struct probe_spec *s = r->spec;

	return s->place == SPEC_OFFSET && s->function.match == MATCH_NAME &&
	       !strcmp(s->function.text, str_base_name(r->path));
}

static void find_places(struct resolver *r)
{
	switch (r->spec->place) {
	case SPEC_ADDRESS:
		places_at_address(r);
		return;
	case SPEC_SOURCE:
		lines_in_source(r);
		return;
	case SPEC_USDT:
		markers_find(r);
		return;
	case SPEC_CALLERS:
		callsite_find_callers(r);
		return;
	case SPEC_OFFSET:
		if (is_module_offset(r)) /* the name that nameless functions have in reports */
			places_at_address(r);
		else
			names_for_each(r, places_at_offset);
		return;
	case SPEC_LINE:
		names_for_each(r, lines_in_function);
		return;
	}
	names_for_each(r, places_in_function);
}

/* It found nothing, and need not. */
static void withdraw_notes(struct resolver *r, size_t notes)
{
	while (r->out->notes.n > notes)
		xfree(r->out->notes.v[--r->out->notes.n].text);
}

static void begin(struct resolver *r, uint32_t number)
{
	r->number = number;
	r->spec = &r->set->specs.v[number];
	r->before = resolver_count(r);
	r->event = NONE;
	r->no_operand = r->tails = r->ambiguous = 0;
	r->told = false;
	r->asked_lines = false;
	r->nunknown = 0;
	first_payload(r);
}

static void note_unwatched(struct resolver *r)
{
	if (r->tails)
		resolver_note(r, r->before == resolver_count(r),
			      "%zu tail call%s: the function that is jumped to returns the value",
			      r->tails, r->tails == 1 ? " is not watched" : "s are not watched");
	if (r->ambiguous)
		resolver_note(r, r->before == resolver_count(r),
			      "%zu jump%s: nobody can tell whether the function ends there",
			      r->ambiguous,
			      r->ambiguous == 1 ? " is not watched" : "s are not watched");
}

/* The file is alone, and the probe means another one.  Nobody calls all functions of a pack. */
static void resolve_elsewhere(struct resolver *r, uint32_t number)
{
	bool by_name = !strncmp(r->set->specs.v[number].where, "<-p", 3);
	size_t notes = r->out->notes.n;

	begin(r, number);
	callsite_take(r);
	note_unwatched(r);
	variable_note(r);
	if (r->before == resolver_count(r) && !r->told && by_name)
		resolver_note(r, false, "%s does not call it", r->path);
	for (; !by_name && notes < r->out->notes.n; notes++)
		r->out->notes.v[notes].nothing = false;
}

static void resolve_one(struct resolver *r, uint32_t number)
{
	size_t notes = r->out->notes.n;

	begin(r, number);
	find_places(r);
	if (r->asked_lines && r->lines && lines_broken(r->lines))
		resolver_note(r, r->before == r->out->places.n, "%s: %s", r->path,
			      lines_broken(r->lines));
	if (r->no_operand)
		resolver_note(r, r->before == resolver_count(r),
			      "%zu instruction%s no place in memory that $addr could be",
			      r->no_operand, r->no_operand == 1 ? " names" : "s name");
	note_unwatched(r);
	variable_note(r);
	if (probe_spec_gave_up(r->spec))
		resolver_note(r, r->before == resolver_count(r),
			      "the expression takes too long for some names of %s, so not all were "
			      "compared: a simpler one will do",
			      r->path);
	if (r->before == resolver_count(r) && !r->told)
		resolver_note(r, true, "there is no such place in %s", r->path);
	/* why a value is not there is said all the same */
	if (r->before == resolver_count(r) && !r->nunknown &&
	    probe_set_is_alternative(r->set, number))
		withdraw_notes(r, notes);
}

static void resolve_all(struct resolution *out, const struct probe_set *set,
			const struct code_map *map, const char *path, bool is_exe,
			const struct callsite_links *links)
{
	const struct module_name name = {path, elf_image_soname(map->img)};
	struct resolver r = {
		.links = links,
		.set = set,
		.map = map,
		.img = map->img,
		.fns = map->functions,
		.path = path,
		.name = &name,
		.out = out,
	};

	memset(out, 0, sizeof(*out));
	r.next_part = functions_link_parts(r.fns);
	for (size_t i = 0; i < set->specs.n; i++) {
		if (probe_spec_wants(&set->specs.v[i], &name, is_exe))
			resolve_one(&r, (uint32_t)i);
		else if (links)
			resolve_elsewhere(&r, (uint32_t)i);
		*vec_push(&out->ends) = out->places.n;
	}
	names_free(&r);
	xfree(r.next_part);
	callsite_links_free(r.slots);
	lines_close(r.lines);
	variables_free(&r);
}

void resolve_make(struct resolution *out, const struct probe_set *set, const struct code_map *map,
		  const char *path, bool is_exe)
{
	resolve_all(out, set, map, path, is_exe, NULL);
}

void resolve_make_alone(struct resolution *out, const struct probe_set *set,
			const struct code_map *map, const char *path, struct callsite_links *links)
{
	callsite_check_calls(links, map);
	resolve_all(out, set, map, path, true, links);
}

static int compare_places(const void *a, const void *b)
{
	const struct place_request *x = a, *y = b;
	const uint64_t v[][2] = {{x->vaddr, y->vaddr},
				 {x->where, y->where},
				 {x->action, y->action},
				 {x->event, y->event}};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		if (v[i][0] != v[i][1])
			return v[i][0] < v[i][1] ? -1 : 1;
	return 0;
}

void resolve_mark_calls(const struct resolution *r, struct plan *plan)
{
	struct place_request *calls = xmalloc((r->calls.n + 1) * sizeof(*calls));

	for (size_t i = 0; i < r->calls.n; i++)
		calls[i] = r->places.v[r->calls.v[i]];
	if (r->calls.n)
		qsort(calls, r->calls.n, sizeof(*calls), compare_places);
	for (size_t i = 0; r->calls.n && i < plan->nprobes; i++) {
		struct plan_probe *p = &plan->probes[i];
		struct place_request key = {.vaddr = p->vaddr,
					    .where = p->where,
					    .action = p->action,
					    .event = p->event};

		if (p->kind == PROBE_PLACE && p->site != NONE &&
		    bsearch(&key, calls, r->calls.n, sizeof(*calls), compare_places))
			p->tactic = TACTIC_CALLSITE;
	}
	xfree(calls);
}

void resolve_free(struct resolution *r)
{
	vec_for(&r->events, e) {
		xfree(e->name);
		xfree(e->payload);
	}
	vec_for(&r->notes, n)
		xfree(n->text);
	vec_free(&r->places);
	vec_free(&r->ends);
	vec_free(&r->actions);
	vec_free(&r->events);
	vec_free(&r->notes);
	vec_free(&r->callsites);
	vec_free(&r->calls);
	vec_free(&r->semaphores);
}

struct plan_request resolve_request(const struct resolution *r, bool functions)
{
	return (struct plan_request){
		.places = r->places.v,
		.nplaces = r->places.n,
		.actions = r->actions.v,
		.nactions = r->actions.n,
		.functions = functions,
	};
}

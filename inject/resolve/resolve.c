/* SPDX-License-Identifier: MIT */
/* resolve.c - see resolve.h; resolve_impl.h says which file does what. */
#include "inject/resolve/resolve.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject/elf/demangle.h"
#include "inject/plan/interpose.h"
#include "inject/resolve/resolve_impl.h"
#include "inject/elf/usdt.h"

#define NONE UINT32_MAX

static const uint8_t argument_registers[] = {7, 6, 2, 1, 8, 9}; /* rdi rsi rdx rcx r8 r9 */

void resolver_note(struct resolver *r, bool nothing, const char *fmt, ...)
{
	struct resolve_note *n;
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->told = r->told || nothing;
	n = vec_push(&r->out->notes);
	n->spec = r->number;
	n->nothing = nothing;
	n->text = xasprintf("%s: %s", r->spec->text, text);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

char *resolver_function_name(const struct resolver *r, uint32_t function)
{
	const struct function *f = &r->fns->v[function];
	char *readable = f->name ? symbol_demangle(f->name) : NULL;

	if (readable)
		return readable;
	if (f->name && *f->name)
		return xstrdup(f->name);
	return xasprintf("%s+0x%" PRIx64, base_name(r->path), f->start);
}

/* ---- actions ---- */

static enum action_kind action_kind(const struct probe_spec *s)
{
	static const uint8_t kinds[] = {[SPEC_TRACE] = ACTION_TRACE,
					[SPEC_RESOURCE] = ACTION_RESOURCE,
					[SPEC_COUNT] = ACTION_COUNT,
					[SPEC_STORE] = ACTION_STORE};

	return kinds[s->kind];
}

void resolver_payload(struct resolver *r, enum payload_kind payload, uint8_t reg, uint64_t value)
{
	const struct probe_spec *s = r->spec;
	struct place_action a = {
		.kind = action_kind(s),
		.level = s->level,
		.word = s->word,
		.payload = payload,
		.reg = reg,
		.ungated = !s->gated,
		.value = s->kind == SPEC_STORE ? s->data : value,
	};

	for (size_t i = 0; i < r->out->actions.n; i++) {
		const struct place_action *o = &r->out->actions.v[i];

		if (o->kind == a.kind && o->level == a.level && o->word == a.word &&
		    o->payload == a.payload && o->reg == a.reg && o->ungated == a.ungated &&
		    o->value == a.value) {
			r->action = (uint32_t)i;
			return;
		}
	}
	r->action = (uint32_t)r->out->actions.n;
	*vec_push(&r->out->actions) = a;
}

static void first_payload(struct resolver *r)
{
	const struct probe_spec *s = r->spec;

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
			resolver_payload(r, PAYLOAD_REG, argument_registers[s->value - 1], 0);
			return;
		}
		break;
	}
	resolver_payload(r, PAYLOAD_ZERO, 0, 0);
}

/* ---- places ---- */

/* "main%return", "main+0x1f", "program+0x1234" */
static char *place_name(const struct resolver *r, uint64_t vaddr, const char *suffix)
{
	const struct function *f = functions_at(r->fns, vaddr);
	char *function, *name;

	if (r->spec->place == SPEC_USDT)
		return xasprintf("%s:%s", r->spec->provider, suffix);
	if (!f)
		return xasprintf("%s+0x%" PRIx64 "%s", base_name(r->path), vaddr, suffix);
	function = resolver_function_name(r, (uint32_t)(f - r->fns->v));
	if (vaddr == f->start && !f->is_part)
		name = xasprintf("%s%s", function, suffix);
	else
		name = xasprintf("%s+0x%" PRIx64 "%s", function, vaddr - f->start, suffix);
	xfree(function);
	return name;
}

static uint32_t add_event(struct resolver *r, uint64_t vaddr, char *name)
{
	struct resolved_event *e = vec_push(&r->out->events);

	e->spec = r->number;
	e->vaddr = vaddr;
	e->name = name;
	return (uint32_t)r->out->events.n - 1;
}

/* name: NULL, or that of the places of this name, which are one event. */
static uint32_t event_named(struct resolver *r, uint64_t vaddr, const char *suffix, char *name)
{
	const struct probe_spec *s = r->spec;

	if (s->kind >= SPEC_COUNT)
		return RESOLVE_NO_EVENT;
	if (!s->event && !s->has_number) {
		for (size_t i = 0; name && i < r->out->events.n; i++)
			if (r->out->events.v[i].spec == r->number &&
			    !strcmp(r->out->events.v[i].name, name))
				return (uint32_t)i;
		return add_event(r, vaddr, name ? xstrdup(name) : place_name(r, vaddr, suffix));
	}
	if (r->event == NONE)
		r->event = add_event(r, vaddr, xstrdup(s->event ? s->event : s->text));
	return r->event;
}

static uint32_t event_of(struct resolver *r, uint64_t vaddr, const char *suffix)
{
	return event_named(r, vaddr, suffix, NULL);
}

void resolver_add(struct resolver *r, uint64_t vaddr, enum place_where where, const char *suffix)
{
	struct place_request p = {.vaddr = vaddr, .where = where, .action = r->action};

	if (r->out->places.n >= NONE - 1)
		return;
	p.event = event_of(r, vaddr, suffix);
	*vec_push(&r->out->places) = p;
}

/* Does an alternative of the probe at work stand there? */
static bool has_alternative(const struct resolver *r, uint64_t vaddr, enum place_where where)
{
	if (!probe_set_is_alternative(r->set, r->number))
		return false;
	vec_for(&r->out->calls, i) {
		const struct place_request *p = &r->out->places.v[*i];
		const struct probe_spec *s = &r->set->specs.v[resolve_spec_of(r->out, *i)];

		if (p->vaddr == vaddr && p->where == where && s->event && s != r->spec &&
		    !strcmp(s->event, r->spec->event) && s->level == r->spec->level)
			return true;
	}
	return false;
}

bool resolver_add_call(struct resolver *r, uint64_t vaddr, enum place_where where,
		       const char *function)
{
	struct place_request p = {.vaddr = vaddr, .where = where, .action = r->action};
	char *name;

	if (has_alternative(r, vaddr, where) || r->out->places.n >= NONE - 1)
		return false;
	name = xasprintf("%s%s", function, r->spec->place == SPEC_RETURN ? "%return" : "");
	p.event = event_named(r, vaddr, "", name);
	xfree(name);
	*vec_push(&r->out->calls) = (uint32_t)r->out->places.n;
	*vec_push(&r->out->places) = p;
	return true;
}

bool resolver_may_call(const struct resolver *r)
{
	return !r->set->no_callers && r->spec->place == SPEC_RETURN &&
	       r->spec->payload == SPEC_PAYLOAD_RETVAL && r->spec->kind <= SPEC_RESOURCE &&
	       r->img->kind == ELF_KIND_SHARED;
}

void resolver_add_import(struct resolver *r, uint64_t vaddr, enum place_where where, bool is_ifunc)
{
	struct resolved_import im = {.vaddr = vaddr,
				     .spec = r->number,
				     .action = r->action,
				     .where = where,
				     .is_ifunc = is_ifunc};

	im.event = event_of(r, vaddr, where == PLACE_AFTER ? "%return" : "");
	*vec_push(&r->out->imports) = im;
}

size_t resolver_count(const struct resolver *r)
{
	return r->out->places.n + r->out->imports.n;
}

uint32_t resolver_next_range(const struct resolver *r, uint32_t function, uint32_t range)
{
	return range == function ? r->first_part[range] : r->next_part[range];
}

static void index_parts(struct resolver *r)
{
	size_t n = r->fns->n;

	r->first_part = xmalloc((n + 1) * sizeof(uint32_t));
	r->next_part = xmalloc((n + 1) * sizeof(uint32_t));
	memset(r->first_part, 0xff, (n + 1) * sizeof(uint32_t));
	memset(r->next_part, 0xff, (n + 1) * sizeof(uint32_t));
	for (size_t i = n; i-- > 0;) {
		const struct function *f = &r->fns->v[i];

		if (!f->is_part || f->parent == i || f->parent >= n)
			continue;
		r->next_part[i] = r->first_part[f->parent];
		r->first_part[f->parent] = (uint32_t)i;
	}
}

struct lines *resolver_lines(struct resolver *r)
{
	if (!r->has_lines) {
		r->has_lines = true;
		lines_open(&r->lines, r->img, &r->no_lines);
	}
	r->asked_lines = true;
	return r->lines;
}

/* ---- one probe ---- */

static bool is_module_offset(const struct resolver *r)
{
	const struct probe_spec *s = r->spec;

	return s->place == SPEC_OFFSET && s->function.match == MATCH_NAME &&
	       !strcmp(s->function.text, base_name(r->path));
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
		callers_find(r);
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
	calls_take(r);
	note_unwatched(r);
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
	if (probe_spec_gave_up(r->spec))
		resolver_note(r, r->before == resolver_count(r),
			      "the expression takes too long for some names of %s, so not all were "
			      "compared: a simpler one will do",
			      r->path);
	if (r->before == resolver_count(r) && !r->told)
		resolver_note(r, true, "there is no such place in %s", r->path);
	if (r->before == resolver_count(r) && probe_set_is_alternative(r->set, number))
		withdraw_notes(r, notes);
}

static void resolve_all(struct resolution *out, const struct probe_set *set,
			const struct code_map *map, const char *path, bool is_exe,
			const struct links *links)
{
	struct resolver r = {
		.links = links,
		.set = set,
		.map = map,
		.img = map->img,
		.fns = map->functions,
		.path = path,
		.out = out,
	};

	memset(out, 0, sizeof(*out));
	index_parts(&r);
	for (size_t i = 0; i < set->specs.n; i++) {
		if (probe_spec_wants(&set->specs.v[i], path, is_exe))
			resolve_one(&r, (uint32_t)i);
		else if (links)
			resolve_elsewhere(&r, (uint32_t)i);
		*vec_push(&out->ends) = out->places.n;
	}
	names_free(&r);
	xfree(r.first_part);
	xfree(r.next_part);
	imports_free(&r.imports);
	lines_close(r.lines);
}

void resolve_make(struct resolution *out, const struct probe_set *set, const struct code_map *map,
		  const char *path, bool is_exe)
{
	resolve_all(out, set, map, path, is_exe, NULL);
}

void resolve_make_alone(struct resolution *out, const struct probe_set *set,
			const struct code_map *map, const char *path, struct links *links)
{
	interpose_check_calls(links, map);
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
			p->tactic = TACTIC_IMPORT;
	}
	xfree(calls);
}

void resolve_free(struct resolution *r)
{
	vec_for(&r->events, e)
		xfree(e->name);
	vec_for(&r->notes, n)
		xfree(n->text);
	vec_free(&r->places);
	vec_free(&r->ends);
	vec_free(&r->actions);
	vec_free(&r->events);
	vec_free(&r->notes);
	vec_free(&r->imports);
	vec_free(&r->calls);
	vec_free(&r->semaphores);
}

uint32_t resolve_spec_of(const struct resolution *r, size_t place)
{
	size_t lo = 0, hi = r->ends.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->ends.v[mid] <= place)
			lo = mid + 1;
		else
			hi = mid;
	}
	return (uint32_t)lo;
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

/* SPDX-License-Identifier: MIT */
/*
 * resolve_sink.c - what the files that find places put them into: notes, actions, events, places.
 *
 * It looks for nothing itself, and calls none of those files.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/search.h"
#include "base/str.h"
#include "inject/plan/action_pages.h"
#include "inject/elf/demangle.h"
#include "inject/resolve/resolve_impl.h"

#define NONE UINT32_MAX

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

char *resolver_function_name(const struct resolver *r, uint32_t function)
{
	const struct function *f = &r->fns->v[function];
	char *readable = f->name ? symbol_demangle(f->name) : NULL;

	if (readable)
		return readable;
	if (f->name && *f->name)
		return xstrdup(f->name);
	return xasprintf("%s+0x%" PRIx64, str_base_name(r->path), f->start);
}

/* ---- actions ---- */

static enum action_kind action_kind(const struct probe_spec *s)
{
	static const uint8_t kinds[] = {[SPEC_TRACE] = ACTION_TRACE,
					[SPEC_RESOURCE] = ACTION_RESOURCE,
					[SPEC_COUNT] = ACTION_COUNT,
					[SPEC_STORE] = ACTION_STORE,
					[SPEC_PAGES] = ACTION_PAGES};

	return probe_spec_is_virtual(s) ? ACTION_CALLS : (enum action_kind)kinds[s->kind];
}

static uint64_t action_value(const struct probe_spec *s, uint64_t value)
{
	if (s->kind == SPEC_STORE)
		return s->data;
	if (s->kind == SPEC_PAGES)
		return (s->place == SPEC_ACCESSES ? PAGES_CALL_TOO : 0) |
		       (s->word & SPEC_PAGES_LINES ? PAGES_LINES : 0) |
		       (s->word & SPEC_PAGES_BY_FUNCTION ? PAGES_BY_FUNCTION : 0);
	return probe_spec_is_virtual(s) ? s->word : value;
}

static struct place_condition condition_of(const struct spec_condition *c)
{
	static const uint8_t whats[] = {[SPEC_IF_VALUE] = CONDITION_REG,
					[SPEC_IF_DATA] = CONDITION_PAYLOAD,
					[SPEC_IF_CPU] = CONDITION_CPU};
	static const uint8_t compares[] = {
		[SPEC_IF_EQ] = CONDITION_EQ, [SPEC_IF_NE] = CONDITION_NE,
		[SPEC_IF_LE] = CONDITION_LE, [SPEC_IF_GE] = CONDITION_GE,
		[SPEC_IF_LT] = CONDITION_LT, [SPEC_IF_GT] = CONDITION_GT};

	return (struct place_condition){
		.what = whats[c->what],
		.reg = c->payload == SPEC_PAYLOAD_ARGUMENT ? resolver_argument(c->value)
							   : (uint8_t)c->value,
		.compare = compares[c->compare],
		.bits = c->bits,
		.is_signed = c->is_signed,
		.has_mask = c->has_mask,
		.mask = c->mask,
		.number = c->number,
	};
}

_Static_assert(PROBE_PLACE_SOCKET == KRON_PLACE_SOCKET, "a place is handed on as it is");

/* The processor's number takes longer than all others together: it is asked for last. */
static void put_conditions(struct place_action *a, const struct probe_spec *s)
{
	for (unsigned last = 0; last < 2; last++)
		for (unsigned i = 0; i < s->nconditions; i++)
			if ((s->conditions[i].what == SPEC_IF_CPU) == last)
				a->conditions[a->nconditions++] = condition_of(&s->conditions[i]);
}

void resolver_payload(struct resolver *r, enum payload_kind payload, uint8_t reg, uint64_t value)
{
	const struct probe_spec *s = r->spec;
	struct place_action a = {
		.kind = action_kind(s),
		.level = s->level,
		.word = probe_spec_is_virtual(s) ? 0 : (uint8_t)s->word,
		.payload = payload,
		.reg = reg,
		.ungated = !s->gated,
		.is_wide = s->is_wide,
		.nplaces = s->nplaces,
		.bits = s->nplaces && !s->is_text ? s->bits : 0,
		.count = s->nplaces ? s->count : 0,
		.value = action_value(s, value),
	};

	memcpy(a.place, s->places, sizeof(a.place));
	put_conditions(&a, s);
	for (size_t i = 0; i < r->out->actions.n; i++) {
		const struct place_action *o = &r->out->actions.v[i];

		if (request_are_actions_alike(o, &a)) {
			r->action = (uint32_t)i;
			return;
		}
	}
	r->action = (uint32_t)r->out->actions.n;
	*vec_push(&r->out->actions) = a;
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
		return xasprintf("%s+0x%" PRIx64 "%s", str_base_name(r->path), vaddr, suffix);
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

/* What an event of this name and group is called that another probe of this file has; NULL: none has. */
static const char *payload_elsewhere(const struct resolver *r, const struct resolved_event *e)
{
	const struct probe_spec *s = r->spec;

	for (size_t i = 0; s->event && i < r->out->events.n; i++) {
		const struct resolved_event *o = &r->out->events.v[i];
		const struct probe_spec *of = &r->set->specs.v[o->spec];

		if (o != e && of->event && !strcmp(of->event, s->event) && of->level == s->level)
			return resolve_payload(o, of);
	}
	return NULL;
}

/* An event has one type: what the debug information says at one place and at another may differ. */
static bool takes_type(struct resolver *r, uint32_t event)
{
	struct resolved_event *e = &r->out->events.v[event];
	const char *other = payload_elsewhere(r, e);

	if (!e->payload)
		e->payload = xstrdup(other ? other : r->payload);
	if (!strcmp(probe_payload_type(e->payload), probe_payload_type(r->payload)))
		return true;
	variable_refuse(r, "has another type there than where the event is first: leave out "
			   "EVENT=, or give the "
			   "value a type");
	return false;
}

void resolver_add(struct resolver *r, uint64_t vaddr, enum place_where where, const char *suffix)
{
	struct place_request p = {.vaddr = vaddr, .where = where};

	if (r->out->places.n >= NONE - 1)
		return;
	if (r->spec->variable && !variable_settle(r, vaddr, where))
		return;
	p.action = r->action;
	p.event = event_of(r, vaddr, suffix);
	if (r->spec->variable && !takes_type(r, p.event))
		return;
	*vec_push(&r->out->places) = p;
}

static const char elsewhere[] =
	"is not known where other modules call the function, and its own code takes no probe";

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

	if (r->spec->variable) {
		variable_refuse(r, elsewhere);
		return false;
	}
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
	return !r->set->no_callsites && r->spec->place == SPEC_RETURN &&
	       r->spec->payload == SPEC_PAYLOAD_RETVAL && !r->spec->variable &&
	       r->spec->kind <= SPEC_RESOURCE && r->img->kind == ELF_KIND_SHARED;
}

void resolver_add_callsite(struct resolver *r, uint64_t vaddr, enum place_where where,
			   bool is_ifunc)
{
	struct resolved_callsite im = {.vaddr = vaddr,
				       .spec = r->number,
				       .action = r->action,
				       .where = where,
				       .is_ifunc = is_ifunc};

	if (r->spec->variable) {
		variable_refuse(r, elsewhere);
		return;
	}
	im.event = event_of(r, vaddr, where == PLACE_AFTER ? "%return" : "");
	*vec_push(&r->out->callsites) = im;
}

size_t resolver_count(const struct resolver *r)
{
	return r->out->places.n + r->out->callsites.n;
}

uint32_t resolve_spec_of(const struct resolution *r, size_t place)
{
	return partition_point(i, r->ends.n, r->ends.v[i] <= place);
}

/* ---- the module ---- */

struct lines *resolver_lines(struct resolver *r)
{
	if (!r->has_lines) {
		r->has_lines = true;
		lines_open(&r->lines, r->img, &r->no_lines);
	}
	r->asked_lines = true;
	return r->lines;
}

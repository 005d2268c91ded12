/* SPDX-License-Identifier: MIT */
/* list_probes.c - see list_probes.h */
#define _GNU_SOURCE
#include "cmd/list_probes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "inject/plan/callsite.h"

#define NONE UINT32_MAX

/* ---- places and their probes ---- */

struct key {
	uint64_t vaddr;
	uint32_t number;
};

static int compare_keys(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static struct key *sorted_places(const struct probe_list *l)
{
	size_t n = l->found.places.n;
	struct key *keys = xcalloc(n + 1, sizeof(*keys));

	for (size_t i = 0; i < n; i++)
		keys[i] = (struct key){l->found.places.v[i].vaddr, (uint32_t)i};
	qsort(keys, n, sizeof(*keys), compare_keys);
	return keys;
}

static struct key *sorted_probes(const struct plan *p, size_t *n)
{
	struct key *keys = xcalloc(p->nprobes + 1, sizeof(*keys));

	*n = 0;
	for (size_t i = 0; i < p->nprobes; i++)
		if (p->probes[i].kind == PROBE_PLACE)
			keys[(*n)++] = (struct key){p->probes[i].vaddr, (uint32_t)i};
	qsort(keys, *n, sizeof(*keys), compare_keys);
	return keys;
}

/* The plan keeps the places of one address in the request's order. */
static void match_probes(struct probe_list *l)
{
	struct key *places = sorted_places(l), *probes;
	size_t n;

	probes = sorted_probes(l->plan, &n);
	l->probe = xmalloc((l->found.places.n + 1) * sizeof(*l->probe));
	for (size_t i = 0; i < l->found.places.n; i++)
		l->probe[places[i].number] = i < n ? probes[i].number : NONE;
	xfree(places);
	xfree(probes);
}

static int plan_places(struct probe_list *l, const struct code_map *map, struct plan_options *opt,
		       struct err *err)
{
	struct plan_request request = resolve_request(&l->found, false);
	int code;

	opt->request = &request;
	code = plan_make_from(&l->plan, map, opt, err);
	opt->request = NULL;
	if (code)
		return code;
	callsite_mark(l->plan, map->img, opt->tactics);
	match_probes(l);
	return 0;
}

int probe_list_make(struct probe_list *out, const struct elf_image *img, struct probe_set *set,
		    const char *path, struct plan_options *opt, struct err *err)
{
	struct functions fns = {0};
	struct code_map *map;
	int code = functions_find(&fns, img, err);

	memset(out, 0, sizeof(*out));
	if (code)
		return code;
	code = code_map_build(&map, img, &fns, err);
	if (!code) {
		resolve_make(&out->found, set, map, path, true);
		code = plan_places(out, map, opt, err);
		code_map_free(map);
	}
	functions_free(&fns);
	return code;
}

void probe_list_free(struct probe_list *l)
{
	resolve_free(&l->found);
	if (l->plan)
		plan_free(l->plan);
	xfree(l->probe);
}

size_t probe_list_missing(const struct probe_list *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->found.notes.n; i++)
		n += l->found.notes.v[i].nothing;
	return n;
}

/* ---- showing ---- */

static const struct plan_probe *probe_of(const struct probe_list *l, size_t place)
{
	uint32_t i = l->probe[place];

	return i == NONE ? NULL : &l->plan->probes[i];
}

static void kind_text(const struct probe_spec *s, char *out, size_t size)
{
	if (s->kind == SPEC_COUNT)
		snprintf(out, size, "count:%u", s->word);
	else if (s->kind == SPEC_STORE)
		snprintf(out, size, "store:%u=%" PRId64, s->word, (int64_t)s->data);
	else
		snprintf(out, size, "%s", spec_kind_key(s->kind));
}

/* "%rdi", "$addr", "42"; allocated */
static char *source_text(const struct place_action *a)
{
	if (a->payload == PAYLOAD_REG)
		return xasprintf("%%%s", spec_register_name(a->reg));
	if (a->payload == PAYLOAD_IMM)
		return xasprintf("%" PRId64, (int64_t)a->value);
	if (a->payload == PAYLOAD_VADDR)
		return xasprintf("0x%" PRIx64, a->value);
	return xstrdup(a->payload == PAYLOAD_ADDRESS ? "$addr" : "$sp");
}

/* What the action takes along; of memory "+8(%rdi)". */
static void payload_text(const struct place_action *a, const struct probe_spec *s, const char *name,
			 char *out, size_t size)
{
	const char *type;
	char *source;

	out[0] = 0;
	if (!s->payload)
		return;
	type = strrchr(name, ':'); /* NAME or NAME:TYPE */
	type = type ? type : name + strlen(name);
	source = source_text(a);
	for (unsigned i = 0; i < a->nplaces; i++) {
		char *inner = source;

		source = a->place[i] == PROBE_PLACE_SOCKET
				 ? xasprintf("%s%s)", probe_question(a->count), inner)
				 : xasprintf("%+" PRId32 "(%s)", a->place[i], inner);
		xfree(inner);
	}
	snprintf(out, size, "%.*s=%s%s", (int)(type - name), name, source, type);
	xfree(source);
}

/* "main+0x1f" */
static char *location(const struct probe_list *l, const struct plan_probe *p)
{
	const struct plan_function *f;
	const char *name;

	if (!p || p->function == PLAN_NO_FUNCTION)
		return xstrdup("");
	f = &l->plan->functions[p->function];
	name = f->name ? l->plan->strings + f->name : "?";
	if (p->vaddr == f->vaddr)
		return xstrdup(name);
	if (p->vaddr < f->vaddr) /* in a .cold part before it */
		return xasprintf("%s-0x%" PRIx64, name, f->vaddr - p->vaddr);
	return xasprintf("%s+0x%" PRIx64, name, p->vaddr - f->vaddr);
}

static const char *event_name(const struct probe_list *l, size_t place)
{
	uint32_t e = l->found.places.v[place].event;

	return e == RESOLVE_NO_EVENT ? NULL : l->found.events.v[e].name;
}

static const char *payload_name(const struct probe_list *l, size_t place,
				const struct probe_spec *s)
{
	uint32_t e = l->found.places.v[place].event;

	return e == RESOLVE_NO_EVENT ? s->payload_name : resolve_payload(&l->found.events.v[e], s);
}

static const char *place_where(const struct place_request *p)
{
	static const char *const words[PLACE_WHERES] = {"before", "after", "taken"};

	return words[p->where];
}

/* How, or NULL: in its code, or where other modules call it. */
static const char *tactic_of(const struct plan_probe *p)
{
	return p && (p->site != NONE || p->tactic == TACTIC_CALLSITE) ? tactic_key(p->tactic)
								      : NULL;
}

static void print_place(const struct probe_list *l, const struct probe_set *set, size_t i)
{
	const struct place_request *place = &l->found.places.v[i];
	const struct probe_spec *s = &set->specs.v[resolve_spec_of(&l->found, i)];
	const struct plan_probe *p = probe_of(l, i);
	bool refused = !p || p->site == NONE;
	char kind[48], payload[80], level[8] = "-";
	char *where = location(l, p);

	kind_text(s, kind, sizeof(kind));
	payload_text(&l->found.actions.v[place->action], s, payload_name(l, i, s), payload,
		     sizeof(payload));
	if (s->gated)
		snprintf(level, sizeof(level), "%u", s->level);
	printf("%#10" PRIx64 " %-6s  %-13s %5s  %-9s %-28s %s%s%s\n", place->vaddr,
	       place_where(place), tactic_of(p) ? tactic_of(p) : "no", level, kind, where,
	       event_name(l, i) ? event_name(l, i) : "-", *payload ? "  " : "", payload);
	if (refused)
		printf("%20s refused: %s%s\n", "",
		       refusal_text(p ? (enum refusal)p->refusal : REFUSAL_NONE),
		       tactic_of(p) ? "; where other modules call it" : "");
	xfree(where);
}

/* An IFUNC: of the function there is its symbol here, and the plan knows no probe of it. */
static const struct plan_function *import_function(const struct probe_list *l, size_t i)
{
	for (size_t k = 0; k < l->plan->nfunctions; k++)
		if (l->plan->functions[k].vaddr == l->found.callsites.v[i].vaddr)
			return &l->plan->functions[k];
	return NULL;
}

static const char *import_name(const struct probe_list *l, size_t i)
{
	const struct plan_function *f = import_function(l, i);

	return f && f->name ? l->plan->strings + f->name : "?";
}

static const char *import_event(const struct probe_list *l, size_t i)
{
	uint32_t e = l->found.callsites.v[i].event;

	return e == RESOLVE_NO_EVENT ? NULL : l->found.events.v[e].name;
}

/* At the calls of it, or at their end. */
static const char *import_where(const struct resolved_callsite *im)
{
	return im->where == PLACE_AFTER ? "return" : "calls";
}

static void print_import(const struct probe_list *l, const struct probe_set *set, size_t i)
{
	const struct resolved_callsite *im = &l->found.callsites.v[i];
	const struct probe_spec *s = &set->specs.v[im->spec];
	char kind[48], payload[80], level[8] = "-";

	kind_text(s, kind, sizeof(kind));
	payload_text(&l->found.actions.v[im->action], s, s->payload_name, payload, sizeof(payload));
	if (s->gated)
		snprintf(level, sizeof(level), "%u", s->level);
	printf("%#10" PRIx64 " %-6s  %-13s %5s  %-9s %-28s %s%s%s\n", im->vaddr, import_where(im),
	       tactic_key(TACTIC_CALLSITE), level, kind, import_name(l, i),
	       import_event(l, i) ? import_event(l, i) : "-", *payload ? "  " : "", payload);
}

void probe_list_print(const struct probe_list *l, const struct probe_set *set)
{
	if (l->found.places.n + l->found.callsites.n)
		printf("%10s %-6s  %-13s %5s  %-9s %-28s %s\n", "Address", "Where", "Tactic",
		       "Level", "Kind", "Place", "Event");
	for (size_t i = 0; i < l->found.places.n; i++)
		print_place(l, set, i);
	for (size_t i = 0; i < l->found.callsites.n; i++)
		print_import(l, set, i);
}

/* What stands in front of the tactic, of places and of call sites. */
static void json_head(struct json *j, const struct probe_spec *s, const char *name,
		      const struct place_action *a, uint64_t vaddr, const char *where,
		      const char *place, const char *event)
{
	char kind[48], payload[80];

	kind_text(s, kind, sizeof(kind));
	payload_text(a, s, name, payload, sizeof(payload));
	json_open(j, '{');
	json_kstr(j, "probe", s->where);
	json_kstr(j, "spec", s->text);
	json_ku64(j, "address", vaddr);
	json_kstr(j, "where", where);
	json_kstr(j, "place", place);
	json_kstr(j, "event", event);
	if (s->has_number)
		json_ku64(j, "number", s->number);
	json_key(j, "level");
	if (s->gated)
		json_u64(j, s->level);
	else
		json_str(j, NULL);
	json_kstr(j, "kind", kind);
	json_kstr(j, "payload", *payload ? payload : NULL);
}

static void json_import(struct json *j, const struct probe_list *l, const struct probe_set *set,
			size_t i)
{
	const struct resolved_callsite *im = &l->found.callsites.v[i];

	json_head(j, &set->specs.v[im->spec], set->specs.v[im->spec].payload_name,
		  &l->found.actions.v[im->action], im->vaddr, import_where(im), import_name(l, i),
		  import_event(l, i));
	json_kstr(j, "tactic", tactic_key(TACTIC_CALLSITE));
	json_close(j, '}');
}

static void json_place(struct json *j, const struct probe_list *l, const struct probe_set *set,
		       size_t i)
{
	const struct place_request *place = &l->found.places.v[i];
	const struct plan_probe *p = probe_of(l, i);
	const struct probe_spec *s = &set->specs.v[resolve_spec_of(&l->found, i)];
	char *where = location(l, p);

	json_head(j, s, payload_name(l, i, s), &l->found.actions.v[place->action], place->vaddr,
		  place_where(place), where, event_name(l, i));
	if (!p || p->site == NONE) {
		json_kstr(j, "refused", refusal_key(p ? (enum refusal)p->refusal : REFUSAL_NONE));
		json_kstr(j, "reason", refusal_text(p ? (enum refusal)p->refusal : REFUSAL_NONE));
	}
	if (tactic_of(p))
		json_kstr(j, "tactic", tactic_of(p));
	json_close(j, '}');
	xfree(where);
}

void probe_list_json(struct json *j, const struct probe_list *l, const struct probe_set *set,
		     const char *path)
{
	json_open(j, '{');
	json_kstr(j, "file", path);
	json_key(j, "places");
	json_open(j, '[');
	for (size_t i = 0; i < l->found.places.n; i++)
		json_place(j, l, set, i);
	for (size_t i = 0; i < l->found.callsites.n; i++)
		json_import(j, l, set, i);
	json_close(j, ']');
	json_key(j, "notes");
	json_open(j, '[');
	for (size_t i = 0; i < l->found.notes.n; i++) {
		const struct resolve_note *n = &l->found.notes.v[i];

		json_open(j, '{');
		json_kstr(j, "probe", set->specs.v[n->spec].where);
		json_kstr(j, "text", n->text);
		json_key(j, "nothing");
		json_bool(j, n->nothing);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}

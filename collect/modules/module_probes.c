/* SPDX-License-Identifier: MIT */
/* module_probes.c - see module_probes.h */
#define _GNU_SOURCE
#include "collect/modules/module_probes.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "collect/modules/module_tables.h"
#include "inject/elf/elf_symbols.h"
#include "inject/disk/patch_info.h"

#define LAST_NUMBER (KRON_EVENT_SPECIAL / 2)

/* ---- results ---- */

void probe_results_init(struct probe_results *r, const struct probe_set *set)
{
	r->n = set ? set->specs.n : 0;
	r->v = xcalloc(r->n + 1, sizeof(*r->v));
	for (size_t i = 0; i < r->n; i++)
		r->v[i].spec = (uint32_t)i;
}

void probe_results_free(struct probe_results *r)
{
	for (size_t i = 0; i < r->n; i++) {
		vec_for(&r->v[i].notes, note)
			xfree(*note);
		vec_free(&r->v[i].notes);
	}
	xfree(r->v);
	r->v = NULL;
	r->n = 0;
}

static void keep_note(struct probe_result *r, const char *text)
{
	vec_for(&r->notes, note)
		if (!strcmp(*note, text))
			return;
	*vec_push(&r->notes) = xstrdup(text);
}

void module_probes_keep_results(struct modules *ms, const struct module *m)
{
	const struct resolution *found = &m->probes.found;

	pthread_mutex_lock(&ms->lock);
	for (size_t i = 0, from = 0; i < found->ends.n; from = found->ends.v[i++])
		ms->results.v[i].places += found->ends.v[i] - from;
	for (size_t i = 0; i < found->callsites.n; i++)
		ms->results.v[found->callsites.v[i].spec].places++;
	for (size_t i = 0; i < found->notes.n; i++)
		keep_note(&ms->results.v[found->notes.v[i].spec], found->notes.v[i].text);
	pthread_mutex_unlock(&ms->lock);
}

void module_probes_refuse(struct modules *ms, const struct module *m, const char *why)
{
	const struct probe_set *set = ms->selection->probes;
	const struct module_name name = module_name_of(m);
	char *text;

	pthread_mutex_lock(&ms->lock);
	for (size_t i = 0; set && i < set->specs.n; i++) {
		const struct probe_spec *s = &set->specs.v[i];

		if ((!s->object.text && s->place == SPEC_USDT) ||
		    !probe_spec_wants(s, &name, m->is_exe))
			continue;
		text = xasprintf("%s: %s %s", s->text, m->path, why);
		keep_note(&ms->results.v[i], text);
		xfree(text);
	}
	pthread_mutex_unlock(&ms->lock);
}

/* ---- which modules ---- */

static bool has_loose_markers(const struct probe_set *set)
{
	for (size_t i = 0; i < set->specs.n; i++)
		if (set->specs.v[i].place == SPEC_USDT && !set->specs.v[i].object.text)
			return true;
	return false;
}

/*
 * "the program's own malloc, if it has one": the symbol table tells, and saves planning a program
 * that has none.
 */
static bool is_missing(const struct probe_set *set, size_t i, const struct elf_image *img)
{
	const struct probe_spec *s = &set->specs.v[i];
	struct elf_symbol sym;

	return s->place <= SPEC_RETURN && s->function.match == MATCH_NAME &&
	       probe_set_is_alternative(set, i) && !elf_symbols_lookup(img, s->function.text, &sym);
}

/* A USDT probe without OBJ: is meant wherever the note is; the others say which module. */
bool module_probes_want(const struct probe_set *set, const struct module_name *name, bool is_exe,
			const struct elf_image *img)
{
	if (!set || !probe_set_wants(set, name, is_exe))
		return false;
	if (!img)
		return true;
	for (size_t i = 0; i < set->specs.n; i++) {
		const struct probe_spec *s = &set->specs.v[i];
		bool loose = s->place == SPEC_USDT && !s->object.text;

		if (!loose && probe_spec_wants(s, name, is_exe) && !is_missing(set, i, img))
			return true;
	}
	return has_loose_markers(set) && resolve_has_marker(set, img);
}

/* ---- the plan ---- */

/* The resolution is made anew each time: it needs the code map, and is the request whose hash
 * finds the plan. */
static int plan_with(struct modules *ms, struct module *m, bool functions,
		     struct plan_source *source, const struct code_map *map, struct err *err)
{
	struct plan_request request;
	bool is_exe = m->is_exe;

	resolve_make(&m->probes.found, ms->selection->probes, map, m->path, is_exe);
	log_info("collect", "%s: %zu places of probes", m->path, m->probes.found.places.n);
	m->probes.sleepers.found = &m->probes.found;
	m->probes.sleepers.asleep = ms->asleep;
	request = resolve_request(&m->probes.found, functions);
	return plan_cache_get_request(&ms->cache, &m->full, source, map, &request, err);
}

static void count_places(struct module *m)
{
	for (size_t i = 0; i < m->full->nprobes; i++) {
		const struct plan_probe *p = &m->full->probes[i];

		if (p->kind != PROBE_PLACE)
			continue;
		if (p->site != UINT32_MAX)
			m->probes.patched++;
		else if (p->refusal != REFUSAL_NOT_REACHED) /* never executed: no loss */
			m->probes.refused++;
	}
}

int module_probes_plan(struct modules *ms, struct module *m, bool functions, struct err *err)
{
	struct functions fns = {0};
	struct plan_source source;
	struct code_map *map;
	int code;

	plan_cache_source(&ms->cache, &source, m->img);
	code = functions_find(&fns, m->img, err);
	if (code)
		return code;
	code = code_map_build(&map, m->img, &fns, err);
	if (!code) {
		code = plan_with(ms, m, functions, &source, map, err);
		code_map_free(map);
	}
	functions_free(&fns);
	if (!code)
		count_places(m);
	return code;
}

static void take_event(struct module *m, const struct patch_event *e)
{
	struct probe_spec *s = vec_push(&m->probes.brought.specs);

	s->event = e->is_named ? xstrdup(e->name) : NULL;
	s->payload_name = e->payload ? xstrdup(e->payload) : NULL;
	s->has_number = e->has_number;
	s->number = e->number;
	s->level = e->level;
	s->kind = e->is_resource ? SPEC_RESOURCE : SPEC_TRACE;
	*vec_push(&m->probes.found.events) = (struct resolved_event){
		.spec = (uint32_t)m->probes.brought.specs.n - 1,
		.vaddr = e->vaddr,
		.name = xstrdup(e->name),
	};
}

void module_probes_take(struct module *m, const struct patch_info *info)
{
	for (size_t i = 0; i < info->nevents; i++)
		take_event(m, &info->events[i]);
	for (size_t i = 0; i < info->nsemaphores; i++)
		*vec_push(&m->probes.found.semaphores) = info->semaphores[i];
	count_places(m);
	m->probed = m->probes.patched || m->probes.refused;
}

/* ---- numbers ---- */

static const struct probe_set *set_of(const struct modules *ms, const struct module *m)
{
	return m->patched ? &m->probes.brought : ms->selection->probes;
}

/* A number that a patched file wants and that was given away before it was loaded is lost. */
static void settle_numbers(struct modules *ms, struct module *m)
{
	vec_for(&m->probes.brought.specs, s) {
		if (!s->has_number)
			continue;
		if (s->number < ms->next_function)
			s->has_number = false;
		else
			ms->next_function = s->number + 1;
	}
}

static bool is_chosen(const struct probe_set *set, uint32_t from, uint32_t n, uint32_t *which)
{
	for (size_t i = 0; i < set->specs.n; i++) {
		*which = set->specs.v[i].number;
		if (set->specs.v[i].has_number && *which >= from && *which - from < n)
			return true;
	}
	return false;
}

uint32_t module_probes_free_numbers(const struct probe_set *set, uint32_t from, uint32_t n)
{
	uint32_t taken;

	while (set && is_chosen(set, from, n, &taken))
		from = taken + 1;
	return from;
}

/* The number of a probe with an event of its own: the user's, or the one of another module, or
 * of another probe with the same name.  0 + false: it has none yet. */
static bool shared_number(const struct modules *ms, const struct probe_spec *s, uint32_t *n)
{
	if (s->has_number) {
		*n = s->number;
		return true;
	}
	for (size_t i = 0; s->event && i < ms->events.n; i++)
		if (!strcmp(ms->events.v[i].name, s->event) && ms->events.v[i].level == s->level) {
			*n = ms->events.v[i].n;
			return true;
		}
	return false;
}

static void number_events(struct modules *ms, struct module *m)
{
	const struct probe_set *set = set_of(ms, m);
	struct modules *whole = ms->whole;

	settle_numbers(whole, m);
	for (size_t i = 0; i < m->probes.found.events.n; i++) {
		const struct resolved_event *e = &m->probes.found.events.v[i];
		const struct probe_spec *s = &set->specs.v[e->spec];
		uint32_t n;

		if (!shared_number(whole, s, &n)) {
			n = module_probes_free_numbers(whole->selection->probes,
						       whole->next_function, 1);
			whole->next_function = n + 1;
			if (s->event)
				*vec_push(&whole->events) =
					(struct named_event){s->event, n, s->level};
		}
		m->probes.events[i] = n;
	}
}

int module_probes_number(struct modules *ms, struct module *m, struct err *err)
{
	struct modules *whole = ms->whole;
	size_t n = m->probes.found.events.n;
	int code = 0;

	m->probes.events = xcalloc(n + 1, sizeof(*m->probes.events));
	pthread_mutex_lock(&whole->lock);
	if (whole->next_function > LAST_NUMBER || n > LAST_NUMBER - whole->next_function)
		code = err_set(err, EOVERFLOW, "%s: no event numbers are left for its probes",
			       m->path);
	else
		number_events(ms, m);
	whole->totals.probes += m->probes.patched;
	whole->totals.refused += m->probes.refused;
	pthread_mutex_unlock(&whole->lock);
	return code;
}

/* ---- tables ---- */

/* Of an event: its places, those that got no probe, and why the first did not. */
struct wanted {
	uint64_t places, refused;
	enum refusal why;
};

/* What is never executed is no loss. */
static struct wanted *count_wanted(const struct module *m)
{
	struct wanted *v = xcalloc(m->probes.found.events.n + 1, sizeof(*v));

	for (size_t i = 0; i < m->full->nprobes; i++) {
		const struct plan_probe *p = &m->full->probes[i];
		struct wanted *w;

		if (p->kind != PROBE_PLACE || p->event >= m->probes.found.events.n ||
		    p->refusal == REFUSAL_NOT_REACHED)
			continue;
		w = &v[p->event];
		w->places++;
		if (p->site == UINT32_MAX && !w->refused++)
			w->why = p->refusal;
	}
	return v;
}

static int write_event(struct modules *ms, const struct module *m, uint32_t id, size_t i,
		       const struct wanted *w)
{
	char *refused = w->refused ? xasprintf("%" PRIu64 "/%" PRIu64 " %s", w->refused, w->places,
					       refusal_key(w->why))
				   : NULL;
	const struct resolved_event *e = &m->probes.found.events.v[i];
	const struct probe_spec *s = &set_of(ms, m)->specs.v[e->spec];
	const struct trace_event_line line = {.n = m->probes.events[i],
					      .level = (uint8_t)s->level,
					      .resource = s->kind == SPEC_RESOURCE,
					      .payload = resolve_payload(e, s),
					      .module_id = id,
					      .vaddr = e->vaddr,
					      .name = e->name,
					      .refused = refused};
	int code = journal_put_locked(ms->journal, trace_writer_event, &line);

	xfree(refused);
	return code;
}

static int write_refusals(struct modules *ms, const struct module *m, uint32_t id)
{
	uint64_t why[REFUSAL_COUNT] = {0};

	for (size_t i = 0; i < m->full->nprobes; i++) {
		const struct plan_probe *p = &m->full->probes[i];

		if (p->kind == PROBE_PLACE && p->site == UINT32_MAX && p->refusal < REFUSAL_COUNT)
			why[p->refusal]++;
	}
	return module_tables_refusals(ms->journal, id, TRACE_REFUSED_PLACE, why);
}

int module_probes_write(struct modules *ms, const struct module *m, uint32_t id)
{
	struct wanted *wanted = count_wanted(m);
	int code = 0;

	for (size_t i = 0; i < m->probes.found.events.n && !code; i++)
		code = write_event(ms, m, id, i, &wanted[i]);
	xfree(wanted);
	return code ? code : write_refusals(ms, m, id);
}

void module_probes_free(struct module_probes *p)
{
	resolve_free(&p->found);
	xfree(p->events);
	xfree(p->sleepers.functions);
	xfree(p->sleepers.ruled);
	xfree(p->sleepers.held);
	xfree(p->sleepers.owners);
	probe_set_free(&p->brought);
}

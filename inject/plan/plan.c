/* SPDX-License-Identifier: MIT */
/*
 * plan.c - from an image to a plan: which places want a probe, and the ladder that takes them.
 *
 *   functions, code map --> per function: hooks, entry, exits --ladder--> drafts --emit--> sites
 *                                    \--> refusals
 *
 * What is here says what wants a probe, and puts the plan together; plan_rounds.c climbs the ladder.
 *
 * Pure: no file, no process; the same image gives the same bytes.
 */
#define _GNU_SOURCE
#include "inject/plan/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/jobs.h"
#include "inject/plan/action.h"
#include "inject/elf/aot_image.h"
#include "inject/code/copied.h"
#include "inject/elf/demangle.h"
#include "inject/code/hooks.h"
#include "inject/plan/plan_impl.h"
#include "inject/plan/plan_jumps.h"

#define NONE UINT32_MAX

/* ---- index ---- */

/* Counting sort: exits are sorted by vaddr, and stay so within a function. */
static void index_exits(struct making *m)
{
	size_t n = m->fns->n;
	uint32_t *first = xcalloc(n + 2, sizeof(uint32_t));

	m->ix.exits = xmalloc(m->map->nexits * sizeof(m->ix.exits[0]));
	for (size_t i = 0; i < m->map->nexits; i++)
		first[m->map->exits[i].function + 2]++;
	for (size_t i = 2; i < n + 2; i++)
		first[i] += first[i - 1];
	for (size_t i = 0; i < m->map->nexits; i++)
		m->ix.exits[first[m->map->exits[i].function + 1]++] = &m->map->exits[i];
	m->ix.first_exit = first;
}

static int compare_places(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Jumps from one function into another are the first one's exits. */
static void list_arrivals(struct making *m)
{
	struct insn in;

	for (size_t i = 0; i < m->map->nexits; i++)
		if (m->map->exits[i].kind == CODE_EXIT_TAIL &&
		    window_decode(m->map, m->map->exits[i].vaddr, &in))
			*vec_push(&m->pl.arrivals) = in.target;
	if (m->pl.arrivals.n)
		qsort(m->pl.arrivals.v, m->pl.arrivals.n, sizeof(uint64_t), compare_places);
}

/* Counts know of no calls that end. */
static void list_unwinds(struct making *m)
{
	const struct elf_image *img = m->map->img;
	enum kron_hook h;

	for (size_t i = 0; i < img->nsegments && !m->pl.is_counting; i++) {
		const struct elf_segment *g = &img->segments[i];
		const uint8_t *code =
			g->flags & PF_X ? elf_image_at(img, g->vaddr, g->filesz) : NULL;
		uint64_t n = code ? g->filesz : 0, at = 0;

		for (; (h = hooks_next_unwind(m->map, g->vaddr, code, n, &at)) != KRON_HOOK_COUNT;
		     at++) {
			uint32_t owner = plan_owner_of(m, g->vaddr + at);

			if (owner < m->fns->n)
				*vec_push(&m->unwinds) =
					(struct plan_unwind){g->vaddr + at, owner, (uint8_t)h};
		}
	}
}

/* One function's places by vaddr, then as asked for: mostly they are so already. */
static bool is_sorted(const struct place_request *v, const uint32_t *order, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (v[order[i]].vaddr < v[order[i - 1]].vaddr)
			return false;
	return true;
}

static int compare_ordered(const void *a, const void *b, void *ctx)
{
	const struct place_request *v = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (v[x].vaddr != v[y].vaddr)
		return v[x].vaddr < v[y].vaddr ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Counting sort by function, as with exits. */
static void index_places(struct making *m)
{
	const struct plan_request *r = m->opt->request;
	size_t n = r && !m->opt->hooks_only ? r->nplaces : 0, none = m->fns->n;
	uint32_t *first = xcalloc(none + 3, sizeof(uint32_t));
	uint32_t *order = xmalloc(n * sizeof(uint32_t));

	for (size_t i = 0; i < n; i++)
		first[plan_owner_of(m, r->places[i].vaddr) + 2]++;
	for (size_t i = 2; i < none + 3; i++)
		first[i] += first[i - 1];
	for (size_t i = 0; i < n; i++)
		order[first[plan_owner_of(m, r->places[i].vaddr) + 1]++] = i;
	for (size_t i = 0; n && i <= none; i++)
		if (!is_sorted(r->places, order + first[i], first[i + 1] - first[i]))
			qsort_r(order + first[i], first[i + 1] - first[i], sizeof(*order),
				compare_ordered, (void *)r->places);
	m->places.first = first;
	m->places.order = order;
}

static void index_free(struct plan_index *ix)
{
	xfree(ix->next_part);
	xfree(ix->first_exit);
	xfree(ix->exits);
}

/* ---- names ---- */

/* This many functions are named at once; their strings stand one after the other. */
#define NAMED 4096u

struct strings { /* as VEC() has it */
	char *v;
	size_t n, cap;
};

struct naming {
	struct making *m;
	struct strings *v; /* by number of a batch */
};

/* From the beginning of the batch; 0: "", which stands before all of them. */
static uint32_t add_string(struct strings *to, const char *s)
{
	size_t n, off = to->n;

	if (!s || !*s)
		return 0;
	n = strlen(s) + 1;
	vec_reserve(to, off + n);
	memcpy(to->v + off, s, n);
	to->n += n;
	return (uint32_t)off + 1;
}

static void name_batch(size_t number, void *ctx)
{
	struct naming *all = ctx;
	struct making *m = all->m;
	size_t end = (number + 1) * NAMED;

	for (size_t k = number * NAMED; k < end && k < m->functions.n; k++) {
		struct plan_function *pf = &m->functions.v[k];
		const char *raw = m->fns->v[m->numbers.v[k]].name;
		char *readable = raw ? symbol_demangle(raw) : NULL;

		pf->raw_name = add_string(&all->v[number], raw);
		pf->name = readable ? add_string(&all->v[number], readable) : pf->raw_name;
		xfree(readable);
	}
}

static void take_batch(struct making *m, size_t number, struct strings *batch)
{
	uint32_t base = (uint32_t)m->strings.n - 1;
	size_t end = (number + 1) * NAMED;

	for (size_t k = number * NAMED; k < end && k < m->functions.n; k++) {
		struct plan_function *pf = &m->functions.v[k];

		pf->raw_name += pf->raw_name ? base : 0;
		pf->name += pf->name ? base : 0;
	}
	vec_reserve(&m->strings, m->strings.n + batch->n);
	if (batch->n)
		memcpy(m->strings.v + m->strings.n, batch->v, batch->n);
	m->strings.n += batch->n;
	vec_free(batch);
}

static void name_all(struct making *m)
{
	size_t n = (m->functions.n + NAMED - 1) / NAMED;
	struct naming all = {m, xcalloc(n + 1, sizeof(*all.v))};

	*vec_push(&m->strings) = 0; /* offset 0 is "" */
	jobs_run(n, name_batch, &all);
	for (size_t i = 0; i < n; i++)
		take_batch(m, i, &all.v[i]);
	xfree(all.v);
}

/* ---- what there is to be probed ---- */

static bool has_unresolved_indirect(const struct making *m, uint32_t i)
{
	for (uint32_t r = i; r != NONE; r = plan_next_range(m, r))
		if (m->map->per_function[r].unresolved_indirect)
			return true;
	return false;
}

static struct plan_probe *add_probe(struct making *m, struct plan_function *pf, uint64_t vaddr,
				    enum probe_kind kind)
{
	struct plan_probe *p = vec_push(&m->pl.probes);

	p->vaddr = vaddr;
	p->function = m->functions.n - 1;
	p->site = NONE;
	p->kind = kind;
	pf->nprobes++;
	return p;
}

static void add_hooks(struct making *m, struct plan_function *pf, const struct function *f)
{
	for (int h = 0; h < KRON_HOOK_SYMBOLS; h++) {
		uint64_t at = m->hooks[h] == pf->vaddr ? hooks_place(m->map, h, f) : 0;

		if (at)
			add_probe(m, pf, at, PROBE_HOOK)->hook = h;
	}
}

static void add_unwind_hooks(struct making *m, struct plan_function *pf, uint32_t i)
{
	vec_for(&m->unwinds, u)
		if (u->function == i)
			add_probe(m, pf, u->vaddr, PROBE_HOOK)->hook = u->hook;
}

/* Sites of these hooks come with all others, so they bind nobody (planner_function.has_hooks). */
static void add_hooked_instructions(struct making *m, struct plan_function *pf, uint32_t i)
{
	if (!m->has_hooked_instructions)
		return;
	for (uint32_t r = i; r != NONE; r = plan_next_range(m, r)) {
		const struct function *f = &m->fns->v[r];
		const uint8_t *code = elf_image_at(m->map->img, f->start, f->end - f->start);
		uint64_t n = code ? f->end - f->start : 0;

		for (uint64_t at = hooks_next(code, 0, n); at < n;
		     at = hooks_next(code, at + 1, n)) {
			enum kron_hook h = hooks_at(m->map, f->start + at, code + at, n - at);

			if (h != KRON_HOOK_COUNT)
				add_probe(m, pf, f->start + at, PROBE_HOOK)->hook = h;
		}
	}
}

static void add_exits(struct making *m, struct plan_function *pf, uint32_t i)
{
	for (uint32_t k = m->ix.first_exit[i]; k < m->ix.first_exit[i + 1]; k++) {
		const struct code_exit *e = m->ix.exits[k];
		const struct function *holder = functions_at(m->fns, e->vaddr);
		struct plan_probe *p;

		p = add_probe(m, pf, e->vaddr, PROBE_EXIT);
		if (e->refusal != REFUSAL_JCC_TAIL) /* emit.c has a form for those */
			p->refusal = e->refusal;
		/* what lies between the end of the code and the next symbol may be data */
		if (!p->refusal && holder && !holder->has_size)
			p->refusal = REFUSAL_NO_BOUNDS;
	}
}

/* Places of the request that belong to function i; fns->n: to none. */
static void add_places(struct making *m, uint32_t i)
{
	for (uint32_t k = m->places.first[i]; k < m->places.first[i + 1]; k++) {
		const struct place_request *r = &m->opt->request->places[m->places.order[k]];
		struct plan_probe *p = vec_push(&m->pl.probes);

		p->vaddr = r->vaddr;
		p->site = NONE;
		p->kind = PROBE_PLACE;
		p->where = r->where;
		p->action = r->action;
		p->event = r->event;
		p->function = i == m->fns->n ? PLAN_NO_FUNCTION : m->functions.n - 1;
		p->refusal = i == m->fns->n ? REFUSAL_NO_FUNCTION : REFUSAL_NONE;
		if (i != m->fns->n)
			m->functions.v[m->functions.n - 1].nprobes++;
	}
}

/* The last instruction of it, or of a part, is a call that nothing follows. */
static bool ends_with_call(const struct making *m, uint32_t i)
{
	for (uint32_t r = i; r != NONE; r = plan_next_range(m, r)) {
		const struct function *f = &m->fns->v[r];
		uint64_t last = code_map_previous(m->map, f->end - 1);
		struct insn in;

		if (f->has_size && last && code_map_scan(m->map, last, &in) &&
		    (in.kind == INSN_CALL || in.kind == INSN_CALL_INDIRECT) &&
		    last + in.len == f->end)
			return true;
	}
	return false;
}

/* Nothing in the file points to it, and no other file can find it. */
static bool is_untaken(const struct function *f)
{
	return !f->is_pointed_at && !f->is_ifunc && !(f->sources & FUNCTION_DYNSYM);
}

/* The function and its probes; which of them can be had is judged later. */
static void list_function(struct making *m, uint32_t i)
{
	const struct function *f = &m->fns->v[i];
	struct plan_function *pf;

	if (m->opt->hooks_only && !plan_is_hooked(m, i))
		return;
	pf = vec_push(&m->functions);
	pf->vaddr = f->start;
	pf->size = f->end - f->start;
	pf->sources = f->sources | (f->is_ifunc ? FUNCTION_IFUNC : 0) |
		      (f->is_stub ? FUNCTION_STUB : 0) |
		      (ends_with_call(m, i) ? FUNCTION_CALLS : 0) |
		      (is_untaken(f) ? FUNCTION_UNTAKEN : 0);
	pf->first_probe = m->pl.probes.n;
	*vec_push(&m->numbers) = i;
	add_hooks(m, pf, f);
	add_unwind_hooks(m, pf, i);
	add_hooked_instructions(m, pf, i);
	if (!m->opt->hooks_only && !f->is_stub &&
	    (!m->opt->request || m->opt->request->functions)) {
		add_probe(m, pf, f->start, PROBE_ENTRY);
		if (!m->opt->request || !m->opt->request->calls)
			add_exits(m, pf, i);
	}
	add_places(m, i);
}

/* Those in no function come last. */
static void list_all(struct making *m)
{
	for (size_t i = 0; i < m->fns->n; i++)
		if (!m->fns->v[i].is_part)
			list_function(m, i);
	add_places(m, m->fns->n);
}

static void list_one_only(struct making *m)
{
	m->pl.one_only = xcalloc(m->fns->n + 1, 1);
	for (uint32_t i = 0; i < m->fns->n; i++) {
		bool one_only = !m->fns->v[i].is_part && has_unresolved_indirect(m, i);

		for (uint32_t r = i; one_only && r != NONE; r = plan_next_range(m, r))
			m->pl.one_only[r] = true;
	}
}

/* ---- the whole ---- */

static uint32_t count_lies(const struct making *m)
{
	uint32_t n = (uint32_t)m->fns->nlies;

	for (size_t i = 0; i < m->fns->n; i++)
		n += m->map->per_function[i].contradicted;
	return n;
}

/* The vectors become the plan's. */
static struct plan *finish(struct making *m)
{
	struct plan *p = xcalloc(1, sizeof(*p));
	const struct elf_image *img = m->map->img;

	planner_sort_sites(&m->pl, request_has_places(m->opt->request));
	memcpy(p->build_id, img->build_id, sizeof(p->build_id));
	p->build_id_len = img->build_id_len;
	p->functions = m->functions.v, p->nfunctions = m->functions.n;
	p->probes = m->pl.probes.v, p->nprobes = m->pl.probes.n;
	p->sites = m->pl.sites.v, p->nsites = m->pl.sites.n;
	p->fixups = m->pl.fixups.v, p->nfixups = m->pl.fixups.n;
	p->maps = m->pl.maps.v, p->nmaps = m->pl.maps.n;
	p->code = m->pl.code.v, p->code_len = m->pl.code.n;
	p->strings = m->strings.v, p->strings_len = m->strings.n;
	p->nlies = count_lies(m);
	p->copied_lo = m->pl.copied.lo, p->copied_hi = m->pl.copied.hi;
	if (m->opt->request && m->opt->request->nactions) {
		p->nactions = m->opt->request->nactions;
		p->actions = xmalloc(p->nactions * sizeof(p->actions[0]));
		memcpy(p->actions, m->opt->request->actions, p->nactions * sizeof(p->actions[0]));
	}
	plan_mark_places(p);
	plan_measure_span(p);
	if (!m->opt->hooks_only)
		plan_add_jumps(p, img);
	return p;
}

int plan_make_from(struct plan **out, const struct code_map *map, const struct plan_options *opt,
		   struct err *err)
{
	static const struct plan_options no_options;
	struct making m = {.map = map, .fns = map->functions, .opt = opt ? opt : &no_options};
	int code;

	if (!request_is_sound(m.opt->request))
		return err_set(err, EINVAL, "%s: a place names no action", map->img->path);
	if (map->functions->n >= NONE || map->hi - map->lo > UINT32_MAX)
		return err_set(err, EFBIG, "%s: more code than kron can plan", map->img->path);
	m.pl.map = map;
	m.pl.use = m.opt->tactics ? m.opt->tactics : USE_DEFAULT;
	m.pl.position_independent = m.opt->position_independent;
	m.pl.actions = m.opt->request ? m.opt->request->actions : NULL;
	m.pl.shown = request_shown_registers(m.opt->request);
	m.pl.is_counting = request_is_counting(m.opt->request);
	m.pl.counts_calls = m.opt->request && m.opt->request->calls;
	m.pl.counts_pages = request_counts_pages(m.opt->request);
	pthread_mutex_init(&m.shared.lock, NULL);
	m.pl.shared = &m.shared;
	hooks_find(map->img, m.hooks);
	m.has_hooked_instructions = !m.opt->hooks_only && hooks_has_instructions(map->img);
	m.is_read = aot_image_is(map->img);
	copied_find(&m.pl.copied, map->functions);
	m.hooks[KRON_HOOK_HANDLERS] = m.opt->handlers;
	m.ix.next_part = functions_link_parts(m.fns);
	index_exits(&m);
	index_places(&m);
	list_arrivals(&m);
	list_unwinds(&m);
	list_one_only(&m);
	list_all(&m);
	name_all(&m);
	plan_take_all(&m);
	*out = finish(&m);
	code = elf_image_check(map->img, err);
	if (code) {
		plan_free(*out);
		*out = NULL;
	}
	index_free(&m.ix);
	liveness_free(m.shared.liveness);
	frame_info_close(m.shared.frames);
	pthread_mutex_destroy(&m.shared.lock);
	xfree(m.places.first);
	xfree(m.places.order);
	vec_free(&m.pl.entrances);
	vec_free(&m.pl.arrivals);
	vec_free(&m.unwinds);
	vec_free(&m.numbers);
	xfree(m.pl.one_only);
	return code;
}

int plan_make(struct plan **out, const struct elf_image *img, const struct plan_options *opt,
	      struct err *err)
{
	struct functions fns = {0};
	struct code_map *map;
	int r;

	r = functions_find(&fns, img, err);
	if (r)
		return r;
	r = code_map_build(&map, img, &fns, err);
	if (r == 0) {
		r = plan_make_from(out, map, opt, err);
		code_map_free(map);
	}
	functions_free(&fns);
	return r;
}

void plan_count(const struct plan *p, enum probe_kind kind, struct plan_counts *out)
{
	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < p->nprobes; i++) {
		const struct plan_probe *probe = &p->probes[i];

		if (probe->kind != kind)
			continue;
		out->found++;
		if (probe->site == NONE && probe->tactic != TACTIC_CALLSITE) {
			out->refused[probe->refusal]++;
			continue;
		}
		out->patched++;
		out->by_tactic[probe->tactic]++;
	}
}

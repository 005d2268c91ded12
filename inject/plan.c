/* SPDX-License-Identifier: MIT */
/*
 * plan.c - from an image to a plan: which places want a probe, and the ladder that takes them.
 *
 *   functions, code map --> per function: hooks, entry, exits --ladder--> drafts --emit--> sites
 *                                    \--> refusals
 *
 * Loops.  When a function's first instruction is the head of a loop, the entry's window
 * stands in the loop too.  Turns of the loop are no calls, so every jump of the function that
 * closes the loop is displaced as well and leads into the entry's stub behind the probe.  If
 * one of them cannot be displaced, the entry is refused.  Tail calls of a function to itself
 * are no loops: the code map tells them by their frame and lists them as exits.
 *
 * Pure: no file, no process; the same image gives the same bytes.
 */
#define _GNU_SOURCE
#include "inject/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inject/action.h"
#include "inject/aot_image.h"
#include "inject/copied.h"
#include "inject/demangle.h"
#include "inject/hooks.h"
#include "inject/planner.h"

#define NONE UINT32_MAX

/* What plan_make needs to find quickly, by index in functions. */
struct index {
	uint32_t *first_part, *next_part; /* list of parts, NONE ends it */
	uint32_t *first_exit;             /* n + 1 entries into exits */
	const struct code_exit **exits;   /* grouped by function, each group by vaddr */
};

/* The request's places that lie in functions, grouped like exits. */
struct places {
	uint32_t *first; /* n + 3 entries into order; the last but one group is in no function */
	uint32_t *order; /* numbers of the request, each group by vaddr, then as asked for */
};

struct making {
	struct planner pl;
	const struct code_map *map;
	const struct functions *fns;
	const struct plan_options *opt;
	struct index ix;
	struct places places;
	uint64_t hooks[KRON_HOOK_SYMBOLS];
	bool is_read; /* aot_image.h */
	VEC(struct plan_function) functions;
	VEC(char) strings;
	uint8_t *moves; /* by index in fns: the whole function moves out; NULL: none does */
	bool is_anew;
	struct plan_function *named; /* of the attempt before: they have their names */
	VEC(uint32_t) ranges;        /* of the function at work */
	VEC(uint32_t) numbers;       /* by plan function: in fns */
};

/* ---- index ---- */

static void index_parts(struct making *m)
{
	size_t n = m->fns->n;

	m->ix.first_part = xmalloc(n * sizeof(uint32_t));
	m->ix.next_part = xmalloc(n * sizeof(uint32_t));
	memset(m->ix.first_part, 0xff, n * sizeof(uint32_t));
	for (size_t i = n; i-- > 0;) {
		const struct function *f = &m->fns->v[i];

		if (!f->is_part || f->parent == i || f->parent >= n)
			continue;
		m->ix.next_part[i] = m->ix.first_part[f->parent];
		m->ix.first_part[f->parent] = i;
	}
}

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

/* The function, not a part of one, that vaddr belongs to; fns->n: none. */
static uint32_t owner_of(const struct making *m, uint64_t vaddr)
{
	const struct function *f = functions_at(m->fns, vaddr);

	if (!f)
		return m->fns->n;
	return f->is_part && f->parent < m->fns->n ? f->parent : f - m->fns->v;
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
		first[owner_of(m, r->places[i].vaddr) + 2]++;
	for (size_t i = 2; i < none + 3; i++)
		first[i] += first[i - 1];
	for (size_t i = 0; i < n; i++)
		order[first[owner_of(m, r->places[i].vaddr) + 1]++] = i;
	for (size_t i = 0; n && i <= none; i++)
		if (!is_sorted(r->places, order + first[i], first[i + 1] - first[i]))
			qsort_r(order + first[i], first[i + 1] - first[i], sizeof(*order),
				compare_ordered, (void *)r->places);
	m->places.first = first;
	m->places.order = order;
}

static void index_free(struct index *ix)
{
	xfree(ix->first_part);
	xfree(ix->next_part);
	xfree(ix->first_exit);
	xfree(ix->exits);
}

/* ---- names ---- */

static uint32_t add_string(struct making *m, const char *s)
{
	size_t n, off = m->strings.n;

	if (!s || !*s)
		return 0;
	n = strlen(s) + 1;
	vec_reserve(&m->strings, off + n);
	memcpy(m->strings.v + off, s, n);
	m->strings.n += n;
	return off;
}

static void add_names(struct making *m, struct plan_function *pf, const char *raw)
{
	const struct plan_function *named = m->named ? &m->named[m->functions.n - 1] : NULL;
	char *readable = raw && !named ? symbol_demangle(raw) : NULL;

	if (named) {
		pf->raw_name = named->raw_name;
		pf->name = named->name;
		return;
	}
	pf->raw_name = add_string(m, raw);
	pf->name = readable ? add_string(m, readable) : pf->raw_name;
	xfree(readable);
}

/* ---- one function ---- */

/* The function itself, then its parts. */
static uint32_t next_range(const struct making *m, uint32_t i, uint32_t r)
{
	return r == i ? m->ix.first_part[r] : m->ix.next_part[r];
}

static bool is_undecodable(const struct making *m, uint32_t i)
{
	for (uint32_t r = i; r != NONE; r = next_range(m, i, r))
		if (m->map->per_function[r].undecodable)
			return true;
	return false;
}

static bool has_unresolved_indirect(const struct making *m, uint32_t i)
{
	for (uint32_t r = i; r != NONE; r = next_range(m, i, r))
		if (m->map->per_function[r].unresolved_indirect)
			return true;
	return false;
}

/* A reason that holds for every probe of the function, or REFUSAL_NONE. */
static enum refusal refuse_function(const struct making *m, uint32_t i)
{
	const struct function *f = &m->fns->v[i];

	if (m->map->img->has_text_relocs)
		return REFUSAL_NOT_RELOCATABLE; /* the loader changes the code */
	if (m->is_read)
		return REFUSAL_READ;
	if (!elf_image_at(m->map->img, f->start, f->end - f->start))
		return REFUSAL_OUT_OF_FILE;
	if (is_undecodable(m, i))
		return REFUSAL_UNDECODABLE;
	if (copied_is_template(f) || (m->opt->for_file && copied_has(&m->pl.copied, f)))
		return REFUSAL_COPIED;
	return REFUSAL_NONE;
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

static void put_probe(struct making *m, struct plan_probe *p, bool may_go_back, size_t from,
		      size_t to)
{
	struct place place = {p->vaddr, p - m->pl.probes.v, may_go_back, DRAFT_BEFORE};

	p->refusal = planner_climb(&m->pl, &place, from, to);
}

static bool is_exit(const struct making *m, uint32_t i, uint64_t vaddr)
{
	for (uint32_t k = m->ix.first_exit[i]; k < m->ix.first_exit[i + 1]; k++)
		if (m->ix.exits[k]->vaddr == vaddr)
			return true;
	return false;
}

/* A jump to the function's start that stays in its frame; the others are tail calls. */
static bool closes_loop(const struct making *m, uint32_t i, uint64_t vaddr)
{
	struct insn in;

	return code_map_flags(m->map, vaddr) & CODE_INSN && window_decode(m->map, vaddr, &in) &&
	       (in.kind == INSN_JMP || in.kind == INSN_JCC) && in.target == m->pl.fn.start &&
	       !is_exit(m, i, vaddr);
}

/* Displace every jump to the function's start.  False: one of them cannot be, or there is none
 * that we see. */
static bool take_loops(struct making *m, uint32_t i)
{
	unsigned found = 0;

	for (uint32_t r = i; r != NONE; r = next_range(m, i, r)) {
		const struct function *f = &m->fns->v[r];

		for (uint64_t at = f->start; at < f->end; at++) {
			struct place place = {at, PLACE_NO_PROBE, true, DRAFT_BEFORE};

			if (!closes_loop(m, i, at))
				continue;
			if (planner_climb(&m->pl, &place, 0, PLANNER_RUNGS))
				return false;
			found++;
		}
	}
	return found > 0;
}

static void take_entry(struct making *m, uint32_t i, struct plan_probe *p)
{
	struct planner *pl = &m->pl;

	if (m->map->per_function[i].switches_to_start) {
		p->refusal = REFUSAL_LOOP_HEAD;
		return;
	}
	pl->fn.has_loops = m->map->per_function[i].loops_to_start;
	put_probe(m, p, false, 0, PLANNER_RUNGS);
	if (p->refusal)
		pl->fn.has_loops = false;
	if (!pl->fn.has_loops || take_loops(m, i))
		return;
	for (size_t k = 0; k < pl->drafts.n; k++)
		planner_release(pl, k);
	pl->drafts.n = 0;
	pl->fn.has_loops = false;
	p->refusal = REFUSAL_LOOP_HEAD;
}

static bool is_hooked(const struct making *m, uint64_t vaddr)
{
	for (int h = 0; h < KRON_HOOK_SYMBOLS; h++)
		if (m->hooks[h] == vaddr)
			return true;
	return false;
}

static void add_hooks(struct making *m, struct plan_function *pf, const struct function *f)
{
	for (int h = 0; h < KRON_HOOK_SYMBOLS; h++) {
		uint64_t at = m->hooks[h] == pf->vaddr ? hooks_place(m->map, h, f) : 0;

		if (at)
			add_probe(m, pf, at, PROBE_HOOK)->hook = h;
	}
}

/* A file's sites all come together, so these bind nobody (planner_function.has_hooks). */
static void add_system_calls(struct making *m, struct plan_function *pf, uint32_t i)
{
	if (m->map->img->kind != ELF_KIND_STATIC)
		return;
	for (uint32_t r = i; r != NONE; r = next_range(m, i, r)) {
		const struct function *f = &m->fns->v[r];
		const uint8_t *code = elf_image_at(m->map->img, f->start, f->end - f->start);

		for (uint64_t at = f->start; code && at + 1 < f->end; at++)
			if (code[at - f->start] == 0x0f && code[at - f->start + 1] == 0x05 &&
			    hooks_is_system_call(m->map, at))
				add_probe(m, pf, at, PROBE_HOOK)->hook = KRON_HOOK_SYSTEM_CALL;
	}
}

static bool is_system_call(const struct plan_probe *p)
{
	return p->kind == PROBE_HOOK && p->hook == KRON_HOOK_SYSTEM_CALL;
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

/* Behind an instruction is where it falls through.  Behind a call is where it returns to. */
static enum refusal refuse_after(const struct making *m, const struct insn *in)
{
	uint64_t next = in->addr + in->len;
	uint8_t flags = code_map_flags(m->map, next);

	/* the stub calls, and unwinders must get through it */
	if (m->pl.results && in->kind == INSN_JMP_INDIRECT && in->rip_relative)
		return functions_at(m->fns, in->addr)->has_fde ? REFUSAL_NONE : REFUSAL_NOT_REACHED;
	if (in->kind != INSN_CALL && in->kind != INSN_CALL_INDIRECT)
		return window_insn_ends(in) ? REFUSAL_NOT_REACHED : REFUSAL_NONE;
	if (!(flags & CODE_INSN) || owner_of(m, next) != owner_of(m, in->addr))
		return REFUSAL_NOT_REACHED;
	return REFUSAL_NONE;
}

/* A reason that no tactic can help. */
static enum refusal refuse_place(const struct making *m, const struct place_request *r)
{
	enum refusal why = REFUSAL_NONE;
	struct insn in;

	if (!(code_map_flags(m->map, r->vaddr) & CODE_INSN) ||
	    !code_map_insn(m->map, r->vaddr, &in))
		return REFUSAL_NO_INSN;
	if (r->where == PLACE_AFTER)
		why = refuse_after(m, &in);
	if (r->where == PLACE_TAKEN && (in.kind != INSN_JCC || in.is_loop))
		why = REFUSAL_JCC_TAIL; /* it has no opposite */
	return why ? why
		   : action_refusal(&m->opt->request->actions[r->action], r->where, &in,
				    elf_image_at(m->map->img, r->vaddr, in.len));
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
		p->refusal = i == m->fns->n ? REFUSAL_NO_FUNCTION : refuse_place(m, r);
		if (i != m->fns->n)
			m->functions.v[m->functions.n - 1].nprobes++;
	}
}

/*
 * The entry first: it has one place only, exits may find room elsewhere.  Hooks share its
 * window.  Probes keep the order hooks, entry, exits.
 */
/* The rungs above the first, for an exit that the first could not take. */
static void retry_exit(struct making *m, struct plan_probe *p)
{
	enum refusal first = p->refusal;

	if (first == REFUSAL_NO_BOUNDS || first == REFUSAL_AMBIGUOUS_JUMP)
		return;                          /* no matter of room */
	put_probe(m, p, true, 0, PLANNER_RUNGS); /* the first may share what another one moved */
	if (p->refusal)
		p->refusal = first;
}

static void take_system_calls(struct making *m, const struct plan_function *pf)
{
	for (uint32_t k = 0; k < pf->nprobes; k++) {
		struct plan_probe *p = &m->pl.probes.v[pf->first_probe + k];

		if (is_system_call(p))
			put_probe(m, p, true, 0, PLANNER_RUNGS);
	}
}

static void take_places(struct making *m, struct plan_function *pf, uint32_t i)
{
	bool has_places = m->places.first[i] < m->places.first[i + 1];
	struct plan_probe *v, *end;

	if (m->moves && m->moves[i])
		planner_move_all(&m->pl);
	if (!pf->nprobes)
		return;
	v = m->pl.probes.v + pf->first_probe;
	end = v + pf->nprobes;
	for (struct plan_probe *p = v; p < end; p++)
		if (p->kind == PROBE_ENTRY)
			take_entry(m, i, p);
	for (struct plan_probe *p = v; p < end; p++)
		if (p->kind == PROBE_HOOK && !is_system_call(p))
			put_probe(m, p, false, 0, PLANNER_RUNGS);
	if (!has_places)
		take_system_calls(m, pf);
	for (struct plan_probe *p = v; p < end; p++)
		if (p->kind == PROBE_EXIT && !p->refusal)
			put_probe(m, p, true, 0, 1);
	/* what is left of the padding now, nobody takes for a better tactic */
	for (struct plan_probe *p = v; p < end; p++)
		if (p->kind == PROBE_EXIT && p->refusal && p->site == NONE)
			retry_exit(m, p);
	for (v = end; v > m->pl.probes.v + pf->first_probe && v[-1].kind == PROBE_PLACE;)
		v--;
	planner_take_places(&m->pl, v - m->pl.probes.v, end - v);
	if (has_places) /* whose windows are long: mostly they are in one */
		take_system_calls(m, pf);
}

/* Function i is at work. */
static void set_function(struct making *m, uint32_t i)
{
	m->ranges.n = 0;
	for (uint32_t r = i; r != NONE; r = next_range(m, i, r))
		*vec_push(&m->ranges) = r;
	m->pl.is_long = m->opt->request || (m->moves && m->moves[i]);
	m->pl.results = m->fns->v[i].is_stub;
	m->pl.use = m->opt->tactics ? m->opt->tactics : USE_DEFAULT;
	if (m->fns->v[i].is_stub)
		m->pl.use = USE_JUMP;
	planner_open_copied(&m->pl, i);
	m->pl.fn = (struct planner_function){
		.start = m->fns->v[i].start,
		.ranges = m->ranges.v,
		.nranges = m->ranges.n,
	};
}

static void plan_one(struct making *m, uint32_t i)
{
	const struct function *f = &m->fns->v[i];
	struct plan_function *pf;
	enum refusal r;

	if (m->opt->hooks_only && !is_hooked(m, f->start))
		return;
	pf = vec_push(&m->functions);
	pf->vaddr = f->start;
	pf->size = f->end - f->start;
	pf->sources =
		f->sources | (f->is_ifunc ? FUNCTION_IFUNC : 0) | (f->is_stub ? FUNCTION_STUB : 0);
	pf->first_probe = m->pl.probes.n;
	add_names(m, pf, f->name);
	*vec_push(&m->numbers) = i;
	set_function(m, i);
	add_hooks(m, pf, f);
	m->pl.fn.has_hooks = pf->nprobes;
	add_system_calls(m, pf, i);
	if (!m->opt->hooks_only && !f->is_stub &&
	    (!m->opt->request || m->opt->request->functions)) {
		add_probe(m, pf, f->start, PROBE_ENTRY);
		add_exits(m, pf, i);
	}
	add_places(m, i);
	pf = &m->functions.v[m->functions.n - 1];
	r = refuse_function(m, i);
	if (r) {
		for (uint32_t k = 0; k < pf->nprobes; k++)
			m->pl.probes.v[pf->first_probe + k].refusal = r;
		return;
	}
	take_places(m, pf, i);
	planner_emit(&m->pl, m->functions.n - 1);
}

/* ---- the second round ---- */

static bool is_for_want_of_room(enum refusal r)
{
	return r == REFUSAL_NO_ROOM || r == REFUSAL_BRANCH_TARGET || r == REFUSAL_AFTER_CALL ||
	       r == REFUSAL_OVERLAP || r == REFUSAL_INDIRECT_JUMP;
}

/* What the first round found no room for, now that every function has taken its places. */
static void plan_again(struct making *m, uint32_t plan_function, bool is_last)
{
	const struct plan_function *pf = &m->functions.v[plan_function];
	const struct code_function *cf = &m->map->per_function[m->numbers.v[plan_function]];

	if (refuse_function(m, m->numbers.v[plan_function]))
		return;
	set_function(m, m->numbers.v[plan_function]);
	m->pl.fn.second_round = true;
	m->pl.fn.is_last = is_last;
	m->pl.is_long |= is_last; /* what moved out has left room for all */
	for (uint32_t k = 0; k < pf->nprobes; k++) {
		struct plan_probe *p = &m->pl.probes.v[pf->first_probe + k];
		enum refusal first = p->refusal;

		if (p->kind == PROBE_PLACE) {
			planner_retry_places(&m->pl, pf->first_probe + k, pf->nprobes - k);
			break;
		}
		if (p->kind == PROBE_HOOK && !is_system_call(p))
			return; /* its site may be patched without the others */
		if (!is_for_want_of_room(first) ||
		    (p->kind == PROBE_ENTRY && (cf->loops_to_start || cf->switches_to_start)))
			continue;
		put_probe(m, p, p->kind != PROBE_ENTRY, 0, PLANNER_RUNGS);
		if (p->refusal && is_last && m->pl.use & USE_INT3)
			p->refusal = planner_trap(&m->pl, pf->first_probe + k);
		if (p->refusal)
			p->refusal = first;
	}
	planner_emit(&m->pl, plan_function);
}

static void plan_all(struct making *m)
{
	for (size_t i = 0; i < m->fns->n; i++)
		if (!m->fns->v[i].is_part)
			plan_one(m, i);
	for (size_t i = 0; i < m->functions.n; i++)
		plan_again(m, i, false);
	for (size_t i = 0; i < m->functions.n && (m->opt->request || m->is_anew); i++)
		plan_again(m, i, true);
	add_places(m, m->fns->n);
}

/* ---- the third round: whole functions move out ---- */

/* The code of the function can be anywhere: no hook, no loop back to its entry. */
static bool can_move(const struct making *m, uint32_t i)
{
	const struct code_function *cf = &m->map->per_function[i];

	return !is_hooked(m, m->fns->v[i].start) && !cf->loops_to_start && !cf->switches_to_start &&
	       !copied_has(&m->pl.copied, &m->fns->v[i]) && !refuse_function(m, i);
}

/* The function that holds vaddr, if it can move. */
static void mark_move(const struct making *m, uint8_t *moves, uint64_t vaddr)
{
	uint32_t i = owner_of(m, vaddr);

	if (i < m->fns->n && can_move(m, i))
		moves[i] = true;
}

/* Probes that found no room: their functions are marked, and those where puns may lead. */
static size_t mark_left(const struct making *m, uint8_t *moves)
{
	static const int8_t ways[] = {0, -21, 1, 40, 48, 64, 72, 80, 102};
	size_t left = 0;

	for (size_t i = 0; i < m->pl.probes.n; i++) {
		const struct plan_probe *p = &m->pl.probes.v[i];

		if (p->site != NONE || !is_for_want_of_room(p->refusal))
			continue;
		for (size_t k = 0; k < sizeof(ways); k++)
			mark_move(m, moves, p->vaddr + (uint64_t)(int64_t)ways[k]);
		left++;
	}
	return left;
}

/* All from the beginning, but for the names. */
static void plan_anew(struct making *m, uint8_t *moves)
{
	struct planner *pl = &m->pl;

	m->moves = moves;
	m->is_anew = true;
	memset(pl->taken, BYTE_FREE, m->map->hi - m->map->lo);
	planner_lock_copied(pl);
	pl->probes.n = pl->drafts.n = pl->draft_probes.n = pl->relays.n = 0;
	pl->sites.n = pl->entrances.n = pl->fixups.n = pl->maps.n = pl->code.n = pl->site_index.n =
		0;
	pl->jumps_of = 0;
	xfree(m->named);
	m->named = m->functions.v;
	m->functions.v = NULL;
	m->functions.n = m->functions.cap = 0;
	m->numbers.n = 0;
	plan_all(m);
}

/*
 * Runs of less than five bytes between two places that control may come to need landings, and
 * where a function is full of them only moving all of it out leaves dead bytes for those.  Their
 * neighbours may want another window then, so everything is planned anew.
 */
static void move_functions(struct making *m)
{
	uint8_t *moves, *none;
	size_t left;

	if (m->opt->request || m->opt->hooks_only || !(m->pl.use & (USE_EVICT | USE_INT3)))
		return;
	moves = xcalloc(m->fns->n + 1, 1);
	none = xcalloc(m->fns->n + 1, 1);
	left = mark_left(m, moves);
	if (left && m->pl.use & USE_EVICT)
		plan_anew(m, moves);
	if (left && (!(m->pl.use & USE_EVICT) || mark_left(m, none) >= left))
		plan_anew(m, NULL);
	m->moves = NULL;
	xfree(moves);
	xfree(none);
	xfree(m->named);
}

static void list_one_only(struct making *m)
{
	m->pl.one_only = xcalloc(m->fns->n + 1, 1);
	for (uint32_t i = 0; i < m->fns->n; i++) {
		bool one_only = !m->fns->v[i].is_part && has_unresolved_indirect(m, i);

		for (uint32_t r = i; one_only && r != NONE; r = next_range(m, i, r))
			m->pl.one_only[r] = true;
	}
}

/* ---- the whole ---- */

/* The vectors become the plan's. */
static struct plan *finish(struct making *m)
{
	struct plan *p = xcalloc(1, sizeof(*p));
	const struct elf_image *img = m->map->img;

	xfree(m->pl.taken);
	m->pl.taken = NULL;
	planner_sort_sites(&m->pl, m->opt->request);
	memcpy(p->build_id, img->build_id, sizeof(p->build_id));
	p->build_id_len = img->build_id_len;
	p->functions = m->functions.v, p->nfunctions = m->functions.n;
	p->probes = m->pl.probes.v, p->nprobes = m->pl.probes.n;
	p->sites = m->pl.sites.v, p->nsites = m->pl.sites.n;
	p->fixups = m->pl.fixups.v, p->nfixups = m->pl.fixups.n;
	p->maps = m->pl.maps.v, p->nmaps = m->pl.maps.n;
	p->code = m->pl.code.v, p->code_len = m->pl.code.n;
	p->strings = m->strings.v, p->strings_len = m->strings.n;
	p->copied_lo = m->pl.copied.lo, p->copied_hi = m->pl.copied.hi;
	if (m->opt->request && m->opt->request->nactions) {
		p->nactions = m->opt->request->nactions;
		p->actions = xmalloc(p->nactions * sizeof(p->actions[0]));
		memcpy(p->actions, m->opt->request->actions, p->nactions * sizeof(p->actions[0]));
	}
	plan_mark_places(p);
	plan_measure_span(p);
	return p;
}

int plan_make_from(struct plan **out, const struct code_map *map, const struct plan_options *opt,
		   struct err *err)
{
	static const struct plan_options no_options;
	struct making m = {.map = map, .fns = map->functions, .opt = opt ? opt : &no_options};

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
	m.pl.taken = xcalloc(map->hi - map->lo, 1);
	*vec_push(&m.strings) = 0; /* offset 0 is "" */
	hooks_find(map->img, m.hooks);
	m.is_read = aot_image_is(map->img);
	copied_find(&m.pl.copied, map->functions);
	planner_lock_copied(&m.pl);
	index_parts(&m);
	index_exits(&m);
	index_places(&m);
	list_arrivals(&m);
	list_one_only(&m);
	plan_all(&m);
	move_functions(&m);
	*out = finish(&m);
	index_free(&m.ix);
	liveness_free(m.pl.liveness);
	frame_info_close(m.pl.frames);
	xfree(m.places.first);
	xfree(m.places.order);
	vec_free(&m.pl.drafts);
	vec_free(&m.pl.draft_probes);
	vec_free(&m.pl.relays);
	vec_free(&m.pl.places);
	vec_free(&m.pl.jumps);
	vec_free(&m.pl.site_index);
	vec_free(&m.pl.entrances);
	vec_free(&m.pl.arrivals);
	vec_free(&m.ranges);
	vec_free(&m.numbers);
	xfree(m.pl.one_only);
	xfree(m.pl.taken);
	return 0;
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
		if (probe->site == NONE && probe->tactic != TACTIC_IMPORT) {
			out->refused[probe->refusal]++;
			continue;
		}
		out->patched++;
		out->by_tactic[probe->tactic]++;
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * emit_places.c - the probes of a request in a stub, and which counts are made together.
 *
 *   add %rax,%rcx     count 1 ┐                  flags dead here: +3
 *   cmp %rcx,%rdx     count 1 ├─ one region
 *   jne ...           count 1 ┘
 *   mov (%rdi),%rax   count 1 ── another
 *
 * A region is a run of points between which only instructions stand that change nothing but
 * general registers, flags and the stack's top, and cannot fail (insn.is_quiet).  Whoever looks at
 * counters is another thread, which learns from memory how far this one is, or a handler of a
 * fault, or the program itself by a system call or a read of the board; none of them can be
 * between two points of a region.  A signal from outside can, at a moment that nobody can tell
 * from one a few nanoseconds earlier or later.  So all counts of a region may be made at any of
 * its points, and they are made at the cheapest one.
 *
 * Samples end a region: a Resource sample reads the counters.  So does a hook: it may execute another
 * program, and what was to be counted after it never is.
 */
#include "inject/plan/emit.h"

#include <string.h>

/* It was part of making the window: it can be decoded. */
void emit_decode(const struct emitter *e, uint64_t vaddr, struct insn *in)
{
	if (!e->pl->actions || !code_map_insn(e->pl->map, vaddr, in))
		window_decode(e->pl->map, vaddr, in);
}

#define REGION_POINTS 64u
#define REGION_COUNTS 8u /* different actions */

struct point {
	uint64_t vaddr, next; /* of the instruction; of the one that is executed next */
	uint8_t where;
};

struct region {
	struct point points[REGION_POINTS];
	unsigned npoints;
	struct made_count counts[REGION_COUNTS];
	unsigned ncounts;
};

static const struct place_action *action_of(const struct emitter *e, uint32_t probe)
{
	return &e->pl->actions[e->pl->probes.v[probe].action];
}

/* Relative cost of a count, by what has to be saved for it. */
static unsigned cost_of(struct dead dead)
{
	return (dead.flags ? 0 : 2) + (dead.regs ? 0 : 1);
}

struct dead emit_dead_before(const struct emitter *e, uint64_t next)
{
	struct dead dead = liveness_before(planner_liveness(e->pl), next);

	dead.regs &= (uint16_t)~e->pl->shown;
	return dead;
}

static struct dead dead_at(const struct emitter *e, const struct point *p)
{
	return emit_dead_before(e, p->next);
}

/* The cheapest point of the region. */
static void choose_point(const struct emitter *e, const struct region *r, struct made_count *c)
{
	unsigned best = ~0u;

	for (unsigned i = 0; i < r->npoints && best; i++) {
		struct dead dead = dead_at(e, &r->points[i]);

		if (cost_of(dead) >= best)
			continue;
		best = cost_of(dead);
		c->vaddr = r->points[i].vaddr;
		c->where = r->points[i].where;
		c->dead = dead;
	}
}

/* The order in the stub. */
static unsigned order_of(uint8_t where)
{
	return where == DRAFT_RETURNED ? 0 : where + 1u;
}

static bool is_later(const struct made_count *a, const struct made_count *b)
{
	return a->vaddr != b->vaddr ? a->vaddr > b->vaddr : order_of(a->where) > order_of(b->where);
}

static void close_region(struct emitter *e, struct region *r)
{
	if (r->ncounts) /* one search for all of them */
		choose_point(e, r, &r->counts[0]);
	for (unsigned i = 0; i < r->ncounts; i++) {
		struct made_count *c = &r->counts[i];
		unsigned k = e->nmade++;

		c->vaddr = r->counts[0].vaddr;
		c->where = r->counts[0].where;
		c->dead = r->counts[0].dead;
		for (; k && is_later(&e->made[k - 1], c); k--)
			e->made[k] = e->made[k - 1];
		e->made[k] = *c;
	}
	r->npoints = r->ncounts = 0;
}

static bool is_same(const struct place_action *a, const struct place_action *b)
{
	return a->kind == b->kind && a->word == b->word && a->ungated == b->ungated &&
	       (a->ungated || a->level == b->level);
}

static void add_count(struct emitter *e, struct region *r, uint32_t probe, const struct point *at)
{
	for (unsigned i = 0; i < r->ncounts; i++) {
		if (r->counts[i].times < ACTION_TIMES_MAX &&
		    is_same(action_of(e, r->counts[i].probe), action_of(e, probe))) {
			r->counts[i].times++;
			return;
		}
	}
	if (r->ncounts == REGION_COUNTS) {
		close_region(e, r);
		r->points[r->npoints++] = *at;
	}
	r->counts[r->ncounts++] = (struct made_count){.probe = probe, .times = 1};
}

static bool is_here(const struct emitter *e, unsigned i, const struct insn *in,
		    enum draft_where where)
{
	return e->probes[i]->vaddr == in->addr && e->probes[i]->where == where &&
	       e->pl->probes.v[e->probes[i]->probe].kind == PROBE_PLACE;
}

/* The point's counts join the region; anything else ends it. */
static void visit_point(struct emitter *e, struct region *r, const struct point *at,
			const struct insn *in, unsigned from, unsigned to)
{
	if (r->npoints == REGION_POINTS)
		close_region(e, r);
	r->points[r->npoints++] = *at;
	for (unsigned i = from; i < to; i++) {
		uint32_t probe = e->probes[i]->probe;

		if (!is_here(e, i, in, at->where))
			continue;
		if (action_of(e, probe)->kind == ACTION_COUNT) {
			add_count(e, r, probe, at);
			continue;
		}
		close_region(e, r);
		r->points[r->npoints++] = *at;
	}
}

static bool has_hook(const struct emitter *e, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		if (e->pl->probes.v[e->probes[i]->probe].kind == PROBE_HOOK)
			return true;
	return false;
}

void emit_places_begin(struct emitter *e)
{
	const struct window *w = &e->d->w;
	unsigned from, to = 0;
	struct region r;
	struct insn in;

	e->nmade = e->next_made = e->nhot = 0;
	emit_pages_begin(e);
	r.npoints = r.ncounts = 0;
	if (!e->pl->actions)
		return;
	for (uint64_t at = w->addr; at == w->addr || at < w->addr + w->code_len; at += in.len) {
		emit_decode(e, at, &in);
		for (from = to; to < e->nprobes && e->probes[to]->vaddr == at;)
			to++;
		if (at == w->addr) { /* control may enter after it */
			visit_point(e, &r, &(struct point){at, at, DRAFT_RETURNED}, &in, from, to);
			close_region(e, &r);
		}
		visit_point(e, &r, &(struct point){at, at, DRAFT_BEFORE}, &in, from, to);
		if (e->d->is_detour)
			break;
		if (!in.is_quiet || has_hook(e, from, to))
			close_region(e, &r);
		visit_point(e, &r, &(struct point){at, at + in.len, DRAFT_AFTER}, &in, from, to);
	}
	close_region(e, &r);
}

/* At the instruction that is executed next, at `next`. */
static void emit_hot(struct emitter *e, uint32_t probe, unsigned times, struct dead dead,
		     uint64_t next)
{
	unsigned i = e->nhot++;

	e->hot[i].fixup = (uint16_t)action_emit_hot(&e->s, action_of(e, probe), probe, times,
						    action_bank(e->d->w.addr, i), dead);
	e->hot[i].window_off = (uint16_t)(next - e->d->w.addr);
	e->hot[i].probe = probe;
}

void emit_call(struct emitter *e, uint32_t probe, const struct insn *in)
{
	emit_hot(e, probe, 1, emit_dead_before(e, in->addr), in->addr);
}

static uint64_t next_of(const struct insn *in, enum draft_where where)
{
	return where == DRAFT_AFTER ? in->addr + in->len : in->addr;
}

static void emit_counts(struct emitter *e, const struct insn *in, enum draft_where where)
{
	for (; e->next_made < e->nmade; e->next_made++) {
		const struct made_count *c = &e->made[e->next_made];

		if (c->vaddr != in->addr || c->where != where)
			break;
		emit_hot(e, c->probe, c->times, c->dead, next_of(in, where));
	}
}

/* next: the instruction that control comes to. */
static void emit_sample(struct emitter *e, uint32_t probe, const struct insn *in, uint64_t next)
{
	const struct place_action *a = action_of(e, probe);

	action_emit_sample(&e->s, a, probe, in, elf_image_at(e->pl->map->img, in->addr, in->len),
			   a->nconditions && emit_dead_before(e, next).flags);
}

/* One that is not merged with others. */
static void emit_single(struct emitter *e, uint32_t probe, const struct insn *in,
			enum draft_where where)
{
	uint64_t next = next_of(in, where);
	struct dead dead = {0, false};

	if (!action_of(e, probe)->ungated)
		dead = emit_dead_before(e, next);
	emit_hot(e, probe, 1, dead, next);
}

void emit_places(struct emitter *e, const struct insn *in, enum draft_where where)
{
	if (!e->pl->actions)
		return;
	for (unsigned i = e->from; i < e->to; i++) {
		uint32_t probe = e->probes[i]->probe;

		if (!is_here(e, i, in, where) || action_of(e, probe)->kind == ACTION_COUNT)
			continue;
		if (action_of(e, probe)->kind == ACTION_PAGES)
			continue;
		if (action_has_common(action_of(e, probe)))
			emit_single(e, probe, in, where);
		else
			emit_sample(e, probe, in, next_of(in, where));
	}
	emit_counts(e, in, where);
	if (where == DRAFT_BEFORE)
		emit_pages(e, in);
}

bool emit_has_taken(const struct emitter *e, const struct insn *in)
{
	for (unsigned i = e->from; i < e->to && e->pl->actions; i++)
		if (is_here(e, i, in, DRAFT_TAKEN))
			return true;
	return false;
}

void emit_taken(struct emitter *e, const struct insn *in)
{
	for (unsigned i = e->from; i < e->to; i++) {
		uint32_t probe = e->probes[i]->probe;
		const struct place_action *a = action_of(e, probe);

		if (!is_here(e, i, in, DRAFT_TAKEN))
			continue;
		if (action_has_common(a))
			emit_hot(e, probe, 1, emit_dead_before(e, in->target), in->addr);
		else
			emit_sample(e, probe, in, in->target);
	}
}

void emit_places_end(struct emitter *e)
{
	emit_pages_end(e);
	for (unsigned i = 0; i < e->nhot; i++)
		action_emit_cold(&e->s, action_of(e, e->hot[i].probe), e->hot[i].fixup,
				 e->hot[i].window_off);
}

/* SPDX-License-Identifier: MIT */
/*
 * emit_pages.c - which references to memory of a window are counted together.
 *
 *   push %rbp               -8(%rsp) ┐
 *   mov  %rsp,%rbp                   │ one group: two writes and a read in the 24 bytes below
 *   push %rbx              -16(%rsp) ├ the stack pointer, as it is at the first of them
 *   mov  8(%rsp),%rax       -8(%rsp) ┘
 *   mov  (%rdi),%rcx                 ─ another
 *   jne  ...                           after it nothing is certain to be executed
 *   mov  8(%rdi),%rdx                ─ and another
 *
 * A window is entered at its start alone, so what stands between a group's first instruction and a jump
 * or call is executed if the first one is.  The exception is a fault that does not come back: then what
 * stands after it in its groups is counted, and was not executed.  A group has one base register (and
 * index), which nobody writes meanwhile; how far push and pop move the stack pointer is known.
 *
 * It is counted where least has to be saved for it: in front of its first instruction, or further up, past what
 * leaves its registers alone and cannot fault.  Where several are counted, what is live is saved once.
 */
#include "inject/plan/emit.h"

#include <string.h>

#include <kron/segment.h>

#define SPAN_MAX 128
#define OPEN_MAX 8u

enum { RSP = 4 };

#define POINTS_MAX 12u
#define MOVED_MAX 96 /* what displacements have room for: can_say() */

/* In front of an instruction that is executed if the next one is. */
struct point {
	uint64_t vaddr;
	uint16_t written; /* by that instruction; not the stack pointer if `step` says all of it */
	int16_t step;     /* of the stack pointer: `sub $-128` is 128 */
	bool is_passable; /* what is counted after it may be counted before it */
	uint8_t cost;     /* of saving what is live there; NO_COST: nobody has asked */
	bool has_group;
};
#define NO_COST 255u

struct grouping {
	struct emitter *e;
	struct point points[POINTS_MAX]; /* the last ones, up to the one at work */
	unsigned npoints;
	unsigned open[OPEN_MAX]; /* indexes of e->pages; the one opened last is the last */
	int64_t moved[OPEN_MAX]; /* the stack pointer, since it was opened */
	unsigned nopen;
};

static uint16_t registers_of(const struct insn_access *a)
{
	return (uint16_t)((a->base >= 0 ? 1u << a->base : 0) |
			  (a->index >= 0 ? 1u << a->index : 0));
}

static void close_group(struct grouping *g, unsigned i)
{
	g->nopen--;
	memmove(&g->open[i], &g->open[i + 1], (g->nopen - i) * sizeof(g->open[0]));
	memmove(&g->moved[i], &g->moved[i + 1], (g->nopen - i) * sizeof(g->moved[0]));
}

static void close_written(struct grouping *g, uint16_t registers)
{
	for (unsigned i = g->nopen; i-- > 0;)
		if (registers_of(&g->e->pages[g->open[i]].g.v[0]) & registers)
			close_group(g, i);
}

/* ---- one access ---- */

static bool is_alike(const struct insn_access *a, const struct insn_access *b)
{
	return a->base == b->base && a->index == b->index && a->scale == b->scale &&
	       a->rip_relative == b->rip_relative && !a->segment && !b->segment && !a->is_narrow &&
	       !b->is_narrow;
}

static bool fits(const struct pages_group *g, const struct insn_access *a)
{
	int64_t low = a->disp, high = a->disp + a->size;

	if (g->n == PAGES_GROUP || g->is_repeated || !is_alike(&g->v[0], a))
		return false;
	if (!a->rip_relative && a->disp != (int32_t)a->disp)
		return false;
	for (unsigned i = 0; i < g->n; i++) {
		if (g->v[i].disp < low)
			low = g->v[i].disp;
		if (g->v[i].disp + g->v[i].size > high)
			high = g->v[i].disp + g->v[i].size;
	}
	return high - low <= (g->lines ? 1 << KRON_LINE_SHIFT : SPAN_MAX);
}

/* ---- where a group is counted ---- */

static unsigned cost_at(const struct grouping *g, struct point *p)
{
	if (p->cost == NO_COST)
		p->cost = (uint8_t)action_pages_cost(emit_dead_before(g->e, p->vaddr));
	return p->has_group && p->cost ? 1 : p->cost;
}

/* The cheapest point up from the access at work; how far the stack pointer has moved since. */
static struct point *choose_point(struct grouping *g, const struct pages_group *first,
				  int64_t *moved)
{
	struct point *best = &g->points[g->npoints - 1], *p = best;
	unsigned least = cost_at(g, best);
	int64_t step = 0;

	*moved = 0;
	if (first->is_repeated)
		return best;
	while (least && p-- > g->points && p->is_passable &&
	       !(p->written & registers_of(&first->v[0]))) {
		step += p->step;
		if (step > MOVED_MAX || step < -MOVED_MAX)
			break;
		if (cost_at(g, p) >= least)
			continue;
		least = cost_at(g, p);
		best = p;
		*moved = step;
	}
	return best;
}

static void open_group(struct grouping *g, uint32_t probe, const struct pages_group *first)
{
	struct emitter *e = g->e;
	int64_t moved;
	struct point *at = choose_point(g, first, &moved);
	struct made_pages *made = &e->pages[e->npages];

	at->has_group = true;
	*made = (struct made_pages){.vaddr = at->vaddr, .probe = probe, .g = *first};
	if (first->v[0].base == RSP)
		made->g.v[0].disp += moved;
	if (g->nopen == OPEN_MAX)
		close_group(g, 0);
	g->open[g->nopen] = e->npages++;
	g->moved[g->nopen++] = moved;
}

static void take_access(struct grouping *g, uint32_t probe, const struct pages_group *one)
{
	for (unsigned i = 0; i < g->nopen && !one->is_repeated; i++) {
		struct pages_group *to = &g->e->pages[g->open[i]].g;
		struct insn_access a = one->v[0];

		if (a.base == RSP)
			a.disp += g->moved[i];
		if (to->function != one->function || !fits(to, &a))
			continue;
		to->v[to->n++] = a;
		to->places += one->places;
		return;
	}
	open_group(g, probe, one);
}

/* ---- one instruction ---- */

/* It cannot fault, or only where the stack has no end left. */
static bool is_passable(const struct insn *in)
{
	bool is_near = in->has_mem && in->mem_index < 0 && !in->mem_seg &&
		       (in->rip_relative || in->mem_base == RSP);

	return in->is_quiet || (in->kind == INSN_PLAIN && in->op == INSN_OP_MOV && is_near &&
				(in->stores || in->dest_reg >= 0));
}

/* Is it wanted?  Once, however often it is asked for. */
static uint32_t probe_at(const struct emitter *e, const struct insn *in)
{
	for (unsigned i = 0; i < e->nprobes; i++) {
		const struct draft_probe *p = e->probes[i];
		const struct plan_probe *probe = &e->pl->probes.v[p->probe];

		if (p->vaddr == in->addr && p->where == DRAFT_BEFORE &&
		    probe->kind == PROBE_PLACE &&
		    e->pl->actions[probe->action].kind == ACTION_PAGES)
			return p->probe;
	}
	return UINT32_MAX;
}

static uint64_t value_of(const struct grouping *g, uint32_t probe)
{
	return g->e->pl->actions[g->e->pl->probes.v[probe].action].value;
}

/* What the probe wants to know of all that it counts. */
static void mark_group(const struct grouping *g, uint32_t probe, struct pages_group *out)
{
	uint64_t value = value_of(g, probe);

	out->lines = value & PAGES_LINES;
	out->function = value & PAGES_BY_FUNCTION ? 1 + g->e->pl->probes.v[probe].function : 0;
}

/* The call after it, which stays where it is. */
static void take_call(struct grouping *g, const struct insn *in, uint32_t probe, int step)
{
	struct pages_group one = {.v = {{.base = RSP,
					 .index = -1,
					 .scale = 1,
					 .writes = true,
					 .size = 8,
					 .disp = step - 8}},
				  .n = 1,
				  .places = 1};
	uint64_t before;

	mark_group(g, probe, &one);
	if (value_of(g, probe) & PAGES_CALL_TOO &&
	    action_pages_call_before(g->e->pl->map, in->addr + in->len, &before) &&
	    before == in->addr)
		take_access(g, probe, &one);
}

static void add_point(struct grouping *g, const struct insn *in, int step, uint16_t written)
{
	if (g->npoints == POINTS_MAX) {
		g->npoints--;
		memmove(g->points, g->points + 1, g->npoints * sizeof(g->points[0]));
	}
	g->points[g->npoints++] = (struct point){
		.vaddr = in->addr,
		.written = written,
		.step = (int16_t)step,
		.is_passable = is_passable(in),
		.cost = NO_COST,
	};
}

static void take_insn(struct grouping *g, const struct insn *in)
{
	const uint8_t *code = elf_image_at(g->e->pl->map->img, in->addr, in->len);
	uint32_t probe = probe_at(g->e, in);
	struct pages_group v[INSN_ACCESSES];
	unsigned n = probe == UINT32_MAX ? 0 : action_pages_take(v, in, code);
	int step = action_pages_step(code, in->len);
	uint16_t written = in->regs_written | in->regs_killed;

	if (step)
		written &= (uint16_t) ~(1u << RSP);
	else if (action_pages_moves_stack(in, code))
		written |= 1u << RSP;
	add_point(g, in, step, written);

	for (unsigned i = 0; i < n; i++) {
		mark_group(g, probe, &v[i]);
		take_access(g, probe, &v[i]);
	}
	if (probe != UINT32_MAX)
		take_call(g, in, probe, step);
	if (!action_pages_goes_on(in)) {
		g->nopen = g->npoints = 0;
		return;
	}
	for (unsigned i = 0; i < g->nopen; i++)
		g->moved[i] += step;
	close_written(g, written);
}

/* In the order of the stub. */
static void sort_pages(struct emitter *e)
{
	for (unsigned i = 1; i < e->npages; i++) {
		struct made_pages p = e->pages[i];
		unsigned k = i;

		for (; k && e->pages[k - 1].vaddr > p.vaddr; k--)
			e->pages[k] = e->pages[k - 1];
		e->pages[k] = p;
	}
}

void emit_pages_begin(struct emitter *e)
{
	const struct window *w = &e->d->w;
	struct grouping g = {.e = e};
	struct insn in;

	e->npages = e->next_page = e->nslow = 0;
	if (!e->pl->counts_pages)
		return;
	for (uint64_t at = w->addr; at == w->addr || at < w->addr + w->code_len; at += in.len) {
		emit_decode(e, at, &in);
		take_insn(&g, &in);
		if (e->d->is_detour)
			break;
	}
	sort_pages(e);
}

void emit_pages(struct emitter *e, const struct insn *in)
{
	const struct made_pages *p = &e->pages[e->next_page];
	uint16_t window_off = (uint16_t)(in->addr - e->d->w.addr);
	struct dead dead;
	unsigned n = 0;

	while (e->next_page + n < e->npages && p[n].vaddr == in->addr)
		n++;
	if (!n)
		return;
	dead = emit_dead_before(e, in->addr);
	for (unsigned i = 0; i < n;)
		i += action_pages_emit(&e->s, p + i, n - i, dead, e->slow, &e->nslow, window_off);
	e->next_page += n;
}

void emit_pages_end(struct emitter *e)
{
	for (unsigned i = 0; i < e->nslow; i++)
		action_pages_emit_slow(&e->s, &e->slow[i]);
}

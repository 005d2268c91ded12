/* SPDX-License-Identifier: MIT */
/*
 * looks.c - page counters at each look: what is new in each chunk, from which node, and what follows from it.
 *
 *   chunk now ── less what was seen ──► out.v, by thread and node      the sums of the report
 *                                  ├──► step ──► out.steps              working set over time
 *                                  └──► since, by node ──► out.moves    --migrate
 *
 * The counters do not know processors.  A thread's references since the last look are those of the node where
 * it is found; that it was found on another one the last time makes them `unsure`, which the report says.
 * Before the first look it was where it began its chunk.  A thread that is bound to a node has no unsure ones.
 */
#define _GNU_SOURCE
#include "collect/pages/impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define MS 1000000u

bool pages_have_nodes(const struct pages *p)
{
	return p->nodes.n > 1;
}

bool pages_want_look(const struct pages *p)
{
	return p->every_ns && clock_ns(CLOCK_MONOTONIC) >= p->next_ns;
}

uint32_t pages_patience(const struct pages *p, uint32_t ms)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), left = p->next_ns > now ? p->next_ns - now : 0;

	if (!p->every_ns || left / MS >= ms)
		return ms;
	return left / MS ? (uint32_t)(left / MS) : 1;
}

/* ---- one chunk ---- */

static int node_at_first(const struct pages *p, const struct kron_chunk *c)
{
	return nodes_of_cpu(&p->nodes, KRON_CHUNK_CPU(c->kind));
}

static struct pages_seen *make_seen(struct pages *p, uint32_t chunk, const struct kron_chunk *c)
{
	struct pages_seen *s = (struct pages_seen *)pages_seen_at(p, chunk, c);

	if (s)
		return s;
	while (p->seen.n <= chunk)
		*vec_push(&p->seen) = NULL;
	if (!p->seen.v[chunk])
		p->seen.v[chunk] = xmalloc(sizeof(*s));
	s = p->seen.v[chunk];
	memset(s, 0, sizeof(*s));
	s->seq = c->seq;
	s->node = node_at_first(p, c);
	return s;
}

static void drop_seen(struct pages *p, uint32_t chunk)
{
	if (chunk >= p->seen.n)
		return;
	xfree(p->seen.v[chunk]);
	p->seen.v[chunk] = NULL;
}

static void take_new(struct pages *p, const struct pages_owner *o, struct trace_page page, int node)
{
	page.uid = o->uid;
	page.tid = (uint32_t)o->tid;
	page.node = node;
	pages_add(p, &page);
	if (!p->every_ns)
		return;
	page.tid = 0;
	*vec_push(&p->step) = page;
}

static void note_life(struct pages *p, const struct pages_owner *o)
{
	if (!o->pid || (p->lives.n && p->lives.v[p->lives.n - 1].uid == o->uid))
		return;
	vec_for(&p->lives, l)
		if (l->uid == o->uid)
			return;
	*vec_push(&p->lives) = (struct pages_process){o->uid, o->pid};
}

void pages_look_chunk(struct pages *p, const struct kron_chunk *c, const struct pages_owner *o)
{
	struct pages_seen *seen = make_seen(p, o->chunk, c);
	int before = seen->node, now = 0;
	struct trace_page page;

	if (pages_have_nodes(p) && o->pid) {
		now = nodes_of_thread(&p->nodes, o->pid, o->tid);
		seen->node = now < 0 ? before : now;
	}
	now = seen->node;
	for (uint32_t i = 0; i < KRON_PAGES_IN_CHUNK; i++) {
		if (!pages_read_new(seen, c, i, &page))
			continue;
		seen->v[i].reads += page.reads;
		seen->v[i].writes += page.writes;
		if (now != before)
			p->out.unsure += page.reads + page.writes;
		take_new(p, o, page, now);
		page.uid = o->uid;
		pages_add_function(p, c, i, &page);
	}
	note_life(p, o);
	pages_name_owner(p, o->ticket, o->uid);
}

void pages_take(struct pages *p, const struct kron_chunk *c, const struct pages_owner *o)
{
	const struct pages_seen *seen = pages_seen_at(p, o->chunk, c);
	int node = seen ? seen->node : node_at_first(p, c);
	struct trace_page page;

	for (uint32_t i = 0; i < KRON_PAGES_IN_CHUNK; i++) {
		if (!pages_read_new(seen, c, i, &page))
			continue;
		take_new(p, o, page, node);
		page.uid = o->uid;
		pages_add_function(p, c, i, &page);
	}
	drop_seen(p, o->chunk);
	pages_name_owner(p, o->ticket, o->uid);
	if (p->setup.on_taken)
		p->setup.on_taken(p->setup.ctx, o->pid, o->uid);
}

/* ---- where pages are ---- */

static pid_t pid_of(const struct pages *p, uint32_t uid)
{
	for (size_t i = 0; i < p->lives.n; i++)
		if (p->lives.v[i].uid == uid)
			return p->lives.v[i].pid;
	return 0;
}

static int by_home(const void *a, const void *b)
{
	const struct trace_page_home *x = a, *y = b;

	if (x->uid != y->uid)
		return x->uid < y->uid ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

static struct trace_page_home *find_home(struct pages *p, uint32_t uid, uint64_t address)
{
	const struct trace_page_home key = {.uid = uid, .address = address};

	return p->out.homes.n ? bsearch(&key, p->out.homes.v, p->out.homes.n, sizeof(key), by_home)
			      : NULL;
}

static uint64_t page_of(uint64_t address)
{
	return address - address % TRACE_PAGE_SIZE;
}

/* All pages of the step that one process touched: from v[first] to v[end]. */
static void look_homes(struct pages *p, size_t first, size_t end)
{
	const uint32_t uid = p->step.v[first].uid;
	const size_t known = p->out.homes.n;
	VEC(uint64_t) pages = {0};
	VEC(int) nodes = {0};
	pid_t pid = pid_of(p, uid);

	for (size_t i = first; pid && i < end; i++) {
		uint64_t at = page_of(p->step.v[i].address);

		if (!pages.n || pages.v[pages.n - 1] != at)
			*vec_push(&pages) = at;
	}
	vec_reserve(&nodes, pages.n + 1);
	if (pages.n && !nodes_of_pages(pid, pages.v, pages.n, NULL, nodes.v))
		for (size_t i = 0; i < pages.n; i++) {
			struct trace_page_home *h =
				known ? bsearch(&(struct trace_page_home){.uid = uid,
									  .address = pages.v[i]},
						p->out.homes.v, known, sizeof(*h), by_home)
				      : NULL;

			if (nodes.v[i] < 0)
				continue;
			if (!h)
				h = vec_push(&p->out.homes);
			h->uid = uid;
			h->node = nodes.v[i];
			h->address = pages.v[i];
		}
	vec_free(&pages);
	vec_free(&nodes);
	if (p->out.homes.n > known)
		qsort(p->out.homes.v, p->out.homes.n, sizeof(p->out.homes.v[0]), by_home);
}

/* ---- migration ---- */

/* One page's references by node: v[0] to v[n]. */
static bool is_to_move(struct pages *p, const struct trace_page *v, size_t n,
		       struct trace_page_move *out)
{
	const struct trace_page_home *home = find_home(p, v->uid, v->address);

	*out = (struct trace_page_move){.uid = v->uid, .address = v->address, .to = -1};
	if (!home)
		return false;
	out->from = home->rehearsed ? home->rehearsed - 1 : home->node;
	for (size_t i = 0; i < n; i++) {
		uint64_t count = v[i].reads + v[i].writes;

		if (v[i].node == out->from) {
			out->local = count;
		} else if (v[i].node >= 0 && count > out->remote) {
			out->remote = count;
			out->to = v[i].node;
		}
	}
	if (!p->nodes.is_test && !pid_of(p, v->uid)) /* it is gone */
		return false;
	return out->remote >= p->setup.migrate.absolute &&
	       out->remote >= out->local + p->setup.migrate.differential && out->to >= 0;
}

/* A rehearsal where the nodes are made up: only then are pages of a node that is not there. */
static void move_page(struct pages *p, struct trace_page_move *m)
{
	struct trace_page_home *home = find_home(p, m->uid, m->address);
	const pid_t pid = pid_of(p, m->uid);
	int to = m->to, now = -ESRCH;

	m->ns = clock_ns(CLOCK_MONOTONIC) - p->start_ns;
	m->code = 1;
	if (!p->nodes.is_test) {
		m->code = pid ? nodes_of_pages(pid, &m->address, 1, &to, &now) : -ESRCH;
		if (!m->code && now != to)
			m->code = now < 0 ? now : -EBUSY;
	}
	if (home && m->code > 0)
		home->rehearsed = to + 1;
	else if (home && !m->code)
		home->node = to;
	*vec_push(&p->out.moves) = *m;
}

/* Who has moved begins to count again, and who could not is asked again when it has been used so often again. */
static void migrate(struct pages *p)
{
	struct trace_page *v = p->since.v;
	size_t left = 0;

	for (size_t i = 0, n; i < p->since.n; i += n) {
		struct trace_page_move m;

		for (n = 1; i + n < p->since.n && v[i + n].uid == v[i].uid &&
			    v[i + n].address == v[i].address;)
			n++;
		if (is_to_move(p, v + i, n, &m)) {
			move_page(p, &m);
			continue;
		}
		memmove(v + left, v + i, n * sizeof(*v));
		left += n;
	}
	p->since.n = left;
}

/* ---- the end of a step ---- */

static void keep_step(struct pages *p, uint32_t look)
{
	struct trace_page_step *last = NULL;

	vec_for(&p->step, one) {
		if (!last || last->uid != one->uid || last->address != one->address) {
			last = vec_push(&p->out.steps);
			*last = (struct trace_page_step){
				.look = look, .uid = one->uid, .address = one->address};
		}
		last->reads += one->reads;
		last->writes += one->writes;
	}
}

static void keep_since(struct pages *p)
{
	vec_for(&p->step, one) {
		struct trace_page *to = vec_push(&p->since);

		*to = *one;
		to->address = page_of(one->address);
	}
	p->since.n = pages_add_up(p->since.v, p->since.n);
}

static void look_all_homes(struct pages *p)
{
	size_t end;

	for (size_t i = 0; i < p->step.n; i = end) {
		for (end = i; end < p->step.n && p->step.v[end].uid == p->step.v[i].uid;)
			end++;
		look_homes(p, i, end);
	}
}

void pages_look_end(struct pages *p)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (!p->every_ns)
		return;
	p->step.n = pages_add_up(p->step.v, p->step.n);
	if (p->setup.every_ns) {
		keep_step(p, (uint32_t)p->out.looks.n);
		*vec_push(&p->out.looks) = now - p->start_ns;
	}
	if (pages_have_nodes(p))
		look_all_homes(p);
	if (p->setup.migrate.on) {
		keep_since(p);
		migrate(p);
	}
	p->step.n = 0;
	p->lives.n = 0;
	for (p->next_ns += p->every_ns; p->next_ns <= now;)
		p->next_ns += p->every_ns;
}

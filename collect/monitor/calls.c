/* SPDX-License-Identifier: MIT */
/* calls.c - see calls.h */
#include "collect/monitor/calls.h"

#include <string.h>

#include "base/clock.h"
#include "collect/counts.h"

void calls_begin(struct calls *c, const struct segment *seg, struct modules *modules)
{
	c->seg = seg;
	c->modules = modules;
	c->counts = xcalloc(KRON_CALLS_MAX, sizeof(*c->counts));
}

void calls_end(struct calls *c)
{
	vec_for(&c->v, m)
		xfree(m->globs);
	vec_free(&c->v);
	xfree(c->counts);
	c->counts = NULL;
}

/* ---- which function is whose ---- */

static bool is_known(const struct calls *c, const struct module *m)
{
	for (size_t i = 0; i < c->v.n; i++)
		if (c->v.v[i].module == m)
			return true;
	return false;
}

static void add_module(struct calls *c, const struct module *m)
{
	const uint32_t n = m->full->nfunctions;
	struct calls_module new = {.module = m,
				   .base = m->event_base,
				   .n = n,
				   .globs = xcalloc(n + 1, sizeof(uint64_t))};
	uint8_t *marked = xcalloc(n + 1, 1);

	for (size_t g = 0; g < c->nglobs; g++) {
		const struct selection one = {.only = {&c->globs[g], 1, NULL}};

		memset(marked, 0, n);
		selection_mark(&one, m->full, m->path, marked);
		for (uint32_t i = 0; i < n; i++)
			if (marked[i] && m->selected[i])
				new.globs[i] |= 1ull << g;
	}
	xfree(marked);
	*vec_push(&c->v) = new;
}

/* One that is being planned is locked, and has counted nothing yet. */
static void look_for_modules(struct calls *c)
{
	pthread_mutex_lock(&c->modules->lock);
	vec_for(&c->modules->all, m) {
		if (is_known(c, *m) || pthread_mutex_trylock(&(*m)->lock))
			continue;
		if ((*m)->recorded && (*m)->full)
			add_module(c, *m);
		pthread_mutex_unlock(&(*m)->lock);
	}
	pthread_mutex_unlock(&c->modules->lock);
}

/* ---- how often ---- */

void calls_take(struct calls *c, struct reading *out, uint64_t *all)
{
	memset(out, 0, c->nglobs * sizeof(*out));
	*all = 0;
	if (!c->counts)
		return;
	look_for_modules(c);
	memset(c->counts, 0, KRON_CALLS_MAX * sizeof(*c->counts));
	calls_read(c->seg, c->counts, KRON_CALLS_MAX);
	for (size_t g = 0; g < c->nglobs; g++)
		out[g].known = true;
	vec_for(&c->v, m) {
		for (uint32_t i = 0; i < m->n && m->base + i < KRON_CALLS_MAX; i++) {
			const uint64_t n = c->counts[m->base + i];

			if (!n)
				continue;
			*all += n;
			for (size_t g = 0; g < c->nglobs; g++)
				out[g].n += m->globs[i] >> g & 1 ? n : 0;
		}
	}
}

/* ---- what it costs ---- */

#define TURNS 100000

/* The instructions of a stub that counts a call (doc/internals/probe.md), with its two jumps. */
static uint64_t run(uint64_t **lane)
{
	const uint64_t start = clock_ns(CLOCK_MONOTONIC);

	for (unsigned i = 0; i < TURNS; i++)
		__asm__ volatile("jmp 1f\n"
				 "1: mov (%0), %%rax\n"
				 "mov (%%rax), %%rax\n"
				 "test %%rax, %%rax\n"
				 "jz 2f\n"
				 "incq 8(%%rax)\n"
				 "2: jmp 3f\n"
				 "3:\n"
				 :
				 : "r"(lane)
				 : "rax", "cc", "memory");
	return clock_ns(CLOCK_MONOTONIC) - start;
}

static uint64_t run_empty(void)
{
	const uint64_t start = clock_ns(CLOCK_MONOTONIC);

	for (unsigned i = 0; i < TURNS; i++)
		__asm__ volatile("" : : : "memory");
	return clock_ns(CLOCK_MONOTONIC) - start;
}

double calls_cost(void)
{
	uint64_t counters[2] = {0}, *part = counters, *lane = (uint64_t *)&part;
	uint64_t best = UINT64_MAX, empty = UINT64_MAX;

	for (int i = 0; i < 3; i++) {
		const uint64_t with = run(&lane), without = run_empty();

		best = with < best ? with : best;
		empty = without < empty ? without : empty;
	}
	return best > empty ? (double)(best - empty) / TURNS : 0;
}

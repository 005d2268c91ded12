/* SPDX-License-Identifier: MIT */
/* meter.c - see meter.h. */
#include "collect/watch/meter.h"

#include <string.h>

#include "base/vec.h"

#define PAGE 4096u
#define PAGES 1024u /* functions beyond are not counted: numbers are the program's word */
#define LANES 4096u /* a thread that has the place of another begins anew */
#define DEPTH 128u  /* the innermost calls of a thread */

struct call {
	uint32_t function;
	uint64_t since;
};

struct lane {
	uint64_t key;  /* process and thread */
	uint64_t last; /* chunks come in no order: older ones tell nothing of lengths */
	uint32_t depth;
	struct call calls[DEPTH]; /* at depth % DEPTH */
};

struct meter {
	struct sink sink, *next;
	struct drain *d;
	/* Written by the drain thread alone, read by others: each word by itself. */
	struct meter_count *pages[PAGES];
	uint64_t ended_ticks, newest;
	/* Written by others. */
	uint64_t since, until, look, long_ticks;
	struct lane *lanes[LANES];
};

static void add(uint64_t *word, uint64_t n)
{
	__atomic_store_n(word, *word + n, __ATOMIC_RELAXED);
}

/* NULL: beyond what is counted. */
static struct meter_count *count_of(struct meter *m, uint32_t function)
{
	struct meter_count *page;

	if (function / PAGE >= PAGES)
		return NULL;
	page = m->pages[function / PAGE];
	if (!page) {
		page = xcalloc(PAGE, sizeof(*page));
		/* Release: others find zeros there. */
		__atomic_store_n(&m->pages[function / PAGE], page, __ATOMIC_RELEASE);
	}
	return &page[function % PAGE];
}

static struct lane *lane_of(struct meter *m, const struct chunk_owner *o)
{
	const uint64_t key = (uint64_t)o->uid << 32 | (uint32_t)o->tid;
	struct lane **at = &m->lanes[key * 0x9e3779b97f4a7c15ull >> 52];

	if (!*at)
		*at = xcalloc(1, sizeof(**at));
	if ((*at)->key != key) {
		(*at)->key = key;
		(*at)->last = 0;
		(*at)->depth = 0;
	}
	return *at;
}

static void enter(struct lane *l, uint32_t function, uint64_t tsc)
{
	l->calls[l->depth++ % DEPTH] = (struct call){function, tsc};
}

/* How long it took; 0: nobody knows. */
static uint64_t leave(struct lane *l, uint32_t function, uint64_t tsc)
{
	uint32_t depth = l->depth;

	for (uint32_t tries = 0; depth && tries < DEPTH; tries++) {
		const struct call *c = &l->calls[--depth % DEPTH];

		if (c->function != function)
			continue;
		l->depth = depth;
		return tsc > c->since ? tsc - c->since : 0;
	}
	return 0;
}

/* Another call of it is open: what a recursion takes is the outermost's. */
static bool is_open(const struct lane *l, uint32_t function)
{
	for (uint32_t n = 1; n <= l->depth && n <= DEPTH; n++)
		if (l->calls[(l->depth - n) % DEPTH].function == function)
			return true;
	return false;
}

/* The function of an exit by a jump is the one that runs. */
static uint32_t function_of(const struct lane *l, uint32_t event)
{
	if (event < KRON_EVENT_JUMPS)
		return event / 2;
	return l->depth ? l->calls[(l->depth - 1) % DEPTH].function : UINT32_MAX;
}

static void count(struct meter *m, struct lane *l, const struct kron_sample *s, uint64_t limit,
		  bool in_order)
{
	const uint32_t function = function_of(l, s->event);
	struct meter_count *c = count_of(m, function);
	uint64_t took = 0;

	if (!c)
		return;
	add(&c->events, 1);
	if (!in_order)
		return;
	if (s->event & 1)
		took = leave(l, function, kron_sample_time(s));
	else
		enter(l, function, kron_sample_time(s));
	if (took >= limit && !is_open(l, function))
		add(&c->longs, 1);
}

/* What threads that end in a process that lives took is in the process's time. */
static void note_ended(struct meter *m, const struct sink_chunk *c, uint64_t first, uint64_t last)
{
	const uint64_t look = __atomic_load_n(&m->look, __ATOMIC_RELAXED);

	if (!c->owner.task || !c->owner.task->dead)
		return;
	if (first < look)
		first = look;
	if (last > first)
		add(&m->ended_ticks, last - first);
}

static void look(struct meter *m, const struct sink_chunk *c)
{
	const struct kron_sample *s = (const void *)(segment_chunk(m->d->seg, c->chunk) + 1);
	const uint64_t since = __atomic_load_n(&m->since, __ATOMIC_RELAXED);
	const uint64_t until = __atomic_load_n(&m->until, __ATOMIC_RELAXED);
	const uint64_t words = __atomic_load_n(&m->long_ticks, __ATOMIC_RELAXED);
	const uint64_t limit = words ? words : UINT64_MAX;
	struct lane *l = lane_of(m, &c->owner);
	uint64_t first = 0, last = 0, tsc;
	bool in_order = true;

	for (uint32_t i = 0; i < c->head.nbytes / KRON_SAMPLE_SIZE; i++) {
		if (!s[i].head || s[i].event >= KRON_EVENT_SPECIAL)
			continue;
		tsc = kron_sample_time(&s[i]);
		if (!first) {
			first = tsc;
			in_order = tsc >= l->last;
		}
		last = tsc;
		if (tsc >= since && (!until || tsc < until))
			count(m, l, &s[i], limit, in_order);
	}
	if (in_order && last)
		l->last = last;
	if (last > m->newest)
		__atomic_store_n(&m->newest, last, __ATOMIC_RELAXED);
	note_ended(m, c, first, last);
}

static struct meter *meter_of(struct sink *s)
{
	return (struct meter *)s;
}

static uint32_t take(struct sink *s, const struct sink_chunk *c)
{
	look(meter_of(s), c);
	return sink_take(meter_of(s)->next, c);
}

static int take_bytes(struct sink *s, const struct trace_chunk *head, const void *bytes,
		      uint32_t samples, const struct chunk_owner *o)
{
	return sink_take_bytes(meter_of(s)->next, head, bytes, samples, o);
}

static uint32_t flush(struct sink *s)
{
	return sink_flush(meter_of(s)->next);
}

static const struct sink_ops ops = {.take = take, .take_bytes = take_bytes, .flush = flush};

struct meter *meter_open(struct drain *d, struct sink *next)
{
	struct meter *m = xcalloc(1, sizeof(*m));

	m->sink.ops = &ops;
	m->next = next;
	m->d = d;
	return m;
}

void meter_close(struct meter *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < PAGES; i++)
		xfree(m->pages[i]);
	for (size_t i = 0; i < LANES; i++)
		xfree(m->lanes[i]);
	xfree(m);
}

struct sink *meter_sink(struct meter *m)
{
	return &m->sink;
}

void meter_begin(struct meter *m, uint64_t tsc)
{
	__atomic_store_n(&m->since, tsc, __ATOMIC_RELAXED);
}

void meter_end(struct meter *m, uint64_t tsc)
{
	__atomic_store_n(&m->until, tsc, __ATOMIC_RELAXED);
}

void meter_look(struct meter *m, uint64_t tsc)
{
	__atomic_store_n(&m->look, tsc, __ATOMIC_RELAXED);
}

uint64_t meter_newest(const struct meter *m)
{
	return __atomic_load_n(&m->newest, __ATOMIC_RELAXED);
}

void meter_set_long(struct meter *m, uint64_t ticks)
{
	__atomic_store_n(&m->long_ticks, ticks, __ATOMIC_RELAXED);
}

void meter_read(const struct meter *m, struct meter_count *out, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct meter_count *page =
			i / PAGE < PAGES ? __atomic_load_n(&m->pages[i / PAGE], __ATOMIC_ACQUIRE)
					 : NULL;

		out[i] = (struct meter_count){0, 0};
		if (!page)
			continue;
		out[i].events = __atomic_load_n(&page[i % PAGE].events, __ATOMIC_RELAXED);
		out[i].longs = __atomic_load_n(&page[i % PAGE].longs, __ATOMIC_RELAXED);
	}
}

uint64_t meter_ended_ticks(const struct meter *m)
{
	return __atomic_load_n(&m->ended_ticks, __ATOMIC_RELAXED);
}

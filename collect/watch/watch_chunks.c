/* SPDX-License-Identifier: MIT */
/*
 * watch_chunks.c - chunks on their way through the watch; watch_impl.h says what they are.
 *
 *   met ──► looked at ──► taken by the drain ──► older than the horizon: freed, never copied
 *           in place                        └──► too many of them: packed and held ──► freed later
 *
 * With a window of some thousand samples nothing is copied at all: what fills the pool in one
 * round lies before the horizon in the next.
 */
#include "collect/watch/watch_impl.h"

#include <string.h>

#define POOL_BYTES (KRON_CHUNK_SAMPLES * KRON_SAMPLE_SIZE)
#define RESIDENT_MAX 32u /* taken ones that may wait in the pool: the round after decides of most */

const uint8_t *watch_chunk_bytes(const struct watch *w, const struct watch_chunk *c)
{
	if (c->pool == WATCH_NO_POOL)
		return c->bytes;
	return (const uint8_t *)(segment_chunk(w->d->seg, c->pool) + 1);
}

uint32_t watch_chunk_end(const struct watch_chunk *c)
{
	return c->taken ? c->head.nbytes : POOL_BYTES;
}

/* ---- met ---- */

/* In its lane by sequence number; it is one of the last, or the last. */
static void put_in_lane(struct watch *w, struct watch_chunk *c)
{
	struct watch_lane *l = &w->lanes.v[c->lane];
	struct watch_chunk *before = l->youngest;

	while (before && before->seq > c->seq)
		before = before->before;
	c->before = before;
	c->next = before ? before->next : l->chunks;
	*(before ? &before->next : &l->chunks) = c;
	*(c->next ? &c->next->before : &l->youngest) = c;
	if (!l->here || c->seq < l->here->seq)
		l->here = c;
	watch_lane_opens(w, c->lane);
}

static void leave_lane(struct watch *w, struct watch_chunk *c)
{
	struct watch_lane *l = &w->lanes.v[c->lane];

	*(c->before ? &c->before->next : &l->chunks) = c->next;
	*(c->next ? &c->next->before : &l->youngest) = c->before;
	if (l->here == c) {
		l->here = c->next;
		l->has_next = false;
	}
}

static struct watch_chunk *new_chunk(struct watch *w, uint32_t pool, uint64_t seq,
				     const struct chunk_owner *o)
{
	struct watch_chunk *c = xcalloc(1, sizeof(*c));

	c->pool = pool;
	c->seq = seq;
	c->first = UINT64_MAX;
	c->lane = watch_lane_of(w, o);
	put_in_lane(w, c);
	if (pool != WATCH_NO_POOL)
		w->pool[pool] = c;
	return c;
}

/* Somebody wrote to the table of chunks what nobody may: forget what we know of this one. */
static void forget(struct watch *w, struct watch_chunk *c)
{
	w->pool[c->pool] = NULL;
	c->pool = WATCH_NO_POOL;
	watch_chunk_let_go(w, c, c->samples);
}

void watch_chunks_meet(struct watch *w)
{
	struct segment *seg = w->d->seg;
	uint32_t ready = segment_ready(seg);

	for (uint32_t i = 0; i < ready; i++) {
		/* Acquire: partner: the runtime's claim. */
		uint64_t word = __atomic_load_n(&seg->states[i], __ATOMIC_ACQUIRE), seq;
		struct chunk_owner o;

		if (!chunk_is_owned(word)) {
			if (w->pool[i])
				forget(w, w->pool[i]);
			continue;
		}
		if (w->pool[i])
			continue;
		seq = __atomic_load_n(&segment_chunk(seg, i)->seq, __ATOMIC_ACQUIRE);
		if (!seq) /* its owner is about to begin */
			continue;
		tasks_of_chunk(w->d->tasks, word, false, &o);
		if (!o.task && !o.dead) { /* a new process: its slot is older than its chunks */
			tasks_look(w->d->tasks, false, false);
			tasks_of_chunk(w->d->tasks, word, false, &o);
		}
		new_chunk(w, i, seq, &o);
	}
}

/* ---- taken ---- */

enum sink_advice watch_advise(const struct watch *w, uint32_t pool, bool full, uint32_t *samples)
{
	const struct watch_chunk *c = w->pool[pool];

	if (!full)
		return c && c->taken ? SINK_LEAVE : SINK_JUDGE;
	if (w->done)
		return SINK_JUDGE;
	if (!c || c->taken || c->at < POOL_BYTES)
		return SINK_LEAVE;
	*samples = c->counted;
	return c->nholes ? SINK_JUDGE : SINK_TAKE;
}

/* One that was not looked at yet comes last. */
static void put_in_row(struct watch_row *r, struct watch_chunk *c)
{
	struct watch_chunk *before = r->newest;

	while (watch_chunk_is_looked_at(c) && before && before->last > c->last)
		before = before->older;
	c->older = before;
	c->newer = before ? before->newer : r->oldest;
	*(before ? &before->newer : &r->oldest) = c;
	*(c->newer ? &c->newer->older : &r->newest) = c;
	r->n++;
}

static void leave_row(struct watch_row *r, struct watch_chunk *c)
{
	*(c->older ? &c->older->newer : &r->oldest) = c->newer;
	*(c->newer ? &c->newer->older : &r->newest) = c->older;
	r->n--;
}

void watch_take(struct watch *w, uint32_t pool, const struct trace_chunk *head, const void *data,
		uint32_t samples, const struct chunk_owner *o)
{
	struct watch_chunk *c = pool == WATCH_NO_POOL ? NULL : w->pool[pool];

	if (c && c->seq != head->seq) {
		forget(w, c);
		c = NULL;
	}
	if (!c)
		c = new_chunk(w, pool, head->seq, o);
	if (pool == WATCH_NO_POOL) {
		c->bytes = xmalloc(head->nbytes + 1ul);
		memcpy(c->bytes, data, head->nbytes);
		c->size = head->nbytes;
	}
	c->head = *head;
	c->samples = samples;
	c->taken = true;
	w->lanes.v[c->lane].dead |= o->dead;
	put_in_row(&w->resident, c);
	if (w->done)
		watch_chunk_let_go(w, c, watch_window_write(w, c));
}

/* ---- held, and discarded ---- */

/* Its place in the pool is free again. */
static void leave_pool(struct watch *w, struct watch_chunk *c)
{
	if (c->pool == WATCH_NO_POOL)
		return;
	w->pool[c->pool] = NULL;
	drain_free(w->d, c->pool, c->head.nbytes);
	c->pool = WATCH_NO_POOL;
}

static void drop_holes(struct watch *w, struct watch_chunk *c)
{
	size_t kept = 0;

	if (!c->nholes)
		return;
	for (size_t i = 0; i < w->holed.n; i++)
		if (w->holed.v[i] != c)
			w->holed.v[kept++] = w->holed.v[i];
	w->holed.n = kept;
}

void watch_chunk_let_go(struct watch *w, struct watch_chunk *c, uint32_t written)
{
	uint32_t lane = c->lane;

	drop_holes(w, c);
	leave_lane(w, c);
	if (c->taken)
		leave_row(c->held ? &w->held : &w->resident, c);
	w->outside += c->samples - written;
	leave_pool(w, c);
	xfree(c->bytes);
	xfree(c);
	watch_lane_retire(w, lane);
}

static void hold(struct watch *w, struct watch_chunk *c)
{
	const uint8_t *bytes = watch_chunk_bytes(w, c);
	uint32_t size = (uint32_t)packed_make(w->room, KRON_CHUNK_SIZE, bytes, c->head.nbytes);
	uint8_t *held = xmalloc((size ? size : c->head.nbytes) + 1ul);

	c->packed = size != 0;
	c->size = size ? size : c->head.nbytes;
	memcpy(held, size ? w->room : bytes, c->size);
	xfree(c->bytes);
	c->bytes = held;
	leave_row(&w->resident, c);
	leave_pool(w, c);
	c->held = true;
	put_in_row(&w->held, c);
}

/* Counts back until there are more than `pre` samples; false: there are not. */
static bool count_back(const struct watch *w, const struct watch_row *r, uint64_t base,
		       uint64_t *from, uint64_t *n)
{
	for (const struct watch_chunk *c = r->newest; c; c = c->older) {
		if (!watch_chunk_is_looked_at(c) || c->last >= base)
			continue;
		*from = c->first < *from ? c->first : *from;
		*n += c->samples;
		if (*n > w->finder.pre.samples)
			return true;
	}
	return false;
}

/*
 * `pre` samples have to lie after it, and before the moment.  Chunks that are looked at and end
 * before the moment are counted back until there are enough; all of their samples lie at or after
 * the earliest of them.
 */
uint64_t watch_horizon(const struct watch *w, uint64_t base)
{
	uint64_t from = UINT64_MAX, n = 0;

	if (w->finder.pre.ns)
		return window_finder_from(&w->finder, base);
	return count_back(w, &w->resident, base, &from, &n) ||
			       count_back(w, &w->held, base, &from, &n)
		       ? from
		       : 0;
}

/* When the pool runs short, whatever waits in it for a decision is better held. */
static uint32_t resident_max(const struct watch *w)
{
	uint32_t ready = segment_ready(w->d->seg), most = ready / 8;

	if (__atomic_load_n(&w->d->seg->ctl->free_count, __ATOMIC_RELAXED) < (int32_t)(ready / 4))
		return 0;
	return most < RESIDENT_MAX ? most : RESIDENT_MAX;
}

static void let_go_before(struct watch *w, const struct watch_row *r, uint64_t horizon)
{
	while (r->oldest && watch_chunk_is_looked_at(r->oldest) && r->oldest->last < horizon)
		watch_chunk_let_go(w, r->oldest, 0);
}

/* While something waits it stays the same, however much comes after. */
static void find_horizon(struct watch *w)
{
	uint64_t since = trigger_since(w->trigger);
	uint64_t base = since < w->decided ? since : w->decided;
	uint64_t hold = (uint64_t)(GROUP_HOLD_NS * w->finder.hz / 1e9);

	if (w->group) /* what the others say is of a moment ago */
		base = base > w->start.tsc + hold ? base - hold : w->start.tsc;
	if (w->fired.at || base == w->horizon_base)
		return;
	w->horizon_base = base;
	w->horizon = watch_horizon(w, base);
}

/* How many are to go.  What is free takes what comes while a snapshot is taken. */
static uint32_t too_many(const struct watch *w)
{
	const struct segment *seg = w->d->seg;
	const uint32_t ready = segment_ready(seg), most = w->d->keep_chunks;
	int64_t nfree;

	if (most)
		return w->resident.n > most ? w->resident.n - most : 0;
	nfree = __atomic_load_n(&seg->ctl->free_count, __ATOMIC_RELAXED);
	return ready >= segment_limit(seg) && nfree < ready / 4 ? (uint32_t)(ready / 4 - nfree) : 0;
}

/* Of a program that has ended, or sleeps, what came last stays. */
static uint64_t too_old(const struct watch *w)
{
	const struct watch_chunk *c = w->resident.newest;
	const uint64_t keep = w->d->keep_ticks, now = watch_clock(w);
	uint64_t last;

	while (c && !watch_chunk_is_looked_at(c))
		c = c->older;
	last = c && c->last < now ? c->last : now; /* a program may write any time there */
	return keep && c && last > keep ? last - keep : 0;
}

/* The oldest go, looked at, when their room is wanted, or they are too old. */
static void settle_ring(struct watch *w)
{
	let_go_before(w, &w->resident, too_old(w));
	for (uint32_t n = too_many(w);
	     n && w->resident.oldest && watch_chunk_is_looked_at(w->resident.oldest); n--)
		watch_chunk_let_go(w, w->resident.oldest, 0);
}

uint64_t watch_lets_go_before(const void *watch)
{
	const struct watch *w = watch;
	const struct watch_chunk *c = w->resident.oldest;
	uint64_t before = too_old(w);

	for (uint32_t n = too_many(w); n && c && watch_chunk_is_looked_at(c); n--, c = c->newer)
		before = c->last >= before ? c->last + 1 : before;
	return before;
}

void watch_chunks_settle(struct watch *w)
{
	uint32_t most;

	if (w->is_ring) {
		settle_ring(w);
		return;
	}
	find_horizon(w);
	let_go_before(w, &w->resident, w->horizon);
	let_go_before(w, &w->held, w->horizon);
	most = resident_max(w);
	while (w->resident.n > most && watch_chunk_is_looked_at(w->resident.oldest))
		hold(w, w->resident.oldest);
}

void watch_chunks_free(struct watch *w)
{
	for (uint32_t i = 0; i < w->lanes.n; i++) {
		struct watch_chunk *c = w->lanes.v[i].chunks, *next;

		for (; c; c = next) {
			next = c->next;
			xfree(c->bytes);
			xfree(c);
		}
	}
	vec_free(&w->holed);
	xfree(w->pool);
	xfree(w->room);
}

/* SPDX-License-Identifier: MIT */
/*
 * view_track.c - how a thread or a CPU spent its time, bin by bin, at several levels.
 *
 *   level 0   |a|a|b|a|b|b|b| |  ...   16,384 bins: whose most of the time of each was (its
 *   level 1   |   a   |   b   |  ...   "state"), how much of it, how much was anybody's, how many
 *   level 2   |       b       |  ...   calls began and how deep
 *
 * A bin of level n + 1 is four of level n.  Its state is found from the sums of all that occur
 * in it, not from the four states, so it is right at each level.  Memory: what is written, and
 * the sums of one bin a level.
 *
 * Written for each bin: key + 1, its time, time of all, calls, greatest depth (ticks; LEB128);
 * 0 and a number, for that many bins in which nothing was.
 */
#include <string.h>

#include "trace/view/view_impl.h"

/* ---- sums by key ---- */

static size_t slot_of(const struct view_tally *y, uint32_t key)
{
	size_t mask = 2 * (size_t)y->cap - 1;
	size_t at = (key * 2654435761u >> 7) & mask;

	while (y->slots[at] && y->keys[y->slots[at] - 1] != key)
		at = (at + 1) & mask;
	return at;
}

static void tally_grow(struct view_tally *y)
{
	y->cap = y->cap ? 2 * y->cap : 8;
	y->keys = xrealloc(y->keys, y->cap * sizeof(*y->keys));
	y->ticks = xrealloc(y->ticks, y->cap * sizeof(*y->ticks));
	xfree(y->slots);
	y->slots = xcalloc(2 * (size_t)y->cap, sizeof(*y->slots));
	for (uint32_t i = 0; i < y->n; i++)
		y->slots[slot_of(y, y->keys[i])] = i + 1;
}

static void tally_add(struct view_tally *y, uint32_t key, uint64_t ticks)
{
	size_t at;

	if (y->last < y->n && y->keys[y->last] == key) {
		y->ticks[y->last] += ticks;
		return;
	}
	if (y->n == y->cap)
		tally_grow(y);
	at = slot_of(y, key);
	if (!y->slots[at]) {
		y->keys[y->n] = key;
		y->ticks[y->n] = 0;
		y->slots[at] = ++y->n;
	}
	y->last = y->slots[at] - 1;
	y->ticks[y->last] += ticks;
}

static void tally_clear(struct view_tally *y)
{
	if (y->n * 4 > y->cap)
		memset(y->slots, 0, 2 * (size_t)y->cap * sizeof(*y->slots));
	else /* from the last one on, so that each is still found */
		for (uint32_t i = y->n; i-- > 0;)
			y->slots[slot_of(y, y->keys[i])] = 0;
	y->n = 0;
}

/* Of equal ones the smaller key, so that it does not depend on the order. */
static uint32_t tally_most(const struct view_tally *y)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < y->n; i++)
		if (y->ticks[i] > y->ticks[best] ||
		    (y->ticks[i] == y->ticks[best] && y->keys[i] < y->keys[best]))
			best = i;
	return best;
}

/* ---- levels ---- */

unsigned view_track_levels(uint64_t nbins)
{
	unsigned n = 1;

	for (; n < VIEW_LEVELS && nbins >= 64; nbins /= VIEW_LEVEL_FACTOR)
		n++;
	return n;
}

void view_track_open(struct view_track *k, uint64_t nbins, uint64_t width)
{
	memset(k, 0, sizeof(*k));
	k->nlevels = view_track_levels(nbins);
	k->width = width;
	k->end = width;
}

static void flush(struct view_track *k, unsigned level);

static void pass_up(struct view_track *k, unsigned level)
{
	struct view_level *l = &k->levels[level], *up = l + 1;
	uint64_t at = l->at / VIEW_LEVEL_FACTOR;

	if (up->at != at) {
		flush(k, level + 1);
		up->at = at;
	}
	for (uint32_t i = 0; i < l->tally.n; i++)
		tally_add(&up->tally, l->tally.keys[i], l->tally.ticks[i]);
	up->busy += l->busy;
	up->calls += l->calls;
	up->depth = l->depth > up->depth ? l->depth : up->depth;
	up->used = true;
}

static void flush(struct view_track *k, unsigned level)
{
	struct view_level *l = &k->levels[level];
	uint32_t best;

	if (!l->used)
		return;
	if (level + 1 < k->nlevels)
		pass_up(k, level);
	if (l->at > l->next) {
		view_put_number(&l->out, 0);
		view_put_number(&l->out, l->at - l->next);
	}
	l->next = l->at + 1;
	best = tally_most(&l->tally);
	view_put_number(&l->out, l->tally.n ? (uint64_t)l->tally.keys[best] + 1 : UINT32_MAX);
	view_put_number(&l->out, l->tally.n ? l->tally.ticks[best] : 0);
	view_put_number(&l->out, l->busy);
	view_put_number(&l->out, l->calls);
	view_put_number(&l->out, l->depth);
	tally_clear(&l->tally);
	l->busy = l->calls = 0;
	l->depth = 0;
	l->used = false;
}

static void go_to(struct view_track *k, uint64_t tick)
{
	flush(k, 0);
	k->levels[0].at = tick / k->width;
	k->begin = k->levels[0].at * k->width;
	k->end = k->begin + k->width;
}

void view_track_add(struct view_track *k, uint64_t a, uint64_t b, uint32_t key)
{
	struct view_level *l = &k->levels[0];

	if (a < k->begin)
		a = k->begin;
	while (a < b) {
		uint64_t until;

		if (a >= k->end)
			go_to(k, a);
		until = b < k->end ? b : k->end;
		tally_add(&l->tally, key, until - a);
		l->busy += until - a;
		l->used = true;
		a = until;
	}
}

void view_track_call(struct view_track *k, uint64_t a, uint32_t depth)
{
	struct view_level *l = &k->levels[0];

	if (a >= k->end)
		go_to(k, a);
	l->calls++;
	l->depth = depth > l->depth ? depth : l->depth;
	l->used = true;
}

void view_track_put(struct view_track *k, struct json *j)
{
	json_open(j, '[');
	for (unsigned i = 0; i < k->nlevels; i++) {
		struct view_level *l = &k->levels[i];

		flush(k, i);
		view_put_bytes(j, &l->out);
		view_bytes_free(&l->out);
		xfree(l->tally.keys);
		xfree(l->tally.slots);
		xfree(l->tally.ticks);
	}
	json_close(j, ']');
	memset(k, 0, sizeof(*k));
}

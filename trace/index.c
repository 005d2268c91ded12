/* SPDX-License-Identifier: MIT */
/* index.c - open addressing, at most half full. */
#include "trace/index.h"

#include "base/vec.h"

static size_t slot_of(const struct index *x, uint64_t key)
{
	size_t mask = x->nslots - 1;
	size_t at = (size_t)((key * 0x9e3779b97f4a7c15ull) >> 32) & mask;

	while (x->slots[at] && x->keys[x->slots[at] - 1] != key)
		at = (at + 1) & mask;
	return at;
}

static void grow(struct index *x)
{
	xfree(x->slots);
	x->nslots = x->nslots ? 2 * x->nslots : 64;
	x->slots = xcalloc(x->nslots, sizeof(*x->slots));
	for (size_t i = 0; i < x->n; i++)
		x->slots[slot_of(x, x->keys[i])] = (uint32_t)i + 1;
}

uint32_t index_find(const struct index *x, uint64_t key)
{
	size_t at;

	if (!x->n)
		return INDEX_NONE;
	at = slot_of(x, key);
	return x->slots[at] ? x->slots[at] - 1 : INDEX_NONE;
}

uint32_t index_of(struct index *x, uint64_t key)
{
	uint32_t known = index_find(x, key);

	if (known != INDEX_NONE)
		return known;
	if (2 * (x->n + 1) > x->nslots)
		grow(x);
	if (x->n == x->cap) {
		x->cap = x->cap ? 2 * x->cap : 32;
		x->keys = xrealloc(x->keys, x->cap * sizeof(*x->keys));
	}
	x->keys[x->n] = key;
	x->slots[slot_of(x, key)] = (uint32_t)x->n + 1;
	return (uint32_t)x->n++;
}

void index_free(struct index *x)
{
	xfree(x->keys);
	xfree(x->slots);
	*x = (struct index){0};
}

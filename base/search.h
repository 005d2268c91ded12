/* SPDX-License-Identifier: MIT */
/* search.h - binary search in what is in order; numbers are put in order. */
#ifndef BASE_SEARCH_H
#define BASE_SEARCH_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * The first index of [0, n) for which `before`, an expression of the variable i, is false; n: none.
 * It must be true for all indexes before that one and false for all after it.
 *
 *     size_t at = partition_point(i, m->n, m->v[i].addr < addr);
 */
#define partition_point(i, n, before)                           \
	({                                                      \
		size_t lo_ = 0, hi_ = (n);                      \
		while (lo_ < hi_) {                             \
			const size_t i = lo_ + (hi_ - lo_) / 2; \
			if (before)                             \
				lo_ = i + 1;                    \
			else                                    \
				hi_ = i;                        \
		}                                               \
		lo_;                                            \
	})

/* For qsort() and bsearch(), of uint64_t. */
static inline int compare_uint64(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* In order, each number once; how many there are then. */
static inline size_t sort_uint64_once(uint64_t *v, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(v, n, sizeof(*v), compare_uint64);
	for (size_t i = 0; i < n; i++)
		if (!i || v[i] != v[kept - 1])
			v[kept++] = v[i];
	return kept;
}

#endif

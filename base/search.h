/* SPDX-License-Identifier: MIT */
/* search.h - binary search in what is in order. */
#ifndef BASE_SEARCH_H
#define BASE_SEARCH_H

#include <stddef.h>

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

#endif

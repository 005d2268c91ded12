/* SPDX-License-Identifier: MIT */
/* index.h - gives each new number the next small index: 0, 1, 2 ... in order of appearance. */
#ifndef TRACE_INDEX_H
#define TRACE_INDEX_H

#include <stddef.h>
#include <stdint.h>

#define INDEX_NONE UINT32_MAX

struct index {
	uint64_t *keys;  /* by index */
	uint32_t *slots; /* hash table of index + 1; 0: free */
	size_t n, cap, nslots;
};

uint32_t index_of(struct index *x, uint64_t key);         /* a new one if need be */
uint32_t index_find(const struct index *x, uint64_t key); /* or INDEX_NONE */
void index_free(struct index *x);

#endif

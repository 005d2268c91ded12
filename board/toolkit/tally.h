/* SPDX-License-Identifier: MIT */
/*
 * tally.h - adds up intervals: for each row of the report (a name of a definition), as a whole
 * and for each group (processor or source address).
 *
 *   row ──┬── all        count, total, min, max, mean, deviation, [every length]
 *         ├── group 0    the same
 *         └── group 1    ...
 */
#ifndef TOOLKIT_TALLY_H
#define TOOLKIT_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/index.h"
#include "trace/analysis/intervals.h"

/* The words of --by, in this order. */
#define TALLY_BY_WORDS "cpu|source|none"
enum tally_by { TALLY_BY_CPU, TALLY_BY_SOURCE, TALLY_BY_NONE };

struct tally_length {
	int64_t begin, ticks;
};

struct tally_sum {
	uint64_t count;
	__int128 total; /* ticks */
	int64_t min, max;
	long double mean, square;         /* running mean, sum of squared deviations from it */
	VEC(struct tally_length) lengths; /* only if they are kept */
};

struct tally_group {
	uint32_t key; /* processor or source address */
	struct tally_sum sum;
};

struct tally_row {
	const struct interval_def *def;
	size_t def_number;
	int part; /* def->name[part] */
	struct tally_sum all;
	VEC(struct tally_group *) groups; /* by key, after tally_sort() */
};

struct tally {
	int by;
	bool keep_groups, keep_all; /* keep every length, of the groups, of the whole */
	bool wide;                  /* false: lengths count modulo 2^32 ticks */
	VEC(struct tally_row) rows;
	uint64_t cut;      /* lengths that 32 bits did not hold */
	uint64_t negative; /* ends that are earlier than their begins */
	size_t *first_row; /* by definition */
	struct index group_keys;
	VEC(struct tally_group *) groups;
};

void tally_init(struct tally *t, const struct interval_info *info);
/* An intervals_fn; arg is the tally. */
void tally_add(void *arg, size_t def, int row, const struct interval *i);
void tally_sort(struct tally *t);
void tally_free(struct tally *t);

long double tally_deviation(const struct tally_sum *s); /* of the whole population */

#endif

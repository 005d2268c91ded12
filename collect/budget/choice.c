/* SPDX-License-Identifier: MIT */
/* choice.c - see choice.h. */
#define _GNU_SOURCE
#include "collect/budget/choice.h"

#include <stdlib.h>

#include "base/vec.h"

/* What it is worth to see a function, in long calls a second. */
#define SEEN 100.0

/* Of the budget, for what may sleep: however much the others take, what costs nothing is seen. */
#define LEFT 0.1

static int least_told_first(const void *a, const void *b, void *ctx)
{
	const struct choice_function *v = ctx;
	const struct choice_function *x = &v[*(const uint32_t *)a], *y = &v[*(const uint32_t *)b];
	const double tx = (x->longs + SEEN) / x->cost, ty = (y->longs + SEEN) / y->cost;

	if (tx < ty || tx > ty)
		return tx < ty ? -1 : 1;
	return (x->cost < y->cost) - (x->cost > y->cost);
}

double choice_make(const struct choice_function *v, uint32_t n, double budget, uint8_t *sleeps)
{
	VEC(uint32_t) order = {0};
	double rest = 0, unmovable = 0;

	for (uint32_t i = 0; i < n; i++) {
		sleeps[i] = 0;
		rest += v[i].cost;
		unmovable += v[i].may_sleep ? 0 : v[i].cost;
		if (v[i].may_sleep && v[i].cost > 0)
			*vec_push(&order) = i;
	}
	if (order.n)
		qsort_r(order.v, order.n, sizeof(*order.v), least_told_first, (void *)(uintptr_t)v);
	if (budget < unmovable + LEFT * budget)
		budget = unmovable + LEFT * budget;
	for (n = 0; n < order.n && rest > budget; n++) {
		sleeps[order.v[n]] = 1;
		rest -= v[order.v[n]].cost;
	}
	while (n-- > 0) /* one that costs more has gone since: there is room for this one */
		if (rest + v[order.v[n]].cost <= budget) {
			sleeps[order.v[n]] = 0;
			rest += v[order.v[n]].cost;
		}
	vec_free(&order);
	return rest;
}

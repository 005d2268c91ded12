/* SPDX-License-Identifier: MIT */
/*
 * choice.h - which functions sleep so that the probes of the others stay within a budget.
 *
 * A function is worth its long calls, and something for being seen at all.  Those that are worth the least for what they
 * cost go first: short and frequent ones.  main() is called once, and stays.  Where those that may not sleep take all of the
 * budget, the others have a tenth of it.
 */
#ifndef COLLECT_CHOICE_H
#define COLLECT_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

struct choice_function {
	double cost;  /* what its probes take of the program's processor time: 0.01 is 1 % */
	double longs; /* long calls a second of processor time */
	bool may_sleep;
};

/* sleeps[i] becomes 1 for those that are to sleep, 0 for the others.  What the others cost together. */
double choice_make(const struct choice_function *v, uint32_t n, double budget, uint8_t *sleeps);

#endif

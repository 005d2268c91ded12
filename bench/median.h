/* SPDX-License-Identifier: MIT */
/* median.h - the median of measured values. */
#ifndef BENCH_MEDIAN_H
#define BENCH_MEDIAN_H

#include <stdlib.h>

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts v. */
static double median_of(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), compare_doubles);
	return v[n / 2];
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * jobs.h - one function for many numbers, on all processors.
 *
 *   jobs_run(n, fn, ctx)      fn(0, ctx) .. fn(n - 1, ctx), each once, in any order, then returns
 *
 * The caller works, too, and helpers come as far as there are processors: callers and helpers
 * together are at most jobs_limit().  fn may call jobs_run() itself; helpers take the numbers of
 * the oldest call first, so work that is cut up twice runs in large pieces while there are any,
 * and in small ones at the end.  A program that never has two numbers at once never starts a
 * thread, and one that has no more for a second has none any more.
 *
 * What fn does for one number may not depend on what it does for another: then the result is the
 * same on any number of processors.
 */
#ifndef BASE_JOBS_H
#define BASE_JOBS_H

#include <stddef.h>

void jobs_run(size_t n, void (*fn)(size_t i, void *ctx), void *ctx);

/* The processors that this process may run on, or what was set. */
unsigned jobs_limit(void);
/* 0: the processors again.  KRON_JOBS says it, too; for tests and measurements. */
void jobs_set_limit(unsigned n);

#endif

/* SPDX-License-Identifier: MIT */
/* cpu_time.c - see cpu_time.h. */
#include "collect/budget/cpu_time.h"

#include <stdlib.h>
#include <time.h>

#define MOST 4096u /* processes that are looked at */

/* 0: it has ended, or may not be asked. */
static uint64_t time_of(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int by_pid(const void *a, const void *b)
{
	const struct cpu_time_of *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static uint64_t before(const struct cpu_time *c, pid_t pid)
{
	const struct cpu_time_of key = {.pid = pid}, *found = NULL;

	if (c->known.n)
		found = bsearch(&key, c->known.v, c->known.n, sizeof(key), by_pid);
	return found ? found->ns : 0;
}

uint64_t cpu_time_look(struct cpu_time *c)
{
	pid_t *pids = xmalloc(MOST * sizeof(*pids));
	const size_t n = tasks_living(c->tasks, pids, MOST);
	struct cpu_time now = {.tasks = c->tasks, .has_begun = true};
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		const uint64_t ns = time_of(pids[i]), was = before(c, pids[i]);

		*vec_push(&now.known) = (struct cpu_time_of){pids[i], ns};
		if (c->has_begun && ns > was)
			sum += ns - was;
	}
	xfree(pids);
	if (now.known.n)
		qsort(now.known.v, now.known.n, sizeof(*now.known.v), by_pid);
	cpu_time_free(c);
	*c = now;
	return sum;
}

void cpu_time_free(struct cpu_time *c)
{
	vec_free(&c->known);
}

/* SPDX-License-Identifier: MIT */
/*
 * jobs.c - see jobs.h.
 *
 *   queue: run ─► run ─► run        each a call of jobs_run(), on its caller's stack
 *           ▲ next numbers ▲
 *        helper         caller (its own run alone)
 *
 * One lock guards everything.  It is taken once a number, so numbers should be worth 100 us or more.
 * A caller whose numbers have all been given out waits for the helpers that still have one.  A helper
 * without work stays for a while: starting one, and filling what it keeps by thread, costs as much
 * as many a call is worth.
 */
#define _GNU_SOURCE
#include "base/jobs.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#define IDLE_SECONDS 1

struct run {
	struct run *next; /* a later call */
	size_t n, at;     /* all numbers; the next one */
	size_t helped;    /* numbers that helpers have and that are not done */
	void (*fn)(size_t i, void *ctx);
	void *ctx;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER, more = PTHREAD_COND_INITIALIZER;
static struct run *queue;
static unsigned threads;             /* callers and helpers that work */
static unsigned idle;                /* helpers that do not */
static unsigned limit;               /* 0: not known yet */
static _Thread_local unsigned depth; /* of calls of this thread; a helper has one from the start */

/* ---- how many ---- */

static unsigned processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

/* Under the lock. */
static unsigned find_limit(void)
{
	const char *given = getenv("KRON_JOBS");
	int n = given ? atoi(given) : 0;

	if (!limit)
		limit = n > 0 ? (unsigned)n : processors();
	return limit;
}

unsigned jobs_limit(void)
{
	unsigned n;

	pthread_mutex_lock(&lock);
	n = find_limit();
	pthread_mutex_unlock(&lock);
	return n;
}

void jobs_set_limit(unsigned n)
{
	pthread_mutex_lock(&lock);
	limit = n;
	pthread_mutex_unlock(&lock);
}

/* ---- helpers; all of it under the lock ---- */

static struct run *oldest_with_work(void)
{
	struct run *r = queue;

	while (r && r->at == r->n)
		r = r->next;
	return r;
}

static void work(struct run *r)
{
	size_t i = r->at++;

	pthread_mutex_unlock(&lock);
	r->fn(i, r->ctx);
	pthread_mutex_lock(&lock);
}

/* False: there was none for a while. */
static bool wait_for_work(void)
{
	struct timespec until;
	bool is_late = false, found;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += IDLE_SECONDS;
	idle++;
	while (!(found = threads < find_limit() && oldest_with_work()) && !is_late)
		is_late = pthread_cond_clockwait(&more, &lock, CLOCK_MONOTONIC, &until);
	idle--;
	return found;
}

static void *help(void *arg)
{
	struct run *r;

	(void)arg;
	pthread_setname_np(pthread_self(), "kron-job");
	depth = 1;
	pthread_mutex_lock(&lock);
	for (;;) {
		while (threads <= find_limit() && (r = oldest_with_work())) {
			r->helped++;
			work(r);
			if (!--r->helped && r->at == r->n)
				pthread_cond_broadcast(&done);
		}
		threads--;
		if (!wait_for_work())
			break;
		threads++;
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* Signals are for the threads that the program made for them. */
static bool start_helper(void)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int code;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	code = pthread_create(&thread, &attr, help, NULL);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return !code;
}

static void call_helpers(size_t wanted)
{
	unsigned most = find_limit();

	for (unsigned i = 0; i < idle && wanted && threads + i < most; i++, wanted--)
		pthread_cond_signal(&more);
	for (; wanted && threads + idle < most && start_helper(); wanted--)
		threads++;
}

/* ---- callers ---- */

static void append(struct run *r)
{
	struct run **p = &queue;

	while (*p)
		p = &(*p)->next;
	*p = r;
}

static void take_out(const struct run *r)
{
	struct run **p = &queue;

	while (*p != r)
		p = &(*p)->next;
	*p = r->next;
}

void jobs_run(size_t n, void (*fn)(size_t i, void *ctx), void *ctx)
{
	struct run r = {.n = n, .fn = fn, .ctx = ctx};

	if (n == 1)
		fn(0, ctx);
	if (n <= 1)
		return;
	pthread_mutex_lock(&lock);
	threads += !depth++;
	append(&r);
	call_helpers(n - 1);
	while (r.at < r.n)
		work(&r);
	while (r.helped)
		pthread_cond_wait(&done, &lock);
	take_out(&r);
	if (!--depth) {
		threads--;
		if (oldest_with_work())
			call_helpers(1); /* in this one's place */
	}
	pthread_mutex_unlock(&lock);
}

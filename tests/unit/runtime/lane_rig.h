/* SPDX-License-Identifier: MIT */
/*
 * lane_rig.h - a board with two probes, a storm of signals and a collector.
 *
 * The test counts its own triggers; samples are counted by reading chunks, losses by reading
 * the process table.  The collector is a thread or the test itself.
 */
#ifndef TESTS_LANE_RIG_H
#define TESTS_LANE_RIG_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "runtime/core/rt.h"
#include "runtime/dynamic/dynamic.h"
#include "tests/unit/runtime/rt_board.h"
#include "tests/unit/runtime/tap_fork.h"

static struct rig board;
static stub_fn probe;         /* of the main flow */
static stub_fn handler_probe; /* of the signal handler */
static uint64_t handled;      /* triggers made by handlers; atomic */

static inline void set_up(uint32_t chunks, enum kron_when_full when_full)
{
	rig_make(&board, chunks, chunks, when_full);
	rig_attach(&board);
	probe = rig_stub(2, 0);
	handler_probe = rig_stub(4, 0);
}

static inline struct tally tally_all(void)
{
	struct tally t = {0};

	rig_tally(&board, &t);
	return t;
}

/* ---- a storm of signals whose handler has many probes ---- */

#define HANDLER_TRIGGERS 37u

static inline void on_signal(int sig)
{
	int saved = errno;

	(void)sig;
	rig_trigger(handler_probe, HANDLER_TRIGGERS);
	__atomic_fetch_add(&handled, HANDLER_TRIGGERS, __ATOMIC_RELAXED);
	errno = saved;
}

/* Not setitimer(): that is alarm()'s timer, which guards the test. */
static timer_t storm;

static inline void storm_set(long microseconds)
{
	struct itimerspec every = {.it_interval = {.tv_nsec = microseconds * 1000},
				   .it_value = {.tv_nsec = microseconds * 1000}};

	CHECK(timer_settime(storm, 0, &every, NULL) == 0);
}

static inline void storm_begin(long microseconds, void (*handler)(int))
{
	struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};

	CHECK(sigaction(SIGUSR1, &sa, NULL) == 0);
	CHECK(timer_create(CLOCK_MONOTONIC, &event, &storm) == 0);
	storm_set(microseconds);
}

static inline void storm_end(void)
{
	storm_set(0);
	timer_delete(storm);
	signal(SIGUSR1, SIG_IGN);
}

/* ---- a collector ---- */

static struct {
	pthread_t thread;
	struct tally t;
	unsigned nap_us;
	int stop; /* atomic */
} collector;

static inline void *collect(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&collector.stop, __ATOMIC_ACQUIRE)) {
		if (!rig_drain(&board, &collector.t))
			usleep(collector.nap_us);
	}
	return NULL;
}

static inline void collector_start(unsigned nap_us)
{
	sigset_t all, old;

	collector.nap_us = nap_us;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	CHECK(pthread_create(&collector.thread, NULL, collect, NULL) == 0);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Stops it and returns what it saw together with what is left. */
static inline struct tally collector_stop(void)
{
	struct tally t;

	__atomic_store_n(&collector.stop, 1, __ATOMIC_RELEASE);
	pthread_join(collector.thread, NULL);
	t = collector.t;
	rig_tally(&board, &t);
	return t;
}

static inline void *trigger_few(void *arg)
{
	rig_trigger(probe, (uint64_t)(uintptr_t)arg);
	return NULL;
}

#endif

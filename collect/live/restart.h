/* SPDX-License-Identifier: MIT */
/*
 * restart.h - system calls that a stop has ended with EINTR are made once more.
 *
 * Most the kernel makes again by itself.  Those of signal(7)'s second list it does not: epoll_wait,
 * semtimedop, sigtimedwait, io_getevents, reads from sockets with a timeout …
 */
#ifndef COLLECT_LIVE_RESTART_H
#define COLLECT_LIVE_RESTART_H

#include "collect/live/threads.h"

/*
 * threads_stop(), again while a child borrows the memory or a thread cannot be interrupted, for ten seconds
 * at most.  Who was in such a call goes back to it, with the time that was left, also when not all of them
 * could be stopped: then they run on.  unwanted (may be NULL): -ECANCELED.
 */
int restart_stop(struct live_threads *t, pid_t pid, bool (*unwanted)(void *ctx), void *ctx,
		 struct err *err);
/*
 * threads_go(), and waits, for ten seconds at most, until who slept is back in its sleep.  Only then the word at `stood`
 * of the process becomes 0 (0: there is none): before, a seccomp filter that comes may forbid the call with which the
 * kernel goes on.
 */
void restart_go(struct live_threads *t, uint64_t stood);

/* When the threads began to wait, as far as it can be known. */
struct live_waits {
	VEC(struct live_wait {
		pid_t tid;
		uint64_t since_ns; /* CLOCK_MONOTONIC */
		uint64_t switches; /* how often it had gone to sleep */
	})
	v;
};
/* A part of it, while they stand: who is about to see EINTR goes back to its call.  Who is not in w has just begun. */
void restart_interrupted(struct live_threads *t, const struct live_waits *w);

#endif

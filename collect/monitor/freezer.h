/* SPDX-License-Identifier: MIT */
/*
 * freezer.h - all threads of a tree of processes stand still at once, and go on as if nothing had been.
 *
 *   kron monitor ──STOP──► kron-freezer ── SEIZE, INTERRUPT ──► stand still
 *                ◄─────── how many, when
 *   reads
 *                ──GO────► kron-freezer ── DETACH ────────────► run
 *                ◄─────── how long they stood
 *
 * A process of its own: whoever traces its own child gets the child's end from the kernel in place of who
 * waits for it.  When kron is killed it lets all go; when it is killed itself the kernel does.
 */
#ifndef COLLECT_MONITOR_FREEZER_H
#define COLLECT_MONITOR_FREEZER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct freezer {
	pid_t pid; /* 0: there is none */
	int sock;
};

struct freeze {
	uint32_t processes, threads;
	bool waited; /* each thread stood in a system call that goes on meanwhile: it lost no time */
	uint64_t first_ns; /* CLOCK_MONOTONIC, when the first stood; and the last */
	uint64_t last_ns;
	uint64_t stood_ns; /* after freezer_go(): mean of all threads */
	uint32_t ran; /* likewise: threads that were asleep, were left so, and have run meanwhile */
};

/* Before there are threads: it is a fork of ours. */
int freezer_start(struct freezer *f, struct err *err);
/* May this process trace others that are not children of the tracer?  A sentence, or NULL. */
const char *freezer_refusal(void);
/* One more process, whose tree is to stand still from now on. */
int freezer_add(struct freezer *f, pid_t pid, struct err *err);
/* 0: all stand.  -errno: they run; -ESRCH: nobody is left. */
int freezer_stop(struct freezer *f, struct freeze *out, struct err *err);
void freezer_go(struct freezer *f, struct freeze *out);
void freezer_end(struct freezer *f);

#endif

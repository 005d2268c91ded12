/* SPDX-License-Identifier: MIT */
/*
 * control.h - who may write the registers of a recorder's board may also change its probes, and read its
 * counters of pages: the socket of kron/control.h, by which `kron ctl probe`,
 * `kron snapshot` and librefcnt ask.
 */
#ifndef COLLECT_CONTROL_H
#define COLLECT_CONTROL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <kron/control.h>

#include "base/err.h"
#include "collect/changes/changes.h"

struct drain;
struct flight;

struct control {
	struct changes changes;
	struct drain *drain;   /* which knows what pages have been counted */
	struct flight *flight; /* NULL: no snapshots */
	int fd;                /* -1: nobody can ask any more */
	int wake_fd;
	pthread_mutex_t lock; /* of the two below */
	pthread_t thread;     /* of its own from the first question on: most recordings hear none */
	bool running, stopped;
};

/* changes.server hears who comes. */
int control_start(struct control *c, uint64_t recording, struct err *err);
/* Nobody changes anything after this; what was added is as it is. */
void control_stop(struct control *c);

/* The other end.  pid: of the recorder, as the board has it. */
int control_ask(uint64_t recording, pid_t pid, enum kron_control_verb verb, const char *text,
		struct kron_control_answer *out, struct err *err);

#endif

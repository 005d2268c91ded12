/* SPDX-License-Identifier: MIT */
/*
 * surgeon.h - a process of its own does what must not be left half done.
 *
 *   kron record ──socket──► kron-surgeon ──ptrace──► the recorded process
 *
 * Whoever traces a process and is killed leaves its threads where they are: in our code, without their
 * registers.  So the recorder does not trace.  Killed at any moment, it leaves a surgeon who sees the
 * socket's end, finishes what he is at, and takes everything out again.
 *
 * Started before the recorder has threads, or executed later; knows nothing of the collector.
 */
#ifndef COLLECT_LIVE_SURGEON_H
#define COLLECT_LIVE_SURGEON_H

#include <sys/types.h>

#include "collect/live/operation.h"

struct surgeon {
	pid_t pid;
	int sock;
	/* Readable when an attach is to be given up that has not changed anything yet; -1: there is none such. */
	int interrupt;
};

int surgeon_start(struct surgeon *s, struct err *err);
/* The same at any time: kron is executed for it, and does surgeon_main(). */
int surgeon_spawn(struct surgeon *s, const char *kron, struct err *err);
int surgeon_main(void);
/* It ends; whatever is attached still is detached first. */
void surgeon_end(struct surgeon *s);

struct surgeon_job {
	pid_t pid;
	bool starts;   /* surgeon_await_exec() has said so */
	bool children; /* what it executes is recorded, too */
	bool leaves; /* likewise, and to be left at the end, by the surgeon of the first process */
	uint64_t started; /* by process_stat: the number may be used again */
	uint64_t session;
	struct implant implant;
	uint64_t go_lo, go_hi;
	bool stays;    /* it cannot be left: nobody knows where its goroutines will stand */
	bool is_child; /* executed by a recorded process: not for this surgeon to leave */
	char entry[4608];
};
/* As operation_attach(); the steps run here. */
int surgeon_attach(struct surgeon *s, const struct surgeon_job *job,
		   const struct operation_steps *steps, uint64_t *stood_ns, struct err *err);
/* operation_change() in job->pid, whose runtime is called at job->implant.entry. */
int surgeon_change(struct surgeon *s, const struct surgeon_job *job,
		   const struct operation_steps *steps, uint64_t *stood_ns, struct err *err);
/* A thread that will execute a program when it is told to: between the two calls. */
int surgeon_seize(struct surgeon *s, pid_t tid, struct err *err);
/* -ESRCH: it has ended instead; -ECANCELED: it did not within ten seconds, or was released. */
int surgeon_await_exec(struct surgeon *s, struct err *err);
/* It is not attached to after all: it runs.  Also while somebody waits for its exec. */
void surgeon_release(struct surgeon *s);
int surgeon_detach(struct surgeon *s, pid_t pid, uint64_t *stood_ns, struct err *err);
/* What an ended recording has left in a process (remains.h). */
int surgeon_take_out_remains(struct surgeon *s, pid_t pid, uint64_t *stood_ns, struct err *err);
/* A command file, before a process knows of it; for answerer.file_made. */
void surgeon_take_file(void *surgeon, uint64_t number, int fd);

#endif

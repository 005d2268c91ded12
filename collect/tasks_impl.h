/* SPDX-License-Identifier: MIT */
/* tasks_impl.h - what tasks.c, tasks_notes.c and tasks_threads.c share; for nobody else. */
#ifndef COLLECT_TASKS_IMPL_H
#define COLLECT_TASKS_IMPL_H

#include "collect/tasks.h"

struct task_note {
	struct task_note *next;
	uint64_t tsc;
	uint32_t ticket;
	pid_t pid, its_pid;
	uint64_t pidns;
	uint32_t end; /* in tasks.ends */
	char *exe, *cmdline, *comm;
};

/* For those whom a starting process waits for. */
void tasks_lock_soon(struct tasks *t);
/* No process, and no zombie, has this number. */
bool tasks_is_pid_gone(pid_t pid);
/* A process without a line in the table gets one: it has samples.  The lock is held. */
void tasks_list_after_all(struct tasks *t, struct task *k);

/* ---- tasks_notes.c; the lock is held ---- */

/*
 * The note of the program that a slot is of.  A process may execute several programs before the drain
 * looks once, and others in other pid namespaces may have its number: the ticket in the slot tells.
 * Notes that found no slot (the runtime could not attach) go after a while.
 */
struct task_note *tasks_take_note(struct tasks *t, pid_t its_pid, uint32_t ticket);
void tasks_free_note(struct tasks *t, struct task_note *n);

/* ---- tasks_threads.c ---- */

/* Last: nothing more is known of it later. */
void tasks_write_thread_ends(struct tasks *t, bool last);

#endif

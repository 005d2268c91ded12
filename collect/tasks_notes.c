/* SPDX-License-Identifier: MIT */
/*
 * tasks_notes.c - what a process that says HELLO was, by /proc, until the drain meets its slot.
 *
 *   HELLO ──► note (program, command line, name) ──► slot with the ticket of the answer
 */
#define _GNU_SOURCE
#include "collect/tasks_impl.h"

#include "base/clock.h"
#include "base/vec.h"
#include "collect/kernel/pidns.h"
#include "collect/kernel/process_maps.h"

#define NOTES_SAME 64u          /* of one process */
#define NOTE_TICKS (1ull << 36) /* some 20 seconds */

void tasks_free_note(struct tasks *t, struct task_note *n)
{
	ends_forget(&t->ends, n->end);
	xfree(n->exe);
	xfree(n->cmdline);
	xfree(n->comm);
	xfree(n);
}

/* It asks faster than it executes programs. */
static void limit_notes(struct tasks *t, pid_t pid)
{
	struct task_note **oldest = NULL, *n;
	unsigned of_pid = 0;

	for (struct task_note **p = &t->notes; *p; p = &(*p)->next) {
		if ((*p)->pid != pid)
			continue;
		of_pid++;
		oldest = p;
	}
	if (of_pid <= NOTES_SAME)
		return;
	n = *oldest;
	*oldest = n->next;
	tasks_free_note(t, n);
}

/* Of processes that have ended since.  One that lives may claim its slot yet. */
static void drop_old_notes(struct tasks *t, uint64_t now)
{
	struct task_note **p = &t->notes;

	while (*p) {
		struct task_note *n = *p;

		if (now - n->tsc <= NOTE_TICKS || now <= n->tsc || !tasks_is_pid_gone(n->pid)) {
			p = &n->next;
			continue;
		}
		*p = n->next;
		tasks_free_note(t, n);
	}
}

uint32_t tasks_announce(struct tasks *t, pid_t pid, pid_t its_pid)
{
	struct task_note *n = xcalloc(1, sizeof(*n));
	uint32_t ticket;

	n->pid = pid;
	n->its_pid = its_pid;
	n->tsc = clock_tsc();
	n->pidns = pidns_of(pid);
	n->exe = process_exe(pid);
	n->cmdline = process_cmdline(pid);
	n->comm = process_thread_name(pid, 0);
	tasks_lock_soon(t);
	ends_look(&t->ends); /* of those that it waited for */
	n->end = ends_watch(&t->ends, pid);
	drop_old_notes(t, n->tsc);
	n->ticket = ticket = ++t->tickets;
	n->next = t->notes;
	t->notes = n;
	limit_notes(t, pid);
	pthread_mutex_unlock(&t->lock);
	return ticket;
}

struct task_note *tasks_take_note(struct tasks *t, pid_t its_pid, uint32_t ticket)
{
	for (struct task_note **p = &t->notes; *p; p = &(*p)->next) {
		struct task_note *n = *p;

		if (n->its_pid != its_pid || n->ticket != ticket)
			continue;
		*p = n->next;
		return n;
	}
	return NULL;
}

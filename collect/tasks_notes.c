/* SPDX-License-Identifier: MIT */
/*
 * tasks_notes.c - what a process that says HELLO was, by /proc, until the drain meets its slot.
 *
 *   HELLO ──► note (program, command line, name, time) ──► slot with that pid, claimed later
 */
#define _GNU_SOURCE
#include "collect/tasks_impl.h"

#include <x86intrin.h>

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

void tasks_announce(struct tasks *t, pid_t pid, pid_t its_pid)
{
	struct task_note *n = xcalloc(1, sizeof(*n));

	n->pid = pid;
	n->its_pid = its_pid;
	n->tsc = __rdtsc();
	n->pidns = pidns_of(pid);
	n->exe = process_exe(pid);
	n->cmdline = process_cmdline(pid);
	n->comm = process_thread_name(pid, 0);
	tasks_lock_soon(t);
	ends_look(&t->ends); /* of those that it waited for */
	n->end = ends_watch(&t->ends, pid);
	n->next = t->notes;
	t->notes = n;
	limit_notes(t, pid);
	pthread_mutex_unlock(&t->lock);
}

struct task_note *tasks_take_note(struct tasks *t, pid_t its_pid, uint64_t before)
{
	struct task_note **best = NULL, *found, **p = &t->notes;
	uint64_t now = __rdtsc();

	while (*p) {
		struct task_note *n = *p;

		if (now - n->tsc > NOTE_TICKS && now > n->tsc) {
			*p = n->next;
			tasks_free_note(t, n);
			continue;
		}
		if (n->its_pid == its_pid && n->tsc <= before && (!best || n->tsc > (*best)->tsc))
			best = p;
		p = &n->next;
	}
	if (!best)
		return NULL;
	found = *best;
	*best = found->next;
	return found;
}

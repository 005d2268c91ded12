/* SPDX-License-Identifier: MIT */
/*
 * tasks_threads.c - the threads that have samples: their names, and when they have ended.
 *
 *   chunk ──► owner ──► T record with a name; again when the name has changed
 *                  └──► owner dead ──► T record with the end, as the kernel or the drain noticed it
 */
#define _GNU_SOURCE
#include "collect/tasks_impl.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/vec.h"
#include "collect/kernel/process_maps.h"

#define THREADS_MAX (1u << 22) /* whose names are known; who makes chunks up needs no more */

struct task_thread {
	uint64_t key; /* uid << 22 | tid, 0 = empty */
	uint32_t seen;
	bool is_over; /* and its end was noted */
	char name[20];
};

static struct task_thread *find_thread(struct tasks *t, uint64_t key)
{
	size_t i = (key * 0x9e3779b97f4a7c15ull >> 32) & (t->threads_cap - 1);

	while (t->threads[i].key && t->threads[i].key != key)
		i = (i + 1) & (t->threads_cap - 1);
	return &t->threads[i];
}

static void grow_threads(struct tasks *t)
{
	struct task_thread *old = t->threads;
	size_t cap = t->threads_cap;

	t->threads_cap = cap ? cap * 2 : 256;
	t->threads = xcalloc(t->threads_cap, sizeof(*t->threads));
	for (size_t i = 0; i < cap; i++)
		if (old[i].key)
			*find_thread(t, old[i].key) = old[i];
	xfree(old);
}

static void read_thread_name(const struct chunk_owner *o, char *name, size_t size)
{
	char *comm = NULL;
	const char *slash;

	if (!o->task->foreign && !o->dead)
		comm = process_thread_name(o->task->pid, o->tid);
	if (comm && comm[0]) {
		snprintf(name, size, "%s", comm);
	} else if (!name[0] && o->tid == o->task->pid && o->task->comm[0]) {
		snprintf(name, size, "%s", o->task->comm);
	} else if (!name[0] && o->tid == o->task->pid && o->task->exe) {
		/* The kernel would have named the main thread so, but for links. */
		slash = strrchr(o->task->exe, '/');
		snprintf(name, size, "%.15s", slash ? slash + 1 : o->task->exe);
	}
	xfree(comm);
}

/* Made if it is new; NULL: no room for more. */
static struct task_thread *thread_of(struct tasks *t, const struct chunk_owner *o)
{
	uint64_t key = (uint64_t)o->uid << KRON_SOURCE_TID_BITS | (uint32_t)o->tid;
	struct task_thread *th;

	if (o->task && o->task->unnamed)
		tasks_list_after_all(t, o->task);
	if (!key || t->nthreads == THREADS_MAX)
		return NULL;
	if (2 * t->nthreads >= t->threads_cap)
		grow_threads(t);
	th = find_thread(t, key);
	if (!th->key) {
		th->key = key;
		t->nthreads++;
	}
	return th;
}

/* ended: 0: not known */
static void write_thread(struct tasks *t, const struct task_thread *th, uint64_t ended)
{
	const struct trace_thread_line line = {.uid = (uint32_t)(th->key >> KRON_SOURCE_TID_BITS),
					       .tid = (uint32_t)th->key & KRON_SOURCE_TID_MASK,
					       .name = th->name,
					       .end_tsc = ended};

	journal_put(t->journal, trace_writer_thread, &line);
}

void tasks_name_thread(struct tasks *t, const struct chunk_owner *o)
{
	struct task_thread *th = thread_of(t, o);
	char name[20];

	if (!th)
		return;
	if (!o->dead)
		th->is_over = false; /* another one has its number by now */
	th->seen++;
	/* Names change, mostly soon after the start: ask again, ever more rarely. */
	if ((th->seen & (th->seen - 1)) || !o->task)
		return;
	memcpy(name, th->name, sizeof(name));
	read_thread_name(o, name, sizeof(name));
	if (!strcmp(name, th->name) && !(t->all_threads && th->seen == 1))
		return;
	memcpy(th->name, name, sizeof(name));
	write_thread(t, th, 0);
}

/* ---- the end of a thread ---- */

void tasks_note_thread_end(struct tasks *t, const struct chunk_owner *o)
{
	struct task_thread *th;

	/* of others the kernel has another number */
	if (!o->dead || !o->task || o->task->foreign)
		return;
	th = thread_of(t, o);
	if (!th || th->is_over)
		return;
	th->is_over = true;
	*vec_push(&t->thread_ends) =
		(struct task_thread_end){.key = th->key,
					 .noticed = board_clock_ticks(t->clock, clock_tsc()),
					 .dead = o->task->dead};
}

/* Last: nothing more is known of it later. */
void tasks_write_thread_ends(struct tasks *t, bool last)
{
	size_t kept = 0;

	vec_for(&t->thread_ends, x) {
		uint64_t exact =
			ends_thread_exit_of(&t->ends, (pid_t)(x->key & KRON_SOURCE_TID_MASK));

		if (!exact && t->ends.exits && !last && !x->waited) {
			x->waited = true;
			t->thread_ends.v[kept++] = *x;
		} else if (exact || !x->dead) {
			write_thread(t, find_thread(t, x->key), exact ? exact : x->noticed);
		}
	}
	t->thread_ends.n = kept;
}

/* SPDX-License-Identifier: MIT */
/*
 * memory_sharing.c - see memory_sharing.h.
 *
 * The kernel counts the numbers of its processes up.  So who was made between two moments has a number between
 * those that two processes of ours got then, whatever /proc is here.
 */
#define _GNU_SOURCE
#include "collect/kernel/memory_sharing.h"

#include <dirent.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/kernel/process_maps.h"

#define NUMBERS_MAX 512 /* beyond that all processes are looked at */

/* Who has no memory any more is like the kernel's processes, which have none. */
static bool is_of(pid_t thread, pid_t other)
{
	return other > 0 && syscall(SYS_kcmp, thread, other, KCMP_VM, 0, 0) == 0 &&
	       !process_is_ending(thread);
}

bool memory_is_same(pid_t a, pid_t b)
{
	return is_of(process_memory_thread(a), process_memory_thread(b));
}

void memory_sharers_read(struct memory_sharers *s, pid_t pid)
{
	const pid_t thread = process_memory_thread(pid);
	DIR *d = process_is_ending(thread) ? NULL : opendir("/proc");
	struct dirent *e;

	memset(s, 0, sizeof(*s));
	while (d && (e = readdir(d)))
		if (atoi(e->d_name) != pid && is_of(thread, atoi(e->d_name)))
			*vec_push(&s->v) = atoi(e->d_name);
	if (d)
		closedir(d);
}

bool memory_sharers_meet(const struct memory_sharers *a, const struct memory_sharers *b)
{
	for (size_t i = 0; i < a->v.n; i++)
		for (size_t k = 0; k < b->v.n; k++)
			if (a->v.v[i] == b->v.v[k])
				return true;
	return false;
}

void memory_sharers_free(struct memory_sharers *s)
{
	vec_free(&s->v);
}

pid_t memory_number_now(void)
{
	const pid_t pid = vfork();

	if (!pid)
		_exit(0);
	if (pid < 0)
		return 0;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return pid;
}

static bool is_thread_of(pid_t pid, pid_t number)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", pid, number);
	return !access(path, F_OK);
}

static bool has_sharers(pid_t pid)
{
	struct memory_sharers s;
	bool found;

	memory_sharers_read(&s, pid);
	found = s.v.n > 0;
	memory_sharers_free(&s);
	return found;
}

bool memory_is_shared(pid_t pid, pid_t from)
{
	const pid_t to = from > 0 ? memory_number_now() : 0, thread = process_memory_thread(pid);
	struct process_stat st;

	if (to <= from || to - from > NUMBERS_MAX)
		return has_sharers(pid);
	for (pid_t other = from + 1; other < to; other++)
		if (is_of(thread, other) && !is_thread_of(pid, other))
			return true;
	return process_read_stat(pid, 0, &st) && is_of(thread, st.ppid);
}

/* SPDX-License-Identifier: MIT */
/* tree.c - see tree.h */
#include "collect/monitor/tree.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "collect/kernel/process_maps.h"

static bool has(const struct tree *t, pid_t pid)
{
	for (size_t i = 0; i < t->v.n; i++)
		if (t->v.v[i].pid == pid)
			return true;
	return false;
}

int tree_add(struct tree *t, pid_t pid)
{
	struct process_stat st;

	if (!process_read_stat(pid, 0, &st))
		return -ESRCH;
	if (!has(t, pid) && pid != t->kron)
		*vec_push(&t->v) = (struct tree_process){pid, st.starttime};
	return 0;
}

static void drop_ended(struct tree *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->v.n; i++) {
		const struct tree_process p = t->v.v[i];
		struct process_stat st;

		if (process_read_stat(p.pid, 0, &st) && st.starttime == p.starttime)
			t->v.v[n++] = p;
	}
	t->v.n = n;
}

static void add_children(struct tree *t, pid_t pid, pid_t tid)
{
	char path[64];
	FILE *f;
	int child;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, tid);
	f = fopen(path, "re");
	while (f && fscanf(f, "%d", &child) == 1)
		tree_add(t, child);
	if (f)
		fclose(f);
}

size_t tree_look(struct tree *t)
{
	size_t before;

	drop_ended(t);
	before = t->v.n;
	/* it grows while it is walked, so grandchildren are found, too */
	for (size_t i = 0; i < t->v.n; i++) {
		const pid_t pid = t->v.v[i].pid;
		char path[64];
		struct dirent *e;
		DIR *d;

		snprintf(path, sizeof(path), "/proc/%d/task", pid);
		d = opendir(path);
		while (d && (e = readdir(d)))
			if (atoi(e->d_name) > 0)
				add_children(t, pid, atoi(e->d_name));
		if (d)
			closedir(d);
	}
	return t->v.n - before;
}

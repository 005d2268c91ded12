/* SPDX-License-Identifier: MIT */
/* newcomers.c - see newcomers.h */
#define _GNU_SOURCE
#include "collect/kernel/newcomers.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "collect/kernel/process_maps.h"

#define FEW 64 /* numbers: to try them is cheaper than to list all processes */

/* The number that the kernel has given out last, to a process or a thread; 0: it does not say. */
static pid_t last_number(void)
{
	FILE *f = fopen("/proc/loadavg", "re");
	int last = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%*s %*s %*s %*s %d", &last) != 1)
		last = 0;
	fclose(f);
	return last;
}

/* Threads have numbers, too, and /proc shows what is asked for by them.  Ours are told at less cost. */
static bool is_process(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d", pid);
	return access(path, F_OK) && process_status_number(pid, 0, "Tgid", 10) == (uint64_t)pid;
}

static void try_all(pid_t after, pid_t last, void (*see)(void *ctx, pid_t pid), void *ctx)
{
	for (pid_t pid = after + 1; pid <= last; pid++)
		if (is_process(pid))
			see(ctx, pid);
}

static void list_all(pid_t after, pid_t last, void (*see)(void *ctx, pid_t pid), void *ctx)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		const pid_t pid = atoi(e->d_name);

		if (pid > 0 && pid != after &&
		    (last >= after ? pid > after && pid <= last : pid > after || pid <= last))
			see(ctx, pid);
	}
	if (d)
		closedir(d);
}

void newcomers_for_each(void (*see)(void *ctx, pid_t pid), void *ctx)
{
	const pid_t after = getpid(), last = last_number();

	if (last >= after && last - after <= FEW)
		try_all(after, last, see, ctx);
	else if (last)
		list_all(after, last, see, ctx);
}

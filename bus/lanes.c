/* SPDX-License-Identifier: MIT */
/*
 * lanes.c - which processes have the lanes of a board?
 *
 * Only a traced process (and the recorder) maps the chunk pool of the object, so its line in
 * /proc/PID/maps gives it away, in whatever pid namespace it calls itself something else:
 *
 *   7f55c0000000-7f55c4000000 ---s 02200000 00:1a 4711   /dev/shm/kron-board.1000.default
 *                                  ^ >= KRON_POOL_OFFSET  ^ inode
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "bus/object.h"

static bool is_pool_line(const char *line, const struct stat *st)
{
	unsigned major_number, minor_number;
	uint64_t offset, inode;

	return sscanf(line, "%*x-%*x %*s %" SCNx64 " %x:%x %" SCNu64, &offset, &major_number,
		      &minor_number, &inode) == 4 &&
	       offset >= KRON_POOL_OFFSET && inode == st->st_ino &&
	       makedev(major_number, minor_number) == st->st_dev;
}

static bool maps_pool(const char *pid, const struct stat *st)
{
	char path[300], *line = NULL;
	bool found = false;
	size_t cap = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (!found && getline(&line, &cap, f) > 0)
		found = is_pool_line(line, st);
	free(line);
	fclose(f);
	return found;
}

bool object_has_lanes(int fd, pid_t *who)
{
	struct dirent *e;
	struct stat st;
	DIR *proc;

	*who = 0;
	if (fstat(fd, &st))
		return false;
	proc = opendir("/proc");
	while (!*who && proc && (e = readdir(proc))) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid > 0 && pid != getpid() && maps_pool(e->d_name, &st))
			*who = pid;
	}
	if (proc)
		closedir(proc);
	return *who != 0;
}

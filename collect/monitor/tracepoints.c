/* SPDX-License-Identifier: MIT */
/* tracepoints.c - see tracepoints.h */
#define _GNU_SOURCE
#include "collect/monitor/tracepoints.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOUNTED "/sys/kernel/tracing"
#define MOUNTED_OLD "/sys/kernel/debug/tracing"

static int read_number(int dir, const char *name, uint64_t *out)
{
	char path[128], text[32];
	ssize_t n;
	int fd, code;

	snprintf(path, sizeof(path), "events/%s/id", name);
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	code = n < 0 ? -errno : -EIO;
	close(fd);
	if (n <= 0)
		return code;
	text[n] = 0;
	*out = strtoull(text, NULL, 10);
	return *out ? 0 : -EIO;
}

static int read_mounted(const char *at, const char *name, uint64_t *out)
{
	const int dir = open(at, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int code;

	if (dir < 0)
		return -errno;
	code = read_number(dir, name, out);
	close(dir);
	return code;
}

static int read_unmounted(const char *name, uint64_t *out)
{
	const int fs = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
	int code = -EPERM, dir;

	if (fs < 0)
		return -errno;
	if (!syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0)) {
		dir = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY);
		code = dir < 0 ? -errno : read_number(dir, name, out);
		if (dir >= 0)
			close(dir);
	}
	close(fs);
	return code;
}

int tracepoint_number(const char *name, uint64_t *out)
{
	int code = read_mounted(MOUNTED, name, out), other;

	if (!code)
		return 0;
	other = read_mounted(MOUNTED_OLD, name, out);
	if (other)
		other = read_unmounted(name, out);
	/* the first says what is wrong, unless tracefs was not there at all */
	return !other ? 0 : code == -ENOENT ? other : code;
}

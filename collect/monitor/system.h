/* SPDX-License-Identifier: MIT */
/*
 * system.h - what /proc says of processors, block devices and the network.
 *
 *   idle         of each processor and of all: time without anything to do
 *   block-read, block-written      bytes that the tree's processes had from and for block devices
 *   net-received, net-sent         bytes of all interfaces but lo, in the network namespace of the first
 *                                  process: whoever causes them
 */
#ifndef COLLECT_MONITOR_SYSTEM_H
#define COLLECT_MONITOR_SYSTEM_H

#include <stdio.h>
#include <sys/types.h>

#include "base/err.h"
#include "trace/monitor/reading.h"
#include "collect/monitor/tree.h"

/* READING_PERCENT; [0] is all of them together, then each by its number.  How many were there. */
size_t system_read_idle(struct reading *out, size_t n);
size_t system_processors(void);

struct system_io_process {
	pid_t pid, parent;
	uint64_t starttime;
	uint64_t read, written;
	bool seen;
};
struct system_io {
	uint64_t read,
		written; /* of those that nobody of the tree has waited for, and that are gone */
	VEC(struct system_io_process) v;
};
/* -EACCES: it may not be read, or this kernel does not count it. */
int system_io_check(pid_t pid, struct err *err);
void system_read_io(struct system_io *io, const struct tree *t, struct reading *read,
		    struct reading *written);

/* pid 0: ours.  It stays that namespace's, whatever becomes of the process. */
FILE *system_open_net(pid_t pid);
void system_read_net(FILE *net, struct reading *received, struct reading *sent);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * tree.h - the processes of a program: the first ones, and whoever they have started since.
 *
 * Read from /proc/PID/task/TID/children.  Who was seen once stays, also when its parent has ended; who was
 * started and left by its parent between two looks is not found.
 */
#ifndef COLLECT_MONITOR_TREE_H
#define COLLECT_MONITOR_TREE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

struct tree_process {
	pid_t pid;
	uint64_t starttime; /* the number may be used again */
};
struct tree {
	pid_t kron; /* never in it, nor who it has started; 0: nobody */
	VEC(struct tree_process) v;
};

/* 0, or -ESRCH: there is no such process.  kron itself is not added. */
int tree_add(struct tree *t, pid_t pid);
/* Who has ended goes, who is new comes; how many are new. */
size_t tree_look(struct tree *t);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * memory_sharing.h - who runs in the memory of a process, but its threads: a child after vfork() or clone(CLONE_VM), its
 * parent, or, with CLONE_PARENT or when the one in between has ended, anybody.
 */
#ifndef COLLECT_MEMORY_SHARING_H
#define COLLECT_MEMORY_SHARING_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/vec.h"

struct memory_sharers {
	VEC(pid_t) v;
};

/* Do two processes run in one memory? */
bool memory_is_same(pid_t a, pid_t b);

/* All of them. */
void memory_sharers_read(struct memory_sharers *s, pid_t pid);
/* One of them is among the others, too. */
bool memory_sharers_meet(const struct memory_sharers *a, const struct memory_sharers *b);
void memory_sharers_free(struct memory_sharers *s);

/* The number that a new process gets now; 0: there can be none. */
pid_t memory_number_now(void);
/* Are there any?  For who knows that there were none when the numbers were at `from`, it takes less long; 0: nobody knows. */
bool memory_is_shared(pid_t pid, pid_t from);

#endif

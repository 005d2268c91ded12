/* SPDX-License-Identifier: MIT */
/*
 * locks.h - the state of locks of a process at a moment: who holds one, and how many threads wait for it, read from outside.
 *
 *   NAME[+OFFSET][:TYPE]      a global variable, or what lies in it; without a TYPE a mutex
 *
 *   mutex    holder (a thread's number, 0: nobody), waiters
 *   rwlock   holder (who writes), readers, waiters
 *   sem      value, waiters       a semaphore: a pool of so many
 *
 * The holder stands in the lock, as glibc lays it out; waiters are the threads of the process that sleep in futex(2) on it.
 * Of a moment at which a lock changes hands nothing is said.
 */
#ifndef COLLECT_MONITOR_LOCKS_H
#define COLLECT_MONITOR_LOCKS_H

#include "collect/monitor/variables.h"

#define LOCK_COLUMNS 3 /* of one, at most */

enum lock_type { LOCK_MUTEX, LOCK_RWLOCK, LOCK_SEM };

struct lock {
	char *text; /* as it was asked for, without the type */
	uint64_t offset;
	enum lock_type type;
	bool is_typed; /* somebody says so: it may be a part of a larger variable */
	size_t symbol; /* which of the variables */
};
struct locks {
	VEC(struct lock) v;
	struct variables symbols;
	uint64_t image; /* of which the C library was looked for */
	bool is_glibc;
	bool was_alive;        /* the process, when they were read */
	bool has_seen_threads; /* it could be read what they wait for */
};

/* -EINVAL with a sentence. */
int monitor_locks_add(struct locks *l, const char *text, struct err *err);
/* The names of its columns, LOCK_COLUMNS of them; NULL from the first that it has not. */
void monitor_lock_columns(const struct lock *k, const char *names[LOCK_COLUMNS]);
size_t monitor_locks_columns(const struct locks *l);
/* Where they are now. */
void monitor_locks_find(struct locks *l, pid_t pid);
/* out: a reading for each column. */
void monitor_locks_read(struct locks *l, pid_t pid, struct reading *out);
/* Why nothing is known of it, as far as anybody has looked; NULL: something is. */
const char *monitor_lock_trouble(const struct locks *l, const struct lock *k);
void monitor_locks_free(struct locks *l);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * ends.h - the moments at which processes end: a pidfd for each, all in one epoll.
 *
 *   ends_watch(pid) ──► id ──► ends_when(id): 0 while it lives
 *                        ▲
 *   somebody polls ends.fd and calls ends_look(): who has ended since gets that moment
 *
 * Where the kernel's records of exits are read (switches.h), it says the moment itself, also of
 * processes that nobody had time to watch.
 *
 * No locks: belongs to tasks.c, under its lock.  A descriptor for a process is much when there
 * are thousands, so they are less than half of what this process may open; who gets none is asked
 * about in other ways.
 */
#ifndef COLLECT_ENDS_H
#define COLLECT_ENDS_H

#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

struct ends_process {
	int fd;        /* -1: it has ended, or this place is unused */
	uint64_t tsc;  /* when it ended; 0: it lives */
	uint32_t next; /* of the unused: id of the next one */
};

struct ends_exit { /* of a thread, or of a process' last one so far */
	pid_t pid;
	uint64_t ticks;
};

struct ends_exits { /* side by side: mostly a process has one thread, of the same number */
	struct ends_exit process, thread;
};

struct ends {
	int fd; /* epoll; readable when a process has ended; -1: there is none */
	uint32_t open, limit;
	uint32_t unused;
	VEC(struct ends_process) v;
	/* by pid and by thread id, hashes whose older entries give way; NULL: none come */
	struct ends_exits *exits;
};

void ends_init(struct ends *e);
void ends_free(struct ends *e);

/* The process with this id, which lives; 0 when it does not, or cannot be watched. */
uint32_t ends_watch(struct ends *e, pid_t pid);
void ends_forget(struct ends *e, uint32_t id); /* 0 is fine */
void ends_look(struct ends *e);
/* 0: it had not ended at the last look. */
uint64_t ends_when(const struct ends *e, uint32_t id);

/* The kernel's records of exits will come. */
void ends_expect_exits(struct ends *e);
void ends_note_exit(struct ends *e, pid_t pid, pid_t tid, uint64_t ticks);
/* When the last thread so far has ended of the process that began at `since`; 0: unknown. */
uint64_t ends_exit_of(const struct ends *e, pid_t pid, uint64_t since);
/* When the last thread so far with this id ended; 0: unknown. */
uint64_t ends_thread_exit_of(const struct ends *e, pid_t tid);

#endif

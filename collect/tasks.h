/* SPDX-License-Identifier: MIT */
/*
 * tasks.h - what the collector knows about the processes and threads that write samples: the
 * process table of the segment, seen from outside, with names from /proc.
 *
 *   HELLO -> tasks_announce(): exe and cmdline, while the process surely lives
 *   drain -> tasks_look():     new LIVE slots get a P record, dead ones are marked
 *   drain -> tasks_of_chunk(): whose chunk is it, does its thread live; T records
 *   drain -> tasks_release():  dead, and nothing of it is left: E record, slot FREE
 *
 * One lock, which whoever answers processes gets at once: the drain gives way between slots.
 * tasks_announce() comes from the connections' threads, tasks_note_ends() from whoever
 * waits for tasks_ends_fd(), all else from the drain thread or, once that has ended, from whoever
 * finishes the trace.
 */
#ifndef COLLECT_TASKS_H
#define COLLECT_TASKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "collect/kernel/ends.h"
#include "collect/journal.h"
#include "collect/board_setup.h"
#include "collect/segment.h"

struct task {               /* shadow of one slot */
	uint32_t uid;       /* 0: nobody known here */
	pid_t pid;          /* the slot's own, as first seen */
	pid_t here;         /* the same in our pid namespace; 0 unknown: nobody can be asked */
	uint64_t starttime; /* tells a pid that was used again; 0 unknown */
	uint64_t pidns;     /* foreign: number of its pid namespace; 0 unknown */
	uint32_t end;       /* its id in tasks.ends; 0: not watched */
	uint32_t ticket;    /* tasks_announce()'s; 0: it was forked */
	uint64_t ended;     /* when, on the clock of the samples; 0: unknown, or it lives */
	uint64_t samples, cut_off;
	bool foreign; /* its pids are not ours */
	bool is_static;
	bool dead;     /* gone; its chunks may be taken */
	bool replaced; /* by the program that it executed */
	bool fresh;    /* dead since the last look for deaths */
	bool left;     /* a chunk of it is still in the segment */
	bool unnamed;  /* it has no P record, because its process has had too many */
	uint32_t next; /* of those with the same hash of the uid: number + 1, see tasks.c */
	char *exe;     /* of the last P record, for its fork children */
	char *cmdline;
	char comm[20]; /* what the kernel called its first thread then; "" unknown */
};

struct task_totals {
	uint64_t processes, threads, samples, lost, cut_off;
	uint64_t samples_static; /* of the samples: static programs' */
	uint64_t unrecorded;     /* of the processes: recover found no P record of them */
	uint32_t living;         /* processes that have not ended */
};

struct task_end { /* of a process that has ended */
	uint32_t uid;
	pid_t here;
	uint64_t ticks;
};

struct task_thread_end {
	uint64_t key;     /* task_thread's */
	uint64_t noticed; /* it was gone then, on the clock of the samples */
	bool dead;        /* its process, too: that says it, unless it is known better */
	bool waited;      /* the kernel's records were read since */
};

struct task_note;   /* an announced process whose slot was not seen yet */
struct task_thread; /* a thread that has written samples */

struct tasks {
	struct segment *seg;
	struct journal *journal;
	uint64_t own_pidns;
	struct ends ends;
	pthread_mutex_t lock;
	uint32_t waiting;    /* atomic: others who want the lock, while the drain has much to do */
	uint32_t turns;      /* atomic: how often they had it */
	uint32_t steps;      /* of the drain, in between */
	struct task *slot;   /* KRON_PROCS_MAX */
	uint32_t slots_used; /* slots from here on were never seen in use */
	struct task_tables *tables;
	uint32_t met;         /* processes; fewer than uids: some are on their way to a slot */
	uint64_t hash_key;    /* odd, and nobody's to guess: uids are what traced processes say */
	uint32_t highest_uid; /* of all that were ever met */
	struct task_note *notes;
	uint32_t tickets; /* given */
	struct task_thread *threads;
	size_t nthreads, threads_cap;
	VEC(struct task_thread_end) thread_ends; /* not written yet */
	uint32_t *fork_parent;                   /* by uid, 0 = none: outlives the slots */
	uint32_t fork_parents;                   /* uids that it has room for */
	const uint32_t *known;                   /* recover: uids that have a P record, sorted */
	size_t nknown;
	/* recover: from a core, all processes had ended by this time, and /proc says nothing of them; 0: not so */
	uint64_t all_ended;
	bool all_threads;                /* T records also of threads whose name nobody knows */
	const struct board_clock *clock; /* of the times that are written; NULL: the counter's */
	struct task_totals ended;        /* sums over the processes with an E record */
};

void tasks_init(struct tasks *t, struct segment *seg, struct journal *j);
void tasks_free(struct tasks *t);

/* Readable when a process has ended: then call tasks_note_ends(), soon.  -1: nobody can tell. */
static inline int tasks_ends_fd(const struct tasks *t)
{
	return t->ends.fd;
}
void tasks_note_ends(struct tasks *t);

/* The kernel's records of exits will come: then E records wait for a round of them. */
void tasks_expect_exits(struct tasks *t);
void tasks_note_exit(struct tasks *t, pid_t pid, pid_t tid, uint64_t ticks);

/*
 * A process said HELLO: pid is ours, its_pid what it calls itself.  Call before answering.  What its slot is
 * to say for it to be known by: kron_reply.ticket.
 */
uint32_t tasks_announce(struct tasks *t, pid_t pid, pid_t its_pid);

/*
 * The process uid and those that it was forked from, as far as is known: at most max uids, and
 * a 0 after them.
 */
void tasks_lineage(struct tasks *t, uint32_t uid, uint32_t slot, uint32_t *out, uint32_t max);

/*
 * Is, or was, the process uid, of that slot, the one whose pid in our namespace, and in its own, is
 * this?  The kernel says these; uid and slot are hearsay.
 */
bool tasks_is_process(struct tasks *t, uint32_t uid, uint32_t slot, pid_t pid, pid_t its_pid);

/* Is there a living process of this number, in our pid namespace, in the table? */
bool tasks_has_process(struct tasks *t, pid_t pid);
/* Those that live, in our pid namespace: their numbers, at most max. */
size_t tasks_living(struct tasks *t, pid_t *out, size_t max);
/* The uid of the one that lives, of its programs the last; 0: there is none. */
uint32_t tasks_process_uid(struct tasks *t, pid_t pid);
/* The same, where it has ended, too, as long as anything of it is in the table. */
uint32_t tasks_last_uid(struct tasks *t, pid_t pid);
/* One that no process has or had.  The segment's next_uid is what the traced processes make it. */
uint32_t tasks_new_uid(struct tasks *t);

/*
 * Look for new processes in the table; deaths: and for dead ones; thorough: ask /proc about
 * zombies and pids that were used again, too, which costs three system calls a process, and
 * who forked children in other pid namespaces are, which costs a walk through all of /proc.
 */
void tasks_look(struct tasks *t, bool deaths, bool thorough);

/* Asks now: when a process ended, on the clock of the samples; 0: it lives, or nobody knows (any
 * more). */
uint64_t tasks_when_ended(struct tasks *t, uint32_t uid);

struct chunk_owner {
	struct task *task; /* NULL: no slot, or a slot that is another's by now */
	uint32_t uid;
	pid_t tid;
	bool dead;
};
/* Decode a chunk state word.  thorough as above. */
void tasks_of_chunk(struct tasks *t, uint64_t word, bool thorough, struct chunk_owner *out);
/* Samples of this owner are being written: name its thread. */
void tasks_name_thread(struct tasks *t, const struct chunk_owner *o);

/* A chunk that it had begun is taken from a thread that is gone: when it ended becomes part of its T
 * record.  Threads that end with their process need none. */
void tasks_note_thread_end(struct tasks *t, const struct chunk_owner *o);

/* E records for all that are dead and have nothing left; clears the `left` marks first set by
 * the drain.  last: all that can be known of their ends is known. */
void tasks_release(struct tasks *t, bool last);
/* Sums, those of living processes included. */
void tasks_totals(struct tasks *t, struct task_totals *out);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * answer.h - what a process has to do: reads its memory map, plans and binds its modules, and
 * writes the command file (kron/wire.h).
 *
 * Which modules have their trampolines already is read from the map, too: a block is a mapping
 * of a command file of this session, "/memfd:kron:<session>:<number>", and number and offset
 * say which module it is of.  So forked children need no book-keeping.
 */
#ifndef COLLECT_ANSWER_H
#define COLLECT_ANSWER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "collect/modules.h"

struct block_record { /* a trampoline block in a command file */
	uint64_t number, off, len;
	uint64_t dev, ino, bias; /* of the module, dev and ino as in /proc/PID/maps */
	uint64_t text;           /* where it is entered from */
	bool is_stubs;           /* from the module's stubs, not from its functions */
};

/*
 * A module that a process did not get patched, though it was told how or asked for it.  Never
 * again: by the time of the next question its code may be running, and text that is being
 * patched is not executable for a moment.
 */
struct refused_module {
	uint32_t uid; /* of the process, or of a parent that it was forked from */
	uint64_t dev, ino, bias;
};

/* The modules that a process had at its last question: their stubs may be running. */
struct met_module {
	uint64_t dev, ino;
};
struct met_process {
	pid_t pid;
	uint32_t uid; /* 0: not known yet */
	VEC(struct met_module) modules;
};

struct answerer {
	struct modules *modules;
	const struct selection *selection;
	uint64_t session; /* first eight bytes of the session token */
	pthread_mutex_t lock;
	uint64_t next_number;
	VEC(struct block_record) blocks; /* sorted by number */
	VEC(struct refused_module) refused;
	VEC(struct met_process) met;
	size_t met_limit; /* so many: look for those that have ended */
};

struct question {
	pid_t pid;
	uint64_t thunk, hook_thunk, payload_thunk, resource_thunk, action_thunk;
	enum kron_thunk way;     /* what the first of them does */
	int32_t counts;          /* struct kron_hello */
	const uint32_t *lineage; /* uid of the process, its parent's by fork, ...; 0 ends it */
};

#define ANSWER_NOTES 8
struct answer {
	int fd; /* command file, -1 when there is nothing to do */
	uint32_t ncommands;
	uint64_t size;
	uint64_t probes;
	bool brings_runtime; /* the program has a runtime of its own, which will ask instead */
	bool small_stacks;   /* KRON_REPLY_SMALL_STACKS */
	bool counts;         /* some of its probes count */
	struct err notes[ANSWER_NOTES]; /* modules that stay untraced, and why */
	size_t nnotes;
	VEC(struct refused_module) tried; /* all modules that were to be patched */
	bool complete;                    /* there are commands for each of them */
};

void answerer_init(struct answerer *a, struct modules *ms, const struct selection *sel,
		   const uint8_t *session);
void answerer_free(struct answerer *a);

int answer_make(struct answerer *a, const struct question *q, struct answer *out, struct err *err);
/* The process uid did not apply all of it, or was not told to: remember what it must not try
 * again. */
void answer_refused(struct answerer *a, const struct answer *answer, uint32_t uid);
/* The process that asked at its start has this number: its children ask with it. */
void answer_known(struct answerer *a, pid_t pid, uint32_t uid);
void answer_free(struct answer *out);

#endif

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
#include "collect/attach/modules.h"

struct block_record { /* a trampoline block in a command file */
	uint64_t number, off, len;
	uint64_t dev, ino, bias; /* of the module, dev and ino as in /proc/PID/maps */
	uint64_t text;           /* where it is entered from */
	bool is_stubs;           /* from the module's stubs, not from its functions */
	bool is_copy;            /* from a copy of some of its text */
	bool is_table;           /* no block, but what far jumps go by */
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
	bool was_new; /* then: nothing runs in it yet if the process asks again */
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
	size_t met_limit; /* at this many, look for those that have ended */
};

struct question {
	pid_t pid;
	int pidfd; /* tells whether that number still means the process that asks */
	uint64_t thunk, hook_thunk, payload_thunk, resource_thunk, action_thunk;
	enum kron_thunk way; /* what the first of them does */
	int32_t counts;      /* struct kron_hello */
	uint32_t again;      /* likewise */
	uint32_t kind;       /* likewise */
	uint64_t range, range_len;
	const uint32_t *lineage; /* uid of the process, its parent's by fork, ...; 0 ends it */
};

struct answer_note {
	char *module; /* path, NULL: it is about no module */
	struct err err;
};

/* The commands that apply together or not at all, and what the process said of them. */
struct answer_group {
	const struct module *module; /* NULL: trampolines of a module that is gone */
	uint64_t bias;
	uint32_t code; /* enum kron_result_code */
	uint64_t detail;
};

struct answer {
	int fd; /* command file, -1 when there is nothing to do */
	uint32_t ncommands;
	uint64_t size;
	uint64_t probes;
	bool brings_runtime; /* the program has a runtime of its own, which will ask instead */
	bool small_stacks;   /* KRON_REPLY_SMALL_STACKS */
	bool counts;         /* some of its probes count */
	VEC(struct answer_note) notes; /* modules that stay untraced, and why */
	VEC(struct answer_group) groups;
	VEC(struct refused_module) refused; /* modules that there are no commands for */
};

void answerer_init(struct answerer *a, struct modules *ms, const struct selection *sel,
		   const uint8_t *session);
void answerer_free(struct answerer *a);

int answer_make(struct answerer *a, const struct question *q, struct answer *out, struct err *err);
/* What the process says of a group (KRON_RESULT_GROUP).  False: there is no such group. */
bool answer_take_result(struct answer *answer, const struct kron_result *r);
/* It has no trampolines because the gap for them was taken meanwhile. */
bool answer_group_is_displaced(const struct answer_group *g);
/*
 * The process uid has done what it could (KRON_RESULT_END): remember what it must not try again.
 * If it asks again, groups that are displaced may be had then.
 */
void answer_settle(struct answerer *a, const struct answer *answer, uint32_t uid,
		   const struct kron_result *end);
/* The process that asked at its start has this number: its children ask with it. */
void answer_known(struct answerer *a, pid_t pid, uint32_t uid);
void answer_free(struct answer *out);

#endif

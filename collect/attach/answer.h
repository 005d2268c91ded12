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
#include "collect/modules/modules.h"

struct block_record { /* a trampoline block in a command file */
	uint64_t number, off, len;
	uint64_t dev, ino, bias; /* of the module, dev and ino as in /proc/PID/maps */
	uint64_t text;           /* where it is entered from */
	uint64_t probes;
	bool is_stubs;    /* from the module's stubs, not from its functions */
	bool is_copy;     /* from a copy of some of its text */
	bool is_table;    /* no block, but what far jumps go by */
	bool is_added;    /* of a probe that was added: it is another answerer's */
	bool is_released; /* it has given its module's code back, for good */
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

/* A module that a process had at its last question: code may be running in its stubs. */
struct met_module {
	uint64_t dev, ino;
	bool was_new; /* at that question: if the process asks again at once, nothing has run in it yet */
};
struct met_process {
	pid_t pid;
	uint32_t uid; /* 0: not known yet */
	VEC(struct met_module) modules;
};

struct question {
	pid_t pid;
	int pidfd; /* tells whether that number still means the process that asks */
	uint64_t thunk, hook_thunk, payload_thunk, resource_thunk, wide_thunk, action_thunk,
		memory_thunk, timed_thunk;
	enum kron_thunk way; /* what the first of them does */
	int32_t counts;      /* struct kron_hello */
	uint32_t again;      /* likewise */
	uint32_t kind;       /* likewise */
	bool live;           /* KRON_HELLO_LIVE */
	bool changes;        /* probes that were added come to what the process has already */
	bool waits;          /* likewise, but it asks: only what is new, in which nothing runs */
	uint64_t entry;      /* struct kron_hello: live_entry */
	uint64_t range, range_len;
	const uint32_t *lineage; /* uid of the process, its parent's by fork, ...; 0 ends it */
};

/* The question that a command file answered. */
struct asked {
	uint64_t number;
	struct question question; /* pid, pidfd, lineage: of then */
};

struct answerer {
	struct answerer *whole; /* of probes that were added: the recording's; else NULL */
	struct modules *modules;
	const struct selection *selection;
	uint64_t session; /* first eight bytes of the session token */
	pthread_mutex_t lock;
	uint64_t next_number;
	uint64_t oldest_number;          /* blocks of older ones lead nowhere any more */
	VEC(struct block_record) blocks; /* sorted by number, but for those that were added */
	VEC(struct asked) asked;         /* sorted by number */
	VEC(struct refused_module) refused;
	VEC(struct met_process) met;
	/* Told of each command file before its process is; NULL: nobody needs them later. */
	void (*file_made)(void *ctx, uint64_t number, int fd);
	void *file_ctx;
	size_t met_limit; /* at this many, look for those that have ended */
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
	/* What was mapped where it patches; text is 0: it patches nothing. */
	uint64_t text, off, dev, ino;
};

struct answer {
	pid_t pid;       /* who asked, or is changed */
	int fd;          /* command file, -1 when there is nothing to do */
	uint64_t number; /* of that file */
	uint32_t ncommands;
	uint64_t size;
	uint64_t probes;
	bool brings_runtime; /* the program contains the runtime, which will ask for itself */
	bool small_stacks;   /* KRON_REPLY_SMALL_STACKS */
	bool counts;         /* some of its probes count */
	bool is_late;        /* some of its modules get their probes while they run */
	uint32_t calls_end;  /* calls of functions are counted whose numbers are below it */
	VEC(struct answer_note) notes; /* modules that stay untraced, and why */
	VEC(struct answer_group) groups;
	VEC(struct refused_module) refused; /* modules that there are no commands for */
};

void answerer_init(struct answerer *a, struct modules *ms, const struct selection *sel,
		   const uint8_t *session);
void answerer_free(struct answerer *a);

/* The question that a block of this process was the answer to.  False: it has none of this session. */
bool answer_find_question(struct answerer *a, const struct process_maps *maps,
			  struct question *out);
/* The probes that such a process has now, in code that is there still. */
uint64_t answer_count_probes(struct answerer *a, const struct process_maps *maps);
int answer_make(struct answerer *a, const struct question *q, struct answer *out, struct err *err);
/* What is mapped at addr is to be there still; the first address counts. */
void answer_note_text(struct answer_group *g, const struct process_maps *maps, uint64_t addr);
/* False: the process, which has run meanwhile, has something else mapped by now where it would be patched. */
bool answer_is_current(const struct answer *a);
/* What the process says of a group (KRON_RESULT_GROUP).  False: there is no such group. */
bool answer_take_result(struct answer *answer, const struct kron_result *r);
/* Did the group fail because memory was mapped meanwhile where its trampolines were to go? */
bool answer_group_is_displaced(const struct answer_group *g);
/*
 * The process uid has done what it could (KRON_RESULT_END): remember what it must not try again.
 * If it asks again, groups that are displaced may be had then.
 */
void answer_settle(struct answerer *a, const struct answer *answer, uint32_t uid,
		   const struct kron_result *end);
/* The process that asked at its start has this number: its children ask with it. */
void answer_known(struct answerer *a, pid_t pid, uint32_t uid);
/* Where goroutines are stopped at any instruction; 0, 0: there are none.  False: there is no name that says so. */
bool answer_find_preempt(const struct answer *a, uint64_t *lo, uint64_t *hi);
void answer_free(struct answer *out);

#endif

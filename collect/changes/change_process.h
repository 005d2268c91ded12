/* SPDX-License-Identifier: MIT */
/*
 * change_process.h - probes come into a process of a recording while it runs, or leave it.
 */
#ifndef COLLECT_CHANGE_PROCESS_H
#define COLLECT_CHANGE_PROCESS_H

#include <pthread.h>

#include "collect/attach/asleep.h"
#include "collect/attach/retire.h"
#include "collect/attach/serve.h"
#include "collect/live/surgeon.h"

/* The command files of one change: processes that ask add to them, too. */
struct change_files {
	pthread_mutex_t lock;
	VEC(struct retire_file) v;
};

struct change_process {
	struct server *server;
	struct surgeon *surgeon;
	struct answerer *of;        /* plans and binds the probes to add */
	struct change_files *files; /* add: filled in; remove: the files to undo */
	pid_t pid;
	bool takes_back;   /* removes what was added in part */
	uint64_t probes;   /* added, or that could be added */
	uint64_t stood_ns; /* its longest stop so far */
};

/* Is it a process of the recording that we can reach, with memory of its own? */
bool change_process_is_ours(const struct change_process *p);
/* Probes of this change that it has now. */
uint64_t change_process_places(const struct change_process *p);
/* 0, or why not: then the process has none of them.  Adding the same probes again does nothing. */
int change_process_add(struct change_process *p, struct err *err);
/* What the recording's own answerer left out until it would be planned (--no-wait). */
int change_process_catch_up(struct change_process *p, struct err *err);
int change_process_remove(struct change_process *p, struct err *err);
/* What the recording began with sleeps there, or wakes, as its modules say. */
int change_process_sleep(struct change_process *p, struct err *err);

#endif

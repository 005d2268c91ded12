/* SPDX-License-Identifier: MIT */
/*
 * changes.h - probes that are added to a recording, and removed from it, while its programs run.
 *
 * One thread calls these (control.c); what asks meanwhile is answered by others (struct added_probes).  A
 * probe that was removed stays known: its events are in the trace.
 */
#ifndef COLLECT_CHANGES_H
#define COLLECT_CHANGES_H

#include <stdio.h>

#include "collect/attach/serve.h"
#include "collect/changes/change_process.h"
#include "probes/probe.h"

struct change {
	char *name; /* of its event; else the SPEC */
	char *text; /* SPEC, or "-F GLOB" */
	struct probe_set set;
	char *words; /* functions (added_functions.h); NULL: a probe */
	VEC(const char *)
	globs; /* in words: which functions, then which libraries besides the recording's */
	struct selection selection;
	struct modules modules;
	struct answerer answerer;
	struct change_files files;
	struct surgeon *surgeon;
	struct changes *changes;
	uint64_t since_ns; /* after the recording's begin */
	/* Under the changes' lock. */
	uint64_t probes; /* places that it ever had, in all processes together */
	unsigned holds;  /* processes that have asked for it, and are being answered */
	bool is_there;   /* what asks gets it */
	bool is_placed;  /* likewise, and those that ran before have it */
};

/* A line for the trace: it has come, or gone. */
struct change_note {
	const char *name, *spec;
	uint64_t places;
	bool comes;
};

/* Likewise: functions that sleep, or wake. */
struct sleep_note {
	uint64_t since, until; /* as changes.now says it */
	bool wakes, by_budget;
	const char *functions; /* "3 7-9" */
};

struct changes {
	struct server *server;
	struct modules *modules; /* of the recording */
	struct surgeon *surgeon;
	bool starts_surgeon; /* the recording has none until it is needed */
	uint8_t default_level;
	uint64_t begin_ns; /* CLOCK_MONOTONIC: of the recording */
	uint64_t begin;    /* likewise, as now() says it */
	uint64_t next_number;
	uint64_t stood_ns;     /* how long a process stood still, at most */
	uint64_t all_stood_ns; /* at all changes, all processes together */
	/* Held while one of them comes or goes; outside of the other. */
	pthread_mutex_t turn;
	pthread_mutex_t lock;
	pthread_cond_t released;
	struct added_probes added;
	struct change_files no_files;
	pthread_t late_thread;
	pthread_cond_t late;
	bool is_late, is_over, has_thread; /* under the lock */
	int (*note)(void *ctx, const struct change_note *n);
	int (*note_sleep)(void *ctx, const struct sleep_note *n);
	/* Does something in the recorder wait for a call of one of these functions, or for its end? */
	bool (*waits_for)(void *ctx, const uint32_t *functions, size_t n);
	uint64_t (*now)(void *ctx); /* on the clock of the samples */
	int (*note_module)(void *ctx, const char *path);
	void *note_ctx;
	VEC(struct change *)
	all; /* a number is a place in it, from 1 on; likewise under the lock */
};

void changes_begin(struct changes *c);
/* Where the recording has none until it is needed. */
int changes_start_surgeon(struct changes *c, struct err *err);
/* Nothing is added or removed any more, and all that was late has come, or is noted. */
void changes_stop(struct changes *c);

/* 0, or why not: then it is nowhere.  0 and a sentence: nothing has loaded what it names yet. */
int changes_add(struct changes *c, const char *spec, struct err *err);
/* By its name or SPEC, as changes_list() shows them. */
int changes_remove(struct changes *c, const char *name, struct err *err);
/*
 * words: "GLOB", and then a library a line.  Functions of the recording that the glob means wake, and others come; or
 * these go, and those sleep.  0 and a sentence if some stay as they are.
 */
int changes_turn_functions(struct changes *c, const char *words, bool wakes, struct err *err);
/* --budget: these functions sleep, and no others by it (function_sleep_hold()).  How many turned: *turned. */
int changes_hold_functions(struct changes *c, const uint8_t *held, uint32_t n, uint64_t *turned,
			   struct err *err);
void changes_list(struct changes *c, bool json, FILE *out);
/* At the end: tell of each that has waited in vain for what it names; why may be NULL. */
void changes_unplaced(struct changes *c, void (*tell)(const struct change *c, const char *why));
/* When nobody calls any more. */
void changes_end(struct changes *c);

#endif

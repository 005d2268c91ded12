/* SPDX-License-Identifier: MIT */
/*
 * attached.h - the processes of `kron record --pid`, as child.h is for a program that kron starts.
 */
#ifndef CMD_RECORD_ATTACHED_H
#define CMD_RECORD_ATTACHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/opt.h"
#include "base/vec.h"
#include "cmd/record/child.h"
#include "collect/collector.h"
#include "collect/live/live.h"

struct attached {
	VEC(struct live_process) v;
	struct surgeon surgeon;
	uint64_t for_ns; /* 0: without end */
	bool children;   /* programs that they execute are recorded, too */
	int signal;      /* that somebody sent to kron: end the recording; 0 = none */
	VEC(struct err) errors;
	struct err kept;           /* why kron has not left one of them; empty: it has */
	struct switches *switches; /* for those that are attached to; or NULL */
	uint64_t changes_ns;       /* how long one stood still for `kron ctl probe`, at most */
};

/* "12,34", each once, and that they can be attached to. */
int attached_take(struct attached *a, const struct opt_list *pids, struct err *err);
/* "5s", "500ms", "2m"; a number alone is seconds. */
int attached_take_time(struct attached *a, const char *text, struct err *err);

/* Before there are threads. */
int attached_prepare(struct attached *a, struct err *err);
/* All, or none of them. */
int attached_start(struct attached *a, struct collector *c, const char *runtime, struct err *err);
/*
 * A program that a dynamic linker would bring nothing into starts, and is attached to in front of its first
 * instruction.  0, or -errno of execve(2).  err: it runs untraced; its message is empty else.
 */
int attached_launch(struct attached *a, struct collector *c, const char *runtime,
		    struct child *child, const char *path, char *const *argv, struct err *err);
/* Until all of them have ended, the time is over, a signal came, or watch (may be NULL) has all that it keeps. */
void attached_wait(struct attached *a, const struct watch *watch);
/* What went wrong stands in a->errors. */
void attached_stop(struct attached *a);
void attached_free(struct attached *a);

/* Why the kernel's context switches of one are not recorded, though it was told of all; NULL: they are. */
const char *attached_unwatched(const struct attached *a);
/* Into the session. */
void attached_note(const struct attached *a, struct journal *j);
/* "process 12", "processes 12, 34" */
char *attached_names(const struct attached *a);
/* "process 12 runs on as before", "processes 12, 34 have ended": as they are now */
char *attached_outcome(const struct attached *a);
uint64_t attached_longest_stop_ns(const struct attached *a);

#endif

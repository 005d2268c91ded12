/* SPDX-License-Identifier: MIT */
/*
 * visit.h - a change comes to all processes of the recording, also to those that are forked meanwhile.
 */
#ifndef COLLECT_VISIT_H
#define COLLECT_VISIT_H

#include "collect/changes/changes.h"

/* 0, -errno with a sentence, or what it means to its caller. */
typedef int visit_what(struct change_process *p, struct err *err);

/* How a process is changed; c NULL: what the recording began with. */
struct change_process visit_process(struct changes *all, struct change *c, pid_t pid);
/* In this one.  1: it is none of ours. */
int visit_one(struct changes *all, struct change *c, pid_t pid, visit_what *what, struct err *err);
/* In all: the first error.  goes_on: an error keeps none that comes later from it.  *met: how many there were. */
int visit_all(struct changes *all, struct change *c, visit_what *what, bool goes_on, unsigned *met,
	      struct err *err);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * turn.h - what the recording began with goes to sleep, or wakes, in all its processes.
 *
 * What is to sleep is said before, in the modules (struct sleepers); these make it so where it is not.
 */
#ifndef COLLECT_TURN_H
#define COLLECT_TURN_H

#include "collect/changes/changes.h"

/* What starts from now on has it as it is now; then nobody is being given it as it was. */
int turn_settle(struct changes *all, struct err *err);
/* The first error: other processes may have turned already. */
int turn_all(struct changes *all, struct err *err);
/* After an error, when it is said again what was said before: as far as it can be had. */
void turn_back(struct changes *all);
/* A program that was attached to in front of its first instruction may have been bound before. */
int turn_one(struct changes *all, pid_t pid, struct err *err);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * remains.h - what an ended recording has left in a process: its recorder and its surgeon were killed, or a
 * debugger's breakpoint kept them there.
 */
#ifndef COLLECT_LIVE_REMAINS_H
#define COLLECT_LIVE_REMAINS_H

#include "collect/live/operation.h"

/*
 * Takes it out of the process and of its forks.  What was patched say the command files, which the blocks are
 * mapped from: to open them takes CAP_SYS_ADMIN.
 */
int remains_take_out(pid_t pid, uint64_t *stood_ns, struct err *err);

#endif

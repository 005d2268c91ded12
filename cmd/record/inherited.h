/* SPDX-License-Identifier: MIT */
/*
 * inherited.h - what kron got from who started it, and programs that it starts get from it as if
 * kron were not there: signals ignored and blocked, timers, and the limits that kron changes.
 * Descriptors of kron's own close by O_CLOEXEC; umask, priority and the like nobody changes here.
 */
#ifndef CMD_RECORD_INHERITED_H
#define CMD_RECORD_INHERITED_H

/* First of all that main() does: nothing is changed yet. */
void inherited_note(void);

/* Before the program is started: timers, which fork() keeps from it, are its own (`alarm; exec kron`). */
void inherited_take_timers(void);
/* It could not be started: they are kron's again. */
void inherited_return_timers(void);

/* In a child, before execve(2).  System calls and nothing else: it may be one of vfork(). */
void inherited_give(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * guard.h - mapped files that somebody may cut off while we read them.
 *
 * Past the end of a file a mapping has no pages: whoever looks there dies of SIGBUS.  Who is guarded
 * finds zeros there instead, goes on, and asks afterwards whether that happened.  Who is not is told in
 * a sentence, and ends.
 *
 *   guard_install()      once, by a program of our own; never inside of somebody else's
 *   guard_add ─► read ─► guard_was_hit? ─► guard_remove, before munmap
 */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Takes SIGBUS.  status: that of exit(), where a file that is not guarded was cut off. */
void guard_install(int status);

/* Guard [at, at + len).  0: there are too many, or no guard_install(); it is not guarded. */
unsigned guard_add(const void *at, size_t len);
void guard_remove(unsigned guard); /* 0: nothing */
/* Some of it was not there, and zeros are. */
bool guard_was_hit(unsigned guard);

#endif

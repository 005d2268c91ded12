/* SPDX-License-Identifier: MIT */
/*
 * guard.h - touching memory of the program that may not be there, from within our handler.
 *
 * The copy is one `rep movsb` at a known address.  When it faults, the handler that runs then
 * asks guard_caught(), which notes the fault's siginfo and makes the copy return false.
 */
#ifndef LIBMK_GUARD_H
#define LIBMK_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <ucontext.h>

/* False: *fault says why. */
bool guard_copy(void *to, const void *from, size_t bytes, siginfo_t *fault);
/* For the handler: was it ours?  Then it only has to return. */
bool guard_caught(const siginfo_t *info, ucontext_t *uc);

#endif

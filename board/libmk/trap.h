/* SPDX-License-Identifier: MIT */
/*
 * trap.h - the SIGSEGV handler of the emulated board's window, and what the program thinks
 * its own one is.
 *
 *   fault ─► on_fault ─┬─ in the window: emulate.h, and on with the next instruction
 *                      └─ anything else: the program's own action, as if we were not there
 *
 * While the trap is on, SIGSEGV is never really blocked, because the kernel kills who faults
 * with it blocked.  Where a program blocks it, SIGSTKFLT is blocked in its place: a signal that
 * x86 has no use for.  So the kernel itself keeps account for us, through handlers, siglongjmp,
 * threads, fork and swapcontext; and a SIGSEGV that somebody sends meanwhile waits there as a
 * SIGSTKFLT with its siginfo.  signals.c translates in every function that takes a signal set.
 */
#ifndef LIBMK_TRAP_H
#define LIBMK_TRAP_H

#include <stdbool.h>

#include "board/libmk/sys.h"

/* Install the handler, or put back what the program has set. */
void trap_on(void);
void trap_off(void);
bool trap_is_on(void);

/* A set of the program's as the kernel gets it, and back.  The same when the trap is off. */
sys_mask trap_mask_in(sys_mask program);
sys_mask trap_mask_out(sys_mask kernel);

/* sigaction() of any signal, in the kernel's terms: 0 or -errno. */
long trap_sigaction(int signal, const struct sys_action *set, struct sys_action *old);

#endif

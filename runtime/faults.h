/* SPDX-License-Identifier: MIT */
/*
 * faults.h - faults in displaced instructions, and traps of ours, before the program's handlers.
 *
 * The program's handlers of SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGTRAP are entered by way of
 * entries of ours (fault_entry.S), which show a fault in a stub at the instruction's own place
 * and lead back into the stub afterwards.  What the program asks the kernel about its handlers
 * is answered with its own (hook_signals.c).
 *
 * int3 sites: a block whose tables have traps (kron/tables.h: struct kron_trap) gets our SIGTRAP
 * entry installed when it is mapped.  A trap whose address - 1 is in the list goes on in the
 * stub; every other one reaches the program, or kills it, as it would have without us.  The one
 * thing that cannot be helped: the kernel kills who meets an int3 with SIGTRAP blocked.
 *
 *   planner (D)                   bind / unwind_tables.c           runtime
 *   site with patch_len 1  --->   struct kron_trap {addr, stub}  ---> rt_faults_trap()
 */
#ifndef RUNTIME_FAULTS_H
#define RUNTIME_FAULTS_H

#include <stdbool.h>
#include <stdint.h>
#include <kron/tables.h>

struct rt_regs;

/* A block was mapped: if its tables have traps, be ready for them before they are written. */
void rt_faults_block(const struct kron_tables *t) __attribute__((visibility("hidden")));
/* Hooks at libc's sigaction(), and at its syscall() for rt_sigaction: the arguments become those
 * of the wrapped call. */
void rt_faults_hook_sigaction(struct rt_regs *r) __attribute__((visibility("hidden")));
void rt_faults_hook_syscall(struct rt_regs *r) __attribute__((visibility("hidden")));

#endif

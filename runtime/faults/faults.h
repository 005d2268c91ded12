/* SPDX-License-Identifier: MIT */
/*
 * faults.h - faults in displaced instructions, and traps of ours, before the program's handlers.
 *
 * The program's handlers of SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGTRAP are entered by way of
 * entries of ours (fault_entry.S), which show a fault in a stub at the instruction's own place
 * (faults.c) and lead back into the stub afterwards.  What the program asks about its handlers
 * is answered with its own (hook_signals.c).
 *
 * A board with a name is a file.  Where its owner cuts it off we have SIGBUS in the segment, and
 * put private memory there (memory.c); so its entry is installed at START, like that of SIGTRAP:
 *
 * int3 sites: a block whose tables have traps (kron/tables.h: struct kron_trap) gets our SIGTRAP
 * entry installed when it is mapped.  A trap whose address - 1 is in the list goes on in the
 * stub; every other one reaches the program, or kills it, as it would have without us.  The one
 * thing that cannot be helped: the kernel kills who meets an int3 with SIGTRAP blocked.
 */
#ifndef RUNTIME_FAULTS_H
#define RUNTIME_FAULTS_H

#define RT_FAULT_ENTRIES 256 /* handlers that a program may have had; more are not wrapped */

#ifndef __ASSEMBLER__
#include <stdbool.h>
#include <stdint.h>
#include <signal.h>
#include <ucontext.h>
#include <kron/tables.h>

struct rt_regs;

/* The arguments of a handler, as fault_entry.S saves them. */
struct rt_handler_args {
	uint64_t context, info, signal;
};

/* struct kernel_sigaction, on x86-64 */
struct rt_action {
	uint64_t handler; /* or 0 SIG_DFL, 1 SIG_IGN */
	uint64_t flags;
	uint64_t restorer;
	uint64_t mask;
};

/* ---- hook_signals.c ---- */

/* Handlers by number; a number once given out keeps its handler for ever. */
enum {
	RT_HANDLER_DEFAULT = 0, /* SIGTRAP and SIGBUS only: the program has none, we have */
	RT_HANDLER_IGNORE = 1,
	RT_HANDLER_UNSET = 2, /* as DEFAULT, and nobody has ever set anything */
	RT_HANDLERS_FIXED
};
/* SIG_DFL or SIG_IGN for the fixed ones. */
uint64_t rt_fault_handler(uint32_t number) __attribute__((visibility("hidden")));

/* A hook at libc's sigaction(): the arguments become those of the wrapped call. */
void rt_hook_sigaction(struct rt_regs *r) __attribute__((visibility("hidden")));
/* In front of the system call, whose arguments these are; size: of a set of signals. */
void rt_hook_rt_sigaction(int signal, uint64_t *set, uint64_t *old, uint64_t size)
	__attribute__((visibility("hidden")));
/* The signal was none for the program: if its handler was for once only, it is there again. */
void rt_fault_again(int signal, uint32_t number) __attribute__((visibility("hidden")));
/* Is SIGTRAP's handler, as it was set last, one of ours? */
bool rt_faults_trap(void) __attribute__((visibility("hidden")));
/* Be the first to have SIGTRAP, or SIGBUS where kron_rt.cuttable is set, from now on. */
void rt_faults_take(int signal) __attribute__((visibility("hidden")));

/* ---- faults.c ---- */

/*
 * Where the module's code at addr leads into the block, or 0: the jump that stands at a site or
 * a landing, after a prefix if there may be one.  A short one goes by way of a landing, and
 * of relays before it.
 */
uint64_t rt_patch_leads_to(const struct kron_tables *t, uint64_t addr, bool prefix)
	__attribute__((visibility("hidden")));
/* Does a patch stand at the instruction?  It was displaced, so its bytes may be read. */
bool rt_is_site(const struct kron_tables *t, uint64_t insn) __attribute__((visibility("hidden")));

/* ---- what differs by how we came into the program: runtime/dynamic/, runtime/static/ ---- */

/* Before the segment is mapped: if its file can be truncated, install the SIGBUS handler. */
void rt_faults_board(void) __attribute__((visibility("hidden")));
/* Installs the SIGBUS handler, where the segment's file can be truncated. */
void rt_faults_take_cut(void) __attribute__((visibility("hidden")));
/* Wraps all handlers that the program has; and gives them back. */
void rt_faults_take_all(void) __attribute__((visibility("hidden")));
void rt_faults_give_all(void) __attribute__((visibility("hidden")));
/* Where the program's handlers return to, by signal; 0: that signal has none. */
void rt_faults_restorers(uint64_t *restorer, uint32_t n) __attribute__((visibility("hidden")));
/* A block was mapped: if its tables have traps, be ready for them before they are written. */
void rt_faults_block(const struct kron_tables *t) __attribute__((visibility("hidden")));
/* Is a handler of this signal wrapped, though the signal is not a fault? */
bool rt_signal_is_wrapped(int signal) __attribute__((visibility("hidden")));
enum rt_signal_way {
	RT_SIGNAL_SHOW,  /* to the handler, at the instruction's own place */
	RT_SIGNAL_AS_IS, /* to the handler, where it stopped the thread */
	RT_SIGNAL_LATER  /* back to where it stopped the thread */
};
/* What becomes of a signal that came to an entry of ours.  It may become another one, for another
 * handler. */
enum rt_signal_way rt_signal_way(int *signal, siginfo_t *info, ucontext_t *uc, uint32_t *number)
	__attribute__((visibility("hidden")));

/* ---- own_faults.c ---- */

struct rt_own_fault {
	uint64_t insn;  /* of the module, that the probe belongs to */
	uint64_t begin; /* where the probe begins in its stub */
};
bool rt_is_own_code(uint64_t pc) __attribute__((visibility("hidden")));
/* A fault in a probe: the context becomes that of its instruction.  False: it is none. */
bool rt_own_fault_undo(ucontext_t *uc, struct rt_own_fault *out)
	__attribute__((visibility("hidden")));
/* A fault in a thunk in front of its call of C: calls C here, and sets the context to after it.  False: it was
 * no such fault. */
bool rt_own_fault_serve(ucontext_t *uc) __attribute__((visibility("hidden")));

#endif
#endif

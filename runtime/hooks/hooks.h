/* SPDX-License-Identifier: MIT */
/*
 * hooks.h - what runs in front of functions, and system calls, that the program makes.  kron_rt_hook()
 * (hook_seccomp.c) is the entry; it goes by enum kron_hook.
 */
#ifndef RUNTIME_HOOKS_H
#define RUNTIME_HOOKS_H

#include "runtime/core/rt.h"

_Static_assert(KRON_HOOK_SYSTEM_CALL == RT_HOOK_SYSTEM_CALL, "thunk_hook.S");

void kron_rt_hook(uint32_t hook, struct rt_regs *regs) __attribute__((visibility("hidden")));
struct rt_exec {
	int dirfd;
	const char *path;
	char *const *argv;
	char *const *envp;
	int flags;
	bool at; /* execveat: with dirfd and flags */
};
/* sp: the program's, in front of the hooked function. */
void rt_hook_exec(const struct rt_exec *c, uint64_t sp) __attribute__((visibility("hidden")));
/* In front of the system call, which may be in a function that was hooked. */
void rt_hook_exec_call(const struct rt_exec *c) __attribute__((visibility("hidden")));
/* In front of vfork, of posix_spawn, of clone. */
void rt_hook_vfork(uint64_t sp) __attribute__((visibility("hidden")));
void rt_hook_spawn(uint64_t sp) __attribute__((visibility("hidden")));
void rt_hook_child_clone(uint64_t flags, uint64_t sp) __attribute__((visibility("hidden")));
/* In front of an exec.  True: this is a child with borrowed memory, and its end was recorded. */
bool rt_child_ends(uint64_t sp) __attribute__((visibility("hidden")));
/* The exec has failed: takes the record of the end back. */
void rt_child_lives(uint64_t sp) __attribute__((visibility("hidden")));
/* In front of the end of an unwinder or of longjmp, whose frame this is. */
void rt_hook_unwind(uint32_t hook, const struct rt_regs *r, uint64_t from)
	__attribute__((visibility("hidden")));
/* True: ld.so is not in the middle of loading modules. */
bool rt_modules_are_settled(void) __attribute__((visibility("hidden")));
void rt_hook_dl_state(void) __attribute__((visibility("hidden")));
/* After the system call: rax is what it returned. */
void rt_hook_mmap(const struct rt_regs *r) __attribute__((visibility("hidden")));
void rt_hook_mremap(const struct rt_regs *r) __attribute__((visibility("hidden")));
void rt_hook_mprotect(const struct rt_regs *r) __attribute__((visibility("hidden")));
/* Asks, and does what the answer says.  Nothing may be running in the code that it is about. */
void rt_modules_ask(struct rt_question q) __attribute__((visibility("hidden")));
void rt_hook_prctl(uint64_t option, uint64_t arg, uint64_t filter)
	__attribute__((visibility("hidden")));
/* A seccomp filter is there from now on. */
void rt_quiet(void) __attribute__((visibility("hidden")));
void rt_hook_seccomp(uint64_t operation, uint64_t flags, uint64_t args)
	__attribute__((visibility("hidden")));
/* In front of a system call whose number and arguments these are. */
void rt_hook_mlockall(uint64_t *number, uint64_t *first, uint64_t *second)
	__attribute__((visibility("hidden")));

/* ---- starts.c ---- */
/* This process is about to execute a program with our environment.  A number for when it fails. */
uint32_t rt_start_enter(void) __attribute__((visibility("hidden")));
void rt_start_leave(uint32_t i) __attribute__((visibility("hidden")));
/* ... or without it. */
void rt_start_untraced(enum kron_untraced why) __attribute__((visibility("hidden")));

#endif

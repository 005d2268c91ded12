/* SPDX-License-Identifier: MIT */
/*
 * hook_seccomp.c - the hooks' entry, and the one that notices seccomp filters.
 *
 * A filter may kill for any system call that the program itself does not make.  From the
 * moment that the program installs one, whether it gets it or not, the runtime makes none any
 * more; lane.c says what that costs.  It is never taken back, and forked children inherit it
 * as they inherit the filter.  Who has its system calls dispatched to itself would get those of the runtime: likewise.
 */
#include <linux/fcntl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <time.h>
#include "runtime/sys/memory.h"
#include "runtime/core/rt.h"
#include "runtime/hooks/hooks.h"
#include "runtime/core/thread.h"
#include "runtime/faults/faults.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

void rt_quiet(void)
{
	if (!kron_rt.quiet) {
		rt_memory_open_ahead();
		rt_thread_prepare_quiet();
	}
	rt_log("seccomp: no system calls from here on", 0);
	kron_rt.quiet = true;
	__atomic_store_n(&kron_rt.board.quiet, true, __ATOMIC_RELEASE);
}

#define TURNS_MAX (1u << 24) /* about a second: a handler may have left a slow path by longjmp */

/* Until the system calls that other threads have begun are over.  It makes none: another thread's filter may be in
 * force already. */
static void wait_for_others(void)
{
	for (uint32_t i = 0; i < TURNS_MAX; i++) {
		if (__atomic_load_n(rt_busy(), __ATOMIC_SEQ_CST) <= 0)
			return;
		__builtin_ia32_pause();
	}
}

/* In a hook, which is busy itself. */
static void fall_quiet(void)
{
	rt_quiet();
	rt_busy_end();
	wait_for_others();
	rt_busy_begin();
}

#define GO_ON_MS 30000u /* the surgeon has been killed: it waits for less */

/*
 * Who was in a sleep when kron stopped it goes on with that by another system call, restart_syscall, once it has a
 * processor.  A filter for all threads that comes before may kill it for that.  The surgeon says when all have.
 */
static void let_others_go_on(void)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	uint64_t stood;

	while (!kron_rt.quiet && (stood = kron_rt.proc->stood_ms) &&
	       sys_now_ms() < stood + GO_ON_MS)
		sys2(__NR_nanosleep, (long)&nap, 0);
}

/* Strict mode, which is the thread's, also makes rdtsc fault. */
static void quiet_strict(void)
{
	fall_quiet();
	rt_lane_mute();
}

void rt_hook_prctl(uint64_t option, uint64_t arg, uint64_t filter)
{
	if ((int)option == PR_SET_SECCOMP && arg == SECCOMP_MODE_STRICT) {
		quiet_strict();
	} else if (((int)option == PR_SET_SECCOMP && filter) ||
		   ((int)option == PR_SET_SYSCALL_USER_DISPATCH && arg == PR_SYS_DISPATCH_ON)) {
		fall_quiet();
	} else if ((int)option == PR_SET_TSC && (unsigned)arg == PR_TSC_SIGSEGV) {
		/* Inherited by new threads, so nobody gets a new chunk any more. */
		kron_rt.mute = true;
		rt_lane_mute();
	}
}

/*
 * libseccomp asks what the kernel can by calls that must fail: strict mode with flags, a filter
 * at address zero.  Those change nothing.
 */
void rt_hook_seccomp(uint64_t operation, uint64_t flags, uint64_t args)
{
	if ((unsigned)operation == SECCOMP_SET_MODE_STRICT && !(unsigned)flags && !args) {
		quiet_strict();
	} else if ((unsigned)operation == SECCOMP_SET_MODE_FILTER && args) {
		if (flags & SECCOMP_FILTER_FLAG_TSYNC)
			let_others_go_on();
		fall_quiet();
	}
}

/* The program's stack pointer, in front of the function that the hook is of. */
static uint64_t stack_of(const struct rt_regs *r)
{
	return (uint64_t)&r->back + KRON_THUNK_SP;
}

static void hook_execve(struct rt_regs *r, uint64_t path, uint64_t argv, uint64_t envp)
{
	const struct rt_exec c = {.dirfd = AT_FDCWD,
				  .path = (const char *)path,
				  .argv = (char **)argv,
				  .envp = (char **)envp};

	rt_hook_exec(&c, stack_of(r));
}

static void hook_execveat(struct rt_regs *r, const struct rt_exec *c)
{
	struct rt_exec at = *c;

	at.at = true;
	rt_hook_exec(&at, stack_of(r));
}

static void hook_clone3(uint64_t args, uint64_t size)
{
	const struct clone_args *a = (const struct clone_args *)args;

	if (!kron_rt.quiet && size >= CLONE_ARGS_SIZE_VER0 && sys_is_readable(a) &&
	    sys_is_readable(&a->tls))
		rt_hook_clone(a->flags, a->tls);
}

/* syscall(number, ...): the arguments are one register further on. */
static void hook_syscall(struct rt_regs *r)
{
	switch (r->rdi) {
	case __NR_execve:
		hook_execve(r, r->rsi, r->rdx, r->rcx);
		break;
	case __NR_execveat:
		hook_execveat(r, &(struct rt_exec){.dirfd = (int)r->rsi,
						   .path = (const char *)r->rdx,
						   .argv = (char **)r->rcx,
						   .envp = (char **)r->r8,
						   .flags = (int)r->r9});
		break;
	case __NR_exit_group:
		rt_child_ends(stack_of(r));
		break;
	case __NR_prctl:
		rt_hook_prctl(r->rsi, r->rdx, r->rcx);
		break;
	case __NR_rt_sigaction:
		rt_hook_rt_sigaction((int)r->rsi, &r->rdx, &r->rcx, r->r8);
		break;
	case __NR_seccomp:
		rt_hook_seccomp(r->rsi, r->rdx, r->rcx);
		break;
	case __NR_mlockall:
		rt_hook_mlockall(&r->rdi, &r->rsi, &r->rdx);
		break;
	case __NR_clone:
		rt_hook_clone(r->rsi, r->r9);
		break;
	case __NR_clone3:
		hook_clone3(r->rsi, r->rdx);
		break;
	case __NR_arch_prctl:
		rt_hook_arch_prctl(r->rsi, r->rdx);
		break;
	}
}

/* In front of a `syscall` of the program; those with other numbers do not come here. */
static void hook_system_call(struct rt_regs *r)
{
	if ((uint32_t)r->rax == __NR_rt_sigaction)
		rt_hook_rt_sigaction((int)r->rdi, &r->rsi, &r->rdx, r->r10);
	if (!kron_rt.live)
		return;
	switch ((uint32_t)r->rax) {
	case __NR_execve:
		rt_hook_exec_call(&(struct rt_exec){.dirfd = AT_FDCWD,
						    .path = (const char *)r->rdi,
						    .argv = (char **)r->rsi,
						    .envp = (char **)r->rdx});
		break;
	case __NR_execveat:
		rt_hook_exec_call(&(struct rt_exec){.dirfd = (int)r->rdi,
						    .path = (const char *)r->rsi,
						    .argv = (char **)r->rdx,
						    .envp = (char **)r->r10,
						    .flags = (int)r->r8,
						    .at = true});
		break;
	case __NR_prctl:
		rt_hook_prctl(r->rdi, r->rsi, r->rdx);
		break;
	case __NR_seccomp:
		rt_hook_seccomp(r->rdi, r->rsi, r->rdx);
		break;
	case __NR_mlockall:
		rt_hook_mlockall(&r->rax, &r->rdi, &r->rsi);
		break;
	case __NR_clone:
		rt_hook_clone(r->rdi, r->r8);
		break;
	case __NR_clone3:
		hook_clone3(r->rdi, r->rsi);
		break;
	case __NR_arch_prctl:
		rt_hook_arch_prctl(r->rdi, r->rsi);
		break;
	}
}

static void hook_function(uint32_t hook, struct rt_regs *r)
{
	switch (hook) {
	case KRON_HOOK_ARCH_PRCTL:
		rt_hook_arch_prctl(r->rdi, r->rsi);
		break;
	case KRON_HOOK_FS:
		rt_hook_fs();
		break;
	case KRON_HOOK_EXECVE:
		hook_execve(r, r->rdi, r->rsi, r->rdx);
		break;
	case KRON_HOOK_EXECVEAT:
		hook_execveat(r, &(struct rt_exec){.dirfd = (int)r->rdi,
						   .path = (const char *)r->rsi,
						   .argv = (char **)r->rdx,
						   .envp = (char **)r->rcx,
						   .flags = (int)r->r8});
		break;
	case KRON_HOOK_FEXECVE: /* execveat(fd, "", argv, envp, AT_EMPTY_PATH), as libc makes it */
		hook_execveat(r, &(struct rt_exec){.dirfd = (int)r->rdi,
						   .path = "",
						   .argv = (char **)r->rsi,
						   .envp = (char **)r->rdx,
						   .flags = AT_EMPTY_PATH});
		break;
	case KRON_HOOK_EXIT:
		rt_child_ends(stack_of(r));
		break;
	case KRON_HOOK_VFORK:
		rt_hook_vfork(stack_of(r));
		break;
	case KRON_HOOK_SPAWN:
	case KRON_HOOK_SPAWN_OLD:
	case KRON_HOOK_SPAWNP:
	case KRON_HOOK_SPAWNP_OLD:
		rt_hook_spawn(stack_of(r));
		break;
	case KRON_HOOK_CLONE: /* clone(fn, stack, flags, arg, ptid, tls, ctid) */
		rt_hook_child_clone(r->rdx, stack_of(r));
		rt_hook_clone((uint32_t)r->rdx, r->r9);
		break;
	case KRON_HOOK_DL_STATE:
		rt_hook_dl_state();
		break;
	case KRON_HOOK_PRCTL:
		rt_hook_prctl(r->rdi, r->rsi, r->rdx);
		break;
	case KRON_HOOK_MLOCKALL:
		rt_hook_mlockall(&r->rax, &r->rdi, &r->rsi);
		break;
	case KRON_HOOK_SYSCALL:
		hook_syscall(r);
		break;
	case KRON_HOOK_MMAP:
		rt_hook_mmap(r);
		break;
	case KRON_HOOK_MREMAP:
		rt_hook_mremap(r);
		break;
	case KRON_HOOK_MPROTECT:
		rt_hook_mprotect(r);
		break;
	case KRON_HOOK_UNWIND:
	case KRON_HOOK_UNWIND_LLVM:
	case KRON_HOOK_LONGJMP:
	case KRON_HOOK_LONGJMP_MUSL:
		rt_hook_unwind(hook, r, stack_of(r));
		break;
	}
}

void kron_rt_hook(uint32_t hook, struct rt_regs *r)
{
	const bool live = kron_rt.live;

	if (!rt_has_data())
		return;
	if (live)
		rt_busy_begin();
	/* also when nothing else is to be done (KRON_START_WRAPS) */
	if (hook == KRON_HOOK_SYSTEM_CALL)
		hook_system_call(r);
	if (hook == KRON_HOOK_SIGACTION || hook == KRON_HOOK_HANDLERS)
		rt_hook_sigaction(r);
	if (live) {
		hook_function(hook, r);
		rt_busy_end();
	}
}

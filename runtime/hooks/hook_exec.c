/* SPDX-License-Identifier: MIT */
/*
 * hook_exec.c - puts kron's entries back into the environment of a program that is started, or has it
 * awaited if nobody would read them there.
 *
 * Stands in front of libc's execve, execveat (fexecve) and syscall().  It makes the system
 * call itself, with the longer environment; when that fails it returns, and the original runs
 * and reports the error in its own way.
 *
 * It runs in vfork children on their parent's stack and memory, on posix_spawn's 32 KiB stack
 * and in handlers on alternate stacks: so little stack, no memory that would have to be given
 * back after a successful exec.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include "runtime/hooks/exec_static.h"
#include "runtime/hooks/exec_target.h"
#include "runtime/core/rt.h"
#include "runtime/hooks/hooks.h"
#include "runtime/sys/signals.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

#define OURS_MAX 3         /* LD_PRELOAD, KRON_RT, KRON_RT_PAD */
#define STACK_ENTRIES 512u /* 4 KiB */
#define BIG_ENTRIES 16384u
#define PRELOAD_MAX 4096u

/* One for everybody: held from the building of an environment to the end of a failed exec. */
static const char *big_array[BIG_ENTRIES + OURS_MAX + 1];
static int32_t big_array_owner; /* pid, 0 = free; atomic */

/* ---- the program's environment, which may be anything ---- */

/* With "LD_PRELOAD=": what ends before the end of its page is shorter, and all others go on after it. */
static bool can_compare(const char *s)
{
	const char *last = s + sizeof("LD_PRELOAD=") - 2;

	return (uint64_t)last >> 12 == (uint64_t)s >> 12 || sys_is_readable(last);
}

/*
 * Count its entries and find its LD_PRELOAD.  A bad pointer is the kernel's to report, with
 * EFAULT and not with a signal: look before reading, once a page.  Strings may end in the next
 * page, but what we compare is short.
 */
static bool env_survey(char *const *envp, size_t *count, const char **preload)
{
	uint64_t good_page = 0;
	size_t i;

	*count = 0;
	*preload = NULL;
	if (!envp)
		return true;
	for (i = 0;; i++) {
		const char *s;

		if ((i == 0 || (uint64_t)&envp[i] % 4096 == 0) && !sys_is_readable(&envp[i]))
			return false;
		s = envp[i];
		if (!s)
			break;
		if ((uint64_t)s >> 12 != good_page && !sys_is_readable(s))
			return false;
		good_page = (uint64_t)s >> 12;
		if (can_compare(s) && mini_after(s, "LD_PRELOAD="))
			*preload = s;
	}
	*count = i;
	return true;
}

/* ---- the new one ---- */

/* "LD_PRELOAD=" our library [":" the user's]; false: does not fit. */
static bool preload_build(char *buf, size_t room, const char *of_user)
{
	size_t at = sizeof("LD_PRELOAD=") - 1;
	size_t path = mini_len(kron_rt_env.path);
	const char *rest = of_user ? mini_after(of_user, "LD_PRELOAD=") : "";
	size_t len = mini_len(rest);

	if (at + path + 1 + len + 1 > room)
		return false;
	mini_copy(buf, "LD_PRELOAD=", at);
	mini_copy(buf + at, kron_rt_env.path, path);
	at += path;
	if (of_user) {
		buf[at++] = ':';
		mini_copy(buf + at, rest, len);
		at += len;
	}
	buf[at] = '\0';
	return true;
}

/*
 * What is already kron's (a second kron record inside) is not ours to touch; and where ld.so only
 * lists a program's libraries, as ldd does, no program runs and ours would be one of them.
 */
static bool is_not_ours(char *const *envp, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (mini_after(envp[i], KRON_ENV_RT "=") ||
		    mini_after(envp[i], "LD_TRACE_LOADED_OBJECTS="))
			return true;
	}
	return false;
}

static void env_build(const char **out, char *const *envp, size_t count, const char *of_user,
		      const char *preload)
{
	size_t n = 0;
	size_t i;

	for (i = 0; i < count; i++)
		out[n++] = envp[i] == of_user ? preload : envp[i];
	out[n++] = of_user ? KRON_ENV_PAD "=" : preload;
	out[n++] = kron_rt_env.entry;
	out[n] = NULL;
}

/* ---- the stack that we are on, where it is one of kron_rt_stacks ---- */

/* Who has taken a stack: a vfork child that executes another program never gives its stack back. */
static int32_t stack_user[RT_STACKS]; /* pid, 0 = none; atomic */

static void stacks_take_back(int32_t self)
{
	for (unsigned i = 0; i < RT_STACKS; i++) {
		int32_t pid = __atomic_load_n(&stack_user[i], __ATOMIC_RELAXED);
		long order =
			pid && pid != self ? sys5(__NR_kcmp, self, pid, KCMP_VM, 0, 0) : -EINVAL;

		if ((order > 0 || order == -ESRCH) &&
		    __atomic_compare_exchange_n(&stack_user[i], &pid, 0, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			__atomic_fetch_and(&kron_rt_stacks_taken, ~(1ull << i), __ATOMIC_RELEASE);
	}
}

/* Notes that we use the stack that we are on.  NULL: it is the program's, or we are the first process of a
 * pid namespace, whose pid means nothing to the others: then the stack is lost. */
static int32_t *stack_note(void)
{
	uint64_t off = (uint64_t)__builtin_frame_address(0) - (uint64_t)kron_rt_stacks;
	int32_t self = sys_getpid();

	if (!kron_rt_stacks || self == 1 || off >> RT_STACK_SHIFT >= RT_STACKS)
		return NULL;
	stacks_take_back(self);
	__atomic_store_n(&stack_user[off >> RT_STACK_SHIFT], self, __ATOMIC_RELAXED);
	return &stack_user[off >> RT_STACK_SHIFT];
}

/* A vfork child that becomes another program leaves its parent's count as it was. */
static void exec_call(const struct rt_exec *c, const char *const *envp)
{
	rt_busy_end();
	if (c->at)
		sys5(__NR_execveat, c->dirfd, (long)c->path, (long)c->argv, (long)envp, c->flags);
	else
		sys3(__NR_execve, (long)c->path, (long)c->argv, (long)envp);
	rt_busy_begin();
}

static void exec_with(const struct rt_exec *c, const char *const *envp)
{
	int32_t *note = stack_note();

	exec_call(c, envp);
	if (note)
		__atomic_store_n(note, 0, __ATOMIC_RELAXED);
}

/* The collector waits for it to say HELLO. */
static void exec_entered(const struct rt_exec *c, const char *const *envp)
{
	uint32_t start = rt_start_enter();

	exec_with(c, envp);
	rt_start_leave(start);
}

/*
 * A vfork child that took the big array and became another program never gives it back.  Then
 * its process does not share our memory any more, which the kernel tells.
 */
static bool big_array_take(int32_t pid)
{
	int32_t owner = 0;

	if (__atomic_compare_exchange_n(&big_array_owner, &owner, pid, false, __ATOMIC_ACQUIRE,
					__ATOMIC_RELAXED))
		return true;
	if (owner == pid || sys5(__NR_kcmp, pid, owner, KCMP_VM, 0, 0) == 0)
		return false;
	return __atomic_compare_exchange_n(&big_array_owner, &owner, pid, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static void exec_big(const struct rt_exec *c, size_t count, const char *of_user,
		     const char *preload)
{
	if (count > BIG_ENTRIES || !big_array_take(sys_getpid())) {
		rt_start_untraced(KRON_UNTRACED_SPACE);
		return;
	}
	env_build(big_array, c->envp, count, of_user, preload);
	exec_entered(c, big_array);
	__atomic_store_n(&big_array_owner, 0, __ATOMIC_RELEASE);
}

static void __attribute__((noinline))
exec_small(const struct rt_exec *c, size_t count, const char *of_user, const char *preload)
{
	const char *array[count + OURS_MAX + 1];

	env_build(array, c->envp, count, of_user, preload);
	exec_entered(c, array);
}

static void __attribute__((noinline))
exec_traced(const struct rt_exec *c, size_t count, const char *of_user)
{
	size_t room = sizeof("LD_PRELOAD=") + mini_len(kron_rt_env.path) + 1 +
		      (of_user ? mini_len(of_user) : 0);
	char preload[room < PRELOAD_MAX ? room : PRELOAD_MAX];

	if (!preload_build(preload, sizeof(preload), of_user)) {
		rt_start_untraced(KRON_UNTRACED_SPACE);
		return;
	}
	if (count <= STACK_ENTRIES)
		exec_small(c, count, of_user, preload);
	else
		exec_big(c, count, of_user, preload);
}

static bool is_session_over(void)
{
	return __atomic_load_n(&kron_rt.ctl->closing, __ATOMIC_ACQUIRE);
}

/* What no dynamic linker brings the runtime into; or should not, because nobody could take it out again. */
static bool is_to_be_attached(enum kron_untraced why)
{
	return why == KRON_UNTRACED_STATIC ||
	       (kron_rt.leaves && (why == KRON_UNTRACED_NOT || why == KRON_UNTRACED_ROOT));
}

static void exec_awaited(const struct rt_exec *c)
{
	exec_with(c, (const char *const *)c->envp);
	rt_exec_take_back();
}

/* With kron's environment, or awaited, if that is for us to do.  It returns when it fails. */
static void exec_as_traced(const struct rt_exec *c)
{
	enum rt_exec_answer answer = RT_EXEC_NOT;
	bool may, loads;
	enum kron_untraced why;
	const char *of_user;
	size_t count;
	uint64_t mask;

	if (!kron_rt.env_hidden || (kron_rt.no_children && !kron_rt.attached))
		return;
	if (kron_rt.quiet)
		rt_start_untraced(KRON_UNTRACED_QUIET);
	if (kron_rt.quiet || is_session_over())
		return;
	mask = rt_signals_block();
	why = rt_exec_target(c->dirfd, c->path, c->flags);
	if (why < KRON_UNTRACED_REASONS && rt_collector_is_gone())
		why = KRON_UNTRACED_GONE;
	may = env_survey(c->envp, &count, &of_user) && !is_not_ours(c->envp, count);
	if (kron_rt.no_children && why < KRON_UNTRACED_REASONS)
		why = KRON_UNTRACED_UNASKED;
	loads = why == KRON_UNTRACED_NOT;
	if (may && is_to_be_attached(why))
		answer = rt_exec_announce(loads);
	/* Before the exec: the mask outlives it. */
	rt_signals_restore(mask);
	if (answer == RT_EXEC_AWAITED)
		exec_awaited(c);
	else if (may && loads && (answer == RT_EXEC_LOADS || !is_to_be_attached(why)))
		exec_traced(c, count, of_user);
	else if (may && why < KRON_UNTRACED_REASONS && !is_to_be_attached(why))
		rt_start_untraced(why);
}

/* What a function's hook has tried last: the system call in that function may be hooked, too, and must not
 * try it again. */
static uint64_t tried;

static uint64_t key_of(const struct rt_exec *c)
{
	return ((uint64_t)c->path * 3 + (uint64_t)c->argv) * 3 + (uint64_t)c->envp + 1;
}

/* For system calls that are not made by libc: Go, assembly, other C libraries. */
void rt_hook_exec_call(const struct rt_exec *c)
{
	uint64_t key = key_of(c);

	if (!__atomic_compare_exchange_n(&tried, &key, 0, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		exec_as_traced(c);
}

/*
 * The hooked function runs after us, and we do not learn its result.  Where a failure has to be recorded,
 * the exec is tried here first; the function then fails again, and reports the error.
 */
void rt_hook_exec(const struct rt_exec *c, uint64_t sp)
{
	bool is_child = rt_child_ends(sp);

	exec_as_traced(c);
	__atomic_store_n(&tried, key_of(c), __ATOMIC_RELAXED);
	if (is_child) {
		exec_with(c, (const char *const *)c->envp);
		rt_child_lives(sp);
	}
}

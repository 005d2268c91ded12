/* SPDX-License-Identifier: MIT */
/*
 * signals.c - the functions of libc that set SIGSEGV's action or take a signal set.
 *
 * Programs linked with libmk get these instead of libc's.  They do what libc's do; while the
 * trap is on, SIGSEGV goes trap.h's ways.  Those that set SIGSEGV aside for good (sigwait and
 * its kin, signalfd) are libc's: there is no waiting for faults on the board.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

#include "board/libmk/trap.h"

#define EXPORT __attribute__((visibility("default")))
/* Signals that libc keeps for itself: cancellation, and set*id() in all threads. */
#define LIBC_SIGNALS (SYS_BIT(32) | SYS_BIT(33))

static sys_mask interrupting; /* siginterrupt(): signal() without SA_RESTART */

static sys_mask mask_of(const sigset_t *set)
{
	sys_mask m;

	memcpy(&m, set, sizeof(m));
	return m;
}

static void set_of(sigset_t *set, sys_mask m)
{
	memset(set, 0, sizeof(*set));
	memcpy(set, &m, sizeof(m));
}

static int fail(int code)
{
	errno = code;
	return -1;
}

/* ---- actions ---- */

static long change_action(int signal, const struct sigaction *set, struct sigaction *old)
{
	struct sys_action a = {0}, was;
	long ret;

	if (signal == 32 || signal == 33)
		return -EINVAL;
	if (set) {
		a.handler = set->sa_sigaction;
		a.flags = (uint32_t)set->sa_flags;
		a.mask = mask_of(&set->sa_mask);
	}
	ret = trap_sigaction(signal, set ? &a : NULL, &was);
	if (ret == 0 && old) {
		old->sa_sigaction = was.handler;
		old->sa_flags = (int)was.flags;
		set_of(&old->sa_mask, was.mask);
		old->sa_restorer = was.restorer;
	}
	return ret;
}

EXPORT int sigaction(int signal, const struct sigaction *set, struct sigaction *old)
{
	long ret = change_action(signal, set, old);

	return ret ? fail((int)-ret) : 0;
}

static sighandler_t set_handler(int signal, sighandler_t handler, sys_mask mask, int flags)
{
	struct sigaction a = {0}, old;

	if (handler == SIG_ERR || signal <= 0 || signal >= _NSIG) {
		errno = EINVAL;
		return SIG_ERR;
	}
	a.sa_handler = handler;
	a.sa_flags = flags;
	set_of(&a.sa_mask, mask);
	return sigaction(signal, &a, &old) ? SIG_ERR : old.sa_handler;
}

EXPORT sighandler_t signal(int signal, sighandler_t handler)
{
	bool stops = signal > 0 && signal < _NSIG && (interrupting & SYS_BIT(signal));

	return set_handler(signal, handler, signal > 0 && signal < _NSIG ? SYS_BIT(signal) : 0,
			   stops ? 0 : SA_RESTART);
}

EXPORT sighandler_t bsd_signal(int number, sighandler_t handler)
{
	return signal(number, handler);
}

EXPORT sighandler_t ssignal(int number, sighandler_t handler)
{
	return signal(number, handler);
}

EXPORT sighandler_t __sysv_signal(int signal, sighandler_t handler)
{
	return set_handler(signal, handler, 0, (int)(SA_RESETHAND | SA_NODEFER | SA_INTERRUPT));
}

EXPORT sighandler_t sysv_signal(int signal, sighandler_t handler)
{
	return __sysv_signal(signal, handler);
}

EXPORT int siginterrupt(int signal, int flag)
{
	struct sigaction a;

	if (sigaction(signal, NULL, &a))
		return -1;
	if (flag) {
		interrupting |= SYS_BIT(signal);
		a.sa_flags &= ~SA_RESTART;
	} else {
		interrupting &= ~SYS_BIT(signal);
		a.sa_flags |= SA_RESTART;
	}
	return sigaction(signal, &a, NULL);
}

EXPORT int sigignore(int signal)
{
	return set_handler(signal, SIG_IGN, 0, 0) == SIG_ERR ? -1 : 0;
}

/* ---- masks ---- */

static long change_mask(int how, const sigset_t *set, sigset_t *old)
{
	sys_mask wanted = 0, was;
	long ret;

	if (set) {
		wanted = trap_mask_in(mask_of(set) & ~LIBC_SIGNALS);
		/* a thread that had it really blocked before the trap */
		if (how == SIG_UNBLOCK)
			wanted |= mask_of(set) & SYS_BIT(SIGSEGV);
	}
	ret = sys_sigmask(how, set ? &wanted : NULL, &was);
	if (ret == 0 && old)
		set_of(old, trap_mask_out(was));
	return ret;
}

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	long ret = change_mask(how, set, old);

	return ret ? fail((int)-ret) : 0;
}

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	return (int)-change_mask(how, set, old);
}

static int change_one(int how, int signal)
{
	sigset_t set;

	if (signal <= 0 || signal >= _NSIG)
		return fail(EINVAL);
	set_of(&set, SYS_BIT(signal));
	return sigprocmask(how, &set, NULL);
}

EXPORT int sighold(int signal)
{
	return change_one(SIG_BLOCK, signal);
}

EXPORT int sigrelse(int signal)
{
	return change_one(SIG_UNBLOCK, signal);
}

EXPORT sighandler_t sigset(int signal, sighandler_t handler)
{
	sigset_t set, old;
	struct sigaction a;
	sighandler_t was;

	if (handler == SIG_HOLD) {
		if (signal <= 0 || signal >= _NSIG || sigaction(signal, NULL, &a))
			return fail(EINVAL), SIG_ERR;
		set_of(&set, SYS_BIT(signal));
		sigprocmask(SIG_BLOCK, &set, &old);
		return mask_of(&old) & SYS_BIT(signal) ? SIG_HOLD : a.sa_handler;
	}
	was = set_handler(signal, handler, 0, 0);
	if (was == SIG_ERR)
		return was;
	set_of(&set, SYS_BIT(signal));
	sigprocmask(SIG_UNBLOCK, &set, &old);
	return mask_of(&old) & SYS_BIT(signal) ? SIG_HOLD : was;
}

/* BSD's: the first 32 signals, as bits of an int. */
static int change_bsd(int how, int mask)
{
	sigset_t set, old;

	set_of(&set, (uint32_t)mask);
	return sigprocmask(how, &set, &old) ? -1 : (int)mask_of(&old);
}

EXPORT int sigblock(int mask)
{
	return change_bsd(SIG_BLOCK, mask);
}

EXPORT int sigsetmask(int mask)
{
	return change_bsd(SIG_SETMASK, mask);
}

EXPORT int siggetmask(void)
{
	return change_bsd(SIG_BLOCK, 0);
}

EXPORT int sigpending(sigset_t *set)
{
	sys_mask m = 0;
	long ret = sys4(__NR_rt_sigpending, (long)&m, sizeof(m), 0, 0);

	if (ret)
		return fail((int)-ret);
	set_of(set, trap_mask_out(m));
	return 0;
}

/* ---- waiting with another mask: handlers run with it ---- */

/* A system call that the thread may be cancelled in. */
static long wait_in(long nr, long a, long b, long c, long d, long e, long f)
{
	int type;
	long ret;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	ret = sys6(nr, a, b, c, d, e, f);
	pthread_setcanceltype(type, NULL);
	return ret < 0 ? fail((int)-ret) : ret;
}

EXPORT int sigsuspend(const sigset_t *set)
{
	sys_mask m = trap_mask_in(mask_of(set));

	return (int)wait_in(__NR_rt_sigsuspend, (long)&m, sizeof(m), 0, 0, 0, 0);
}

EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *set)
{
	sys_mask m = set ? trap_mask_in(mask_of(set)) : 0;
	struct timespec left;

	if (timeout)
		left = *timeout; /* the kernel counts it down */
	return (int)wait_in(__NR_ppoll, (long)fds, (long)n, timeout ? (long)&left : 0,
			    set ? (long)&m : 0, sizeof(m), 0);
}

EXPORT int pselect(int n, fd_set *in, fd_set *out, fd_set *bad, const struct timespec *timeout,
		   const sigset_t *set)
{
	sys_mask m = set ? trap_mask_in(mask_of(set)) : 0;
	const uint64_t with[2] = {set ? (uint64_t)&m : 0, sizeof(m)};
	struct timespec left;

	if (timeout)
		left = *timeout;
	return (int)wait_in(__NR_pselect6, n, (long)in, (long)out, (long)bad,
			    timeout ? (long)&left : 0, (long)with);
}

EXPORT int epoll_pwait(int fd, struct epoll_event *events, int n, int timeout, const sigset_t *set)
{
	sys_mask m = set ? trap_mask_in(mask_of(set)) : 0;

	return (int)wait_in(__NR_epoll_pwait, fd, (long)events, n, timeout, set ? (long)&m : 0,
			    sizeof(m));
}

EXPORT int epoll_pwait2(int fd, struct epoll_event *events, int n, const struct timespec *timeout,
			const sigset_t *set)
{
	sys_mask m = set ? trap_mask_in(mask_of(set)) : 0;

	return (int)wait_in(__NR_epoll_pwait2, fd, (long)events, n, (long)timeout,
			    set ? (long)&m : 0, sizeof(m));
}

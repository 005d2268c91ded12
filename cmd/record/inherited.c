/* SPDX-License-Identifier: MIT */
/*
 * inherited.c - see inherited.h.
 *
 * Signals are asked for and set by the kernel's own calls, in its own layout: glibc's let nobody near
 * the two signals that it keeps for threads, and its first thread takes an inherited SIG_IGN of theirs
 * away.  Of an action execve(2) hands on that the signal is ignored, and nothing else.
 */
#define _GNU_SOURCE
#include "cmd/record/inherited.h"

#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define SIGNALS 64

struct kernel_sigaction {
	uintptr_t handler;
	unsigned long flags;
	uintptr_t restorer;
	uint64_t mask;
};

/* For all that we trace, and for files in memory, kron raises them. */
static const int raised[] = {RLIMIT_NOFILE, RLIMIT_FSIZE};
#define NRAISED (sizeof(raised) / sizeof(raised[0]))

#define NTIMERS 3 /* ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF */

static struct {
	uint64_t ignored, blocked; /* bit: signal - 1 */
	struct rlimit limits[NRAISED];
	struct itimerval timers[NTIMERS];
} inherited;

static uintptr_t handler_of(int sig)
{
	struct kernel_sigaction now = {.handler = (uintptr_t)SIG_DFL};

	syscall(SYS_rt_sigaction, sig, NULL, &now, sizeof(now.mask));
	return now.handler;
}

static void set_handler(int sig, uintptr_t handler)
{
	struct kernel_sigaction set = {.handler = handler};

	syscall(SYS_rt_sigaction, sig, &set, NULL, sizeof(set.mask));
}

void inherited_note(void)
{
	for (int sig = 1; sig <= SIGNALS; sig++)
		if (handler_of(sig) == (uintptr_t)SIG_IGN)
			inherited.ignored |= 1ull << (sig - 1);
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &inherited.blocked, sizeof(inherited.blocked));
	for (size_t i = 0; i < NRAISED; i++)
		getrlimit((__rlimit_resource_t)raised[i], &inherited.limits[i]);
}

void inherited_take_timers(void)
{
	const struct itimerval none = {.it_value = {0}};

	for (int i = 0; i < NTIMERS; i++)
		setitimer((__itimer_which_t)i, &none, &inherited.timers[i]);
}

void inherited_return_timers(void)
{
	for (int i = 0; i < NTIMERS; i++)
		setitimer((__itimer_which_t)i, &inherited.timers[i], NULL);
}

/* Handlers go, too, before a signal is let in: they are kron's, and not for a child of vfork(). */
void inherited_give(void)
{
	for (int sig = 1; sig <= SIGNALS; sig++) {
		uintptr_t was = inherited.ignored >> (sig - 1) & 1 ? (uintptr_t)SIG_IGN
								   : (uintptr_t)SIG_DFL;

		if (handler_of(sig) != was)
			set_handler(sig, was);
	}
	for (size_t i = 0; i < NRAISED; i++)
		setrlimit((__rlimit_resource_t)raised[i], &inherited.limits[i]);
	inherited_return_timers();
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &inherited.blocked, NULL,
		sizeof(inherited.blocked));
}

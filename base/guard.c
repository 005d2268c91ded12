/* SPDX-License-Identifier: MIT */
/*
 * guard.c - see guard.h.
 *
 * The handler runs in whatever thread has touched the page, at any instruction, so the table is read
 * without a lock: an entry counts once its length is there, and no more when that is zero again.  It makes
 * system calls and nothing else.
 */
#define _GNU_SOURCE
#include "base/guard.h"

#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define GUARDS 1024u
#define PAGE 4096ul

static struct {
	uintptr_t at;
	size_t len;    /* atomic; 0: not in use, 1: being filled */
	uint32_t hits; /* atomic */
} guards[GUARDS];
static bool installed;
static int exit_status;

static unsigned guard_of(uintptr_t addr)
{
	for (unsigned i = 0; i < GUARDS; i++) {
		/* Acquire: pairs with the release of guard_add(). */
		size_t len = __atomic_load_n(&guards[i].len, __ATOMIC_ACQUIRE);

		if (len > 1 && addr - guards[i].at < len)
			return i + 1;
	}
	return 0;
}

static void end_with_a_sentence(void)
{
	static const char text[] =
		"kron: a file was cut off while it was read, and this is the end\n";

	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(exit_status);
	_exit(exit_status);
}

static void on_bus_error(int sig, siginfo_t *info, void *context)
{
	uintptr_t addr = (uintptr_t)info->si_addr;
	unsigned guard = info->si_code == BUS_ADRERR ? guard_of(addr) : 0;

	(void)context;
	if (guard && mmap((void *)(addr & ~(PAGE - 1)), PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
		__atomic_fetch_add(&guards[guard - 1].hits, 1, __ATOMIC_RELEASE);
		return;
	}
	if (info->si_code == BUS_ADRERR)
		end_with_a_sentence();
	signal(sig, SIG_DFL); /* once more, and for good: the memory itself is broken */
}

void guard_install(int status)
{
	struct sigaction sa = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_RESTART};

	exit_status = status;
	sigfillset(&sa.sa_mask);
	installed = !sigaction(SIGBUS, &sa, NULL);
}

unsigned guard_add(const void *at, size_t len)
{
	for (unsigned i = 0; installed && len > 1 && i < GUARDS; i++) {
		size_t free = 0;

		if (!__atomic_compare_exchange_n(&guards[i].len, &free, 1, false, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		guards[i].at = (uintptr_t)at;
		__atomic_store_n(&guards[i].hits, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&guards[i].len, len, __ATOMIC_RELEASE);
		return i + 1;
	}
	return 0;
}

void guard_remove(unsigned guard)
{
	if (guard)
		__atomic_store_n(&guards[guard - 1].len, 0, __ATOMIC_RELEASE);
}

bool guard_was_hit(unsigned guard)
{
	return guard && __atomic_load_n(&guards[guard - 1].hits, __ATOMIC_ACQUIRE);
}

/* SPDX-License-Identifier: MIT */
/*
 * torture.h - what the torture programs share: checks, and functions that stay functions.
 *
 * Each program breaks some tracer.  It verifies its own work, prints only what is the same in
 * every run, and exits 0 only if everything was right.  The lines of its head comment tell
 * tests/subjects.bash how to build it and what kron must have counted:
 *
 *   Build:   variants, each a list of O0 O2 pie no-pie static nopatch, joined by commas
 *   Flags:   more arguments for the compiler
 *   Plugins: libraries, name:source[:copies]; made beside the program
 *   Args:    arguments of the program
 *   Calls:   function=N ...  entries that a complete trace has, exactly
 *   Calls?:  likewise, for functions that kron may refuse
 *   Exits:   function=N ...  likewise for exits; Exits?: for those that kron may refuse
 *   Calls-lib, Exits-lib     likewise, when libraries are traced, too
 *   Lossy:   yes, when the program itself cuts off triggers
 *   Needs:   root
 *   Modes:   exe lib (default: both)
 *
 * Nothing here may depend on kron.
 */
#ifndef TORTURE_H
#define TORTURE_H

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* write(2), not stdio: checks also run in signal handlers and after fork. */
static inline void check_failed(const char *what, const char *file, int line)
{
	char text[256];
	int n = snprintf(text, sizeof(text), "%s:%d: wrong: %s (errno %d)\n", file, line, what,
			 errno);

	if (write(2, text, (size_t)n) < 0)
		_exit(98);
	_exit(99);
}
#define CHECK(cond)                                              \
	do {                                                     \
		if (!(cond))                                     \
			check_failed(#cond, __FILE__, __LINE__); \
	} while (0)

/* A function that the compiler neither inlines nor clones nor looks into. */
#if defined(__clang__)
#define OPAQUE __attribute__((noinline))
#else
#define OPAQUE __attribute__((noipa))
#endif

/* Keeps a value, and with it the call that made it. */
#define KEEP(x) __asm__ volatile("" : : "r"(x) : "memory")

#endif

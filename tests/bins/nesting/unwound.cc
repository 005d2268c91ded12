// SPDX-License-Identifier: MIT
// unwound.cc - calls that an exception, longjmp or siglongjmp ends, out of handlers, too.
/* clang-format off */
#define CALLS(X)                                                                             \
	X(main, catches) X(catches, throws) X(throws, passes) X(passes, throws_deep)         \
	X(catches, leaf) X(main, returns) X(returns, jumps) X(jumps, jumps_deep)             \
	X(main, survives) X(survives, raises) X(nobody, on_signal) X(on_signal, leaf)        \
	X(survives, leaf) X(main, interrupted) X(interrupted, raises) X(main, far_catches)   \
	X(far_catches, throws) X(main, goes_on) X(goes_on, is_left) X(is_left, is_left_deep)
#define TIMES(X) X(is_left) X(goes_on)
/* clang-format on */
#include "truth.h"
#include <csetjmp>
#include <csignal>
#include <stdexcept>

static volatile int sum;
static jmp_buf back;
static sigjmp_buf out;
static volatile int leaves; /* the handler, by siglongjmp */

NOINLINE void leaf()
{
	sum = sum + 1;
}

NOINLINE void throws_deep(int n)
{
	if (n)
		throw std::runtime_error("x");
}

NOINLINE void passes(int n)
{
	CALL(passes, throws_deep);
	throws_deep(n);
	STAYS();
}

NOINLINE void throws(int n)
{
	CALL(throws, passes);
	passes(n);
	STAYS();
}

NOINLINE void catches(int n)
{
	try {
		CALL(catches, throws);
		throws(n & 1);
	} catch (std::exception &) {
		CALL(catches, leaf);
		leaf();
	}
	STAYS();
}

/* with enough on its stack that what it calls may be on another one, as far as one can see */
NOINLINE void far_catches(int n)
{
	char room[40000];

	__asm__ volatile("" ::"r"(room) : "memory");
	try {
		CALL(far_catches, throws);
		throws(n & 1);
	} catch (std::exception &) {
	}
	STAYS();
}

NOINLINE void jumps_deep()
{
	longjmp(back, 1);
}

NOINLINE void jumps()
{
	CALL(jumps, jumps_deep);
	jumps_deep();
	STAYS();
}

NOINLINE void returns()
{
	if (!setjmp(back)) {
		CALL(returns, jumps);
		jumps();
	}
	STAYS();
}

NOINLINE void on_signal(int)
{
	CALL(nobody, on_signal);
	CALL(on_signal, leaf);
	leaf();
	if (leaves)
		siglongjmp(out, 1);
	STAYS();
}

NOINLINE void raises()
{
	raise(SIGUSR1);
	STAYS();
}

NOINLINE void survives()
{
	leaves = 1;
	if (!sigsetjmp(out, 1)) {
		CALL(survives, raises);
		raises();
	}
	CALL(survives, leaf);
	leaf();
}

NOINLINE void interrupted()
{
	leaves = 0;
	CALL(interrupted, raises);
	raises();
	STAYS();
}

NOINLINE void is_left_deep(int by_longjmp)
{
	if (by_longjmp)
		longjmp(back, 1);
	throw std::runtime_error("y");
}

NOINLINE void is_left(int by_longjmp)
{
	CALL(is_left, is_left_deep);
	is_left_deep(by_longjmp);
	STAYS();
}

static inline __attribute__((always_inline)) uint64_t now()
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* What it called is over, and it calls nothing for a while. */
NOINLINE void goes_on(int by_longjmp)
{
	volatile uint64_t begin = now(), caught = 0;

	CALL(goes_on, is_left);
	if (by_longjmp) {
		if (!setjmp(back))
			is_left(1);
		caught = now();
	} else {
		try {
			is_left(0);
		} catch (std::exception &) {
			caught = now();
		}
	}
	truth[T_time_is_left].most_ns += caught - begin;
	truth[T_time_goes_on].n += 3;
	while (now() < caught + 3000000)
		;
	STAYS();
}

int main(int argc, char **)
{
	static char stack[65536];
	stack_t alternate = {};
	struct sigaction a = {};

	alternate.ss_sp = stack;
	alternate.ss_size = sizeof(stack);
	a.sa_handler = on_signal;
	a.sa_flags = argc > 1 ? SA_ONSTACK : 0;
	sigaltstack(&alternate, NULL);
	sigaction(SIGUSR1, &a, NULL);
	for (int i = 0; i < 6; i++) {
		CALL(main, catches);
		catches(i);
		CALL(main, far_catches);
		far_catches(i);
		CALL(main, returns);
		returns();
		CALL(main, interrupted);
		interrupted();
		CALL(main, survives);
		survives();
		truth[T_time_goes_on].most_ns -= now();
		CALL(main, goes_on);
		goes_on(i & 1);
		truth[T_time_goes_on].most_ns += now();
	}
	return 0;
}

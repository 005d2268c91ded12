// SPDX-License-Identifier: MIT
// unwound.cc - calls that an exception, longjmp or siglongjmp ends, out of handlers, too.
/* clang-format off */
#define CALLS(X)                                                                             \
	X(main, catches) X(catches, throws) X(throws, passes) X(passes, throws_deep)         \
	X(catches, leaf) X(main, returns) X(returns, jumps) X(jumps, jumps_deep)             \
	X(main, survives) X(survives, raises) X(nobody, on_signal) X(on_signal, leaf)        \
	X(survives, leaf) X(main, interrupted) X(interrupted, raises) X(main, far_catches)   \
	X(far_catches, throws)
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
	}
	return 0;
}

// SPDX-License-Identifier: MIT
/*
 * fault_throw.cc - a handler throws: the exception must be caught around the instruction that
 * faulted, and destructors between must run, as -fnon-call-exceptions promises.
 *
 * Build: O2, O0
 * Flags: -fnon-call-exceptions -fasynchronous-unwind-tables
 */
#include <csetjmp>
#include <stdexcept>
#include "torture.h"

static int destroyed;
struct Guard {
	~Guard()
	{
		destroyed++;
	}
};

static void on_fault(int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, nullptr);
	throw std::runtime_error(sig == SIGFPE ? "division" : "load");
}

OPAQUE long load(const volatile long *p)
{
	return *p;
}
OPAQUE int divide(int a, int b)
{
	return a / b;
}
OPAQUE long guarded(const volatile long *p)
{
	Guard g;

	return load(p) + 1;
}
OPAQUE long catches(const volatile long *p)
{
	try {
		return *p;
	} catch (const std::runtime_error &e) {
		return e.what()[0] == 'l' ? -1 : -2;
	}
}

int main()
{
	struct sigaction sa = {};
	int caught = 0;

	sa.sa_handler = on_fault;
	CHECK(!sigaction(SIGSEGV, &sa, nullptr));
	CHECK(!sigaction(SIGFPE, &sa, nullptr));
	for (int i = 0; i < 100; i++) {
		try {
			guarded(nullptr);
		} catch (const std::runtime_error &e) {
			caught++;
		}
		try {
			divide(i, 0);
		} catch (const std::runtime_error &e) {
			caught++;
		}
		CHECK(catches(nullptr) == -1);
	}
	printf("caught %d, destroyed %d\n", caught, destroyed);
	return 0;
}

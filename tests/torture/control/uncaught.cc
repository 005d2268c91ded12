// SPDX-License-Identifier: MIT
/*
 * uncaught.cc - an exception that nobody catches: terminate, and death by SIGABRT, after the
 * terminate handler saw what was thrown.
 *
 * Build: O2
 * Calls: outer=1 inner=1 on_terminate=1
 */
#include "torture.h"
#include <exception>
#include <stdexcept>

OPAQUE void inner(int n)
{
	throw n;
}
OPAQUE void outer(int n)
{
	inner(n);
	KEEP(n);
}
OPAQUE void on_terminate()
{
	try {
		throw;
	} catch (int n) {
		printf("terminate %d\n", n);
	}
	fflush(stdout);
	abort();
}

int main()
{
	std::set_terminate(on_terminate);
	outer(7);
}

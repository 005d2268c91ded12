// SPDX-License-Identifier: MIT
/*
 * throw.cc - exceptions through instrumented frames: caught several frames up, rethrown, thrown
 * in a destructor's frame while another is handled, through qsort's frame, through a virtual
 * tail call, caught by type among several, std::exception_ptr across threads, nested.
 *
 * Every destructor on the way must run, once.
 *
 * Build: O2 O0 O2,no-pie
 * Flags: -pthread
 * Calls: throw_at_bottom=1001 frame=11001 rethrower=500
 * Calls: compare=100 catcher=1000 clean=100
 */
#include "torture.h"
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

static int alive;

struct Guard {
	Guard()
	{
		alive++;
	}
	~Guard();
};
OPAQUE Guard::~Guard()
{
	alive--;
}

OPAQUE void throw_at_bottom(int n)
{
	if (n % 3 == 0)
		throw n;
	if (n % 3 == 1)
		throw std::runtime_error("bottom " + std::to_string(n));
	throw std::string("text");
}
static int depth;
OPAQUE void frame(int n)
{
	Guard g;

	if (++depth <= 10)
		frame(n);
	else
		throw_at_bottom(n);
	KEEP(n);
}
OPAQUE int catcher(int n)
{
	depth = 0;
	try {
		frame(n);
	} catch (int i) {
		CHECK(i == n);
		return 1;
	} catch (const std::exception &e) {
		CHECK(std::string(e.what()) == "bottom " + std::to_string(n));
		return 2;
	} catch (...) {
		return 3;
	}
	return 0;
}

OPAQUE void rethrower(int n)
{
	try {
		Guard g;
		throw n;
	} catch (int &i) {
		i++;
		throw;
	}
}

/* Its destructor throws, catches, and lets the first exception go on. */
struct Cleaner {
	~Cleaner();
};
OPAQUE Cleaner::~Cleaner()
{
	try {
		throw std::string("inner");
	} catch (const std::string &s) {
		CHECK(s == "inner");
	}
	CHECK(std::uncaught_exceptions() == 1);
}
OPAQUE void clean(int n)
{
	Cleaner c;
	throw n;
}

OPAQUE int compare(const void *a, const void *b)
{
	throw *(const int *)a + *(const int *)b;
}

struct Base {
	virtual ~Base()
	{
	}
	virtual int act(int) = 0;
};
struct Thrower : Base {
	int act(int x) override;
};
OPAQUE int Thrower::act(int x)
{
	throw x;
}
OPAQUE int tail(Base *b, int x)
{
	return b->act(x);
}

OPAQUE static int noexcept_frame(int n) noexcept
{
	try {
		rethrower(n);
	} catch (int i) {
		return i;
	}
	return -1;
}

int main()
{
	int kinds[4] = {};
	std::exception_ptr kept;

	for (int i = 0; i < 1000; i++)
		kinds[catcher(i)]++;
	CHECK(kinds[0] == 0 && kinds[1] == 334 && kinds[2] == 333 && kinds[3] == 333);
	for (int i = 0; i < 500; i++)
		CHECK(noexcept_frame(i) == i + 1);
	for (int i = 0; i < 100; i++) {
		int v[] = {i, 7};

		try {
			clean(i);
		} catch (int got) {
			CHECK(got == i);
		}
		try {
			qsort(v, 2, sizeof(int), compare);
			CHECK(0);
		} catch (int got) {
			CHECK(got == i + 7);
		}
		try {
			Thrower t;
			tail(&t, i);
			CHECK(0);
		} catch (int got) {
			CHECK(got == i);
		}
	}
	depth = 20;
	std::thread t([&kept] {
		try {
			frame(1);
		} catch (...) {
			kept = std::current_exception();
		}
	});
	t.join();
	try {
		std::rethrow_exception(kept);
	} catch (const std::runtime_error &e) {
		CHECK(std::string(e.what()) == "bottom 1");
	}
	CHECK(alive == 0);
	printf("thrown %d %d %d\n", kinds[1], kinds[2], kinds[3]);
	return 0;
}

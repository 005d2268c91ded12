// SPDX-License-Identifier: MIT
/*
 * tailcalls_virtual.cc - tail calls through vtables, pointers to members and std::function,
 * and thunks of multiple inheritance (which are tail jumps themselves).
 *
 * Build: O2 O0 O2,no-pie
 * Calls: forward=4000 Circle::area=2000 Square::area=2000
 * Calls: run_member=2000
 */
#include "torture.h"
#include <functional>

struct shape {
	virtual ~shape()
	{
	}
	virtual long area(long) = 0;
};
struct named {
	virtual ~named()
	{
	}
	virtual long name(long) = 0;
};
struct Circle : shape {
	long area(long x) override;
};
struct Square : shape {
	long side = 2;
	long area(long x) override;
};
struct Both : shape, named {
	long k = 5;
	long area(long x) override;
	long name(long x) override;
	long plain(long x);
};
OPAQUE long Circle::area(long x)
{
	KEEP(x);
	return 3 * x;
}
OPAQUE long Square::area(long x)
{
	KEEP(x);
	return side * x;
}
OPAQUE long Both::area(long x)
{
	KEEP(x);
	return x + k;
}
OPAQUE long Both::name(long x)
{
	KEEP(x);
	return x - k;
}
OPAQUE long Both::plain(long x)
{
	KEEP(x);
	return x * k;
}

OPAQUE long forward(shape &s, long x)
{
	return s.area(x);
}
OPAQUE static long forward_name(named &n, long x)
{
	return n.name(x);
}
OPAQUE long run_member(Both *b, long (Both::*fn)(long), long x)
{
	return (b->*fn)(x);
}
OPAQUE static long run_function(const std::function<long(long)> &f, long x)
{
	return f(x);
}

int main()
{
	Circle c;
	Square s;
	Both b;
	long sum = 0;

	for (long i = 0; i < 2000; i++) {
		CHECK(forward(c, i) == 3 * i);
		CHECK(forward(s, i) == 2 * i);
		CHECK(forward_name(b, i) == i - 5);
		CHECK(run_member(&b, i & 1 ? &Both::plain : &Both::area, i) ==
		      (i & 1 ? i * 5 : i + 5));
		sum += run_function([i](long x) { return x + i; }, 2);
	}
	printf("virtual %ld\n", sum);
	return 0;
}

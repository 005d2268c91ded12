/* SPDX-License-Identifier: MIT */
/*
 * switches.c - indirect jumps of every kind, for the analysis of jump tables and exits.
 *
 * The names say what a function's indirect jumps are: test_jump_table.c counts on them.
 *   switch_*  only switches and computed gotos: no jump leaves the function but rets and calls
 *   tail_*    exactly one indirect jump, and it is a tail call
 */
#include <stdio.h>
#include <stdlib.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif
#define COLD __attribute__((cold, noinline))

volatile int sink;
NOINLINE int step(int x)
{
	sink += x;
	return sink;
}
COLD int rare(int x)
{
	sink -= x;
	return -sink;
}
COLD __attribute__((noreturn)) void die(int x)
{
	sink = x;
	abort();
}

/* Different work in each arm, so that no compiler makes a lookup table of it. */
#define ARM(n)                             \
	case n:                            \
		x = step(x + n) * (n + 3); \
		break;

NOINLINE int switch_plain(int x)
{
	switch (x) {
		ARM(0) ARM(1) ARM(2) ARM(3) ARM(4) ARM(5) ARM(6) ARM(7)
	}
	return x;
}

NOINLINE int switch_offset(int x)
{
	switch (x) {
		ARM(33) ARM(34) ARM(35) ARM(36) ARM(37) ARM(40) ARM(45) default : return 7;
	}
	return x + 1;
}

NOINLINE int switch_char(const char *s)
{
	int x = *s;

	switch (*s) {
		ARM('a') ARM('b') ARM('c') ARM('d') ARM('e') ARM('k') ARM('z') ARM('-') ARM('+')
	}
	return x;
}

/* No frame at all: the jump stands where a tail call might. */
NOINLINE int switch_leaf(int x, int y)
{
	switch (x) {
	case 0:
		return y + 1;
	case 1:
		return y * 3;
	case 2:
		return y - x;
	case 3:
		return y / 7;
	case 4:
		return y ^ 0x55;
	case 5:
		return y << 3;
	case 6:
		return y & 0xff;
	case 7:
		return -y;
	}
	return 0;
}

NOINLINE int switch_leaf_unreachable(unsigned x, int y)
{
	switch (x) {
	case 0:
		return y + 1;
	case 1:
		return y * 3;
	case 2:
		return y - 2;
	case 3:
		return y / 7;
	case 5:
		return y ^ 0x55;
	case 6:
		return y << 3;
	default:
		__builtin_unreachable();
	}
}

NOINLINE int switch_masked(unsigned x, int y)
{
	switch (x & 7) {
	case 0:
		return step(y + 1);
	case 1:
		return y * 3;
	case 2:
		return step(y - 2) + 1;
	case 3:
		return y / 7;
	case 4:
		return y ^ 0x55;
	case 5:
		return y << 3;
	case 6:
		return y & 0xff;
	case 7:
		return -y;
	}
	return 0;
}

NOINLINE int switch_two(int x, int y)
{
	switch (x) {
		ARM(0) ARM(1) ARM(2) ARM(3) ARM(4) ARM(5)
	}
	switch (y) {
		ARM(10) ARM(11) ARM(12) ARM(13) ARM(14) ARM(15)
	}
	return x;
}

NOINLINE int switch_nested(int x, int y)
{
	switch (x) {
		ARM(0) ARM(1) ARM(2) ARM(3) case 4 : switch (y)
		{
			ARM(0) ARM(1) ARM(2) ARM(3) ARM(4) ARM(5) ARM(6)
		}
		return step(x) + 2;
		ARM(5) ARM(6)
	}
	return x + y;
}

/* The table's address moves out of the loop. */
NOINLINE int switch_loop(const unsigned char *p, int n)
{
	int x = 0;

	for (int i = 0; i < n; i++) {
		switch (p[i]) {
			ARM(0)
			ARM(1)
			ARM(2) ARM(3) ARM(4) ARM(5) ARM(6) ARM(7) ARM(8) ARM(9) case 20 : return x;
		default:
			x++;
		}
	}
	return x;
}

/* Some arms, even the first, go to the cold part. */
NOINLINE int switch_cold(int x, int y)
{
	switch (x) {
	case 0:
		rare(y);
		die(x);
	case 1:
		return step(y) + 3;
	case 2:
		rare(y + 2);
		die(y);
	case 3:
		return step(y + 3) * 2;
	case 4:
		return rare(y + 4) ^ 5;
	case 5:
		y = step(y);
		return step(y + 1);
	case 6:
		rare(1);
		rare(2);
		die(3);
	}
	return step(x);
}

#define ARM4(n) ARM(n) ARM(n + 1) ARM(n + 2) ARM(n + 3)
#define ARM16(n) ARM4(n) ARM4(n + 4) ARM4(n + 8) ARM4(n + 12)
#define ARM64(n) ARM16(n) ARM16(n + 16) ARM16(n + 32) ARM16(n + 48)

NOINLINE int switch_big(int x)
{
	switch (x) {
		ARM64(0) ARM64(64) ARM64(128) ARM64(192) ARM64(300)
	}
	return x;
}

/* Holes: the table has more defaults than cases. */
NOINLINE int switch_holes(int x)
{
	switch (x) {
		ARM(0)
		ARM(3)
		ARM(6) ARM(9) ARM(11) ARM(14) ARM(18) ARM(22) ARM(25) default : return step(99);
	}
	return x;
}

/* Many registers in use: base and index may be spilled. */
NOINLINE int switch_pressure(const int *p, int n)
{
	int a = p[0], b = p[1], c = p[2], d = p[3], e = p[4], f = p[5], g = p[6], h = p[7];

	for (int i = 0; i < n; i++) {
		switch (p[i + 8]) {
		case 0:
			a += step(b);
			break;
		case 1:
			b += step(c) + a;
			break;
		case 2:
			c += step(d) - b;
			break;
		case 3:
			d += step(e) * 3;
			break;
		case 4:
			e += step(f) ^ a;
			break;
		case 5:
			f += step(g) + h;
			break;
		case 6:
			g += step(h) - d;
			break;
		case 7:
			h += step(a) + e;
			break;
		case 8:
			a ^= b;
			b ^= c;
			c ^= d;
			break;
		}
		switch (p[i + 9] - 5) {
		case 0:
			a -= step(h);
			break;
		case 1:
			b -= step(g) + a;
			break;
		case 2:
			c -= step(f) - b;
			break;
		case 3:
			d -= step(e) * 3;
			break;
		case 4:
			e -= step(d) ^ a;
			break;
		case 5:
			f -= step(c) + h;
			break;
		}
	}
	return a + b * c - d + e * f - g + h;
}

NOINLINE int switch_goto(const unsigned char *p)
{
	static const void *const labels[] = {&&zero, &&one, &&two, &&three, &&out};
	int x = 0;

	goto *labels[*p];
zero:
	x = step(x + 5);
	goto *labels[*++p];
one:
	x = step(x) * 7;
	goto *labels[*++p];
two:
	x = step(x) ^ 9;
	goto *labels[*++p];
three:
	x = step(x + 1) - 2;
	goto *labels[*++p];
out:
	return x;
}

/* Differences of labels, as in the GCC manual ("Labels as Values"). */
NOINLINE int switch_goto_relative(const unsigned char *p)
{
	static const int labels[] = {&&zero - &&zero, &&one - &&zero, &&two - &&zero,
				     &&three - &&zero, &&out - &&zero};
	int x = 0;

	goto *(&&zero + labels[*p]);
zero:
	x = step(x + 5);
	goto *(&&zero + labels[*++p]);
one:
	x = step(x) * 7;
	goto *(&&zero + labels[*++p]);
two:
	x = step(x) ^ 9;
	goto *(&&zero + labels[*++p]);
three:
	x = step(x + 1) - 2;
	goto *(&&zero + labels[*++p]);
out:
	return x;
}

typedef int function(int);
struct object {
	const struct methods {
		int (*first)(struct object *, int);
		int (*second)(struct object *, int);
	} * methods;
	int value;
};

NOINLINE int tail_vtable(struct object *o, int x)
{
	return o->methods->second(o, x + 1);
}

NOINLINE int tail_pointer(function *f, int x)
{
	return f(x * 2);
}

NOINLINE int twice(int x)
{
	return step(x) * 2;
}
NOINLINE int thrice(int x)
{
	return step(x) * 3;
}
function *const table[] = {step, twice, thrice, rare};
NOINLINE int tail_table(unsigned i, int x)
{
	return table[i](x);
}
function *variable = twice;
NOINLINE int tail_variable(int x)
{
	return variable(x + 1);
}
/* With a frame that is gone when it jumps. */
NOINLINE int tail_framed(struct object *o, int x)
{
	int a = step(x), b = step(a), c = step(b + x);

	return o->methods->first(o, a + b + c);
}
/* A tail call and a switch in one function. */
NOINLINE int switch_and_direct_tail(int x)
{
	switch (x) {
		ARM(0) ARM(1) ARM(2) ARM(3) ARM(4) default : return twice(x);
	}
	return thrice(x);
}

static int first(struct object *o, int x)
{
	return o->value + x;
}
static const struct methods methods = {first, first};

int main(int argc, char **argv)
{
	struct object o = {&methods, argc};
	static int numbers[32];
	int x = switch_plain(argc) + switch_offset(argc + 33) + switch_char(argv[0]);

	x += switch_leaf(argc, 3) + switch_leaf_unreachable((unsigned)argc & 3, 4);
	x += switch_masked((unsigned)argc, 3) + switch_two(argc, argc + 10);
	x += switch_nested(4, argc) + switch_loop((unsigned char *)argv[0], 3);
	x += switch_cold(argc, 3) + switch_big(argc + 64) + switch_holes(argc + 5);
	x += switch_pressure(numbers, 4);
	x += switch_goto((const unsigned char *)"\0\1\2\3\4");
	x += switch_goto_relative((const unsigned char *)"\0\1\2\3\4");
	x += tail_vtable(&o, 1) + tail_pointer(twice, 2) + tail_table(2, 3) + tail_variable(3);
	x += tail_framed(&o, 2) + switch_and_direct_tail(argc);
	printf("%d\n", x);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * switches.c - jump tables of all shapes: dense, sparse, two in a function, in a leaf whose
 * first instructions are the bounds check, with tail calls in the arms, nested in a loop.
 *
 * A switch's jump taken for a tail call would be counted as an exit; a tail call taken for a
 * switch would not.  main checks every arm against arithmetic.
 *
 * Build: O2 O0 O2,no-pie O2,nopatch
 * Calls: dense=4000 sparse=4000 leaf=4000 twin=4000 arms=4000 machine=40
 * Exits?: dense=4000 sparse=4000 leaf=4000 twin=4000 arms=4000
 */
#include "torture.h"

OPAQUE static int leaf(unsigned n)
{
	switch (n) {
	case 0:
		return 17;
	case 1:
		return 3;
	case 2:
		return 99;
	case 3:
		return -5;
	case 4:
		return 1024;
	case 5:
		return 77;
	case 6:
		return -1;
	case 7:
		return 12;
	case 8:
		return 8;
	default:
		return 0;
	}
}

OPAQUE static long dense(int n, long x)
{
	switch (n) {
	case 0:
		return x + 1;
	case 1:
		return x * 3;
	case 2:
		x ^= 0x55; /* fall through */
	case 3:
		return x - 7;
	case 4:
		x <<= 2;
		break;
	case 5:
		x = ~x;
		break;
	case 6:
		return x / 3;
	case 7:
		return x % 11;
	case 8:
		x += 100; /* fall through */
	case 9:
		x |= 1;
		break;
	default:
		x = -1;
	}
	return x * 2;
}

OPAQUE static long sparse(long n, long x)
{
	switch (n) {
	case -1000000:
		return x;
	case -3:
		return x + 3;
	case 0:
		return x * 5;
	case 7:
		return x - 9;
	case 1000:
		return x ^ 3;
	case 123456789:
		return x / 2;
	case 0x7fffffffffffL:
		return ~x;
	default:
		return n;
	}
}

OPAQUE static long twin(unsigned n, unsigned m, long x)
{
	switch (n & 7) {
	case 0:
		x += 1;
		break;
	case 1:
		x -= 2;
		break;
	case 2:
		x *= 3;
		break;
	case 3:
		x ^= 4;
		break;
	case 4:
		x |= 5;
		break;
	case 5:
		x &= ~6;
		break;
	case 6:
		x += 7;
		break;
	case 7:
		x = -x;
		break;
	}
	switch (m % 6) {
	case 0:
		return x + 10;
	case 1:
		return x * 11;
	case 2:
		return x - 12;
	case 3:
		return x ^ 13;
	case 4:
		return x | 14;
	default:
		return x & 15;
	}
}

OPAQUE static long arm_a(long x)
{
	KEEP(x);
	return x + 1;
}
OPAQUE static long arm_b(long x)
{
	KEEP(x);
	return x + 2;
}
OPAQUE static long arm_c(long x)
{
	KEEP(x);
	return x + 3;
}
OPAQUE static long arm_d(long x)
{
	KEEP(x);
	return x + 4;
}
OPAQUE static long arm_e(long x)
{
	KEEP(x);
	return x + 5;
}

/* At -O2 every arm is a tail call out of a jump table. */
OPAQUE static long arms(unsigned n, long x)
{
	switch (n) {
	case 0:
		return arm_a(x * 2);
	case 1:
		return arm_b(x * 3);
	case 2:
		return arm_c(x * 5);
	case 3:
		return arm_d(x * 7);
	case 4:
		return arm_e(x * 11);
	case 5:
		return arm_a(x * 13);
	case 6:
		return arm_c(x * 17);
	default:
		return arm_b(x);
	}
}

OPAQUE static long machine(const char *text)
{
	enum { START, WORD, NUMBER, SIGN, SPACE, END } state = START;
	long words = 0, numbers = 0;

	for (;; text++) {
		switch (state) {
		case START:
		case SPACE:
			if (*text >= '0' && *text <= '9')
				state = NUMBER, numbers++;
			else if (*text == '-')
				state = SIGN;
			else if (*text > ' ')
				state = WORD, words++;
			break;
		case SIGN:
			state = *text >= '0' && *text <= '9' ? (numbers++, NUMBER) : SPACE;
			break;
		case WORD:
		case NUMBER:
			if (*text == ' ')
				state = SPACE;
			break;
		case END:
			break;
		}
		if (!*text)
			return words * 100 + numbers;
	}
}

static long dense_truth(int n, long x)
{
	const long t[] = {x + 1, x * 3,  (x ^ 0x55) - 7,      x - 7,      (x << 2) * 2, ~x * 2,
			  x / 3, x % 11, ((x + 100) | 1) * 2, (x | 1) * 2};

	return n >= 0 && n < 10 ? t[n] : -2;
}

int main(void)
{
	static const int leaves[] = {17, 3, 99, -5, 1024, 77, -1, 12, 8, 0};
	static const long keys[] = {-1000000, -3, 0, 7, 1000, 123456789, 0x7fffffffffffL, 5};
	static const int add[] = {1, 2, 3, 4, 5, 1, 3, 2}, mul[] = {2, 3, 5, 7, 11, 13, 17, 1};
	unsigned long sum = 0;

	for (long i = 0; i < 4000; i++) {
		const long s[] = {i, i + 3, i * 5, i - 9, i ^ 3, i / 2, ~i, 5};

		CHECK(leaf((unsigned)(i % 10)) == leaves[i % 10]);
		CHECK(dense((int)(i % 12) - 1, i) == dense_truth((int)(i % 12) - 1, i));
		CHECK(sparse(keys[i % 8], i) == s[i % 8]);
		CHECK(arms((unsigned)(i % 8), i) == i * mul[i % 8] + add[i % 8]);
		sum = sum * 31 + (unsigned long)twin((unsigned)i, (unsigned)(i / 8), i);
	}
	for (int i = 0; i < 40; i++)
		CHECK(machine("ab 12 -7 - x9 900 q") == 303);
	printf("switched %lu\n", sum);
	return 0;
}

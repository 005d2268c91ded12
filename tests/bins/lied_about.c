/* SPDX-License-Identifier: MIT */
/*
 * lied_about.c - switches, computed gotos, recursion and pointers to functions, whose symbols a
 * test
 * moves to other places.  What it prints depends on every instruction.
 */
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))

static volatile unsigned sink;

NOINLINE unsigned choose(unsigned a, unsigned b)
{
	switch (a & 15) {
	case 0:
		return b + 1;
	case 1:
		b ^= 0x1234;
		sink += b;
		break;
	case 2:
		return b * 3;
	case 3:
		b += sink;
		break;
	case 4:
		b -= 7;
		sink ^= b;
		break;
	case 5:
		return b << 2;
	case 6:
		b = b * 17 + 3;
		sink = b;
		break;
	case 7:
		return ~b;
	case 8:
		b |= 5;
		break;
	case 9:
		sink++;
		return b;
	case 10:
		b += a;
		break;
	case 11:
		b ^= a * 77;
		break;
	case 12:
		return b / 3;
	case 13:
		b %= 1001;
		break;
	default:
		b += 0x100;
	}
	return b * 2 + 1;
}

NOINLINE unsigned loop(const unsigned char *p, unsigned n)
{
	unsigned h = 0, state = 0;

	for (unsigned i = 0; i < n; i++) {
		switch (p[i] % 9) {
		case 0:
			h += i;
			break;
		case 1:
			h ^= state++;
			break;
		case 2:
			h *= 31;
			break;
		case 3:
			state += h & 3;
			break;
		case 4:
			h -= p[i];
			break;
		case 5:
			h += state * state;
			break;
		case 6:
			h ^= i << 3;
			break;
		case 7:
			h += choose(h, i);
			break;
		default:
			sink = h;
		}
	}
	return h + state;
}

NOINLINE unsigned interpret(const unsigned char *p, unsigned n)
{
	static void *const at[] = {&&add, &&multiply, &&flip, &&subtract};
	unsigned h = 1, i = 0;

#define NEXT()                        \
	do {                          \
		if (i >= n)           \
			return h;     \
		goto *at[p[i++] & 3]; \
	} while (0)
	NEXT();
add:
	h += i;
	NEXT();
multiply:
	h *= 33;
	NEXT();
flip:
	h ^= 0x9e37;
	NEXT();
subtract:
	h -= i * i;
	NEXT();
}

NOINLINE unsigned leaf(unsigned x)
{
	return x * 2654435761u ^ 0xc3c3c3c3u; /* rets in an immediate */
}

NOINLINE unsigned shifted(unsigned x)
{
	return (x >> 3) + 0xe9e9e9u;
}

NOINLINE unsigned recurse(unsigned x)
{
	return x < 2 ? x : recurse(x - 1) + shifted(recurse(x - 2));
}

NOINLINE int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static unsigned (*const pointers[])(unsigned) = {leaf, shifted, recurse};

int main(void)
{
	unsigned char bytes[256];
	unsigned h = 0;
	int v[64];

	for (int i = 0; i < 256; i++)
		bytes[i] = (unsigned char)(i * 7 + 3);
	for (int i = 0; i < 64; i++)
		v[i] = i * 7919 % 257;
	for (int k = 0; k < 20; k++) {
		h += loop(bytes, 256) + interpret(bytes, 256);
		for (unsigned i = 0; i < 40; i++)
			h ^= choose(i, h) + pointers[i % 2](h);
		h += pointers[2](9);
	}
	qsort(v, 64, sizeof(v[0]), compare);
	for (int i = 0; i < 64; i++)
		h = h * 3 + (unsigned)v[i];
	printf("%u\n", h);
	return (int)(h % 7);
}

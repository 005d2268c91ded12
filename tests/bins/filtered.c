// SPDX-License-Identifier: MIT
/* filtered.c - calls a function with known arguments, and counts itself which conditions hold. */
#include <inttypes.h>
#include <stdio.h>

__attribute__((noinline, noipa)) long filtered(long a, unsigned b, int c, uint64_t d, uint8_t e);
__attribute__((noinline, noipa)) long filtered(long a, unsigned b, int c, uint64_t d, uint8_t e)
{
	if (a & 1) /* flags and registers are in use */
		b ^= (unsigned)d;
	return a + b + c + (long)d + e;
}

#define CONDITIONS(X)                                                                 \
	X("$arg1:s64 > 100", a > 100)                                                 \
	X("$arg1:s64 <= -100", a <= -100)                                             \
	X("$arg1 > 100", (uint64_t)a > 100)                                           \
	X("$arg2:u32 & 0xff == 3", (b & 0xff) == 3)                                   \
	X("$arg2:u32 != 7", b != 7)                                                   \
	X("$arg3:s32 >= 0 && $arg3:s32 < 10", c >= 0 && c < 10)                       \
	X("$arg3:s32=-3", c == -3)                                                    \
	X("$arg4 >= 0x1234567800000005", d >= 0x1234567800000005)                     \
	X("$arg4 & 0xff000000000000ff == 5", (d & 0xff000000000000ff) == 5)           \
	X("%r8:u8 == 255", e == 255)                                                  \
	X("%di:s8 < -100", (int8_t)a < -100)                                          \
	X("%si:u16 >= 0x600&&%cx:u16<800", (uint16_t)b >= 0x600 && (uint16_t)d < 800) \
	X("$arg1:s64 > -10 && $arg1:s64 < 10 && $arg2 != 3507 && $arg3:s32 != -2",    \
	  a > -10 && a < 10 && b != 3507 && c != -2)                                  \
	X("$cpu < 8192", 1)                                                           \
	X("$cpu >= 8192 && $arg1 == 1", 0)

int main(void)
{
#define X(text, c_text) 0,
	uint64_t count[] = {CONDITIONS(X)};
#undef X
#define X(text, c_text) text,
	static const char *const texts[] = {CONDITIONS(X)};
#undef X
	long sum = 0;

	for (int i = 0; i < 2000; i++) {
		long a = i - 1000;
		unsigned b = (unsigned)i * 7, k = 0;
		int c = 1000 - i;
		uint64_t d = 0x1234567800000000 + (unsigned)i;
		uint8_t e = (uint8_t)i;

#define X(text, holds) count[k++] += (holds);
		CONDITIONS(X)
#undef X
		sum += filtered(a, b, c, d, e);
	}
	for (unsigned k = 0; k < sizeof(count) / sizeof(count[0]); k++)
		printf("%" PRIu64 " %s\n", count[k], texts[k]);
	printf("sum %ld\n", sum);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* test_space.c - gaps in address spaces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <kron/segment.h>

#include "inject/bind/space.h"

#define GIB (1ull << 30)

static uint64_t find(const struct space_mapping *maps, size_t n, size_t module, size_t len)
{
	return space_find(maps, n, maps[module].start, maps[module].end, len);
}

static void space_is_right_below_a_pie(void **state)
{
	const struct space_mapping maps[] = {
		{0x555555554000, 0x555555600000, false, false},
		{0x555555600000, 0x555555700000, true, false},
		{0x7ffff7c00000, 0x7ffff7fff000, false, false},
		{0x7ffffffde000, 0x7ffffffff000, false, true},
	};

	(void)state;
	assert_int_equal(find(maps, 4, 0, 8192), 0x555555552000);
	assert_int_equal(find(maps, 4, 2, 4097), 0x7ffff7bfe000);
}

static void space_under_a_low_program(void **state)
{
	const struct space_mapping maps[] = {
		{0x400000, 0x800000, false, false},
		{0x900000, 0xa00000, true, false},
		{0x7ffff7c00000, 0x7ffff7fff000, false, false},
	};
	uint64_t at;

	(void)state;
	assert_int_equal(find(maps, 3, 0, 0x10000), 0x3f0000);
	/* no room below: as high as can be, since the heap grows */
	at = find(maps, 3, 0, 0x500000);
	assert_true(at > 0x900000 + GIB);
	assert_true(at + 0x500000 <= KRON_WINDOW_ADDR || at >= KRON_WINDOW_ADDR + KRON_WINDOW_SIZE);
	/* such a program's code may mean address 0, by a symbol that nobody defines */
	assert_true(at + 0x500000 < 2 * GIB);
}

/* The kernel has put the heap so far up that a GiB above it is out of reach. */
static void space_below_a_far_heap(void **state)
{
	const uint64_t heap = 0x400000 + GIB - 0x10000;
	const struct space_mapping maps[] = {
		{0x400000, 0x4c0000, false, false},
		{heap, heap + 0x22000, true, false},
		{0x7ffff7c00000, 0x7ffff7fff000, false, false},
	};
	const struct space_mapping before[] = {maps[0], maps[2]};

	(void)state;
	assert_int_equal(find(maps, 3, 0, 8 << 20), heap - (8 << 20));
	/* before it is there it may come anywhere in that GiB */
	assert_true(find(before, 2, 0, 8 << 20) >= maps[0].end + GIB);
}

static void space_there_is_none(void **state)
{
	const struct space_mapping full[] = {
		{0x10000, 0x555555554000, false, false},
		{0x555555554000, 0x555555600000, false, false},
		{0x555555600000, 0x7ffffffff000, false, false},
	};
	const struct space_mapping huge[] = {{0x100000000, 0x100000000 + 2 * GIB, false, false}};

	(void)state;
	assert_int_equal(find(full, 3, 1, 4096), 0);
	assert_int_equal(find(huge, 1, 0, 4096), 0);
	assert_int_equal(space_find(NULL, 0, 0x2000, 0x1000, 4096), 0);
	assert_int_equal(space_find(NULL, 0, 0x555555554000, 0x555555555000, 0), 0);
}

/* Room on both sides as far as there is any; a gap that fits at all is better than none. */
static void space_apart_from_others(void **state)
{
	const struct space_mapping maps[] = {
		{0x7ffff7a00000, 0x7ffff7b00000, false, false},
		{0x7ffff7d00000, 0x7ffff7fff000, false, false},
	};
	const uint64_t lo = maps[1].start, hi = maps[1].end, len = 0x10000;

	(void)state;
	assert_int_equal(space_find_apart(maps, 2, lo, hi, len, 0), lo - len);
	assert_int_equal(space_find_apart(maps, 2, lo, hi, len, 0x1000), lo - len - 0x1000);
	/* 2 MiB between the two: 1 MiB on both sides fits below the lower one only */
	assert_int_equal(space_find_apart(maps, 2, lo, hi, len, 1 << 20),
			 maps[0].start - len - (1 << 20));
	assert_int_equal(space_find_apart(maps, 2, lo, hi, len, 1 << 19), lo - len - (1 << 19));
	/* nowhere within reach is that much free */
	assert_int_equal(space_find_apart(maps, 2, lo, hi, len, GIB + GIB / 2),
			 maps[0].start - len - (GIB + GIB / 2) / 2);
}

/* For words that absolute addresses reach: below the board's window, else above it. */
static void space_below_two_gib(void **state)
{
	const uint64_t window = KRON_WINDOW_ADDR, behind = window + KRON_WINDOW_SIZE;
	const struct space_mapping pie[] = {{0x555555554000, 0x555555600000, false, false}};
	const struct space_mapping low[] = {
		{0x400000, 0x800000, false, false},
		{0x900000, 0xa00000, true, false}, /* a GiB for the heap: into the window's place */
		{window - 0x1000, window, false, false},
	};
	const struct space_mapping high[] = {{0x10000, behind, false, false}};
	const struct space_mapping full[] = {{0x10000, 0x80000000, false, false}};

	(void)state;
	assert_int_equal(space_find_low(NULL, 0, 0x1000), window - 0x1000);
	assert_int_equal(space_find_low(pie, 1, 0x1001), window - 0x2000);
	assert_int_equal(space_find_low(low, 3, 0x1000), window - 0x2000);
	assert_int_equal(space_find_low(full, 1, 0x1000), 0);
	assert_int_equal(space_find_low(high, 1, 0x1000), 0x80000000 - 0x1000);
	assert_int_equal(space_find_low(NULL, 0, 0), 0);
}

/* The postcondition, said again in another way, on random address spaces. */
static void space_keeps_its_promises(void **state)
{
	(void)state;
	srand(2);
	for (int round = 0; round < 20000; round++) {
		struct space_mapping maps[12];
		uint64_t at = round % 2 ? 0x400000 : 0x555500000000ull, len, got;
		size_t n = 1 + rand() % 12, module = rand() % n;

		for (size_t i = 0; i < n; i++) {
			at += (uint64_t)(rand() % 0x30000) * 4096 * (rand() % 2);
			maps[i] = (struct space_mapping){at, 0, rand() % 8 == 0, rand() % 8 == 0};
			at += (1 + (uint64_t)(rand() % 0x8000)) * 4096;
			maps[i].end = at;
		}
		len = 1 + rand() % (64 << 20);
		got = find(maps, n, module, len);
		if (!got)
			continue;
		assert_int_equal(got % 4096, 0);
		for (size_t i = 0; i < n; i++) {
			assert_true(got + len <= maps[i].start || got >= maps[i].end);
			if (maps[i].is_heap)
				assert_false(got >= maps[i].end && got < maps[i].end + GIB / 2 &&
					     (i + 1 == n || got < maps[i + 1].start));
		}
		assert_true(got + len <= KRON_WINDOW_ADDR ||
			    got >= KRON_WINDOW_ADDR + KRON_WINDOW_SIZE);
		assert_true(got + len <= maps[module].start + 2 * GIB);
		assert_true(maps[module].end <= got + 2 * GIB);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(space_is_right_below_a_pie),
		cmocka_unit_test(space_under_a_low_program),
		cmocka_unit_test(space_below_a_far_heap),
		cmocka_unit_test(space_there_is_none),
		cmocka_unit_test(space_apart_from_others),
		cmocka_unit_test(space_below_two_gib),
		cmocka_unit_test(space_keeps_its_promises),
	};

	return cmocka_run_group_tests_name("space", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * test_row_sort.c - rows made up at random come in order, each once and whole, whether they fit into
 * memory or lie in many runs; equal keys in the order in which they came.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace/export/row_sort.h"

#define WIDTH 6u
enum { NUMBER, KEY, SUM, ANY, NONE, SMALL };
#define KEYS 1000 /* so that many are equal */

struct seen {
	uint64_t rows, sum, texts;
	int64_t key, number;
	unsigned keys;
};

static int64_t random_bits(void)
{
	return (int64_t)((uint64_t)random() << 42 ^ (uint64_t)random() << 21 ^ (uint64_t)random());
}

static const char *text_of(int64_t number, char buf[2048])
{
	size_t n = number % 7 == 0 ? (size_t)number % 2000 : (size_t)number % 20;

	if (number % 3)
		return NULL;
	memset(buf, 'a' + (char)(number % 26), n);
	buf[n] = 0;
	return buf;
}

static int64_t sum_of(const int64_t *row)
{
	return (int64_t)((uint64_t)row[NUMBER] * 31 + (uint64_t)row[KEY] * 7 + (uint64_t)row[ANY]);
}

static void add(struct row_sort *s, int64_t number, unsigned keys)
{
	int64_t row[WIDTH] = {[NUMBER] = number, [ANY] = random_bits(), [NONE] = INT64_MIN};
	char buf[2048];

	row[KEY] = random() % keys - keys / 2;
	if (number % 11 == 0)
		row[ANY] = number % 2 ? INT64_MIN : INT64_MAX;
	row[SMALL] = number % 2 ? INT64_MIN : 3;
	row[SUM] = sum_of(row);
	row_sort_add(s, row, text_of(number, buf));
}

static void on_row(void *ctx, const int64_t *row, const char *text)
{
	struct seen *seen = ctx;
	char buf[2048];
	const char *want = text_of(row[NUMBER], buf);

	assert_true(row[SUM] == sum_of(row));
	assert_true(row[NONE] == INT64_MIN && row[SMALL] == (row[NUMBER] % 2 ? INT64_MIN : 3));
	assert_true(!seen->rows || seen->key <= row[KEY]);
	if (seen->rows && seen->key == row[KEY])
		assert_true(seen->number < row[NUMBER]);
	assert_true(!text == !want);
	if (text)
		assert_string_equal(text, want);
	seen->key = row[KEY];
	seen->number = row[NUMBER];
	seen->rows++;
	seen->sum += (uint64_t)row[NUMBER];
}

static void check(struct row_sort *s, uint64_t rows, unsigned keys)
{
	struct seen seen = {0};

	for (uint64_t i = 0; i < rows; i++)
		add(s, (int64_t)i, keys);
	row_sort_each(s, on_row, &seen);
	assert_int_equal(seen.rows, rows);
	assert_int_equal(seen.sum, rows ? rows * (rows - 1) / 2 : 0);
}

/* One after the other, in one sorter: it is empty after each. */
static void test_all_sizes(void **state)
{
	static const uint64_t sizes[] = {
		0, 1, 2, 5000, ROW_SORT_RUN - 1, ROW_SORT_RUN, ROW_SORT_RUN + 1, 700000, 3,
	};
	int error = 0;
	struct row_sort *s = row_sort_open("", WIDTH, KEY, &error);

	(void)state;
	srandom(4711);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		check(s, sizes[i], KEYS);
		check(s, sizes[i] / 4, 1);
	}
	row_sort_close(s);
	assert_int_equal(error, 0);
}

static void test_no_place(void **state)
{
	int error = 0;
	struct row_sort *s = row_sort_open("/dev/null/no/such/", WIDTH, KEY, &error);
	struct seen seen = {0};

	(void)state;
	for (int64_t i = 0; i < 2 * ROW_SORT_RUN; i++)
		add(s, i, KEYS);
	row_sort_each(s, on_row, &seen);
	row_sort_close(s);
	assert_int_equal(error, ENOTDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_sizes),
		cmocka_unit_test(test_no_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

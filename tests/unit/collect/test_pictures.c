/* SPDX-License-Identifier: MIT */
/* test_pictures.c - the monitor's diagrams in characters, of rows that are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collect/monitor/pictures.h"

#define SECOND 1000000000u

static struct columns columns;
static struct pictures pictures;
static char *text;

static void add_column(const char *name, enum reading_kind kind, enum value_type type)
{
	*vec_push(&columns.v) = (struct column){.name = xstrdup(name), .kind = kind, .type = type};
}

static int teardown(void **state)
{
	(void)state;
	vec_for(&columns.v, c)
		xfree(c->name);
	vec_free(&columns.v);
	pictures_free(&pictures);
	free(text);
	text = NULL;
	return 0;
}

static unsigned print(void)
{
	size_t size;
	FILE *f = open_memstream(&text, &size);
	unsigned n;

	assert_non_null(f);
	n = pictures_print(&pictures, f, "\n");
	fclose(f);
	return n;
}

static struct reading idle(unsigned percent)
{
	return (struct reading){.n = percent, .of = 100, .known = true};
}

static struct reading count(uint64_t n)
{
	return (struct reading){.n = n, .known = true};
}

static void a_histogram_a_gantt_chart_and_a_rate(void **state)
{
	const unsigned free_percent[] = {100, 99, 50, 1, 0};

	(void)state;
	add_column("idle", READING_PERCENT, 0);
	add_column("idle0", READING_PERCENT, 0);
	add_column("faults", READING_COUNT, 0);
	add_column("depth", READING_VALUE, VALUE_SIGNED);
	pictures_begin(&pictures, &columns, 10);
	for (unsigned i = 0; i < 5; i++) {
		const struct reading v[] = {idle(free_percent[i]), idle(free_percent[i]),
					    count(i == 3 ? 0 : 100 * i),
					    count((uint64_t)((int)i - 2))};

		pictures_add(&pictures, v, i == 4 ? 2 * SECOND : SECOND);
	}
	assert_int_equal(print(), 4);
	/* faults: 0, 100, 200, 0, and 400 in two seconds */
	assert_string_equal(text,
			    "busy               |      ▁▅██|      100% [####################]\n"
			    "busy0              |      ░▓██|      100% [####################]\n"
			    "faults             |      ▅█ █|      200 a second, at most      200\n"
			    "depth              |        ▅█|     2.00, at most     2.00\n");
}

static void what_is_not_known_is_no_zero(void **state)
{
	const struct reading none = {0}, no_tick = {.known = true}, half = idle(50);

	(void)state;
	add_column("idle", READING_PERCENT, 0);
	pictures_begin(&pictures, &columns, 10);
	pictures_add(&pictures, &half, SECOND);
	pictures_add(&pictures, &none, SECOND);
	pictures_add(&pictures, &no_tick, SECOND);
	print();
	assert_string_equal(text,
			    "busy               |       ▅··|        - [                    ]\n");
}

static void the_last_intervals_are_shown(void **state)
{
	(void)state;
	add_column("faults", READING_COUNT, 0);
	pictures_begin(&pictures, &columns, 0); /* 10 at least */
	for (unsigned i = 0; i < 25; i++) {
		const struct reading v = count(i < 15 ? 1000000 : i == 15 ? 80 : i == 24 ? 30 : 0);

		pictures_add(&pictures, &v, SECOND);
	}
	print();
	assert_string_equal(
		text, "faults             |█        ▄|       30 a second, at most       80\n");
}

static const char *kiviat_row(unsigned y)
{
	const char *s = strstr(text, "Kiviat");

	for (unsigned i = 0; s && i <= y; i++)
		s = strchr(s, '\n') + 1;
	assert_non_null(s);
	return s + 4;
}

/* Up, right, down, left: all, half, nothing, all. */
static void a_kiviat_diagram(void **state)
{
	const struct reading v[] = {idle(37), idle(0), idle(50), idle(100), idle(0)};

	(void)state;
	add_column("idle", READING_PERCENT, 0);
	for (unsigned i = 0; i < 4; i++) {
		char name[8];

		snprintf(name, sizeof(name), "idle%u", i);
		add_column(name, READING_PERCENT, 0);
	}
	pictures_begin(&pictures, &columns, 10);
	pictures_add(&pictures, v, SECOND);
	assert_int_equal(print(), 5 + 1 + 13);
	assert_int_equal(kiviat_row(0)[12], 'o');
	assert_int_equal(kiviat_row(6)[18], 'o');
	assert_int_equal(kiviat_row(6)[12], 'o');
	assert_int_equal(kiviat_row(6)[0], 'o');
	assert_int_equal(kiviat_row(12)[12], '.'); /* the end of the third axis */
	assert_int_equal(kiviat_row(6)[24], '.');
	assert_int_equal(kiviat_row(3)[6], '*'); /* between the fourth and the first */
}

static void two_processors_have_no_kiviat_diagram(void **state)
{
	const struct reading v[] = {idle(1), idle(2)};

	(void)state;
	add_column("idle0", READING_PERCENT, 0);
	add_column("idle1", READING_PERCENT, 0);
	pictures_begin(&pictures, &columns, 10);
	pictures_add(&pictures, v, SECOND);
	assert_int_equal(print(), 2);
	assert_null(strstr(text, "Kiviat"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_histogram_a_gantt_chart_and_a_rate, teardown),
		cmocka_unit_test_teardown(what_is_not_known_is_no_zero, teardown),
		cmocka_unit_test_teardown(the_last_intervals_are_shown, teardown),
		cmocka_unit_test_teardown(a_kiviat_diagram, teardown),
		cmocka_unit_test_teardown(two_processors_have_no_kiviat_diagram, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

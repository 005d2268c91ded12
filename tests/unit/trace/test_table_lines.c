/* SPDX-License-Identifier: MIT */
/* Lines of the trace's tables as they are written. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/vec.h"
#include "trace/reader.h"
#include "trace/rows.h"
#include "trace/table_lines.h"

static void check_number(uint64_t value)
{
	table_text t = {0};
	char want[64];

	snprintf(want, sizeof(want), "%" PRIu64 ",%" PRIx64, value, value);
	table_put_number(&t, 10, value);
	table_put_char(&t, ',');
	table_put_number(&t, 16, value);
	table_put_char(&t, 0);
	assert_string_equal(t.v, want);
	vec_free(&t);
}

static void numbers_are_as_printf_has_them(void **state)
{
	uint64_t power = 1;

	(void)state;
	for (int i = 0; i < 20; i++, power *= 10) {
		check_number(power - 1);
		check_number(power);
		check_number(power + 1);
	}
	for (int i = 0; i < 64; i++) {
		check_number((1ull << i) - 1);
		check_number(1ull << i);
	}
	check_number(UINT64_MAX);
}

static void check_text(const char *s, const char *want)
{
	table_text t = {0};

	table_put_text(&t, s);
	table_put_char(&t, 0);
	assert_string_equal(t.v, want);
	table_unescape(t.v);
	assert_string_equal(t.v, s ? s : "");
	vec_free(&t);
}

static void texts_are_escaped(void **state)
{
	(void)state;
	check_text("f", "f");
	check_text("", "");
	check_text(NULL, "");
	check_text("\t", "\\t");
	check_text("\n\\\t", "\\n\\\\\\t");
	check_text("a\tb\nc\\d\\t\x1b[0m\xff", "a\\tb\\nc\\\\d\\\\t\x1b[0m\xff");
}

/* Ways in the order of their letters, and what was not asked for is not there. */
static void a_function_is_one_line(void **state)
{
	const struct trace_function_line line = {.n = 7,
						 .module_id = 1,
						 .vaddr = 0x1000,
						 .size = 12,
						 .name = "a\tb",
						 .level = 3,
						 .ways = TRACE_GUESSED | TRACE_RETURNS};
	table_text t = {0};

	(void)state;
	row_write(&t, row_function, &line, sizeof(line));
	table_put_char(&t, 0);
	assert_string_equal(t.v, "7\t1\t1000\t12\ta\\tb\t3\trg\n");
	vec_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_as_printf_has_them),
		cmocka_unit_test(texts_are_escaped),
		cmocka_unit_test(a_function_is_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

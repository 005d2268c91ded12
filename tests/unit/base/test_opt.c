/* SPDX-License-Identifier: MIT */
/* Unit tests of base/opt: one table, four uses. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/opt.h"
#include "base/vec.h"

static bool flag;
static int verbose, when_full;
static const char *output;
static struct opt_list libs;
static uint64_t count, mask, size;

static const struct opt options[] = {
	{'o', "output", OPT_STR, &output, "DIR", "Write there. It is made.", 0, 0},
	{'L', "library", OPT_LIST, &libs, "GLOB", "Trace these, too.", 0, 0},
	{0, "json", OPT_FLAG, &flag, NULL, "Print JSON.", 0, 0},
	{'v', "verbose", OPT_COUNT, &verbose, NULL, "Say more.", 0, 0},
	{'n', "number", OPT_UINT, &count, "N", "At most N.", 1, 100},
	{0, "filter", OPT_HEX, &mask, "MASK", "Levels.", 0, 0xffff},
	{'b', "buffer", OPT_SIZE, &size, "SIZE", "Pool.", 0, 0},
	{0, "when-full", OPT_CHOICE, &when_full, "discard|wait|wrap", "What then.", 0, 0},
	OPT_END,
};
static const struct opt_command record = {
	.name = "record",
	.operands = "CMD [ARG]...",
	.summary = "Run it.",
	.opts = options,
	.stop_at_operand = true,
	.min_operands = 1,
	.max_operands = 9,
};
static const struct opt_command report = {
	.name = "report",
	.operands = "[DIR]",
	.summary = "Show it.",
	.opts = options,
	.max_operands = 1,
};

static struct err err;
static char *args[32];

/* Parse a line of words; the words live until the next call. */
static int parse(const struct opt_command *c, const char *line)
{
	static char words[256];
	int n = 0;

	flag = false;
	verbose = when_full = 0;
	output = NULL;
	vec_free(&libs);
	count = mask = size = 0;
	err.msg[0] = 0;
	snprintf(words, sizeof(words), "%s", line);
	for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
		args[n++] = w;
	args[n] = NULL;
	return opt_parse(c, n, args, &err);
}

static void every_type_is_read(void **state)
{
	int first = parse(&record, "record -o out -L a --library=b --json -vv -n 7 --filter 0xff "
				   "-b 64M --when-full wrap prog -v --json");

	(void)state;
	assert_string_equal(err.msg, "");
	assert_string_equal(args[first], "prog");
	assert_string_equal(output, "out");
	assert_int_equal(libs.n, 2);
	assert_string_equal(libs.v[1], "b");
	assert_true(flag);
	assert_int_equal(verbose, 2);
	assert_int_equal(count, 7);
	assert_int_equal(mask, 0xff);
	assert_int_equal(size, 64 << 20);
	assert_int_equal(when_full, 2);
}

static void options_of_the_program_stay_its_own(void **state)
{
	int first = parse(&record, "record -- prog -v");

	(void)state;
	assert_string_equal(args[first], "prog");
	assert_string_equal(args[first + 1], "-v");
	first = parse(&record, "record prog --help");
	assert_string_equal(args[first], "prog");
	assert_int_equal(verbose, 0);
}

static void options_may_follow_the_directory(void **state)
{
	int first = parse(&report, "report out --json");

	(void)state;
	assert_string_equal(args[first], "out");
	assert_true(flag);
	assert_int_equal(parse(&report, "report"), 1);
}

static void help_is_asked_for(void **state)
{
	(void)state;
	assert_int_equal(parse(&report, "report --help"), 0);
	assert_int_equal(parse(&report, "report -h"), 0);
	assert_int_equal(parse(&record, "record -v --help"), 0);
}

static void mistakes_are_named(void **state)
{
	static const struct {
		const char *line, *says;
	} cases[] = {
		{"record --nonsense x", "'--nonsense'"},
		{"record -x x", "'-x'"},
		{"record -o", "'-o' needs an argument"},
		{"record --output", "'--output' needs an argument"},
		{"record --json=1 x", "takes no argument"},
		{"record -n 0 x", "out of range"},
		{"record -n 101 x", "out of range"},
		{"record -n -5 x", "'-5' is not a number"},
		{"record -n 5x x", "'5x' is not a number"},
		{"record --filter zz x", "hexadecimal"},
		{"record --filter 10000 x", "out of range"},
		{"record -b 5Q x", "a size"},
		{"record -b 99999999999999999999 x", "a size"},
		{"record --when-full maybe x", "discard|wait|wrap"},
		{"record --when-full wa x", "discard|wait|wrap"},
		{"record", "missing"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parse(&record, cases[i].line), -EINVAL);
		if (!strstr(err.msg, cases[i].says))
			fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].line, err.msg,
				 cases[i].says);
	}
	assert_int_equal(parse(&report, "report a b"), -EINVAL);
	assert_non_null(strstr(err.msg, "'b'"));
}

static void sizes(void **state)
{
	uint64_t v;

	(void)state;
	assert_int_equal(opt_size("123", &v), 0);
	assert_int_equal(v, 123);
	assert_int_equal(opt_size("4k", &v), 0);
	assert_int_equal(v, 4096);
	assert_int_equal(opt_size("2GiB", &v), 0);
	assert_int_equal(v, 2ull << 30);
	assert_int_equal(opt_size("2MB", &v), 0);
	assert_int_equal(v, 2ull << 20);
	assert_int_equal(opt_size("", &v), -EINVAL);
	assert_int_equal(opt_size("M", &v), -EINVAL);
	assert_int_equal(opt_size("-1", &v), -EINVAL);
	assert_int_equal(opt_size("1.5M", &v), -EINVAL);
	assert_int_equal(opt_size("18014398509481985K", &v), -EINVAL);
}

/* What print writes for c, as one string that the caller frees. */
static char *text_of(void (*print)(const struct opt_command *, FILE *))
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	print(&record, f);
	fclose(f);
	return text;
}

static void help_man_and_words_name_every_option(void **state)
{
	char *help = text_of(opt_help), *man = text_of(opt_man), *words = text_of(opt_words);
	char want[64];

	(void)state;
	for (const struct opt *o = options; o->name; o++) {
		snprintf(want, sizeof(want), " --%s", o->name);
		assert_non_null(strstr(help, want));
		snprintf(want, sizeof(want), "Fl -%s", o->name);
		assert_non_null(strstr(man, want));
		snprintf(want, sizeof(want), "--%s\t%s\t", o->name, o->arg ? o->arg : "");
		assert_non_null(strstr(words, want));
	}
	assert_non_null(strstr(help, "Usage: kron record [OPTION]... CMD [ARG]...\n"));
	assert_non_null(strstr(man, "Write there.\nIt is made.\n"));
	assert_non_null(strstr(words, "\tWrite there\n"));
	free(help);
	free(man);
	free(words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_is_read),
		cmocka_unit_test(options_of_the_program_stay_its_own),
		cmocka_unit_test(options_may_follow_the_directory),
		cmocka_unit_test(help_is_asked_for),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(sizes),
		cmocka_unit_test(help_man_and_words_name_every_option),
	};

	return cmocka_run_group_tests_name("opt", tests, NULL, NULL);
}

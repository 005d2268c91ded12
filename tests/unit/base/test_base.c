/* SPDX-License-Identifier: MIT */
/* Unit tests of base/: err, vec, json, str, log, term, paths. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/duration.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/paths.h"
#include "base/str.h"
#include "base/temp.h"
#include "base/term.h"
#include "base/vec.h"

static void err_keeps_sentence_and_code(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(err_set(&err, ENOENT, "no %s", "file"), -ENOENT);
	assert_string_equal(err.msg, "no file");
	assert_int_equal(err_prefix(&err, -ENOENT, "in %d", 7), -ENOENT);
	assert_string_equal(err.msg, "in 7: no file");
	assert_int_equal(err_set(NULL, EIO, "nobody listens"), -EIO);
	assert_int_equal(err_prefix(NULL, -EIO, "nobody listens"), -EIO);
}

static void err_prefix_cuts_what_does_not_fit(void **state)
{
	struct err err;
	char full[sizeof(err.msg)];

	(void)state;
	memset(full, 'x', sizeof(full));
	full[sizeof(full) - 1] = 0;
	err_set(&err, EIO, "%s", full);
	err_prefix(&err, -EIO, "here");
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
	assert_memory_equal(err.msg, "here: xxx", 9);
	err_prefix(&err, -EIO, "%s", full);
	assert_true(strlen(err.msg) < sizeof(err.msg));
}

static void vec_grows_and_zeroes(void **state)
{
	VEC(int) a = {0};
	int sum = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		int *p = vec_push(&a);

		assert_int_equal(*p, 0);
		*p = i;
	}
	vec_for(&a, p)
		sum += *p;
	assert_int_equal(a.n, 1000);
	assert_int_equal(sum, 499500);
	vec_free(&a);
	assert_null(a.v);
	assert_int_equal(a.n, 0);
}

/* What writer(j) writes, as one string that the caller frees. */
static char *json_of(void (*writer)(struct json *))
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	struct json j = JSON_INIT(f);

	writer(&j);
	fclose(f);
	return text;
}

static void assert_json(void (*writer)(struct json *), const char *want)
{
	char *got = json_of(writer);

	assert_string_equal(got, want);
	free(got);
}

static void write_nested(struct json *j)
{
	json_open(j, '{');
	json_ku64(j, "max", UINT64_MAX);
	json_key(j, "list");
	json_open(j, '[');
	json_i64(j, -5);
	json_f64(j, 0.5);
	json_f64(j, NAN);
	json_f64(j, INFINITY);
	json_bool(j, 1);
	json_str(j, NULL);
	json_open(j, '{');
	json_close(j, '}');
	json_close(j, ']');
	json_kstr(j, "s", "v");
	json_close(j, '}');
}

static long pages_mapped(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long n = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld", &n), 1);
	fclose(f);
	return n;
}

/* More than half of a huge page is had as a whole one, and given back so. */
static void full_pages_are_all_given_back(void **state)
{
	static const size_t sizes[] = {1,       (1 << 20) - 1, (1 << 20) + 1, 1482600,
				       2 << 20, 2363392,       (3 << 20) + 1, (7 << 20) / 2};
	const size_t n = sizeof(sizes) / sizeof(sizes[0]);
	long before;

	(void)state;
	pages_mapped(); /* its own memory */
	before = pages_mapped();
	for (size_t i = 0; i < 100 * n; i++) {
		char *p = xmalloc_full(sizes[i % n]);

		p[0] = p[sizes[i % n] - 1] = 1;
		xfree_full(p, sizes[i % n]);
	}
	assert_true(pages_mapped() < before + 64);
}

static void json_puts_commas_where_they_belong(void **state)
{
	(void)state;
	assert_json(write_nested, "{\"max\":18446744073709551615,"
				  "\"list\":[-5,0.5,null,null,true,null,{}],\"s\":\"v\"}\n");
}

static void write_strings(struct json *j)
{
	json_open(j, '[');
	json_str(j, "a\"b\\c\n\t\x01\x7f");
	json_str(j, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
	json_str(j, "\xff\xc3");             /* no lead byte; a lead byte at the end */
	json_str(j, "\xc0\xaf\xed\xa0\x80"); /* overlong; a surrogate */
	json_close(j, ']');
}

static void json_escapes_strings(void **state)
{
	(void)state;
	assert_json(write_strings, "[\"a\\\"b\\\\c\\n\\t\\u0001\\u007f\","
				   "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\","
				   "\"\\ufffd\\ufffd\","
				   "\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\"]\n");
}

static void numbers_read_well(void **state)
{
	char s[STR_NUMBER];

	(void)state;
	assert_string_equal(str_thousands(s, sizeof(s), 0), "0");
	assert_string_equal(str_thousands(s, sizeof(s), 999), "999");
	assert_string_equal(str_thousands(s, sizeof(s), 1000), "1,000");
	assert_string_equal(str_thousands(s, sizeof(s), 1234567), "1,234,567");
	assert_string_equal(str_thousands(s, sizeof(s), UINT64_MAX), "18,446,744,073,709,551,615");
	assert_string_equal(str_bytes(s, sizeof(s), 512), "512 B");
	assert_string_equal(str_bytes(s, sizeof(s), 4096), "4.0 KiB");
	assert_string_equal(str_bytes(s, sizeof(s), 2684354560), "2.5 GiB");
}

static void durations_read_like_uftrace(void **state)
{
	char s[STR_NUMBER];

	(void)state;
	assert_string_equal(str_duration(s, sizeof(s), 0), "0.000 us");
	assert_string_equal(str_duration(s, sizeof(s), 57), "0.057 us");
	assert_string_equal(str_duration(s, sizeof(s), 1234), "1.234 us");
	assert_string_equal(str_duration(s, sizeof(s), 999999), "999.999 us");
	assert_string_equal(str_duration(s, sizeof(s), 12000000), "12.000 ms");
	assert_string_equal(str_duration(s, sizeof(s), 1500000000), "1.500 s");
	assert_string_equal(str_duration(s, sizeof(s), 90000000000), "1.500 m");
	assert_string_equal(str_duration(s, sizeof(s), UINT64_MAX), "5124095.576 h");
	assert_string_equal(str_duration_column(s, sizeof(s), 999999), "999.999 us");
	assert_string_equal(str_duration_column(s, sizeof(s), 90000000000), "1.500  m");
}

static void shell_words_are_quoted_when_needed(void **state)
{
	char s[64];

	(void)state;
	assert_string_equal(str_shell(s, sizeof(s), "/usr/bin/a-b_c.d"), "/usr/bin/a-b_c.d");
	assert_string_equal(str_shell(s, sizeof(s), ""), "''");
	assert_string_equal(str_shell(s, sizeof(s), "a b"), "'a b'");
	assert_string_equal(str_shell(s, sizeof(s), "it's"), "'it'\\''s'");
	assert_string_equal(str_shell(s, 5, "a b c d"), "'a b");
}

static void log_rules_decide_by_area_and_level(void **state)
{
	(void)state;
	log_init(NULL);
	assert_false(log_wants("plan", LOG_ERROR));
	log_init("plan:debug,collect:info");
	assert_true(log_wants("plan", LOG_DEBUG));
	assert_false(log_wants("plan", LOG_TRACE));
	assert_true(log_wants("collect", LOG_INFO));
	assert_false(log_wants("collect", LOG_DEBUG));
	assert_false(log_wants("other", LOG_ERROR));
	log_init("debug,plan:off");
	assert_true(log_wants("other", LOG_DEBUG));
	assert_false(log_wants("plan", LOG_ERROR));
	log_init("");
	assert_false(log_wants("plan", LOG_ERROR));
}

static void colour_follows_setting_and_environment(void **state)
{
	int null = open("/dev/null", O_WRONLY);

	(void)state;
	assert_true(term_wants_color(TERM_COLOR_YES, null));
	assert_false(term_wants_color(TERM_COLOR_NO, null));
	assert_false(term_wants_color(TERM_COLOR_AUTO, null));
	close(null);
}

static void runtime_path_can_be_given(void **state)
{
	char path[4096];
	struct err err;

	(void)state;
	setenv("KRON_RUNTIME", "/bin/true", 1);
	assert_int_equal(paths_runtime(path, sizeof(path), &err), 0);
	assert_string_equal(path + strlen(path) - 4, "true");
	setenv("KRON_RUNTIME", "/nowhere/libkron-rt.so", 1);
	assert_int_equal(paths_runtime(path, sizeof(path), &err), -ENOENT);
	assert_non_null(strstr(err.msg, "/nowhere/libkron-rt.so"));
	unsetenv("KRON_RUNTIME");
}

static void runtime_path_without_blank_or_colon(void **state)
{
	char dir[] = "/tmp/kron test XXXXXX", file[64], path[4096];
	struct err err;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/rt.so", dir);
	close(open(file, O_WRONLY | O_CREAT, 0600));
	setenv("KRON_RUNTIME", file, 1);
	assert_int_equal(paths_runtime(path, sizeof(path), &err), -EINVAL);
	unsetenv("KRON_RUNTIME");
	unlink(file);
	rmdir(dir);
}

static void a_time_is_a_number_and_a_unit(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {{"500ns", 500},       {"20us", 20000},       {"1.5 ms", 1500000},
		    {"2s", 2000000000},   {"3", 3000000000},     {".5s", 500000000},
		    {"5m", 300000000000}, {"1h", 3600000000000}, {"0", 0}};
	static const char *const bad[] = {"",     "s",   "-1s",   "1x",   "1e9", "1.2.3s",
					  "1ms2", "1 x", "1s ms", "1e9s", "nan", "99999999999999h"};
	bool has_unit = true;
	uint64_t ns;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(duration_parse(good[i].text, &ns));
		assert_true(ns == good[i].ns);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(duration_parse(bad[i], &ns));
	assert_int_equal(duration_take("20ms across threads", &ns, &has_unit), 4);
	assert_true(has_unit && ns == 20000000);
	assert_int_equal(duration_take("20 across threads", &ns, &has_unit), 2);
	assert_false(has_unit);
}

/* Each takes away what nobody holds, also what another one has just made and not locked yet. */
static void folders_are_made_beside_who_cleans(void **state)
{
	enum { MAKERS = 4, TIMES = 400 };
	char folder[] = "/tmp/kron-temp-XXXXXX", where[sizeof(folder) + 1];
	pid_t maker[MAKERS];
	int status;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(where, sizeof(where), "%s/", folder);
	for (int i = 0; i < MAKERS; i++) {
		maker[i] = fork();
		if (maker[i])
			continue;
		for (int k = 0; k < TIMES; k++) {
			struct temp t;

			temp_clean(where, "x");
			if (temp_make(&t, where, "x", TEMP_FOLDER, 0700))
				_exit(1);
			temp_close(&t);
		}
		_exit(0);
	}
	for (int i = 0; i < MAKERS; i++) {
		assert_int_equal(waitpid(maker[i], &status, 0), maker[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(err_keeps_sentence_and_code),
		cmocka_unit_test(err_prefix_cuts_what_does_not_fit),
		cmocka_unit_test(vec_grows_and_zeroes),
		cmocka_unit_test(full_pages_are_all_given_back),
		cmocka_unit_test(json_puts_commas_where_they_belong),
		cmocka_unit_test(json_escapes_strings),
		cmocka_unit_test(numbers_read_well),
		cmocka_unit_test(durations_read_like_uftrace),
		cmocka_unit_test(a_time_is_a_number_and_a_unit),
		cmocka_unit_test(shell_words_are_quoted_when_needed),
		cmocka_unit_test(log_rules_decide_by_area_and_level),
		cmocka_unit_test(colour_follows_setting_and_environment),
		cmocka_unit_test(runtime_path_can_be_given),
		cmocka_unit_test(runtime_path_without_blank_or_colon),
		cmocka_unit_test(folders_are_made_beside_who_cleans),
	};

	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}

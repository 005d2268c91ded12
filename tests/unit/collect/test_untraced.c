/* SPDX-License-Identifier: MIT */
/* Unit tests of collect/attach/untraced.c: what is said of what stays untraced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "collect/attach/untraced.h"

static void is_said(const struct untraced_list *l, size_t i, uint64_t count, const char *sentence)
{
	char *text;

	assert_true(i < l->v.n);
	text = untraced_sentence(&l->v.v[i]);
	assert_string_equal(text, sentence);
	assert_int_equal(l->v.v[i].count, count);
	xfree(text);
}

static void one_stays_as_it_is(void **state)
{
	struct untraced_list l = {.v = {0}};

	(void)state;
	untraced_init(&l);
	untraced_add(&l, NULL, "process 7 is gone");
	untraced_add(&l, "/lib/a.so", "/lib/a.so is not an ELF file");
	untraced_add(&l, "/lib/b.so", "/lib/b.so: no room");
	untraced_add(&l, "/lib/b.so", "/lib/b.so: no room");
	untraced_add(&l, "/lib/c.so", "cannot open /lib/c.so: Permission denied");
	assert_int_equal(l.v.n, 4);
	is_said(&l, 0, 1, "process 7 is gone");
	is_said(&l, 1, 1, "/lib/a.so is not an ELF file");
	is_said(&l, 2, 2, "/lib/b.so: no room");
	is_said(&l, 3, 1, "cannot open /lib/c.so: Permission denied");
	untraced_free(&l);
}

static void several_are_named_together(void **state)
{
	struct untraced_list l = {.v = {0}};
	char path[32], text[64];

	(void)state;
	untraced_init(&l);
	for (int i = 0; i < 9; i++) {
		snprintf(path, sizeof(path), "/wine/%d.dll", i);
		snprintf(text, sizeof(text), "%s is not an ELF file", path);
		untraced_add(&l, path, text);
		if (i == 1)
			is_said(&l, 0, 2, "0.dll and 1.dll: is not an ELF file");
		if (i == 3)
			is_said(&l, 0, 4, "0.dll, 1.dll, 2.dll and 3.dll: is not an ELF file");
		if (i == 4)
			is_said(&l, 0, 5, "0.dll, 1.dll, 2.dll and 2 more: is not an ELF file");
	}
	is_said(&l, 0, 9, "0.dll, 1.dll, 2.dll and 6 more: is not an ELF file");
	assert_int_equal(l.v.n, 1);
	untraced_free(&l);
}

/* Not a name that another one begins with, and not a sentence that only looks like one of a module. */
static void reasons_are_told_apart(void **state)
{
	struct untraced_list l = {.v = {0}};

	(void)state;
	untraced_init(&l);
	untraced_add(&l, "/lib/a", "/lib/a.so: no room");
	untraced_add(&l, "/lib/a.so", "/lib/a.so: no room");
	untraced_add(&l, NULL, ": no room");
	assert_int_equal(l.v.n, 3);
	is_said(&l, 0, 1, "/lib/a.so: no room");
	is_said(&l, 1, 1, "/lib/a.so: no room");
	is_said(&l, 2, 1, ": no room");
	untraced_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_stays_as_it_is),
		cmocka_unit_test(several_are_named_together),
		cmocka_unit_test(reasons_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

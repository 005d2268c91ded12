/* SPDX-License-Identifier: MIT */
/* What is said of a process that may not be traced: each of Yama's values has its own way out. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "collect/live/live.h"

static void says(bool is_others, enum live_who who, int scope, const char *what, const char * not )
{
	struct err err;

	assert_int_equal(live_explain_denied(12, is_others, who, scope, &err), -EPERM);
	assert_non_null(strstr(err.msg, what));
	assert_true(!not || !strstr(err.msg, not ));
}

static void no_yama(void **state)
{
	(void)state;
	says(false, LIVE_USER, 0, "process 12 may not be traced: run kron as root", "yama");
}

static void scopes(void **state)
{
	(void)state;
	says(false, LIVE_USER, 1, "kernel.yama.ptrace_scope is 1; run kron as root, or set it to 0",
	     NULL);
	says(false, LIVE_USER, 2, "kernel.yama.ptrace_scope is 2; run kron as root, or set it to 0",
	     NULL);
	says(false, LIVE_USER, 3, "allows nobody to trace a running process", "as root");
}

/* Another user's is not to be had by a sysctl. */
static void other_user(void **state)
{
	(void)state;
	for (int scope = 0; scope < 4; scope++)
		says(true, LIVE_USER, scope, "belongs to another user: run kron as root", "yama");
}

/* Whom it does not help to be told so. */
static void root(void **state)
{
	(void)state;
	for (int scope = 0; scope < 3; scope++) {
		says(false, LIVE_ROOT, scope, "not by root either", "run kron as root");
		says(false, LIVE_BARE_ROOT, scope, "without CAP_SYS_PTRACE", "run kron as root");
	}
	says(false, LIVE_ROOT, 3, "allows nobody to trace a running process", "as root");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_yama),
		cmocka_unit_test(scopes),
		cmocka_unit_test(other_user),
		cmocka_unit_test(root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

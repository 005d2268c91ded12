/* SPDX-License-Identifier: MIT */
/* Unit tests of board/bus/node: what says which node this is. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "board/bus/node.h"

#define NONE 4096u

static uint32_t of_host(const char *name)
{
	uint32_t n;

	return node_of_host(name, &n) ? n : NONE;
}

static void hosts_whose_names_have_one_number(void **state)
{
	(void)state;
	assert_int_equal(of_host("node017"), 17);
	assert_int_equal(of_host("compute-3.cluster9.org"), 3);
	assert_int_equal(of_host("n0"), 0);
	assert_int_equal(of_host("cn1023"), 1023);
}

static void hosts_whose_names_say_no_node(void **state)
{
	static const char *const names[] = {
		"vm",
		"",
		"node",
		"cn1024",
		"n99999999999999999999",
		"17",
		"ip-10-0-0-12",
		"4be1f02c9d17",
		"rack2-node17",
		"node7a",
		".node3",
		"node-",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(of_host(names[i]), NONE);
}

static struct node with(const char *ompi, const char *pmix, const char *pmi, const char *slurm)
{
	struct node n;

	/* not clearenv(): cmocka asks, too */
	unsetenv("OMPI_COMM_WORLD_RANK");
	unsetenv("PMIX_RANK");
	unsetenv("PMI_RANK");
	unsetenv("SLURM_NODEID");
	if (ompi)
		setenv("OMPI_COMM_WORLD_RANK", ompi, 1);
	if (pmix)
		setenv("PMIX_RANK", pmix, 1);
	if (pmi)
		setenv("PMI_RANK", pmi, 1);
	if (slurm)
		setenv("SLURM_NODEID", slurm, 1);
	node_default(&n);
	return n;
}

static void rank_comes_before_the_node_of_the_job(void **state)
{
	struct node n = with("5", NULL, NULL, "2");

	(void)state;
	assert_int_equal(n.n, 5);
	assert_string_equal(n.from, "OMPI_COMM_WORLD_RANK");
	assert_null(n.unfit);
	assert_int_equal(with(NULL, "6", NULL, "2").n, 6);
	assert_int_equal(with(NULL, NULL, "7", "2").n, 7);
	assert_int_equal(with(NULL, NULL, NULL, "2").n, 2);
	assert_string_equal(with("", NULL, NULL, "1023").from, "SLURM_NODEID");
}

static void what_is_no_number_of_a_node_is_passed_by_and_named(void **state)
{
	static const char *const wrong[] = {"1024", "-1", "4294967297",          "3x",
					    " 3",   "+3", "99999999999999999999"};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct node n = with(wrong[i], NULL, NULL, "2");

		assert_int_equal(n.n, 2);
		assert_string_equal(n.unfit, "OMPI_COMM_WORLD_RANK");
		assert_string_equal(n.unfit_value, wrong[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_whose_names_have_one_number),
		cmocka_unit_test(hosts_whose_names_say_no_node),
		cmocka_unit_test(rank_comes_before_the_node_of_the_job),
		cmocka_unit_test(what_is_no_number_of_a_node_is_passed_by_and_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

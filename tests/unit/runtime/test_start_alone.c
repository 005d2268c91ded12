/* SPDX-License-Identifier: MIT */
/* test_start_alone.c - libkron-rt.so with a bad collector, or none: the program goes on. */
#define _GNU_SOURCE
#include <time.h>

#include "tests/unit/runtime/start_rig.h"

/* ---- tests: a bad collector ---- */

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void goes_on_without_an_answer(void)
{
	double begin = seconds();
	struct kron_hello h;

	collector_listen();
	start_target("inherits", NULL);
	accept_hello(&h);
	expect_target_ends();
	CHECK(seconds() - begin >= 4 && seconds() - begin < 20);
}

static void goes_on_when_collector_dies(void)
{
	double begin = seconds();
	struct kron_hello h;

	collector_listen();
	start_target("inherits", NULL);
	close(accept_hello(&h));
	expect_target_ends();
	CHECK(seconds() - begin < 4);
}

static void goes_on_after_half_a_message(void)
{
	struct kron_reply r = reply_for(NULL, 0);
	struct kron_hello h;
	int fds[4] = {0, 1, 2, 0};
	int sock;

	collector_listen();
	start_target("inherits", NULL); /* counts its descriptors */
	sock = accept_hello(&h);
	send_with_fds(sock, &r, sizeof(r) / 2, fds, 4);
	expect_target_ends();
}

static void goes_on_after_nonsense(void)
{
	struct kron_reply r = reply_for(NULL, 0);
	struct kron_hello h;
	int sock;

	collector_listen();
	start_target("inherits", NULL);
	sock = accept_hello(&h);
	r.segment_size = UINT64_MAX;
	send_with_fds(sock, &r, sizeof(r), NULL, 0); /* and no descriptor */
	expect_target_ends();
}

static void other_version_is_refused(void)
{
	struct kron_reply r = reply_for(NULL, 0);
	struct kron_result res;
	struct kron_hello h;
	int sock, fd;

	collector_listen();
	start_target("inherits", NULL);
	sock = accept_hello(&h);
	r.version++;
	fd = make_segment();
	send_with_fds(sock, &r, sizeof(r), &fd, 1);
	CHECK_EQ(recv(sock, &res, sizeof(res), 0), sizeof(res));
	CHECK_EQ(res.code, KRON_RESULT_VERSION);
	expect_target_ends();
}

static void nobody_there_leaves_no_trace(void)
{
	collector_listen();
	close(listener);
	start_target("hidden", NULL);
	expect_target_ends();
}

static const struct tap_test tests[] = {
	{"goes_on_without_an_answer", goes_on_without_an_answer},
	{"goes_on_when_collector_dies", goes_on_when_collector_dies},
	{"goes_on_after_half_a_message", goes_on_after_half_a_message},
	{"goes_on_after_nonsense", goes_on_after_nonsense},
	{"other_version_is_refused", other_version_is_refused},
	{"nobody_there_leaves_no_trace", nobody_there_leaves_no_trace},
};

int main(int argc, char **argv, char **envp)
{
	start_begin(argc, argv, envp);
	return tap_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}

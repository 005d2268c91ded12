/* SPDX-License-Identifier: MIT */
/* test_start.c - libkron-rt.so with a good collector: what fits is applied, what does not is not touched. */
#define _GNU_SOURCE
#include <errno.h>

#include "tests/unit/runtime/start_rig.h"

/* ---- tests: a good collector ---- */

static void check_slot(const struct kron_result *res)
{
	const struct kron_proc *p =
		(const struct kron_proc *)(segment + KRON_PROCS_OFFSET) + res->proc_slot;

	CHECK_EQ(p->state, (uint64_t)res->proc_uid << 8 | KRON_PROC_LIVE);
	CHECK_EQ(p->pid, child);
	CHECK_EQ(p->origin, KRON_PROC_EXEC);
}

static void applies_and_hides(void)
{
	struct kron_result res;
	struct kron_hello h;
	struct job j;
	int sock;

	collector_listen();
	start_target("hidden", NULL);
	sock = accept_hello(&h);
	job_for_victim(&j, &h);
	j.cmd[1].flags = KRON_CMD_HAS_EXEC_HOOK;
	res = do_reply(sock, &j, 0);
	CHECK_EQ(res.code, KRON_RESULT_OK);
	CHECK_EQ(res.groups_applied, 1);
	expect_target_ends();
	check_slot(&res);
	CHECK_EQ(samples_taken(), CALLS);
}

static void keeps_the_users_preload(void)
{
	struct kron_hello h;
	int sock;

	collector_listen();
	start_target("user", "libutil.so.1");
	sock = accept_hello(&h);
	CHECK_EQ(do_reply(sock, NULL, KRON_REPLY_NO_CHILDREN).code, KRON_RESULT_OK);
	expect_target_ends();
}

static void without_exec_hook_children_inherit(void)
{
	struct kron_hello h;
	struct job j;
	int sock;

	collector_listen();
	start_target("inherits", NULL);
	sock = accept_hello(&h);
	job_for_victim(&j, &h);
	CHECK_EQ(do_reply(sock, &j, 0).code, KRON_RESULT_OK);
	expect_target_ends();
	CHECK_EQ(samples_taken(), CALLS);
}

static void is_patient_with_a_working_one(void)
{
	struct kron_reply working = {
		.magic = KRON_WIRE_MAGIC, .version = KRON_WIRE_VERSION, .kind = KRON_MSG_WORKING};
	struct kron_hello h;
	int sock, i;

	collector_listen();
	start_target("hidden", NULL);
	sock = accept_hello(&h);
	for (i = 0; i < 3; i++) {
		sleep(2);
		send_with_fds(sock, &working, sizeof(working), NULL, 0);
	}
	CHECK_EQ(do_reply(sock, NULL, KRON_REPLY_NO_CHILDREN).code, KRON_RESULT_OK);
	expect_target_ends();
}

/* libc's execve begins with "mov $59,%eax", five bytes. */
static void exec_hook_puts_environment_back(void)
{
	static const uint8_t old[5] = {0xb8, 59, 0, 0, 0};
	uint64_t libc, place, block;
	void *mine = dlsym(RTLD_NEXT, "execve");
	struct kron_hello h;
	struct job j;
	int sock;

	if (memcmp(mine, old, sizeof(old)))
		_exit(TAP_SKIP);
	collector_listen();
	start_target("exec", NULL);
	sock = accept_hello(&h);
	job_for_victim(&j, &h);
	libc = base_of("libc.so.6");
	place = libc + ((uint64_t)(uintptr_t)mine - own_base(mine));
	block = libc - 0x10000000;
	j.cmd[0].addr = block;
	job_stub(&j, 64, block, true, KRON_HOOK_EXECVE, old, place);
	j.cmd[1].addr = place & ~4095ull;
	j.cmd[1].len = 8192;
	j.cmd[1].flags = KRON_CMD_HAS_EXEC_HOOK;
	job_patch(&j.patch[0], place & ~4095ull, place, block + 64, old, 5);
	CHECK_EQ(do_reply(sock, &j, 0).code, KRON_RESULT_OK);
	sock = accept_hello(&h); /* the same process, another program */
	CHECK_EQ(do_reply(sock, NULL, KRON_REPLY_NO_CHILDREN).code, KRON_RESULT_OK);
	expect_target_ends();
}

/* ---- tests: what does not fit is not touched ---- */

static void refuses_wrong_old_bytes(void)
{
	struct kron_result res;
	struct kron_hello h;
	struct job j;
	int sock;

	collector_listen();
	start_target("inherits", NULL);
	sock = accept_hello(&h);
	job_for_victim(&j, &h);
	/* The first patch fits, the second does not: none is applied, the block is gone. */
	j.patch[1] = j.patch[0];
	j.patch[1].off += 16;
	j.cmd[1].count = 2;
	res = do_reply(sock, &j, 0);
	CHECK_EQ(res.code, KRON_RESULT_OLD_BYTES);
	CHECK_EQ(res.detail, 16);
	CHECK_EQ(res.group, 1);
	CHECK_EQ(res.groups_applied, 0);
	CHECK_EQ(res.groups_refused, 1);
	expect_target_ends();
	CHECK_EQ(samples_taken(), 0);
}

static void undoes_a_group_that_fails_late(void)
{
	struct kron_result res;
	struct kron_hello h;
	struct job j;
	int sock;

	collector_listen();
	start_target("inherits", NULL);
	sock = accept_hello(&h);
	job_for_victim(&j, &h);
	/* A second block where something is already: the first one must go again. */
	j.cmd[2] = j.cmd[1];
	j.cmd[1] = j.cmd[0];
	j.cmd[1].addr = base_of("libc.so.6");
	j.head.ncommands = 3;
	res = do_reply(sock, &j, 0);
	CHECK_EQ(res.code, KRON_RESULT_MAP_FAILED);
	CHECK_EQ(res.detail, EEXIST);
	expect_target_ends();
	CHECK_EQ(samples_taken(), 0);
}

static void one_bad_group_does_not_stop_others(void)
{
	struct kron_result res;
	struct kron_hello h;
	struct job j;
	int sock;

	collector_listen();
	start_target("inherits", NULL);
	sock = accept_hello(&h);
	job_for_victim(&j, &h);
	j.cmd[2] = j.cmd[1];
	j.cmd[1] = j.cmd[0];
	j.cmd[0].addr += 8; /* not a page */
	j.cmd[0].group = 7;
	j.head.ncommands = 3;
	res = do_reply(sock, &j, 0);
	CHECK_EQ(res.code, KRON_RESULT_MAP_FAILED);
	CHECK_EQ(res.group, 7);
	CHECK_EQ(res.groups_applied, 1);
	CHECK_EQ(res.groups_refused, 1);
	expect_target_ends();
	CHECK_EQ(samples_taken(), CALLS);
}

static void refuse_job(void (*spoil)(struct job *))
{
	struct kron_hello h;
	struct job j;
	int sock;

	collector_listen();
	start_target("inherits", NULL);
	sock = accept_hello(&h);
	job_for_victim(&j, &h);
	spoil(&j);
	CHECK(do_reply(sock, &j, 0).code != KRON_RESULT_OK);
	expect_target_ends();
	CHECK_EQ(samples_taken(), 0);
}

static void spoil_offset(struct job *j)
{
	j->cmd[1].file_off = UINT64_MAX - 7;
}

static void spoil_count(struct job *j)
{
	j->cmd[1].count = UINT32_MAX;
}

static void spoil_patch_length(struct job *j)
{
	j->patch[0].old_len = 200;
}

static void spoil_patch_place(struct job *j)
{
	j->patch[0].off = 4094;
}

static void spoil_unmapped_text(struct job *j)
{
	j->cmd[1].addr = j->cmd[0].addr - 0x100000;
}

static void spoil_kind(struct job *j)
{
	j->cmd[1].kind = 99;
}

static void refuses_malformed_commands(void)
{
	void (*const spoilers[])(struct job *) = {spoil_offset,        spoil_count,
						  spoil_patch_length,  spoil_patch_place,
						  spoil_unmapped_text, spoil_kind};
	size_t i;

	for (i = 0; i < sizeof(spoilers) / sizeof(spoilers[0]); i++) {
		refuse_job(spoilers[i]);
		close(listener);
		munmap(segment, SEGMENT_SIZE);
	}
}

static void refuses_a_foreign_segment(void)
{
	struct kron_reply r = reply_for(NULL, 0);
	struct kron_result res;
	struct kron_hello h;
	int sock, fd;

	collector_listen();
	start_target("inherits", NULL);
	sock = accept_hello(&h);
	fd = make_segment();
	((struct kron_ctl *)(segment + KRON_CTL_OFFSET))->session[3] ^= 1;
	send_with_fds(sock, &r, sizeof(r), &fd, 1);
	CHECK_EQ(recv(sock, &res, sizeof(res), 0), sizeof(res));
	CHECK_EQ(res.code, KRON_RESULT_VERSION);
	expect_target_ends();
}

static const struct tap_test tests[] = {
	{"applies_and_hides", applies_and_hides},
	{"keeps_the_users_preload", keeps_the_users_preload},
	{"without_exec_hook_children_inherit", without_exec_hook_children_inherit},
	{"is_patient_with_a_working_one", is_patient_with_a_working_one},
	{"exec_hook_puts_environment_back", exec_hook_puts_environment_back},
	{"refuses_wrong_old_bytes", refuses_wrong_old_bytes},
	{"undoes_a_group_that_fails_late", undoes_a_group_that_fails_late},
	{"one_bad_group_does_not_stop_others", one_bad_group_does_not_stop_others},
	{"refuses_malformed_commands", refuses_malformed_commands},
	{"refuses_a_foreign_segment", refuses_a_foreign_segment},
};

int main(int argc, char **argv, char **envp)
{
	start_begin(argc, argv, envp);
	return tap_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}

/* SPDX-License-Identifier: MIT */
/* test_lane_processes.c - lanes of processes and threads that come and go: samples + losses = triggers, exactly. */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/unit/runtime/lane_rig.h"

/* ---- processes ---- */

static const struct kron_proc *slot_of(pid_t pid)
{
	uint32_t i;

	for (i = 0; i < KRON_PROCS_MAX; i++) {
		if (board.procs[i].pid == pid)
			return &board.procs[i];
	}
	return NULL;
}

static uint64_t samples_of(pid_t tid)
{
	struct tally t = {0};
	uint32_t i;

	for (i = 0; i < board.ctl->chunks_ready; i++) {
		if (rig_chunk(&board, i)->source == KRON_SOURCE(5, tid))
			rig_tally_chunk(&board, i, &t);
	}
	return t.samples;
}

static void await(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
}

static void check_child(pid_t pid, uint64_t triggers)
{
	const struct kron_proc *s = slot_of(pid);

	CHECK(s != NULL);
	CHECK_EQ(s->state & 0xff, KRON_PROC_LIVE);
	CHECK_EQ(s->parent_uid, kron_rt.proc->uid);
	CHECK_EQ(s->origin, KRON_PROC_FORK);
	CHECK(s->start_tsc > slot_of(getpid())->start_tsc);
	CHECK_EQ(samples_of(pid), triggers);
}

static void fork_has_own_lane(void)
{
	pid_t pid;

	set_up(16, KRON_WHEN_FULL_DISCARD);
	rig_trigger(probe, 100);
	pid = fork();
	if (pid == 0) {
		rig_trigger(probe, 5000);
		_exit(0);
	}
	rig_trigger(probe, 100);
	await(pid);
	check_child(pid, 5000);
	CHECK_EQ(samples_of(getpid()), 200);
	CHECK_EQ(slot_of(getpid())->origin, KRON_PROC_EXEC);
	CHECK_EQ(rig_lost(&board), 0);
}

static void raw_clone_has_own_lane(void)
{
	long pid;

	set_up(16, KRON_WHEN_FULL_DISCARD);
	rig_trigger(probe, 100);
	pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		rig_trigger(probe, 77);
		syscall(SYS_exit_group, 0);
	}
	await((pid_t)pid);
	check_child((pid_t)pid, 77);
	CHECK_EQ(samples_of(getpid()), 100);
}

static void grandchildren_know_their_parents(void)
{
	pid_t pid;

	set_up(16, KRON_WHEN_FULL_DISCARD);
	rig_trigger(probe, 1);
	pid = fork();
	if (pid == 0) {
		uint32_t uid;
		pid_t grandchild;

		probe();
		uid = kron_rt.proc->uid;
		grandchild = fork();
		if (grandchild == 0) {
			probe();
			_exit(0);
		}
		await(grandchild);
		CHECK_EQ(slot_of(grandchild)->parent_uid, uid);
		_exit(0);
	}
	await(pid);
}

/* vfork children borrow the parent's lane, or lose what they trigger; never a slot. */
static void vfork_borrows(void)
{
	pid_t pid;

	set_up(16, KRON_WHEN_FULL_DISCARD);
	pid = vfork();
	if (pid == 0) {
		rig_trigger(probe, 10);
		_exit(0);
	}
	await(pid);
	CHECK(slot_of(pid) == NULL);
	CHECK_EQ(rig_lost(&board), 10);
	rig_trigger(probe, 5);
	pid = vfork();
	if (pid == 0) {
		rig_trigger(probe, 8000);
		_exit(0);
	}
	await(pid);
	CHECK(slot_of(pid) == NULL);
	CHECK_EQ(samples_of(getpid()), 8005);
	CHECK_EQ(rig_lost(&board), 10);
}

/* A fork child that triggered nothing, then a vfork child of it that does. */
static void vfork_below_fresh_fork(void)
{
	pid_t pid;

	set_up(16, KRON_WHEN_FULL_DISCARD);
	probe();
	pid = fork();
	if (pid == 0) {
		pid_t inner = vfork();

		if (inner == 0) {
			rig_trigger(probe, 10);
			_exit(0);
		}
		await(inner);
		CHECK(slot_of(inner) == NULL);
		CHECK_EQ(rig_lost(&board), 10);
		rig_trigger(probe, 10);
		_exit(0);
	}
	await(pid);
	check_child(pid, 10);
}

static void fork_under_load(void)
{
	uint64_t triggers = 0;
	struct tally t;
	unsigned i;

	set_up(600, KRON_WHEN_FULL_DISCARD);
	storm_begin(500, on_signal);
	for (i = 0; i < 100; i++) {
		pid_t pid;

		rig_trigger(probe, 1000);
		triggers += 1000;
		pid = fork();
		if (pid == 0) {
			rig_trigger(probe, 2000);
			_exit(0);
		}
		triggers += 2000;
		await(pid);
	}
	storm_end();
	t = tally_all();
	/* Timers are not inherited by children: only we had handlers. */
	CHECK_EQ(t.samples + rig_lost(&board), triggers + handled);
	CHECK_EQ(rig_lost(&board), 0);
}

static void no_slot_left(void)
{
	uint32_t i;
	pid_t pid;

	set_up(16, KRON_WHEN_FULL_DISCARD);
	for (i = 1; i < KRON_PROCS_MAX; i++)
		board.procs[i].state = 1ull << 40 | KRON_PROC_LIVE;
	probe();
	pid = fork();
	if (pid == 0) {
		rig_trigger(probe, 1000);
		_exit(0);
	}
	await(pid);
	CHECK_EQ(board.ctl->lost_unowned, 1000);
	CHECK_EQ(tally_all().samples, 1);
}

/* ---- threads ---- */

static void threads_come_and_go(void)
{
	uint64_t triggers = 0;
	unsigned round, i;

	set_up(2000, KRON_WHEN_FULL_DISCARD);
	for (round = 0; round < 30; round++) {
		pthread_t t[64];

		for (i = 0; i < 64; i++) {
			CHECK(pthread_create(&t[i], NULL, trigger_few,
					     (void *)(uintptr_t)(i + 1)) == 0);
			triggers += i + 1;
		}
		for (i = 0; i < 64; i++)
			pthread_join(t[i], NULL);
	}
	CHECK_EQ(tally_all().samples, triggers);
	CHECK_EQ(rig_lost(&board), 0);
	/* 1920 threads, 64 at a time. */
	CHECK(kron_rt.proc->lanes_used <= 4 * 64);
}

/* ---- seccomp ---- */

/* The hook reads its arguments from the registers, as in front of prctl(). */
static void before_prctl(stub_fn hook, long option, long arg, const void *filter)
{
	__asm__ volatile("sub $128, %%rsp; call *%3; add $128, %%rsp"
			 :
			 : "D"(option), "S"(arg), "d"(filter), "r"(hook)
			 : "memory");
}

/* Kills for every system call but exit. */
static int filter_nearly_all(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 4, .filter = code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void survive(long mode)
{
	stub_fn hook;
	pid_t pid;

	set_up(8, KRON_WHEN_FULL_DISCARD);
	hook = rig_hook_stub(KRON_HOOK_PRCTL);
	pid = fork();
	if (pid == 0) {
		rig_trigger(probe, 5);
		before_prctl(hook, PR_SET_SECCOMP, mode, mode == SECCOMP_MODE_FILTER ? &pid : NULL);
		if (mode == SECCOMP_MODE_STRICT ? prctl(PR_SET_SECCOMP, mode) : filter_nearly_all())
			_exit(TAP_SKIP);
		rig_trigger(probe, 50000);
		syscall(SYS_exit, 0);
	}
	await(pid);
	CHECK_EQ(tally_all().samples + rig_lost(&board), 50005);
}

static void seccomp_filter_is_survived(void)
{
	survive(SECCOMP_MODE_FILTER);
	CHECK(tally_all().samples > 20000); /* chunks follow each other without system calls */
}

/* Strict mode forbids rdtsc, too. */
static void seccomp_strict_is_survived(void)
{
	survive(SECCOMP_MODE_STRICT);
	CHECK_EQ(tally_all().samples, 5);
}

static int tsc_is_forbidden; /* atomic */

static void *trigger_when_forbidden(void *arg)
{
	while (!__atomic_load_n(&tsc_is_forbidden, __ATOMIC_ACQUIRE))
		sched_yield();
	return trigger_few(arg);
}

/* The other thread is made before, because sanitizers read the TSC themselves. */
static void no_tsc_is_survived(void)
{
	stub_fn hook;
	pthread_t t;

	set_up(8, KRON_WHEN_FULL_DISCARD);
	hook = rig_hook_stub(KRON_HOOK_PRCTL);
	CHECK(pthread_create(&t, NULL, trigger_when_forbidden, (void *)50) == 0);
	rig_trigger(probe, 5);
	before_prctl(hook, PR_SET_TSC, PR_TSC_SIGSEGV, NULL);
	CHECK(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0);
	rig_trigger(probe, 5000);
	CHECK(prctl(PR_SET_TSC, PR_TSC_ENABLE) == 0);
	__atomic_store_n(&tsc_is_forbidden, 1, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
	CHECK_EQ(tally_all().samples, 5);
	CHECK_EQ(rig_lost(&board), 5050);
}

static const struct tap_test tests[] = {
	{"fork_has_own_lane", fork_has_own_lane},
	{"raw_clone_has_own_lane", raw_clone_has_own_lane},
	{"grandchildren_know_their_parents", grandchildren_know_their_parents},
	{"vfork_borrows", vfork_borrows},
	{"vfork_below_fresh_fork", vfork_below_fresh_fork},
	{"fork_under_load", fork_under_load},
	{"no_slot_left", no_slot_left},
	{"threads_come_and_go", threads_come_and_go},
	{"seccomp_filter_is_survived", seccomp_filter_is_survived},
	{"seccomp_strict_is_survived", seccomp_strict_is_survived},
	{"no_tsc_is_survived", no_tsc_is_survived},
};

int main(int argc, char **argv)
{
	return tap_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}

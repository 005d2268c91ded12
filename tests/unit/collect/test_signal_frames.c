/* SPDX-License-Identifier: MIT */
/*
 * test_signal_frames.c - where a handler will return to is found wherever the thread stands: a child is taken
 * from its handler's first instruction to the one that was interrupted, one instruction at a time.  So is one
 * through a function like Go's asyncPreempt.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/live/goroutines.h"
#include "collect/live/signal_frames.h"

#define STEPS 1000

static void handle(int sig)
{
	(void)sig;
}

static void be_interrupted(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* whatever becomes of the test */
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	signal(SIGUSR1, handle);
	raise(SIGSTOP);
	for (volatile int i = 0;; i++)
		;
}

static struct user_regs_struct registers_of(pid_t pid)
{
	struct user_regs_struct regs;

	assert_int_equal(ptrace(PTRACE_GETREGS, pid, 0, &regs), 0);
	return regs;
}

static void step(pid_t pid, int sig)
{
	int status;

	assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, 0, sig), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status));
}

/* preempt: where Go's function lies; 0: there is none. */
static bool is_found_with(pid_t pid, uint64_t pc, uint64_t preempt, uint64_t preempt_end)
{
	struct live_thread thread = {.tid = pid, .regs = registers_of(pid), .stopped = true};
	struct live_threads t = {.pid = pid};
	struct signal_frames f = {0};
	struct process_maps maps;
	struct err err;
	char path[64];
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	t.mem = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(process_maps_read(&maps, pid, &err), 0);
	*vec_push(&t.v) = thread;
	signal_frames_find(&f, &t, &maps);
	if (preempt)
		assert_int_equal(goroutines_find(&f, &t, &maps, preempt, preempt_end, &err), 0);
	vec_for(&f.v, frame)
		found = found || frame->pc == pc;
	signal_frames_free(&f);
	vec_free(&t.v);
	process_maps_free(&maps);
	close(t.mem);
	return found;
}

static bool is_found(pid_t pid, uint64_t pc)
{
	return is_found_with(pid, pc, 0, 0);
}

static void found_up_to_its_end(void **state)
{
	pid_t pid = fork();
	uint64_t pc, sp;
	int status, n = 0;

	(void)state;
	if (!pid)
		be_interrupted();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (int i = 0; i < STEPS; i++) /* into the loop */
		step(pid, 0);
	pc = registers_of(pid).rip;
	sp = registers_of(pid).rsp;
	assert_false(is_found(pid, pc));
	step(pid, SIGUSR1);
	assert_int_equal(registers_of(pid).rip, (uintptr_t)handle);
	for (; registers_of(pid).rsp != sp && n < STEPS; n++) {
		assert_true(is_found(pid, pc));
		step(pid, 0);
	}
	assert_in_range(n, 3, STEPS - 1); /* ret; mov; syscall */
	assert_int_equal(registers_of(pid).rip, pc);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

/* ---- Go's ---- */

void preempt(void);
extern const uint8_t preempt_end[];

__asm__("preempt: push %rbp; mov %rsp, %rbp; pushfq; sub $0x170, %rsp; mov %rax, (%rsp); call 1f;"
	"mov (%rsp), %rax; add $0x170, %rsp; popfq; pop %rbp; ret; preempt_end:"
	"1: nop; ret");

static void be_preempted(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	for (;;)
		preempt();
}

/* As if asyncPreempt had been called there, whether it has called on or not, or has come back. */
__attribute__((unused)) static void found_where_it_goes_on(void **state)
{
	const uint64_t lo = (uintptr_t)preempt, hi = (uintptr_t)preempt_end;
	pid_t pid = fork();
	uint64_t pc;
	int status, n;

	(void)state;
	if (!pid)
		be_preempted();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (n = 0; n < STEPS && registers_of(pid).rip != lo; n++)
		step(pid, 0);
	assert_in_range(n, 1, STEPS - 1);
	pc = (uint64_t)ptrace(PTRACE_PEEKDATA, pid, registers_of(pid).rsp, 0);
	for (n = 0; n < STEPS && registers_of(pid).rip != pc; n++) {
		assert_true(is_found_with(pid, pc, lo, hi));
		step(pid, 0);
	}
	assert_int_equal(n, 13);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

/* ASan's shadow is terabytes of mapping, all of which goroutines_find() asks the kernel about at each step. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_SHADOW 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(HAS_SHADOW)
#define GO_TEST
#else
#define GO_TEST cmocka_unit_test(found_where_it_goes_on),
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {GO_TEST cmocka_unit_test(found_up_to_its_end)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

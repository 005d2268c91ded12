/* SPDX-License-Identifier: MIT */
/*
 * handlers.c - a program with SIGSEGV handlers of its own, between stores to the board.
 *
 * What it expects is what the kernel does: compiled with -DPLAIN, without board and libmk, all of
 * it holds as well.  Each test runs in a child.  Prints TAP.
 */
#define _GNU_SOURCE
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* siginterrupt */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <ucontext.h>

#include "tests/unit/runtime/tap_fork.h"

#ifdef PLAIN
#define MAP() ((void)0)
#define STORE() ((void)0)
#else
#include <mk.h>
#define MAP() MK_DEFAULT_MAP()
/* A store and a load that must meet. */
#define STORE()                                                            \
	do {                                                               \
		mk_ts1 = 7;                                                \
		mk_memory[4000000 + getpid() % 1000] = (uint32_t)getpid(); \
		CHECK_EQ(mk_memory[4000000 + getpid() % 1000], getpid());  \
	} while (0)
#endif

static volatile int *volatile bad_address = (volatile int *)16;
#define BAD bad_address

static volatile int handled;
/* volatile: the compiler takes for granted that sigqueue() and its like run no code of ours */
static volatile siginfo_t seen;
static ucontext_t seen_context;
static sigset_t seen_mask;
static sigjmp_buf back;

static void set(int signal, void (*f)(int, siginfo_t *, void *), int flags, const sigset_t *mask)
{
	struct sigaction a = {.sa_sigaction = f, .sa_flags = flags | SA_SIGINFO};

	if (mask)
		a.sa_mask = *mask;
	CHECK_EQ(sigaction(signal, &a, NULL), 0);
}

/* The end of a child that runs f. */
static int end_of(void (*f)(void))
{
	struct rlimit none = {0, 0};
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &none);
		if (!freopen("/dev/null", "w", stderr))
			_exit(98);
		f();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

#define DIES(f)                                       \
	do {                                          \
		int status_ = end_of(f);              \
		CHECK(WIFSIGNALED(status_));          \
		CHECK_EQ(WTERMSIG(status_), SIGSEGV); \
	} while (0)
#define LIVES(f) CHECK_EQ(end_of(f), 0)

/* ---- faults ---- */

static void note(int signal, siginfo_t *info, void *context)
{
	handled++;
	CHECK_EQ(signal, SIGSEGV);
	seen = *info;
	seen_context = *(ucontext_t *)context;
	sigprocmask(SIG_BLOCK, NULL, &seen_mask);
	STORE();
}

static volatile uint8_t *page;

static void open_page(int signal, siginfo_t *info, void *context)
{
	note(signal, info, context);
	mprotect((void *)page, 4096, PROT_READ | PROT_WRITE);
}

static void fixes_and_returns(void)
{
	MAP();
	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	set(SIGSEGV, open_page, 0, NULL);
	STORE();
	page[77] = 5;
	CHECK_EQ(page[77], 5);
	CHECK_EQ(handled, 1);
	CHECK(seen.si_addr == page + 77);
	CHECK_EQ(seen.si_code, SEGV_ACCERR);
	CHECK_EQ(seen.si_signo, SIGSEGV);
	CHECK(seen_context.uc_mcontext.gregs[REG_RIP] != 0);
	CHECK(!sigismember(&seen_context.uc_sigmask, SIGSEGV));
	STORE();
}

static void jump(int signal, siginfo_t *info, void *context)
{
	note(signal, info, context);
	siglongjmp(back, 1);
}

static void jumps_out(void)
{
	int i;

	MAP();
	set(SIGSEGV, jump, 0, NULL);
	for (i = 0; i < 100; i++) {
		if (!sigsetjmp(back, 1))
			*BAD = 1;
		STORE();
	}
	CHECK_EQ(handled, 100);
	CHECK(seen.si_addr == (void *)BAD);
	CHECK_EQ(seen.si_code, SEGV_MAPERR);
}

static void jumps_out_with_its_mask(void)
{
	MAP();
	set(SIGSEGV, jump, 0, NULL);
	if (!sigsetjmp(back, 0))
		*BAD = 1;
	STORE(); /* SIGSEGV is blocked now, as far as the program knows */
	sigprocmask(SIG_BLOCK, NULL, &seen_mask);
	CHECK(sigismember(&seen_mask, SIGSEGV));
	*BAD = 1;
}

static void no_defer_jumps(void)
{
	int i;

	MAP();
	set(SIGSEGV, jump, SA_NODEFER, NULL);
	for (i = 0; i < 10; i++) {
		if (!sigsetjmp(back, 0))
			*BAD = 1;
		STORE();
	}
	CHECK_EQ(handled, 10);
	CHECK(!sigismember(&seen_mask, SIGSEGV));
}

static void reset_hand(void)
{
	struct sigaction a;

	MAP();
	set(SIGSEGV, jump, (int)SA_RESETHAND, NULL);
	STORE();
	if (!sigsetjmp(back, 1))
		*BAD = 1;
	STORE();
	sigaction(SIGSEGV, NULL, &a);
	if (a.sa_handler != SIG_DFL)
		_exit(1);
	*BAD = 1;
}

static void fault(void)
{
	MAP();
	STORE();
	*BAD = 1;
}

static void fault_ignored(void)
{
	MAP();
	signal(SIGSEGV, SIG_IGN);
	STORE();
	*BAD = 1;
}

static void fault_while_blocked(void)
{
	sigset_t s;

	MAP();
	set(SIGSEGV, note, 0, NULL);
	sigfillset(&s);
	sigprocmask(SIG_SETMASK, &s, NULL);
	STORE();
	*BAD = 1;
}

static void fault_again(int signal, siginfo_t *info, void *context)
{
	note(signal, info, context);
	*BAD = 2;
}

static void fault_in_handler(void)
{
	MAP();
	set(SIGSEGV, fault_again, 0, NULL);
	*BAD = 1;
}

static void fault_twice(int signal, siginfo_t *info, void *context)
{
	note(signal, info, context);
	if (handled < 3)
		*BAD = 2;
	siglongjmp(back, 1);
}

static void nested_faults(void)
{
	MAP();
	set(SIGSEGV, fault_twice, SA_NODEFER, NULL);
	if (!sigsetjmp(back, 1))
		*BAD = 1;
	CHECK_EQ(handled, 3);
	STORE();
}

static void runs_into(void)
{
	MAP();
	set(SIGSEGV, jump, 0, NULL);
	if (!sigsetjmp(back, 1))
		((void (*)(void))(uintptr_t)0x6b001000)();
	CHECK_EQ(handled, 1);
	CHECK_EQ((uintptr_t)seen.si_addr, 0x6b001000);
	CHECK_EQ(seen_context.uc_mcontext.gregs[REG_RIP], 0x6b001000);
	STORE();
}

static void dies_of_faults(void)
{
	DIES(fault);
	DIES(fault_ignored);
	DIES(fault_while_blocked);
	DIES(fault_in_handler);
	DIES(reset_hand);
	DIES(jumps_out_with_its_mask);
}

/* ---- sent signals ---- */

static void sent(void)
{
	union sigval v = {.sival_int = 5993};

	MAP();
	set(SIGSEGV, note, 0, NULL);
	STORE();
	kill(getpid(), SIGSEGV);
	CHECK_EQ(handled, 1);
	CHECK_EQ(seen.si_code, SI_USER);
	CHECK_EQ(seen.si_pid, getpid());
	sigqueue(getpid(), SIGSEGV, v);
	CHECK_EQ(handled, 2);
	CHECK_EQ(seen.si_code, SI_QUEUE);
	CHECK_EQ(seen.si_value.sival_int, 5993);
	pthread_kill(pthread_self(), SIGSEGV);
	CHECK_EQ(handled, 3);
	CHECK_EQ(seen.si_code, SI_TKILL);
	CHECK(sigismember(&seen_mask, SIGSEGV));
	STORE();
}

static void sent_default(void)
{
	MAP();
	STORE();
	kill(getpid(), SIGSEGV);
}

static void sent_ignored(void)
{
	MAP();
	signal(SIGSEGV, SIG_IGN);
	kill(getpid(), SIGSEGV);
	STORE();
}

static void sent_while_blocked(void)
{
	sigset_t s, old;

	MAP();
	set(SIGSEGV, note, 0, NULL);
	sigemptyset(&s);
	sigaddset(&s, SIGSEGV);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &s, &old), 0);
	CHECK(!sigismember(&old, SIGSEGV));
	kill(getpid(), SIGSEGV);
	CHECK_EQ(handled, 0);
	STORE();
	sigpending(&old);
	CHECK(sigismember(&old, SIGSEGV));
	sigprocmask(SIG_UNBLOCK, &s, &old);
	CHECK(sigismember(&old, SIGSEGV));
	CHECK_EQ(handled, 1);
	CHECK_EQ(seen.si_code, SI_USER);
	CHECK_EQ(seen.si_pid, getpid());
	CHECK_EQ(seen.si_signo, SIGSEGV);
	CHECK_EQ(seen.si_errno, 0);
	sigpending(&old);
	CHECK(!sigismember(&old, SIGSEGV));
	STORE();
}

static void sent_signals(void)
{
	sent();
	handled = 0;
	signal(SIGSEGV, SIG_DFL);
	DIES(sent_default);
	LIVES(sent_ignored);
	LIVES(sent_while_blocked);
}

static int pipe_in, pipe_out;
static volatile bool returned;

/* Signals until read() has returned, or some of them and then a byte. */
static void *interrupt(void *main_thread)
{
	int i;

	for (i = 0; i < 10 || (pipe_out < 0 && !returned); i++) {
		pthread_kill(*(pthread_t *)main_thread, SIGSEGV);
		usleep(20000);
	}
	if (pipe_out >= 0)
		CHECK_EQ(write(pipe_out, "x", 1), 1);
	return NULL;
}

static ssize_t read_interrupted(int flags)
{
	pthread_t t, self = pthread_self();
	ssize_t n;
	char c;

	set(SIGSEGV, note, flags, NULL);
	STORE();
	returned = false;
	pthread_create(&t, NULL, interrupt, &self);
	n = read(pipe_in, &c, 1);
	n = n < 0 && errno == EINTR ? -EINTR : n;
	returned = true;
	pthread_join(t, NULL);
	return n;
}

static void restarts(void)
{
	int p[2];

	MAP();
	CHECK_EQ(pipe(p), 0);
	pipe_in = p[0];
	pipe_out = p[1];
	CHECK_EQ(read_interrupted(SA_RESTART), 1);
	pipe_out = -1;
	CHECK_EQ(read_interrupted(0), -EINTR);
	CHECK(handled >= 11);
}

/* ---- masks and actions are what the program set ---- */

static void old_actions(void)
{
	struct sigaction a = {.sa_sigaction = note,
			      .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
	struct sigaction old;
	int i;

	MAP();
	sigemptyset(&a.sa_mask);
	sigaddset(&a.sa_mask, SIGUSR2);
	sigaddset(&a.sa_mask, SIGSEGV);
	for (i = 0; i < 2; i++) {
		int signal = i ? SIGUSR1 : SIGSEGV;

		CHECK_EQ(sigaction(signal, &a, &old), 0);
		CHECK(old.sa_handler == SIG_DFL);
		CHECK_EQ(sigaction(signal, NULL, &old), 0);
		CHECK(old.sa_sigaction == note);
		CHECK_EQ(old.sa_flags & ~0x04000000, a.sa_flags);
		CHECK(!memcmp(&old.sa_mask, &a.sa_mask, 8));
	}
	sigfillset(&a.sa_mask);
	sigaction(SIGUSR2, &a, NULL);
	sigaction(SIGUSR2, NULL, &old);
	CHECK(sigismember(&old.sa_mask, SIGSEGV));
	CHECK(sigismember(&old.sa_mask, SIGSTKFLT));
	sigaction(SIGSTKFLT, NULL, &old);
	CHECK(old.sa_handler == SIG_DFL);
	CHECK_EQ(sigaction(0, &a, NULL), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(sigaction(65, &a, NULL), -1);
	CHECK_EQ(sigaction(32, &a, NULL), -1);
	CHECK_EQ(sigaction(SIGKILL, &a, NULL), -1);
	CHECK_EQ(errno, EINVAL);
	STORE();
}

/* Handler and mask that are older than the board. */
static void from_before(void)
{
	sigset_t s, old;

	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	set(SIGSEGV, open_page, SA_RESTART, NULL);
	sigemptyset(&s);
	sigaddset(&s, SIGSEGV);
	sigprocmask(SIG_BLOCK, &s, NULL);
	MAP();
	STORE();
	sigprocmask(SIG_BLOCK, NULL, &old);
	CHECK(sigismember(&old, SIGSEGV));
	sigprocmask(SIG_UNBLOCK, &s, &old);
	CHECK(sigismember(&old, SIGSEGV));
	sigprocmask(SIG_BLOCK, NULL, &old);
	CHECK(!sigismember(&old, SIGSEGV));
	page[5] = 1;
	CHECK_EQ(handled, 1);
	STORE();
}

static void simple(int signal)
{
	(void)signal;
	handled++;
	STORE();
}

static void simple2(int signal)
{
	simple(signal);
}

static void old_functions(void)
{
	struct sigaction a;

	MAP();
	CHECK(signal(SIGSEGV, simple) == SIG_DFL);
	CHECK(signal(SIGSEGV, simple2) == simple);
	sigaction(SIGSEGV, NULL, &a);
	CHECK_EQ(a.sa_flags & ~0x04000000, SA_RESTART);
	CHECK(sigismember(&a.sa_mask, SIGSEGV));
	raise(SIGSEGV);
	CHECK_EQ(handled, 1);
	siginterrupt(SIGSEGV, 1);
	sigaction(SIGSEGV, NULL, &a);
	CHECK_EQ(a.sa_flags & ~0x04000000, 0);
	CHECK(signal(SIGSEGV, simple) == simple2);
	sigaction(SIGSEGV, NULL, &a);
	CHECK_EQ(a.sa_flags & ~0x04000000, 0);
	siginterrupt(SIGSEGV, 0);
	CHECK(sysv_signal(SIGSEGV, simple2) == simple);
	sigaction(SIGSEGV, NULL, &a);
	CHECK_EQ((unsigned)a.sa_flags & SA_RESETHAND, SA_RESETHAND);
	raise(SIGSEGV);
	CHECK_EQ(handled, 2);
	CHECK(signal(SIGSEGV, SIG_IGN) == SIG_DFL);
	CHECK(signal(SIGSEGV, SIG_ERR) == SIG_ERR);
	CHECK(signal(4711, simple) == SIG_ERR);
	STORE();
}

static void mask_in_handler(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	note(signal, info, context);
	CHECK(sigismember(&seen_mask, SIGSEGV));
	CHECK(sigismember(&seen_mask, SIGUSR1));
	CHECK(!sigismember(&seen_mask, SIGUSR2));
	CHECK(sigismember(&seen_mask, SIGHUP));
	CHECK(sigismember(&uc->uc_sigmask, SIGHUP));
	CHECK(!sigismember(&uc->uc_sigmask, SIGUSR1));
	CHECK(!sigismember(&uc->uc_sigmask, SIGSEGV));
	/* what is changed here is the mask afterwards */
	sigaddset(&uc->uc_sigmask, SIGSEGV);
	sigaddset(&uc->uc_sigmask, SIGUSR2);
	sigdelset(&uc->uc_sigmask, SIGHUP);
	mprotect((void *)page, 4096, PROT_READ | PROT_WRITE);
}

static void masks(void)
{
	sigset_t s;

	MAP();
	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigemptyset(&s);
	sigaddset(&s, SIGUSR1);
	set(SIGSEGV, mask_in_handler, 0, &s);
	sigemptyset(&s);
	sigaddset(&s, SIGHUP);
	sigprocmask(SIG_BLOCK, &s, NULL);
	page[1] = 1;
	CHECK_EQ(handled, 1);
	sigprocmask(SIG_BLOCK, NULL, &s);
	CHECK(sigismember(&s, SIGSEGV));
	CHECK(sigismember(&s, SIGUSR2));
	CHECK(!sigismember(&s, SIGHUP));
	STORE();
}

static void usr(int signal)
{
	sigset_t s;

	(void)signal;
	sigprocmask(SIG_BLOCK, NULL, &s);
	CHECK(sigismember(&s, SIGSEGV));
	STORE();
	handled++;
}

/* Handlers that run with everything blocked store to the board. */
static void everything_blocked(void)
{
	struct sigaction a = {.sa_handler = usr};
	struct timespec t = {5, 0};
	sigset_t all, but;

	sigfillset(&a.sa_mask);
	sigaction(SIGUSR2, &a, NULL); /* from before the board */
	MAP();
	sigaction(SIGUSR1, &a, NULL);
	raise(SIGUSR1);
	raise(SIGUSR2);
	CHECK_EQ(handled, 2);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	STORE();
	but = all;
	sigdelset(&but, SIGUSR1);
	raise(SIGUSR1);
	CHECK_EQ(sigsuspend(&but), -1);
	CHECK_EQ(errno, EINTR);
	CHECK_EQ(handled, 3);
	raise(SIGUSR1);
	CHECK_EQ(ppoll(NULL, 0, &t, &but), -1);
	CHECK_EQ(errno, EINTR);
	raise(SIGUSR1);
	CHECK_EQ(pselect(0, NULL, NULL, NULL, &t, &but), -1);
	CHECK_EQ(errno, EINTR);
	CHECK_EQ(handled, 5);
	sigemptyset(&all);
	t.tv_sec = 0;
	CHECK_EQ(ppoll(NULL, 0, &t, &all), 0);
}

/* ---- stacks ---- */

static char *alt;
#define ALT_SIZE 65536

static void on_alt(int signal, siginfo_t *info, void *context)
{
	char here;

	note(signal, info, context);
	CHECK(&here >= alt && &here < alt + ALT_SIZE);
	siglongjmp(back, 1);
}

static volatile int deep_enough = 1 << 30;

static int deeper(int n)
{
	volatile char big[4096];

	big[0] = (char)n;
	return n < deep_enough ? deeper(n + 1) + big[0] : 0;
}

static void stack_overflow(void)
{
	struct rlimit small = {1 << 20, 1 << 20};
	stack_t ss = {.ss_size = ALT_SIZE};
	int i;

	MAP();
	setrlimit(RLIMIT_STACK, &small);
	ss.ss_sp = alt = malloc(ALT_SIZE);
	sigaltstack(&ss, NULL);
	set(SIGSEGV, on_alt, SA_ONSTACK, NULL);
	for (i = 0; i < 3; i++) {
		STORE();
		if (!sigsetjmp(back, 1))
			deeper(0);
	}
	CHECK_EQ(handled, 3);
	STORE();
}

static void overflow_without_handler(void)
{
	struct rlimit small = {1 << 20, 1 << 20};

	MAP();
	setrlimit(RLIMIT_STACK, &small);
	STORE();
	deeper(0);
}

static void dies_of_overflow(void)
{
	DIES(overflow_without_handler);
}

static ucontext_t coroutine, main_context;

static void in_coroutine(void)
{
	STORE();
	if (!sigsetjmp(back, 1))
		*BAD = 1;
	STORE();
}

static void contexts(void)
{
	MAP();
	set(SIGSEGV, jump, 0, NULL);
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = malloc(ALT_SIZE);
	coroutine.uc_stack.ss_size = ALT_SIZE;
	coroutine.uc_link = &main_context;
	makecontext(&coroutine, in_coroutine, 0);
	swapcontext(&main_context, &coroutine);
	CHECK_EQ(handled, 1);
	STORE();
}

/* ---- threads and processes ---- */

static void *storing_thread(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < 200; i++)
		STORE();
	return NULL;
}

static void threads_and_forks(void)
{
	pthread_t t[4];
	int i, status;
	pid_t pid;

	MAP();
	set(SIGSEGV, note, 0, NULL);
	for (i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, storing_thread, NULL);
	for (i = 0; i < 10; i++) {
		pid = fork();
		if (pid == 0) {
			STORE();
			if (!sigsetjmp(back, 1)) {
				set(SIGSEGV, jump, 0, NULL);
				*BAD = 1;
			}
			STORE();
			_exit(handled == 1 ? 0 : 1);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(handled, 0);
}

static void *suspended(void *arg)
{
	sigset_t s;

	(void)arg;
	sigfillset(&s);
	for (;;)
		sigsuspend(&s);
	return NULL;
}

static void cancelled(void)
{
	void *result = NULL;
	pthread_t t;

	MAP();
	pthread_create(&t, NULL, suspended, NULL);
	usleep(50000);
	STORE();
	CHECK_EQ(pthread_cancel(t), 0);
	CHECK_EQ(pthread_join(t, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
}

static void vforks(void)
{
	int status;
	pid_t pid;

	MAP();
	pid = vfork();
	if (pid == 0) {
#ifndef PLAIN
		mk_ts1 = 9;
#endif
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	STORE();
}

static const struct tap_test tests[] = {
	{"a handler that repairs and returns", fixes_and_returns},
	{"a handler that jumps out", jumps_out},
	{"a handler that jumps out, SA_NODEFER", no_defer_jumps},
	{"nested faults", nested_faults},
	{"running into the window", runs_into},
	{"faults that must kill", dies_of_faults},
	{"signals that somebody sends", sent_signals},
	{"SA_RESTART", restarts},
	{"sigaction() answers what was set", old_actions},
	{"a handler and a mask from before", from_before},
	{"signal() and its relatives", old_functions},
	{"masks in a handler and after it", masks},
	{"stores with everything blocked", everything_blocked},
	{"stack overflow on another stack", stack_overflow},
	{"stack overflow kills", dies_of_overflow},
	{"makecontext", contexts},
	{"threads and forks", threads_and_forks},
	{"pthread_cancel in sigsuspend", cancelled},
	{"vfork", vforks},
};

int main(int argc, char **argv)
{
	return tap_main(tests, sizeof(tests) / sizeof(*tests), argc, argv);
}

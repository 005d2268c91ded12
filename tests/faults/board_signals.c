/* SPDX-License-Identifier: MIT */
/*
 * board_signals - signal handlers inside bus cycles: they do cycles of their own, they leave by
 * siglongjmp, they fork.
 *
 *   board_signals [-t SECONDS]
 *
 * A second thread sends signals as fast as the first gets on with, at any instruction of a
 * cycle.  Two handlers nest, one of them on another stack that lies above the frames which it
 * interrupts.  The checks are those of board_stream.h.
 */
#define _GNU_SOURCE
#include "board/model/access_layout.h"
#include "board_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAIN = 1, FIRST = 2, SECOND = 3, CHILDREN = 4, SOURCES = 5 };
#define BATCH 2000    /* triggers between two looks at the memory */
#define JUMPS 1500    /* many times the slots that there are */
#define SIGNALS 20000 /* taken */
#define FORKS 100

static struct stream stream;
static pid_t main_tid;
static uint32_t pinger_stop;
static volatile uint64_t signals, jumps, forks;
static volatile bool may_jump, may_fork, is_child;
static sigjmp_buf back;
static time_t end;

/* ---- the handlers ---- */

static void on_first(int sig)
{
	static unsigned calls;

	(void)sig;
	calls++;
	signals++;
	stream_trigger(&stream.board, stream.sources, FIRST);
	if (calls % 3 == 0)
		board_read32(&stream.board, KRON_CHIP_BYTE(KRON_WORD_CSR));
	if (may_jump && calls % 2 == 0) {
		may_jump = false;
		jumps++;
		siglongjmp(back, 1);
	}
	if (may_fork && calls % 16 == 0) {
		pid_t pid = fork();

		forks++;
		if (pid == 0) {
			stream_trigger(&stream.board, stream.sources, CHILDREN);
			if (forks % 2)
				_exit(0);
			/* Go on with the cycle that the parent has begun. */
			is_child = true;
			return;
		}
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
}

static void on_second(int sig)
{
	(void)sig;
	signals++;
	stream_trigger(&stream.board, stream.sources, SECOND);
	if (is_child) /* the parent's own cycle is yet to come, and has this number */
		_exit(0);
	stream_trigger(&stream.board, stream.sources, SECOND);
}

static void *ping(void *arg)
{
	unsigned n = 0;
	volatile unsigned spin;

	(void)arg;
	while (!__atomic_load_n(&pinger_stop, __ATOMIC_RELAXED)) {
		syscall(SYS_tgkill, getpid(), main_tid, n++ % 2 ? SIGUSR1 : SIGUSR2);
		/* Not in step with the other thread, and not so fast that it never gets on. */
		for (spin = 0; spin < n * 2654435761u % 32768; spin++)
			;
	}
	return NULL;
}

/* ---- the interrupted ---- */

static void set_signals(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(how, &set, NULL);
}

static unsigned owned_slots(void)
{
	unsigned i, n = 0;

	for (i = 0; i < ACCESS_SLOTS; i++)
		n += access_slot(&stream.board, i)->owner >> 63;
	return n;
}

/* At different depths of the stack, so that the marks of jumped frames lie here and there. */
static __attribute__((noinline)) void trigger_at_depth(unsigned depth)
{
	volatile char room[200];

	room[0] = (char)depth;
	if (depth)
		trigger_at_depth(depth - 1);
	else
		stream_trigger(&stream.board, stream.sources, MAIN);
	room[1] = room[0];
}

static bool batch(void)
{
	volatile unsigned i = 0;

	/* The mask is not saved: a system call for each trigger would be where signals come. */
	sigsetjmp(back, 0);
	set_signals(SIG_UNBLOCK);
	while (i++ < BATCH) {
		may_jump = jumps < JUMPS;
		trigger_at_depth(i % 8);
		may_jump = false;
		if (is_child)
			_exit(0);
	}
	set_signals(SIG_BLOCK);
	/* Forked on the way here: what the parent has yet to read, in memory that both share, would be read. */
	if (is_child)
		_exit(0);
	return stream_read(&stream);
}

static bool settle(void)
{
	uint64_t cuts = 2 * jumps;

	return stream_drain(&stream) && stream_settle(&stream, cuts);
}

/* `count` up to `enough` */
static bool run(volatile uint64_t *count, uint64_t enough)
{
	pthread_t pinger;
	bool ok = true;

	stream_start(&stream, KRON_CSR_DISCARD);
	pinger_stop = 0;
	if (pthread_create(&pinger, NULL, ping, NULL))
		return stream_fail(&stream, "no thread");
	while (ok && (*count < enough || time(NULL) < end))
		ok = batch();
	__atomic_store_n(&pinger_stop, 1, __ATOMIC_RELAXED);
	pthread_join(pinger, NULL);
	return ok && settle();
}

static bool returning(void)
{
	jumps = JUMPS;
	signals = 0;
	return run(&signals, SIGNALS);
}

static bool jumping(void)
{
	jumps = 0;
	return run(&jumps, JUMPS);
}

static bool jumping_with_few_slots(void)
{
	/* Main flow and two handlers, the second over the first or the reverse; one to jump from. */
	stream_leave_slots(&stream, 5);
	jumps = 0;
	return run(&jumps, JUMPS);
}

static bool forking(void)
{
	bool ok;

	stream_leave_slots(&stream, 0);
	jumps = JUMPS;
	forks = 0;
	may_fork = true;
	stream.repeats = true;
	ok = run(&forks, FORKS);
	may_fork = false;
	return ok;
}

static bool test(unsigned number, const char *what, bool (*run_it)(void))
{
	bool ok = run_it();

	printf("%sok %u - %s\n", ok ? "" : "not ", number, what);
	printf("# %" PRIu64 " samples, %" PRIu64 " signals, %" PRIu64 " jumps, %" PRIu64
	       " forks, %u slots owned\n",
	       stream.samples, signals, jumps, forks, owned_slots());
	if (!ok)
		printf("# %s\n", stream.wrong);
	fflush(stdout);
	return ok;
}

int main(int argc, char **argv)
{
	/* Above the frames that the handler interrupts. */
	char alternate[65536];
	stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
	struct sigaction first = {.sa_handler = on_first};
	struct sigaction second = {.sa_handler = on_second, .sa_flags = SA_ONSTACK};
	long seconds = 0;
	bool ok;
	int c;

	while ((c = getopt(argc, argv, "t:")) != -1) {
		if (c != 't')
			return 2;
		seconds = atol(optarg);
	}
	main_tid = (pid_t)syscall(SYS_gettid);
	if (!stream_open(&stream, ACCESS_CLOCK_REAL, SOURCES) || sigaltstack(&stack, NULL) ||
	    sigaction(SIGUSR1, &first, NULL) || sigaction(SIGUSR2, &second, NULL)) {
		printf("Bail out! %s\n", stream.wrong);
		return 99;
	}
	set_signals(SIG_BLOCK);
	end = time(NULL) + seconds / 4;
	ok = test(1, "handlers that do cycles inside cycles", returning);
	end = time(NULL) + seconds / 4;
	ok = ok && test(2, "handlers that jump out of cycles", jumping);
	end = time(NULL) + seconds / 4;
	ok = ok && test(3, "likewise, with hardly enough slots", jumping_with_few_slots);
	end = time(NULL) + seconds / 4;
	ok = ok && test(4, "handlers that fork inside cycles", forking);
	printf("1..4\n");
	stream_close(&stream);
	return !ok;
}

/* SPDX-License-Identifier: MIT */
/*
 * altstack.c - handlers on an alternate stack as small as the kernel allows (plus 1 KiB),
 * with a guard page below it; one is the very first instrumented call of its thread, one
 * handles the overflow of the main stack.  Bound at start: the lazy resolver alone would not fit.
 *
 * Build: O2
 * Flags: -pthread -Wl,-z,now
 * Calls: on_user=2001 on_overflow=1 main=1
 */
#include "torture.h"
#include <pthread.h>
#include <setjmp.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>

static sigjmp_buf back;
static volatile sig_atomic_t handled;

OPAQUE static void on_user(int sig)
{
	(void)sig;
	handled++;
}
OPAQUE static void on_overflow(int sig)
{
	(void)sig;
	siglongjmp(back, 1);
}
OPAQUE static int overflow(volatile char *above)
{
	volatile char frame[4096];

	frame[0] = *above;
	return overflow(frame) + frame[0];
}

/* A stack that ends at a guard page, so that one byte too many is a crash and no luck. */
static void use_small_stack(size_t size)
{
	size_t page = 4096, room = (size + page - 1) & ~(page - 1);
	char *m =
		mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t st = {.ss_sp = m + page, .ss_size = size};

	CHECK(m != MAP_FAILED);
	CHECK(!mprotect(m, page, PROT_NONE));
	CHECK(!sigaltstack(&st, NULL));
}

static void *first_call_is_the_handler(void *arg)
{
	use_small_stack(getauxval(AT_MINSIGSTKSZ) + 1024);
	raise(SIGUSR1);
	return arg;
}

int main(void)
{
	struct sigaction user = {.sa_handler = on_user, .sa_flags = SA_ONSTACK};
	struct sigaction segv = {.sa_handler = on_overflow, .sa_flags = SA_ONSTACK};
	struct rlimit small = {256 * 1024, 256 * 1024};
	volatile char top = 0;
	pthread_t t;

	CHECK(!setrlimit(RLIMIT_STACK, &small));
	use_small_stack(getauxval(AT_MINSIGSTKSZ) + 1024);
	CHECK(!sigaction(SIGUSR1, &user, NULL));
	CHECK(!sigaction(SIGSEGV, &segv, NULL));
	for (int i = 0; i < 2000; i++)
		raise(SIGUSR1);
	if (sigsetjmp(back, 1) == 0) {
		overflow(&top);
		CHECK(0);
	}
	CHECK(!pthread_create(&t, NULL, first_call_is_the_handler, NULL));
	CHECK(!pthread_join(t, NULL));
	printf("handled %d\n", (int)handled);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * hangs.c - calls that do not return.  It says on stdout when it has begun them, and waits for a byte on
 * stdin before it goes on.
 *
 *   hangs main      hangs itself, in a call of a call
 *   hangs thread    a thread hangs; main returns after the byte
 *   hangs leaves    a thread ends in the middle of its calls; main returns after the byte
 */
/* clang-format off */
#define CALLS(X)                                                                             \
	X(main, works) X(works, stuck) X(nobody, runs) X(runs, works) X(main, leaf)          \
	X(works, leaf)
/* clang-format on */
#include "truth.h"
#include <pthread.h>
#include <sys/syscall.h>

static volatile int sum;
static const char *how;

NOINLINE void leaf(void)
{
	sum++;
}

static void say_so(void)
{
	if (write(1, "x\n", 2) != 2)
		_exit(1);
}

NOINLINE void stuck(void)
{
	if (!strcmp(how, "leaves"))
		syscall(SYS_exit, 0); /* pthread_exit() would unwind them */
	say_so();
	for (;;)
		pause();
}

NOINLINE void works(void)
{
	CALL(works, leaf);
	leaf();
	CALL(works, stuck);
	stuck();
	STAYS();
}

NOINLINE void *runs(void *arg)
{
	CALL(nobody, runs);
	CALL(runs, works);
	works();
	STAYS();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;
	char c;

	how = argc > 1 ? argv[1] : "main";
	CALL(main, leaf);
	leaf();
	if (!strcmp(how, "main")) {
		CALL(main, works);
		works();
	}
	if (pthread_create(&t, NULL, runs, NULL))
		return 1;
	if (!strcmp(how, "leaves")) {
		pthread_join(t, NULL);
		say_so();
	}
	return read(0, &c, 1) == 1 ? 0 : 1;
}

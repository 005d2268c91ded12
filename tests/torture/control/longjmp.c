/* SPDX-License-Identifier: MIT */
/*
 * longjmp.c - longjmp over ten frames, from leaf functions and from signal handlers raised
 * synchronously, and setjmp in a loop (both _setjmp and sigsetjmp with the mask).
 *
 * Build: O2 O0
 * Calls: descend=22000 landing=2000 thrown_from_handler=500 main=1
 */
#include "torture.h"
#include <setjmp.h>

static jmp_buf plain;
static sigjmp_buf with_mask;

OPAQUE static int descend(int n, int what)
{
	volatile char pad[64];

	pad[0] = (char)n;
	if (n == 0)
		longjmp(plain, what);
	return descend(n - 1, what) + pad[0];
}
OPAQUE static void landing(int got, int want)
{
	CHECK(got == want);
}
OPAQUE static void thrown_from_handler(int sig)
{
	siglongjmp(with_mask, sig);
}

int main(void)
{
	sigset_t now;
	volatile int i;

	for (i = 0; i < 2000; i++) {
		int got = setjmp(plain);

		if (got == 0)
			descend(10, i + 1);
		landing(got, i + 1);
	}
	signal(SIGUSR1, thrown_from_handler);
	for (i = 0; i < 500; i++) {
		int got = sigsetjmp(with_mask, 1);

		if (got == 0) {
			raise(SIGUSR1);
			CHECK(0);
		}
		CHECK(got == SIGUSR1);
	}
	CHECK(!sigprocmask(SIG_BLOCK, NULL, &now));
	CHECK(!sigismember(&now, SIGUSR1));
	printf("longjmp %d\n", i);
	return 0;
}

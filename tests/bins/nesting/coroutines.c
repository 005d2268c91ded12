/* SPDX-License-Identifier: MIT */
/*
 * coroutines.c - stacks of a thread whose calls interleave.
 *
 *   coroutines N        N of them, by turns
 *   coroutines N near   their stacks lie next to each other
 *   coroutines N pass   each passes control to the next one itself
 *   coroutines N left   main does not go on with them to their end
 */
/* clang-format off */
#define CALLS(X)                                                                           \
	X(main, resume) X(nobody, body) X(body, step) X(step, yield) X(step, leaf)         \
	X(main, finish) X(body, wait_tail)
/* clang-format on */
#include "truth.h"
#include <ucontext.h>

#define MOST 8
#define STACK 32768

static ucontext_t main_context, contexts[MOST];
static int n, now, passes, turns = 4;
static volatile int sum;

NOINLINE void leaf(void)
{
	sum++;
}

NOINLINE void yield(void)
{
	int me = now;

	if (passes) {
		now = (now + 1) % n;
		swapcontext(&contexts[me], &contexts[now]);
	} else {
		swapcontext(&contexts[me], &main_context);
	}
	STAYS();
}

NOINLINE void step(void)
{
	CALL(step, leaf);
	leaf();
	CALL(step, yield);
	yield();
	STAYS();
}

/* jumps to what switches stacks */
NOINLINE void wait_tail(void)
{
	int me = now;

	if (passes)
		return;
	swapcontext(&contexts[me], &main_context);
}

NOINLINE void body(void)
{
	CALL(nobody, body);
	for (int i = 0; i < turns; i++) {
		CALL(body, step);
		step();
	}
	CALL(body, wait_tail);
	wait_tail();
	STAYS();
}

NOINLINE void resume(int i)
{
	now = i;
	swapcontext(&main_context, &contexts[i]);
	STAYS();
}

NOINLINE void finish(void)
{
	sum++;
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[2] : "";
	char *near_stacks = malloc(MOST * STACK);
	int left = !strcmp(how, "left") ? 2 : 0;

	n = argc > 1 ? atoi(argv[1]) : 2;
	passes = !strcmp(how, "pass");
	for (int i = 0; i < n; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp =
			!strcmp(how, "near") ? near_stacks + i * STACK : malloc(4 << 20);
		contexts[i].uc_stack.ss_size = !strcmp(how, "near") ? STACK : 4 << 20;
		contexts[i].uc_link = &main_context;
		makecontext(&contexts[i], body, 0);
	}
	for (int turn = 0; turn < (passes ? 1 : turns + 2 - left); turn++)
		for (int i = 0; i < (passes ? 1 : n); i++) {
			CALL(main, resume);
			resume(i);
		}
	CALL(main, finish);
	finish();
	return 0;
}

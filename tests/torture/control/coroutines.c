/* SPDX-License-Identifier: MIT */
/*
 * coroutines.c - swapcontext between the main stack and sixteen others, entries on one stack
 * and exits after many switches; one coroutine never finishes.
 *
 * Build: O2 O0
 * Flags: -fno-optimize-sibling-calls
 * Calls: coroutine=16 nested=12800 turn=12800 main=1
 */
#include "torture.h"
#include <ucontext.h>

#define N 16
#define TURNS 100
#define DEPTH 8
#define STACK 65536

static ucontext_t hub, co[N];
static unsigned long state[N];

OPAQUE static void turn(int id)
{
	state[id] = state[id] * 31 + (unsigned long)id;
	CHECK(!swapcontext(&co[id], &hub));
}
/* One frame deeper for each level; every level switches away and comes back. */
OPAQUE static int nested(int id, int depth)
{
	turn(id);
	if (depth > 1)
		return nested(id, depth - 1) + 1;
	return 1;
}
OPAQUE static void coroutine(int id)
{
	for (int i = 0; i < TURNS; i++)
		CHECK(nested(id, DEPTH) == DEPTH);
	if (id == 3)
		for (;;)
			CHECK(!swapcontext(&co[id], &hub));
}

int main(void)
{
	unsigned long sum = 0;

	for (int i = 0; i < N; i++) {
		CHECK(!getcontext(&co[i]));
		co[i].uc_stack.ss_sp = malloc(STACK);
		co[i].uc_stack.ss_size = STACK;
		co[i].uc_link = &hub;
		makecontext(&co[i], (void (*)(void))coroutine, 1, i);
	}
	for (int round = 0; round < TURNS * DEPTH + 1; round++)
		for (int i = 0; i < N; i++)
			CHECK(!swapcontext(&hub, &co[(i * 5) % N]));
	for (int i = 0; i < N; i++)
		sum ^= state[i];
	printf("coroutines %lu\n", sum);
	return 0;
}

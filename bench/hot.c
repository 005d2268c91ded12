/* SPDX-License-Identifier: MIT */
/*
 * hot.c - what a probe inside a hot loop costs.  To be run under kron record with a probe at
 * hot_probed+PLACE (it prints what PLACE is when it gets an argument):
 *
 *     kron record -p "hot_probed+$(hot place) count:0" -- hot
 *
 * With "tight" the loop is an addition, a decrement and a branch, one cycle a turn: then all that
 * a probe executes shows.  Its place is tight_probed+$(hot tight place).
 *
 * Two functions with the same loop, of which only one has the probe, take turns in rounds, so
 * that a disturbance hits both.  Prints the medians, in nanoseconds of processor time a turn of
 * the loop, and the median of the rounds' differences.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/median.h"

#define TURNS 4000000u
#define ROUNDS 31u
#define PLACE 17       /* of the add that has the probe */
#define TIGHT_PLACE 13 /* likewise */

unsigned long hot_plain(unsigned long turns);
unsigned long hot_probed(unsigned long turns);
unsigned long tight_plain(unsigned long turns);
unsigned long tight_probed(unsigned long turns);

/* 8 cycles a turn or so: a chain of a multiplication and additions, some loads and stores. */
#define LOOP(name)                                 \
	".text\n"                                  \
	".p2align 6\n"                             \
	".globl " #name "\n"                       \
	".type " #name ", @function\n" #name ":\n" \
	"	mov $1, %eax\n"                          \
	"	lea -64(%rsp), %rsi\n"                   \
	"	nopl 0(%rax)\n"                          \
	"1:	imul $13, %rax, %rax\n"                \
	"	add $12345, %rax\n"                      \
	"	mov %rax, (%rsi)\n"                      \
	"	lea 7(%rax,%rax,4), %rax\n"              \
	"	mov (%rsi), %rdx\n"                      \
	"	xor %rdx, %rax\n"                        \
	"	dec %rdi\n"                              \
	"	jnz 1b\n"                                \
	"	ret\n"                                   \
	".size " #name ", . - " #name "\n"

#define TIGHT(name)                                \
	".text\n"                                  \
	".p2align 6\n"                             \
	".globl " #name "\n"                       \
	".type " #name ", @function\n" #name ":\n" \
	"	mov $1, %eax\n"                          \
	"	lea -64(%rsp), %rsi\n"                   \
	"	nopl 0(%rax)\n"                          \
	"1:	add $12345, %rax\n"                    \
	"	dec %rdi\n"                              \
	"	jnz 1b\n"                                \
	"	ret\n"                                   \
	".size " #name ", . - " #name "\n"

__asm__(LOOP(hot_plain) LOOP(hot_probed) TIGHT(tight_plain) TIGHT(tight_probed));

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double ns_a_turn(unsigned long (*f)(unsigned long))
{
	double begin = now();

	f(TURNS);
	return (now() - begin) / TURNS;
}

int main(int argc, char **argv)
{
	static double plain[ROUNDS], probed[ROUNDS], more[ROUNDS];

	bool tight = argc > 1 && !strcmp(argv[1], "tight");

	if (argc > 1 && !strcmp(argv[argc - 1], "place")) {
		printf("%d\n", tight ? TIGHT_PLACE : PLACE);
		return 0;
	}
	for (unsigned r = 0; r < ROUNDS + 1; r++) { /* the last one takes the first one's place */
		unsigned i = r % ROUNDS;

		plain[i] = ns_a_turn(tight ? tight_plain : hot_plain);
		probed[i] = ns_a_turn(tight ? tight_probed : hot_probed);
		more[i] = probed[i] - plain[i];
	}
	printf("{\"plain_ns\": %.3f, \"probed_ns\": %.3f, \"more_ns\": %.3f}\n",
	       median_of(plain, ROUNDS), median_of(probed, ROUNDS), median_of(more, ROUNDS));
	return 0;
}

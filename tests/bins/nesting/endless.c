/* SPDX-License-Identifier: MIT */
/*
 * endless.c - calls until it is killed, or for a given number of turns.
 *
 *   endless        tells on stdout when it has made the first thousand
 *   endless N      N turns; tells it, too, and waits for a byte on stdin
 */
#define CALLS(X) X(main, turn) X(turn, tails) X(tails, leaf) X(turn, leaf) X(turn, tail_away)
#include "truth.h"

static volatile int sum;

NOINLINE void leaf(void)
{
	sum++;
}

NOINLINE void tails(void)
{
	sum++;
	CALL(tails, leaf);
	leaf();
}

/* to libc */
NOINLINE void tail_away(void)
{
	sum++;
	usleep(0);
}

NOINLINE void turn(void)
{
	CALL(turn, tails);
	tails();
	CALL(turn, leaf);
	leaf();
	CALL(turn, tail_away);
	tail_away();
	STAYS();
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 0;
	char c;

	for (long i = 0; !n || i < n; i++) {
		CALL(main, turn);
		turn();
		if (i == 1000 && (write(1, "x\n", 2) != 2 || (n && read(0, &c, 1) != 1)))
			return 1;
	}
	return 0;
}

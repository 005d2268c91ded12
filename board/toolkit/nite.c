/* SPDX-License-Identifier: MIT */
/* nite.c - what the parts of mk_nite_test share. */
#include "board/toolkit/nite.h"

/* xorshift64*: small, and the same everywhere. */
uint32_t nite_random(struct nite *n, uint32_t below)
{
	n->random ^= n->random >> 12;
	n->random ^= n->random << 25;
	n->random ^= n->random >> 27;
	return (uint32_t)((n->random * 0x2545f4914f6cdd1dull >> 32) * below >> 32);
}

void nite_init_board(struct nite *n)
{
	tester_init_board(&n->t, NITE_SOURCE);
	nite_park_counters(n);
	test_clock_read(&n->t, &n->start);
}

/* SPDX-License-Identifier: MIT */
/*
 * nite_counters.c - the two Resource Counters of a seat.
 *
 * The control registers have four bits for each counter, and a field of zeros changes nothing:
 * so that several experimenters can share the chip without knowing of each other (NISTIR 5571,
 * Resource Counter Control Registers).  That is how this test shares it.
 */
#include <inttypes.h>
#include <stdio.h>

#include "board/toolkit/nite.h"

static void set_field(struct nite *n, uint32_t word, unsigned counter, uint64_t value)
{
	chip_write64(&n->t, word, value << 4 * counter);
}

static void expect_field(struct nite *n, const char *what, uint32_t word, unsigned counter,
			 uint64_t value)
{
	tester_expect(&n->t, what, chip_read64(&n->t, word) >> 4 * counter & 15, value);
}

/* A counter that stands still: both ways to read it. */
static void expect_count(struct nite *n, const char *what, unsigned counter, uint32_t value)
{
	char text[96];

	snprintf(text, sizeof(text), "%s, Resource Counter %u", what, counter);
	tester_expect(&n->t, text, chip_read32(&n->t, KRON_WORD_COUNTER + counter), value);
	snprintf(text, sizeof(text), "%s, Resource Counter %u without copy", what, counter);
	tester_expect(&n->t, text, chip_read32(&n->t, KRON_WORD_INCREMENT + counter), value);
}

void nite_park_counters(struct nite *n)
{
	for (unsigned i = 0; i < 2; i++) {
		unsigned c = nite_counter(n) + i;

		set_field(n, KRON_WORD_ENABLE, c, KRON_ENABLE_OFF);
		set_field(n, KRON_WORD_MODE, c, KRON_MODE_SOFTWARE);
		n->value[i] = nite_random(n, UINT32_MAX);
		chip_write64(&n->t, KRON_WORD_COUNTER + c, n->value[i]);
	}
}

/* k increments count while the counter is enabled in software mode, and at no other time. */
static void count_by_software(struct nite *n, unsigned c)
{
	uint32_t v = nite_random(n, UINT32_MAX - 64), k = nite_random(n, 64);

	set_field(n, KRON_WORD_MODE, c, KRON_MODE_SOFTWARE);
	expect_field(n, "Mode Register", KRON_WORD_MODE, c, KRON_MODE_SOFTWARE);
	chip_write64(&n->t, KRON_WORD_COUNTER + c, v);
	chip_write64(&n->t, KRON_WORD_INCREMENT + c, 0);
	expect_count(n, "increment while disabled", c, v);
	set_field(n, KRON_WORD_ENABLE, c, KRON_ENABLE_ON);
	for (uint32_t i = 0; i < k; i++)
		chip_write64(&n->t, KRON_WORD_INCREMENT + c, 0);
	expect_count(n, "increments", c, v + k);
	set_field(n, KRON_WORD_ENABLE, c, KRON_ENABLE_RESET);
	expect_count(n, "reset and enable", c, 0);
	chip_write64(&n->t, KRON_WORD_COUNTER + c, UINT32_MAX - 1);
	for (uint32_t i = 0; i < 3; i++)
		chip_write64(&n->t, KRON_WORD_INCREMENT + c, 0);
	expect_count(n, "at the maximum", c, UINT32_MAX);
	set_field(n, KRON_WORD_ENABLE, c, KRON_ENABLE_OFF);
	n->kind[NITE_COUNTERS].done += k + 3;
}

/* A clock's count between enable and disable against the Timestamp's, four NODECLKs each. */
static void count_clock(struct nite *n, unsigned c)
{
	static const struct {
		enum kron_counter_clock select;
		uint32_t nodeclks;
	} clocks[] = {{KRON_CLOCK_NODE, 1},
		      {KRON_CLOCK_NODE_10, 10},
		      {KRON_CLOCK_NODE_100, 100},
		      {KRON_CLOCK_TIMESTAMP, 4}};
	unsigned i = nite_random(n, 4);
	uint64_t before_on, after_on, before_off, after_off, least, most;
	uint32_t got;

	set_field(n, KRON_WORD_MODE, c, KRON_MODE_CLOCK);
	set_field(n, KRON_WORD_CLOCK, c, clocks[i].select);
	expect_field(n, "Clock Select Register", KRON_WORD_CLOCK, c, clocks[i].select);
	before_on = tester_timestamp(&n->t);
	set_field(n, KRON_WORD_ENABLE, c, KRON_ENABLE_RESET);
	after_on = tester_timestamp(&n->t);
	for (uint32_t k = nite_random(n, 32); k; k--)
		chip_read32(&n->t, KRON_WORD_FILTER); /* pass the time */
	before_off = tester_timestamp(&n->t);
	set_field(n, KRON_WORD_ENABLE, c, KRON_ENABLE_OFF);
	after_off = tester_timestamp(&n->t);
	got = chip_read32(&n->t, KRON_WORD_COUNTER + c);
	/* each reading of a clock is up to one of its periods old */
	least = 4 * ((before_off - after_on) & TESTER_TIME_MASK);
	least = least > 4 ? (least - 4) / clocks[i].nodeclks : 0;
	most = 4 * (((after_off - before_on) & TESTER_TIME_MASK) + 1) / clocks[i].nodeclks + 1;
	if (got + 1ull < least || got > most)
		tester_error(&n->t,
			     "Resource Counter %u, clock of %" PRIu32 " NODECLKs: counted %" PRIu32
			     ", expected %" PRIu64 " to %" PRIu64,
			     c, clocks[i].nodeclks, got, least, most);
	expect_count(n, "disabled", c, got);
	n->kind[NITE_COUNTERS].done++;
}

void nite_counters(struct nite *n)
{
	unsigned c = nite_counter(n) + nite_random(n, 2);

	count_by_software(n, c);
	count_clock(n, c);
	nite_park_counters(n);
}

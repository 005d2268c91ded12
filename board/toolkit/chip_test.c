/* SPDX-License-Identifier: MIT */
/* chip_test.c - the parts that test_mk, mk_sample_test and mk_nite_test are made of. */
#include "board/toolkit/chip_test.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- registers ---- */

static void pass_through(struct tester *t, unsigned i, uint32_t value)
{
	uint32_t got;

	chip_write32(t, KRON_WORD_SOURCE + i, value);
	got = chip_read32(t, KRON_WORD_SOURCE + i);
	if (got != value)
		tester_error(t, "Source Address Register %u: wrote %08" PRIx32 ", read %08" PRIx32,
			     i, value, got);
}

void test_source_register(struct tester *t, unsigned i)
{
	static const uint32_t patterns[] = {0,          0xffffffff, 0x55555555, 0xaaaaaaaa,
					    0x00ff00ff, 0xff00ff00, 0x0f0f0f0f, 0xf0f0f0f0};
	uint32_t before = chip_read32(t, KRON_WORD_SOURCE + i);

	for (size_t n = 0; n < sizeof(patterns) / sizeof(*patterns); n++)
		pass_through(t, i, patterns[n]);
	for (unsigned bit = 0; bit < 32; bit++)
		pass_through(t, i, 1u << bit);
	pass_through(t, i, before);
}

void test_select_cpu(struct tester *t, unsigned cpu)
{
	uint32_t config = bus_read32(&t->bus, KRON_BOARD_CONFIG);

	bus_write32(&t->bus, KRON_BOARD_CONFIG,
		    (config & ~KRON_CONFIG_CPU_ID & KRON_CONFIG_WRITABLE) | 1u << cpu);
}

/* ---- Resource Counters in a sample ---- */

static uint32_t counter_value(unsigned i)
{
	return 0x01000193u * (i + 1) ^ 0x5a5a0000u;
}

void test_set_counters(struct tester *t)
{
	chip_write64(t, KRON_WORD_ENABLE, 0x1111111111111111u * KRON_ENABLE_OFF);
	for (unsigned i = 0; i < KRON_COUNTERS; i++)
		chip_write64(t, KRON_WORD_COUNTER + i, counter_value(i));
}

void test_check_counters(struct tester *t, const struct tester_sample *s)
{
	char what[64];

	for (unsigned i = 0; i < KRON_COUNTERS; i++) {
		snprintf(what, sizeof(what), "Resource Counter %u in the sample", i);
		tester_expect(t, what, s->word[5 + i], counter_value(i));
	}
}

/* ---- the clock ---- */

void test_clock_read(struct tester *t, struct test_clock *c)
{
	c->ns_before = tester_now();
	c->timestamp = tester_timestamp(t);
	c->ns_after = tester_now();
}

double test_clock_rate(struct tester *t, const struct test_clock *from, const struct test_clock *to,
		       double hz)
{
	double ticks = (double)((to->timestamp - from->timestamp) & TESTER_TIME_MASK);
	/* the machine may have stopped us between two readings, so the time is a range */
	double shortest =
		to->ns_before > from->ns_after ? (double)(to->ns_before - from->ns_after) / 1e9 : 0;
	double longest = (double)(to->ns_after - from->ns_before) / 1e9;
	double middle = (shortest + longest) / 2;

	if (ticks + 1 < shortest * hz * 0.995 || ticks - 1 > longest * hz * 1.005)
		tester_error(t, "Timestamp: %.0f clocks in %.6f s, expected %.0f (%.4f MHz)", ticks,
			     middle, middle * hz, hz / 1e6);
	return middle > 0 ? ticks / middle : 0;
}

/* ---- on the screen ---- */

void test_print_bytes(const struct tester_sample *s)
{
	for (unsigned i = 0; i < 4 * s->words; i++)
		printf("%s%02x%s", i % 20 ? " " : "    ",
		       s->word[i / 4] >> (24 - 8 * (i % 4)) & 0xff,
		       i % 20 == 19 || i == 4 * s->words - 1 ? "\n" : "");
}

void test_print_sample(const struct tester_sample *s)
{
	printf("    header %02x, timestamp %014" PRIx64 ", source address %08" PRIx32
	       ", user data %08" PRIx32 "%08" PRIx32 "\n",
	       s->word[0] >> 24, tester_sample_time(s), s->word[2], s->word[3], s->word[4]);
	for (unsigned i = 5; i < s->words; i++)
		printf("%s%2u: %08" PRIx32 "%s", (i - 5) % 4 ? "   " : "    Resource Counter ",
		       i - 5, s->word[i], (i - 5) % 4 == 3 ? "\n" : "");
}

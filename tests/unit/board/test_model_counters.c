/* SPDX-License-Identifier: MIT */
/*
 * Resource Counters: NISTIR 5571, "Resource Counters" and Tables B5 to B7.  One NODECLK is one
 * tick here, a timestamp clock four.
 */
#include "model_rig.h"

#define ALL(field) ((field)*0x1111111111111111ull)

static uint32_t count(unsigned i)
{
	return (uint32_t)get(KRON_WORD_COUNTER + i);
}

/* All counters on the same footing, enabled from zero. */
static void count_all(uint64_t mode, uint64_t clock)
{
	begin();
	put(KRON_WORD_MODE, ALL(mode));
	put(KRON_WORD_CLOCK, ALL(clock));
	put(KRON_WORD_ENABLE, ALL(KRON_ENABLE_RESET));
}

/* ---- Table B7 ---- */

static void enable_field(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_MODE, ALL(KRON_MODE_CLOCK));
	put(KRON_WORD_CLOCK, ALL(KRON_CLOCK_NODE));
	tick(100);
	assert_int_equal(count(0), 0); /* disabled is the default */
	for (unsigned x = 0; x < 16; x += 4) {
		put(KRON_WORD_COUNTER, 5);
		put(KRON_WORD_ENABLE, x | KRON_ENABLE_ON); /* keeps what it has */
		tick(10);
		assert_int_equal(count(0), 15);
		put(KRON_WORD_ENABLE, x); /* xx00: no operation */
		tick(10);
		assert_int_equal(count(0), 25);
		put(KRON_WORD_ENABLE, x | KRON_ENABLE_RESET); /* from zero on */
		assert_int_equal(count(0), 0);
		tick(7);
		assert_int_equal(count(0), 7);
		put(KRON_WORD_ENABLE, x | KRON_ENABLE_OFF);
		tick(7);
		assert_int_equal(count(0), 7);
	}
}

static void reset_and_enable_reads_as_enabled(void **state)
{
	uint64_t saved;

	UNUSED_STATE;
	begin();
	put(KRON_WORD_ENABLE, ALL(KRON_ENABLE_RESET));
	saved = get(KRON_WORD_ENABLE);
	assert_int_equal(saved, ALL(KRON_ENABLE_ON));
	put(KRON_WORD_COUNTER + 9, 99);
	put(KRON_WORD_ENABLE, saved); /* restored at a context switch */
	assert_int_equal(count(9), 99);
}

/* A zero field changes nothing: experimenters share the counters. */
static void zero_fields_change_nothing(void **state)
{
	UNUSED_STATE;
	begin();
	for (unsigned i = 0; i < 16; i++) {
		put(KRON_WORD_ENABLE, 2ull << 4 * i);
		put(KRON_WORD_MODE, 1ull << 4 * i);
		put(KRON_WORD_CLOCK, 3ull << 4 * i);
		assert_int_equal(get(KRON_WORD_ENABLE) >> 4 * i, ALL(1) >> 4 * i ^ 3);
		assert_int_equal(get(KRON_WORD_MODE) >> 4 * i, ALL(4) >> 4 * i ^ 5);
		assert_int_equal(get(KRON_WORD_CLOCK) >> 4 * i, ALL(4) >> 4 * i ^ 7);
	}
	assert_int_equal(get(KRON_WORD_ENABLE), ALL(2));
	assert_int_equal(get(KRON_WORD_MODE), ALL(1));
	assert_int_equal(get(KRON_WORD_CLOCK), ALL(3));
	put(KRON_WORD_CLOCK, ALL(8));    /* x000 */
	put(KRON_WORD_ENABLE, ALL(0xc)); /* xx00 */
	assert_int_equal(get(KRON_WORD_ENABLE), ALL(2));
	assert_int_equal(get(KRON_WORD_CLOCK), ALL(3));
}

/* ---- Table B5 ---- */

static void mode_clock(void **state)
{
	UNUSED_STATE;
	for (unsigned mode = 1; mode <= 5; mode += 4) {
		count_all(mode, KRON_CLOCK_NODE);
		external(3, true); /* does not matter */
		tick(123);
		for (unsigned i = 0; i < 16; i++)
			assert_int_equal(count(i), 123);
		put(KRON_WORD_INCREMENT + 2, 0); /* nor does software */
		assert_int_equal(count(2), 123);
	}
}

static void mode_software(void **state)
{
	UNUSED_STATE;
	for (unsigned mode = 2; mode <= 6; mode += 4) {
		count_all(mode, KRON_CLOCK_NODE);
		tick(100);
		for (unsigned i = 0; i < 16; i++)
			for (unsigned n = 0; n <= i; n++)
				put(KRON_WORD_INCREMENT + i, ONES64);
		for (unsigned i = 0; i < 16; i++)
			assert_int_equal(count(i), i + 1);
		put(KRON_WORD_ENABLE, ALL(KRON_ENABLE_OFF));
		put(KRON_WORD_INCREMENT + 2, 0);
		assert_int_equal(count(2), 3);
	}
}

static void mode_gated(void **state)
{
	UNUSED_STATE;
	for (unsigned mode = 3; mode <= 7; mode += 4) {
		count_all(mode, KRON_CLOCK_NODE);
		tick(100);
		external(5, true);
		tick(30);
		external(5, false);
		tick(100);
		external(5, true);
		tick(3);
		assert_int_equal(count(5), 33);
		assert_int_equal(count(6), 0);
		put(KRON_WORD_ENABLE, ALL(KRON_ENABLE_OFF)); /* must be enabled, too */
		tick(3);
		assert_int_equal(count(5), 33);
	}
}

static void mode_external_counts_rising_edges(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_ENABLE, ALL(KRON_ENABLE_ON)); /* External is the default mode */
	for (unsigned i = 0; i < 16; i++) {
		for (unsigned n = 0; n <= i; n++) {
			external(i, true);
			tick(5);
			external(i, true); /* no edge */
			external(i, false);
			tick(1);
		}
	}
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(count(i), i + 1);
	put(KRON_WORD_ENABLE, ALL(KRON_ENABLE_OFF));
	external(0, true);
	assert_int_equal(count(0), 1);
	external(0, false);
	put(KRON_WORD_ENABLE, ALL(KRON_ENABLE_ON));
	put(KRON_WORD_MODE, ALL(KRON_MODE_SOFTWARE));
	external(0, true);
	assert_int_equal(count(0), 1);
}

/* Mode 1000 says "double precision" and nothing about the source. */
static void mode_1000_keeps_the_source(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_MODE, ALL(KRON_MODE_CLOCK));
	put(KRON_WORD_MODE, 0x8);
	assert_int_equal(get(KRON_WORD_MODE), ALL(1) | 0x88);
	put(KRON_WORD_MODE, 0x1); /* single again */
	assert_int_equal(get(KRON_WORD_MODE), ALL(1));
}

static void odd_counters_take_precision_from_their_pair(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_MODE, 0x90); /* counter 1 */
	assert_int_equal(get(KRON_WORD_MODE) & 0xff, 0x14);
	put(KRON_WORD_COUNTER + 0, 0x1122334455667788ull);
	assert_int_equal(get(KRON_WORD_COUNTER + 0), 0xffffffff55667788ull);
	put(KRON_WORD_MODE, 0x09); /* counter 0 */
	assert_int_equal(get(KRON_WORD_MODE) & 0xff, 0x99);
	put(KRON_WORD_COUNTER + 0, 0x1122334455667788ull);
	assert_int_equal(get(KRON_WORD_COUNTER + 0), 0x1122334455667788ull);
}

/* ---- Table B6 ---- */

static void clock_node(void **state)
{
	UNUSED_STATE;
	for (unsigned clock = 1; clock <= 5; clock += 4) {
		count_all(KRON_MODE_CLOCK, clock);
		tick(12345);
		assert_int_equal(count(0), 12345);
	}
}

static void clock_node_10(void **state)
{
	UNUSED_STATE;
	for (unsigned clock = 2; clock <= 6; clock += 4) {
		count_all(KRON_MODE_CLOCK, clock);
		put(KRON_WORD_RESET, 0); /* the divider begins here */
		put(KRON_WORD_MODE, ALL(KRON_MODE_CLOCK));
		put(KRON_WORD_CLOCK, ALL(clock));
		put(KRON_WORD_ENABLE, ALL(KRON_ENABLE_ON));
		tick(9);
		assert_int_equal(count(0), 0);
		tick(1);
		assert_int_equal(count(0), 1);
		tick(12345);
		assert_int_equal(count(0), 1235);
	}
}

static void clock_node_100(void **state)
{
	UNUSED_STATE;
	for (unsigned clock = 3; clock <= 7; clock += 4) {
		begin();
		put(KRON_WORD_RESET, 0);
		put(KRON_WORD_MODE, ALL(KRON_MODE_CLOCK));
		put(KRON_WORD_CLOCK, ALL(clock));
		put(KRON_WORD_ENABLE, ALL(KRON_ENABLE_ON));
		tick(99);
		assert_int_equal(count(0), 0);
		tick(1);
		assert_int_equal(count(0), 1);
		for (unsigned i = 0; i < 12345; i++) {
			tick(1); /* however often somebody looks */
			count(0);
		}
		assert_int_equal(count(0), 124);
	}
}

static void clock_timestamp(void **state)
{
	UNUSED_STATE;
	begin(); /* the default clock */
	put(KRON_WORD_MODE, ALL(KRON_MODE_CLOCK));
	put(KRON_WORD_ENABLE, ALL(KRON_ENABLE_ON));
	tick(4000);
	assert_int_equal(count(0), 1000);
	switch_config(KRON_CONFIG_TS_RATIO, 0);
	tick(3000);
	assert_int_equal(count(0), 2000);
	assert_int_equal(model_timestamp(&board), 2000);
}

static void clock_select_matters_for_internal_clocks_only(void **state)
{
	static const uint32_t expected[] = {0, 1000, 100, 10, 250};

	UNUSED_STATE;
	for (unsigned clock = 1; clock <= 4; clock++) {
		count_all(KRON_MODE_EXTERNAL, clock);
		tick(1000);
		external(2, true);
		assert_int_equal(count(2), 1);
		count_all(KRON_MODE_GATED, clock);
		put(KRON_WORD_RESET, 0);
		put(KRON_WORD_MODE, ALL(KRON_MODE_GATED));
		put(KRON_WORD_CLOCK, ALL(clock));
		put(KRON_WORD_ENABLE, ALL(KRON_ENABLE_ON));
		external(2, true);
		tick(1000);
		assert_int_equal(count(2), expected[clock]);
	}
}

/* ---- counting ---- */

static void counters_stick_at_their_maximum(void **state)
{
	UNUSED_STATE;
	count_all(KRON_MODE_CLOCK, KRON_CLOCK_NODE);
	put(KRON_WORD_COUNTER, 0xfffffffe);
	tick(1);
	assert_int_equal(count(0), ONES);
	tick(1000);
	assert_int_equal(count(0), ONES);
	assert_int_equal(count(1), 1001);
	tick(1ull << 40);
	assert_int_equal(count(1), ONES);
	put(KRON_WORD_ENABLE, 0x33); /* until reset */
	tick(3);
	assert_int_equal(count(0), 3);
	put(KRON_WORD_MODE, 0x200);
	put(KRON_WORD_COUNTER + 2, 0xfffffffe);
	put(KRON_WORD_INCREMENT + 2, 0);
	put(KRON_WORD_INCREMENT + 2, 0);
	assert_int_equal(count(2), ONES);
}

/* The report: at 50 MHz a 32-bit counter fills in about 85 s, at 5 MHz in 14 min, at 500 kHz in 2.3 h. */
static void a_32_bit_counter_fills_in_85_seconds(void **state)
{
	static const struct {
		unsigned clock, not_yet, full; /* seconds at 50 MHz */
	} v[] = {{KRON_CLOCK_NODE, 85, 86},
		 {KRON_CLOCK_NODE_10, 14 * 60, 14 * 60 + 20},
		 {KRON_CLOCK_NODE_100, 23 * 360, 24 * 360}};

	UNUSED_STATE;
	for (unsigned i = 0; i < 3; i++) {
		count_all(KRON_MODE_CLOCK, v[i].clock);
		tick(50000000ull * v[i].not_yet);
		assert_true(count(0) < ONES);
		tick(50000000ull * (v[i].full - v[i].not_yet));
		assert_int_equal(count(0), ONES);
	}
}

/* ... and a 64-bit counter in about 12,000, 120,000 and a million years: its last century. */
static void a_64_bit_counter_fills_in_12000_years(void **state)
{
	const uint64_t century = 100 * 31557600ull; /* seconds */
	static const struct {
		unsigned clock;
		uint64_t hz, centuries;
	} v[] = {{KRON_CLOCK_NODE, 50000000, 116},
		 {KRON_CLOCK_NODE_10, 5000000, 1169},
		 {KRON_CLOCK_NODE_100, 500000, 11690}};

	UNUSED_STATE;
	for (unsigned i = 0; i < 3; i++) {
		uint64_t count = v[i].hz * v[i].centuries * century;

		count_all(KRON_MODE_CLOCK | KRON_MODE_DOUBLE, v[i].clock);
		put(KRON_WORD_COUNTER, count);
		tick(50000000);
		assert_int_equal(get(KRON_WORD_COUNTER), count + v[i].hz);
		tick(50000000ull * century);
		assert_int_equal(get(KRON_WORD_COUNTER), ONES64);
	}
}

static void pairs_of_64_bits(void **state)
{
	UNUSED_STATE;
	count_all(KRON_MODE_CLOCK | KRON_MODE_DOUBLE, KRON_CLOCK_NODE);
	put(KRON_WORD_COUNTER + 4, 0x00000001fffffff0ull);
	tick(0x20);
	assert_int_equal(get(KRON_WORD_COUNTER + 4), 0x0000000200000010ull);
	assert_int_equal(get(KRON_WORD_COUNTER + 5), 0xffffffff00000002ull);
	assert_int_equal(model_counter(&board, 4), 0x0000000200000010ull);
	assert_int_equal(model_counter(&board, 5), 2);
	put(KRON_WORD_COUNTER + 5, 0x77);
	assert_int_equal(get(KRON_WORD_COUNTER + 4), 0x0000007700000010ull);
	put(KRON_WORD_COUNTER + 4, ONES64 - 5);
	tick(100);
	assert_int_equal(get(KRON_WORD_COUNTER + 4), ONES64); /* sticks */
	put(KRON_WORD_ENABLE, 0x30000);
	assert_int_equal(get(KRON_WORD_COUNTER + 4), 0);
	tick(1ull << 33);
	assert_int_equal(get(KRON_WORD_COUNTER + 4), 1ull << 33);
}

static void pairs_through_the_high_register(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_MODE, 0x9);
	put(KRON_WORD_CSR, KRON_CSR_MODE32);
	write4(KRON_CHIP_BYTE(KRON_WORD_HIGH), 0xaaaa5555);
	write4(KRON_CHIP_BYTE(KRON_WORD_COUNTER), 0x12345678);
	assert_int_equal(read4(KRON_CHIP_BYTE(KRON_WORD_COUNTER)), 0x12345678);
	assert_int_equal(read4(KRON_CHIP_BYTE(KRON_WORD_HIGH)), 0xaaaa5555);
}

static void pairs_obey_the_even_counter(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_MODE, 0x2a); /* both by software */
	put(KRON_WORD_ENABLE, 0x22);
	put(KRON_WORD_COUNTER, ONES);
	put(KRON_WORD_INCREMENT + 1, 0); /* the odd one has no say */
	put(KRON_WORD_INCREMENT, 0);
	assert_int_equal(get(KRON_WORD_COUNTER), 1ull << 32);
	put(KRON_WORD_ENABLE, 0x30);
	assert_int_equal(get(KRON_WORD_COUNTER), 1ull << 32);
	put(KRON_WORD_ENABLE, 0x03);
	assert_int_equal(get(KRON_WORD_COUNTER), 0);
}

static void stop_watch(void **state)
{
	UNUSED_STATE;
	count_all(KRON_MODE_CLOCK, KRON_CLOCK_NODE);
	put(KRON_WORD_ENABLE, ALL(KRON_ENABLE_OFF));
	for (unsigned i = 0; i < 5; i++) {
		put(KRON_WORD_ENABLE, 0x200);
		tick(17);
		put(KRON_WORD_ENABLE, 0x100);
		tick(1000);
	}
	assert_int_equal(count(2), 85);
}

/* ---- reading and writing ---- */

static void writing_leaves_the_shadow_registers(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_COUNTER + 1, 11);
	assert_int_equal((uint32_t)get(KRON_WORD_INCREMENT + 1), 0);
	assert_int_equal(model_counter(&board, 1), 11);
}

static void one_copy_is_of_all_counters(void **state)
{
	UNUSED_STATE;
	count_all(KRON_MODE_CLOCK, KRON_CLOCK_NODE);
	tick(500);
	assert_int_equal(count(0), 500);
	tick(77);
	for (unsigned i = 1; i < 16; i++)
		assert_int_equal((uint32_t)get(KRON_WORD_INCREMENT + i), 500);
	for (unsigned i = 0; i < 16; i++) {
		tick(1);
		assert_int_equal(count(i), 578 + i); /* each copy another instant */
	}
}

static void busy_shadows_block_neither_writes_nor_increments(void **state)
{
	UNUSED_STATE;
	count_all(KRON_MODE_SOFTWARE, KRON_CLOCK_NODE);
	put(KRON_WORD_CSR, KRON_CSR_READ_WAIT | KRON_CSR_WAIT);
	resource(0);
	put(KRON_WORD_COUNTER + 6, 60);
	put(KRON_WORD_INCREMENT + 6, 0);
	assert_int_equal(now, 0);
	assert_int_equal(count(6), 61);
	tick(200);
	assert_int_equal(memory[5 + 6], 0); /* the sample has the old one */
}

static void counters_can_be_saved_and_restored(void **state)
{
	uint64_t mode, clock, enable;
	uint32_t saved[16];

	UNUSED_STATE;
	count_all(KRON_MODE_CLOCK, KRON_CLOCK_NODE);
	tick(1000);
	put(KRON_WORD_MODE, 0x2222000000001111ull);
	enable = get(KRON_WORD_ENABLE);
	mode = get(KRON_WORD_MODE);
	clock = get(KRON_WORD_CLOCK);
	put(KRON_WORD_ENABLE, ALL(KRON_ENABLE_OFF));
	for (unsigned i = 0; i < 16; i++)
		saved[i] = i ? (uint32_t)get(KRON_WORD_INCREMENT + i) : count(i);
	put(KRON_WORD_RESET, 0);
	tick(1234);
	for (unsigned i = 0; i < 16; i++)
		put(KRON_WORD_COUNTER + i, saved[i]);
	put(KRON_WORD_CLOCK, clock);
	put(KRON_WORD_MODE, mode);
	put(KRON_WORD_ENABLE, enable);
	tick(10);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(count(i), i < 12 ? 1010 : 1000);
}

/* NISTIR 5993, 2.3: DEVSEL# as the gate of counters 0 and 2, all clocks in counter 4. */
static void utilisation_of_a_bus(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_MODE, 0x10303);
	put(KRON_WORD_CLOCK, 0x10101);
	put(KRON_WORD_ENABLE, 0x30303);
	for (unsigned i = 0; i < 100; i++) {
		external(0, true);
		tick(10);
		external(2, true);
		tick(20);
		external(2, false);
		external(0, false);
		tick(70);
	}
	assert_int_equal(count(0), 3000);
	assert_int_equal(count(2), 2000);
	assert_int_equal(count(4), 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(enable_field),
		cmocka_unit_test(reset_and_enable_reads_as_enabled),
		cmocka_unit_test(zero_fields_change_nothing),
		cmocka_unit_test(mode_clock),
		cmocka_unit_test(mode_software),
		cmocka_unit_test(mode_gated),
		cmocka_unit_test(mode_external_counts_rising_edges),
		cmocka_unit_test(mode_1000_keeps_the_source),
		cmocka_unit_test(odd_counters_take_precision_from_their_pair),
		cmocka_unit_test(clock_node),
		cmocka_unit_test(clock_node_10),
		cmocka_unit_test(clock_node_100),
		cmocka_unit_test(clock_timestamp),
		cmocka_unit_test(clock_select_matters_for_internal_clocks_only),
		cmocka_unit_test(counters_stick_at_their_maximum),
		cmocka_unit_test(a_32_bit_counter_fills_in_85_seconds),
		cmocka_unit_test(a_64_bit_counter_fills_in_12000_years),
		cmocka_unit_test(pairs_of_64_bits),
		cmocka_unit_test(pairs_through_the_high_register),
		cmocka_unit_test(pairs_obey_the_even_counter),
		cmocka_unit_test(stop_watch),
		cmocka_unit_test(writing_leaves_the_shadow_registers),
		cmocka_unit_test(one_copy_is_of_all_counters),
		cmocka_unit_test(busy_shadows_block_neither_writes_nor_increments),
		cmocka_unit_test(counters_can_be_saved_and_restored),
		cmocka_unit_test(utilisation_of_a_bus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

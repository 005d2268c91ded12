/* SPDX-License-Identifier: MIT */
/*
 * The MultiKron_vc: what NISTIR 5993 says of it, and the readings of board/model/model_vc.c for what it
 * does not say.  Both chips at random: test_model_steps.c.
 */
#include "model_rig.h"

#define PAGE_CLOCKS 32u /* 16 store, 16 retrieve */

static void vc_put(unsigned word, uint64_t data)
{
	write8(KRON_VC_BYTE(word), data);
}

static uint64_t vc_get(unsigned word)
{
	return read8(KRON_VC_BYTE(word));
}

static void begin_vc(void)
{
	struct model_geometry g = MODEL_GEOMETRY_DEFAULT;

	g.vc = 1;
	begin_with(g);
	configure(KRON_CONFIG_DEFAULT);
}

/* All sixteen by software. */
static void begin_counting(void)
{
	begin_vc();
	vc_put(KRON_WORD_MODE, 0x2222222222222222ull);
	vc_put(KRON_WORD_ENABLE, 0x2222222222222222ull);
}

static uint32_t counter(unsigned n)
{
	vc_put(KRON_VC_PAGE, n / 16);
	return (uint32_t)vc_get(KRON_WORD_COUNTER + n % 16);
}

static void each_of_8192_counts_for_itself(void **state)
{
	UNUSED_STATE;
	begin_counting();
	/* 5 * 1637 is 1 modulo 8192: each comes by, and hardly two of a page after each other */
	for (unsigned i = 0, n = 0; i < KRON_VC_COUNTERS; i++, n = (n + 1637) % KRON_VC_COUNTERS)
		for (unsigned k = 0; k < n % 3; k++)
			vc_put(KRON_VC_COUNT, n);
	for (unsigned n = 0; n < KRON_VC_COUNTERS; n++)
		assert_int_equal(counter(n), n % 3);
	assert_int_equal(words_stored, 0); /* local memory is another */
}

static void a_number_has_13_bits_and_a_page_9(void **state)
{
	UNUSED_STATE;
	begin_counting();
	vc_put(KRON_VC_COUNT, 8192 + 17);
	assert_int_equal(vc_get(KRON_VC_PAGE), ~511ull | 1);
	vc_put(KRON_VC_PAGE, 512 + 1);
	assert_int_equal(vc_get(KRON_WORD_COUNTER + 1), UPPER_ONES | 1);
	assert_int_equal(vc_get(KRON_VC_COUNT), ONES64);
}

static void a_page_takes_a_clock_for_each_counter(void **state)
{
	uint64_t before;

	UNUSED_STATE;
	begin_counting();
	before = now;
	vc_put(KRON_VC_PAGE, 7);
	assert_int_equal(now - before, PAGE_CLOCKS);
	before = now;
	vc_put(KRON_VC_PAGE, 7); /* it is there */
	vc_put(KRON_VC_COUNT, 7 * 16 + 3);
	assert_int_equal(now, before);
	vc_put(KRON_VC_COUNT, 8 * 16);
	assert_int_equal(now - before, PAGE_CLOCKS);
	switch_config(KRON_CONFIG_DIV2, 0);
	before = now;
	vc_put(KRON_VC_PAGE, 7);
	assert_int_equal(now - before, 2 * PAGE_CLOCKS);
}

static void wait_mem_is_one_more_for_each(void **state)
{
	uint64_t before;

	UNUSED_STATE;
	begin_counting();
	switch_config(KRON_CONFIG_WAIT_MEM, 0);
	before = now;
	vc_put(KRON_VC_PAGE, 1); /* "read only upon a RESET" */
	assert_int_equal(now - before, PAGE_CLOCKS);
	vc_put(KRON_WORD_RESET, 0); /* not the chip's own */
	assert_int_equal(vc_get(KRON_WORD_CSR), KRON_CSR_MODE64);
	write4(KRON_BOARD_RESET, 0);
	configure(KRON_CONFIG_DEFAULT);
	assert_int_equal(vc_get(KRON_WORD_CSR), KRON_CSR_MODE64 | KRON_CSR_WAIT_MEM);
	before = now;
	vc_put(KRON_VC_PAGE, 2);
	assert_int_equal(now - before, 2 * PAGE_CLOCKS);
	assert_int_equal(csr() & KRON_CSR_WAIT_MEM, 0); /* the MultiKron II has no such memory */
}

static void wait_cpu_is_one_for_each_cycle(void **state)
{
	uint64_t before;

	UNUSED_STATE;
	begin_vc();
	switch_config(KRON_CONFIG_WAIT_CPU, 0);
	write4(KRON_BOARD_RESET, 0);
	configure(KRON_CONFIG_DEFAULT);
	before = now;
	assert_int_equal(vc_get(KRON_WORD_CSR), KRON_CSR_MODE64 | KRON_CSR_WAIT_STATES);
	assert_int_equal(now - before, 1);
}

static void the_holding_register_is_its_own(void **state)
{
	UNUSED_STATE;
	begin_vc();
	vc_put(KRON_WORD_CSR, KRON_CSR_MODE32);
	assert_int_equal(csr() & KRON_CSR_MODE32, 0);
	put(KRON_WORD_HIGH, 0x11111111);
	write4(KRON_VC_BYTE(KRON_WORD_HIGH), 0x22222222);
	write4(KRON_VC_BYTE(KRON_WORD_ENABLE), 0x22222222);
	assert_int_equal(vc_get(KRON_WORD_ENABLE), 0x2222222222222222ull);
	/* a read puts the upper half there */
	write4(KRON_VC_BYTE(KRON_WORD_HIGH), 5);
	read4(KRON_VC_BYTE(KRON_WORD_ENABLE));
	assert_int_equal(read4(KRON_VC_BYTE(KRON_WORD_HIGH)), 0x22222222);
	assert_int_equal(get(KRON_WORD_HIGH), UPPER_ONES | 0x11111111);
	vc_put(KRON_WORD_CSR, KRON_CSR_MODE64);
	vc_put(KRON_WORD_MODE, 0x2222222222222222ull);
	assert_int_equal(vc_get(KRON_WORD_MODE), 0x2222222222222222ull);
}

static void the_timestamp_has_64_bits(void **state)
{
	uint64_t before;

	UNUSED_STATE;
	begin_vc();
	tick(400);
	assert_int_equal(vc_get(KRON_WORD_TIMESTAMP), model_timestamp(&board));
	vc_put(KRON_WORD_TIMESTAMP, 7); /* in test mode only */
	assert_int_equal(vc_get(KRON_WORD_TIMESTAMP), model_timestamp(&board));
	switch_config(0, KRON_CONFIG_TESTB);
	vc_put(KRON_WORD_TIMESTAMP, 0xffffffffffffffull);
	vc_put(KRON_WORD_INCR_TIMESTAMP, 0);
	tick(400); /* it stands */
	assert_int_equal(vc_get(KRON_WORD_TIMESTAMP), 0x100000000000000ull);
	switch_config(KRON_CONFIG_TESTB, 0);
	before = vc_get(KRON_WORD_TIMESTAMP);
	tick(400);
	assert_int_equal(vc_get(KRON_WORD_TIMESTAMP), before + 100);
	vc_put(KRON_WORD_RESET, 0);
	assert_int_equal(vc_get(KRON_WORD_TIMESTAMP), before + 100);
	write4(KRON_BOARD_RESET, 0);
	configure(KRON_CONFIG_DEFAULT);
	assert_int_equal(vc_get(KRON_WORD_TIMESTAMP), 0);
}

static void counters_are_resource_counters(void **state)
{
	UNUSED_STATE;
	begin_vc();
	vc_put(KRON_WORD_MODE, 0x4321ull | 0x8ull << 24);
	vc_put(KRON_WORD_CLOCK, 1);
	vc_put(KRON_WORD_ENABLE, 0x2222222222222222ull);
	external(3, true);
	external(2, true);
	tick(40);
	external(3, false);
	external(3, true);
	vc_put(KRON_WORD_INCREMENT + 1, 0);
	assert_int_equal(vc_get(KRON_WORD_COUNTER), UPPER_ONES | 40);
	assert_int_equal(vc_get(KRON_WORD_INCREMENT + 1), UPPER_ONES | 1);
	assert_int_equal(vc_get(KRON_WORD_INCREMENT + 2), UPPER_ONES | 10);
	assert_int_equal(vc_get(KRON_WORD_INCREMENT + 3), UPPER_ONES | 2);
	assert_int_equal(model_counter(&board, 3), 0); /* the other chip's are disabled */
	vc_put(KRON_WORD_COUNTER + 6, 0x100000002ull);
	assert_int_equal(vc_get(KRON_WORD_COUNTER + 6), 0x100000002ull);
}

static void nothing_counts_while_pages_move(void **state)
{
	UNUSED_STATE;
	begin_vc();
	vc_put(KRON_WORD_MODE, 1);
	vc_put(KRON_WORD_CLOCK, 1);
	vc_put(KRON_WORD_ENABLE, 2);
	tick(100);
	vc_put(KRON_VC_PAGE, 9);
	tick(11);
	vc_put(KRON_VC_PAGE, 0);
	assert_int_equal(vc_get(KRON_WORD_COUNTER), UPPER_ONES | 100);
	vc_put(KRON_VC_PAGE, 9);
	assert_int_equal(vc_get(KRON_WORD_COUNTER), UPPER_ONES | 11);
}

static void a_reset_clears_the_chip_and_not_its_memory(void **state)
{
	UNUSED_STATE;
	begin_counting();
	vc_put(KRON_VC_COUNT, 40);
	vc_put(KRON_VC_COUNT, 80); /* 40's page is stored */
	vc_put(KRON_WORD_RESET, 0);
	assert_int_equal(vc_get(KRON_VC_PAGE), ~511ull);
	assert_int_equal(vc_get(KRON_WORD_ENABLE), 0x1111111111111111ull);
	assert_int_equal(counter(40), 1);
	assert_int_equal(counter(80), 0);
	vc_put(KRON_VC_COUNT, 80); /* disabled */
	assert_int_equal(counter(80), 0);
}

static void what_is_not_assigned_reads_ones(void **state)
{
	UNUSED_STATE;
	begin_counting();
	for (unsigned word = 96; word < 4096; word += 97) {
		vc_put(word, 3);
		assert_int_equal(vc_get(word), ONES64);
	}
	assert_int_equal(counter(3), 0);
	begin(); /* a board without one */
	vc_put(KRON_VC_COUNT, 3);
	assert_int_equal(vc_get(KRON_WORD_TIMESTAMP), ONES64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_of_8192_counts_for_itself),
		cmocka_unit_test(a_number_has_13_bits_and_a_page_9),
		cmocka_unit_test(a_page_takes_a_clock_for_each_counter),
		cmocka_unit_test(wait_mem_is_one_more_for_each),
		cmocka_unit_test(wait_cpu_is_one_for_each_cycle),
		cmocka_unit_test(the_holding_register_is_its_own),
		cmocka_unit_test(the_timestamp_has_64_bits),
		cmocka_unit_test(counters_are_resource_counters),
		cmocka_unit_test(nothing_counts_while_pages_move),
		cmocka_unit_test(a_reset_clears_the_chip_and_not_its_memory),
		cmocka_unit_test(what_is_not_assigned_reads_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

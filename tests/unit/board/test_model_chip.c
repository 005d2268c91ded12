/* SPDX-License-Identifier: MIT */
/*
 * The MultiKron II chip's registers (NISTIR 5571, Tables B1 and B4), 32-bit mode, timestamp,
 * error counters and test mode.  Expected values come from the report.
 */
#include "model_rig.h"

/* ---- addresses ---- */

static void power_on_state(void **state)
{
	UNUSED_STATE;
	begin_with((struct model_geometry)MODEL_GEOMETRY_DEFAULT);
	assert_int_equal(model_config(&board), 0x90000000);
	assert_int_equal(model_map(&board), 0);
	assert_int_equal(model_timestamp(&board), 0);
	configure(KRON_CONFIG_DEFAULT);
	assert_int_equal(csr(), KRON_CSR_MODE64);
	assert_int_equal(get(KRON_WORD_FILTER), 0xffffffffffff0000ull);
	assert_int_equal(get(KRON_WORD_WAIT), UPPER_ONES);
	assert_int_equal(get(KRON_WORD_OVERRUN), UPPER_ONES);
	assert_int_equal(get(KRON_WORD_ENABLE), 0x1111111111111111ull);
	assert_int_equal(get(KRON_WORD_MODE), 0x4444444444444444ull);
	assert_int_equal(get(KRON_WORD_CLOCK), 0x4444444444444444ull);
}

static void unassigned_words_read_ones_and_write_nothing(void **state)
{
	static const uint8_t reads[] = {0,  3,  9,  11, 13, 14, 15, 16, 17, 18,  19,  20,
					21, 22, 23, 24, 30, 31, 40, 63, 96, 111, 112, 127};
	static const uint8_t writes[] = {3, 9, 11, 13, 14, 15, 22, 23, 24, 30, 31, 40, 50, 63};
	struct model_state before;

	UNUSED_STATE;
	begin();
	for (unsigned i = 0; i < sizeof(reads); i++)
		assert_int_equal(get(reads[i]), ONES64);
	for (unsigned i = 0; i < sizeof(writes); i++) {
		before = board;
		put(writes[i], 0x123456789abcdef0ull);
		assert_memory_equal(&board, &before, sizeof(board));
		switch_config(0, KRON_CONFIG_TESTB);
		before = board;
		put(writes[i], 0x123456789abcdef0ull);
		assert_memory_equal(&board, &before, sizeof(board));
		switch_config(KRON_CONFIG_TESTB, 0);
	}
}

static void unused_bits_read_as_ones_but_in_the_csr(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_FILTER, 0x1235);
	put(KRON_WORD_SOURCE + 3, 0x12345678);
	assert_int_equal(get(KRON_WORD_FILTER), 0xffffffffffff1235ull);
	assert_int_equal(get(KRON_WORD_SOURCE + 3), 0xffffffff12345678ull);
	assert_int_equal(get(KRON_WORD_TIMESTAMP) >> 56, 0xff);
	assert_int_equal(get(KRON_WORD_COUNTER + 5), UPPER_ONES);
	assert_int_equal(get(KRON_WORD_INCREMENT + 5), UPPER_ONES);
	assert_int_equal(get(KRON_WORD_WAIT), UPPER_ONES);
	assert_int_equal(get(KRON_WORD_CSR) >> 16, 0);
	assert_true(trace(1));
	assert_int_equal(get(KRON_WORD_FIFO + 4), 0xffffffff00000001ull);
}

static void unused_bits_of_a_write_are_ignored(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_FILTER, 0xabcdef0123458001ull);
	put(KRON_WORD_SOURCE, 0xabcdef0123456789ull);
	put(KRON_WORD_COUNTER + 1, 0xabcdef0155555555ull);
	put(KRON_WORD_CSR, 0xffffffff00000000ull | 1u << 16);
	assert_int_equal(model_filter(&board), 0x8001);
	assert_int_equal(get(KRON_WORD_SOURCE), 0xffffffff23456789ull);
	assert_int_equal(get(KRON_WORD_COUNTER + 1), 0xffffffff55555555ull);
	assert_int_equal(csr(), KRON_CSR_SAMPLING | KRON_CSR_MODE64);
}

/* ---- resets ---- */

static void disturb_everything(void)
{
	put(KRON_WORD_CSR, KRON_CSR_SAMPLING | KRON_CSR_WAIT | KRON_CSR_READ_WAIT);
	put(KRON_WORD_ENABLE, 0x2222222222222222ull);
	put(KRON_WORD_MODE, 0x9191919191919191ull);
	put(KRON_WORD_CLOCK, 0x1111111111111111ull);
	for (unsigned i = 0; i < 8; i++)
		put(KRON_WORD_SOURCE + i, 77 + i);
	for (unsigned i = 0; i < 6; i++)
		put(KRON_WORD_RESOURCE, i);
	put(KRON_WORD_CSR, KRON_CSR_DISCARD | KRON_CSR_MODE32);
	for (unsigned i = 0; i < 6; i++)
		put(KRON_WORD_RESOURCE, i);
	write4(KRON_CHIP_BYTE(KRON_WORD_HIGH), 0x77);
	assert_int_not_equal((uint32_t)get(KRON_WORD_WAIT), 0);
	assert_int_not_equal((uint32_t)get(KRON_WORD_OVERRUN), 0);
	switch_config(0, KRON_CONFIG_TESTB);
	put(KRON_WORD_NETWORK_OFF, 0);
	switch_config(KRON_CONFIG_TESTB, 0);
	tick(100); /* what the board FIFO had */
	words_stored = 0;
	tick(1000);
	assert_int_equal(words_stored, 0);
	assert_int_equal(csr() & KRON_CSR_BIT161, KRON_CSR_BIT161); /* a sample waits, and stays */
}

static void assert_chip_is_reset(void)
{
	uint64_t high = get(KRON_WORD_HIGH);

	assert_int_equal((uint32_t)high, 0);
	assert_int_equal(csr(), KRON_CSR_MODE64);
	assert_int_equal(model_filter(&board), 0);
	assert_int_equal((uint32_t)get(KRON_WORD_WAIT), 0);
	assert_int_equal((uint32_t)get(KRON_WORD_OVERRUN), 0);
	assert_int_equal(get(KRON_WORD_ENABLE), 0x1111111111111111ull);
	assert_int_equal(get(KRON_WORD_MODE), 0x4444444444444444ull);
	assert_int_equal(get(KRON_WORD_CLOCK), 0x4444444444444444ull);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal((uint32_t)get(KRON_WORD_SOURCE + i), 0);
	for (unsigned i = 0; i < 16; i++) {
		assert_int_equal((uint32_t)get(KRON_WORD_INCREMENT + i), 0);
		assert_int_equal((uint32_t)get(KRON_WORD_COUNTER + i), 0);
	}
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(get(KRON_WORD_FIFO + i), ONES64);
	put(KRON_WORD_FILTER, 1);
	put(KRON_WORD_CSR, KRON_CSR_SAMPLING);
	assert_true(trace(1));
	words_stored = 0;
	tick(100);
	assert_int_equal(words_stored, 5); /* the output network is on */
}

static void software_reset_leaves_the_timestamp(void **state)
{
	uint64_t before;

	UNUSED_STATE;
	begin();
	tick(1000);
	disturb_everything();
	before = model_timestamp(&board);
	assert_true(before > 250);
	put(KRON_WORD_RESET, 0x5555);
	assert_true(last.gates_changed);
	assert_int_equal(model_timestamp(&board), before);
	assert_chip_is_reset();
	assert_int_equal(model_config(&board), 0x90003201);
}

static void hardware_reset_zeroes_the_timestamp(void **state)
{
	UNUSED_STATE;
	begin();
	tick(1000);
	disturb_everything();
	write4(KRON_BOARD_RESET, 0);
	assert_true(last.gates_changed);
	assert_int_equal(model_timestamp(&board), 0);
	configure(KRON_CONFIG_DEFAULT);
	assert_chip_is_reset();
	assert_int_equal(get(KRON_WORD_TIMESTAMP), 0xff00000000000000ull + 100 / 4);
}

/* Two chips on one clock that are reset at one tick: what else happens to them does not matter. */
static void chips_with_one_clock_and_reset_agree(void **state)
{
	struct model_geometry g = MODEL_GEOMETRY_DEFAULT;
	struct model_state chip[2];
	uint64_t t = 1000003;

	UNUSED_STATE;
	model_power_on(&chip[0], &g);
	g.chip_fifo = 16;
	model_power_on(&chip[1], &g);
	for (unsigned i = 0; i < 333; i++)
		model_advance(&chip[1], 17 * i);
	for (unsigned round = 0; round < 50; round++, t += 1234567) {
		uint64_t sample[2];

		for (unsigned i = 0; i < 2; i++) {
			const struct {
				uint32_t offset, data;
			} v[] = {{round ? KRON_BOARD_MEMORY : KRON_BOARD_RESET, 0},
				 {KRON_BOARD_CONFIG, KRON_CONFIG_DEFAULT},
				 {KRON_CHIP_BYTE(KRON_WORD_FILTER), 1},
				 {KRON_CHIP_BYTE(KRON_WORD_CSR), KRON_CSR_SAMPLING},
				 {KRON_CHIP_BYTE(KRON_WORD_TRACE), round}};
			struct model_cycle c = {.bytes = 4, .write = true};

			for (unsigned k = 0; k < 5; k++) {
				c.offset = v[k].offset;
				c.data = v[k].data;
				model_cycle(&chip[i], t, &c);
			}
			assert_true(c.taken);
			sample[i] = (uint64_t)(chip[i].entry[0].group[0] & 0xffffff) << 32 |
				    chip[i].entry[0].group[1];
		}
		assert_int_equal(sample[0], (t - 1000003) / 4);
		assert_int_equal(sample[1], sample[0]);
		for (unsigned i = 0; i < 7; i++) /* the second one is never left alone */
			model_advance(&chip[1], t + 11 * i);
	}
}

/* ---- CSR, Table B1 ---- */

static void csr_ones_are_commands(void **state)
{
	static const struct {
		uint32_t on, off;
	} v[] = {{KRON_CSR_SAMPLING, KRON_CSR_STOP},
		 {KRON_CSR_WAIT, KRON_CSR_DISCARD},
		 {KRON_CSR_READ_WAIT, KRON_CSR_READ_NOWAIT},
		 {KRON_CSR_MODE32, KRON_CSR_MODE64}};

	UNUSED_STATE;
	begin();
	put(KRON_WORD_CSR, KRON_CSR_STOP);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(csr() & v[i].on, 0);
		put(KRON_WORD_CSR, v[i].on);
		assert_true(last.gates_changed);
		assert_int_equal(csr() & (v[i].on | (i < 3 ? v[i].off : 0)), v[i].on);
		put(KRON_WORD_CSR, v[i].off);
		assert_int_equal(csr() & v[i].on, 0);
	}
}

static void csr_zeros_change_nothing(void **state)
{
	const uint32_t all = KRON_CSR_SAMPLING | KRON_CSR_WAIT | KRON_CSR_READ_WAIT;

	UNUSED_STATE;
	begin();
	put(KRON_WORD_CSR, all);
	put(KRON_WORD_CSR, 0);
	assert_int_equal(csr(), all | KRON_CSR_MODE64);
	put(KRON_WORD_CSR, KRON_CSR_DISCARD);
	assert_int_equal(csr(), KRON_CSR_SAMPLING | KRON_CSR_READ_WAIT | KRON_CSR_MODE64);
	put(KRON_WORD_CSR, KRON_CSR_STOP);
	assert_int_equal(csr(), KRON_CSR_READ_WAIT | KRON_CSR_MODE64);
}

static void csr_defaults(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_CSR,
	    KRON_CSR_SAMPLING | KRON_CSR_WAIT | KRON_CSR_READ_WAIT | KRON_CSR_MODE32);
	write4(KRON_BOARD_RESET, 0);
	configure(KRON_CONFIG_DEFAULT);
	assert_int_equal(csr(), KRON_CSR_MODE64);
}

static void csr_status_bits_cannot_be_written(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_CSR, 0x3fc0); /* bits 6-13 */
	assert_int_equal(csr(), KRON_CSR_SAMPLING | KRON_CSR_MODE64);
}

static void csr_unused_bits_read_as_zero(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_CSR, ONES64);
	/* of each pair the default wins; 1, 3, 5, 11 and 13 read as zero */
	assert_int_equal(get(KRON_WORD_CSR), KRON_CSR_MODE64);
	put(KRON_WORD_CSR, 0x4015);
	assert_int_equal(get(KRON_WORD_CSR), 0x4015);
}

static void csr_fifo_full(void **state)
{
	UNUSED_STATE;
	begin();
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(csr() & KRON_CSR_FIFO_FULL, 0);
		assert_true(trace(i));
	}
	assert_int_equal(csr() & KRON_CSR_FIFO_FULL, KRON_CSR_FIFO_FULL);
	tick(40); /* the first one is out */
	assert_int_equal(csr() & KRON_CSR_FIFO_FULL, 0);
}

static void csr_shadow_registers_full(void **state)
{
	UNUSED_STATE;
	begin();
	assert_true(resource(0));
	assert_int_equal(csr() & KRON_CSR_SHADOW_BUSY, KRON_CSR_SHADOW_BUSY);
	tick(167);
	assert_int_equal(csr() & KRON_CSR_SHADOW_BUSY, KRON_CSR_SHADOW_BUSY);
	tick(1);
	assert_int_equal(csr() & KRON_CSR_SHADOW_BUSY, 0);
}

/* Bits 8 and 9 are the flags that the next successful sample takes away. */
static void csr_overruns(void **state)
{
	UNUSED_STATE;
	begin();
	resource(0);
	assert_false(resource(1));
	assert_int_equal(csr() & 0x300, KRON_CSR_SHADOW_OVERRUN);
	for (unsigned i = 0; i < 3; i++)
		assert_true(trace(i));
	assert_int_equal(csr() & 0x300, 0);
	assert_false(trace(3));
	assert_int_equal(csr() & 0x300, KRON_CSR_OVERRUN);
	put(KRON_WORD_OVERRUN, 0); /* the counter is another thing */
	assert_int_equal(csr() & 0x300, KRON_CSR_OVERRUN);
	assert_false(resource(4));
	assert_int_equal(csr() & 0x300, KRON_CSR_OVERRUN | KRON_CSR_SHADOW_OVERRUN);
	put(KRON_WORD_RESET, 0);
	assert_int_equal(csr() & 0x300, 0);
}

static void csr_bit_161(void **state)
{
	UNUSED_STATE;
	begin();
	assert_int_equal(csr() & KRON_CSR_BIT161, 0);
	trace(0);
	resource(0);
	assert_int_equal(csr() & KRON_CSR_BIT161, 0); /* a Trace sample is at the output */
	tick(40);
	assert_int_equal(csr() & KRON_CSR_BIT161, KRON_CSR_BIT161);
	tick(168);
	assert_int_equal(csr() & KRON_CSR_BIT161, 0);
}

/* Bit 12 is what WAIT_CPU was at a hardware reset; a cycle then takes one NODECLK more. */
static void csr_wait_states(void **state)
{
	uint64_t before;

	UNUSED_STATE;
	begin();
	switch_config(KRON_CONFIG_WAIT_CPU, 0);
	before = now;
	assert_int_equal(csr() & KRON_CSR_WAIT_STATES, 0);
	put(KRON_WORD_RESET, 0); /* not a hardware reset */
	assert_int_equal(csr() & KRON_CSR_WAIT_STATES, 0);
	assert_int_equal(now, before);
	write4(KRON_BOARD_RESET, 0);
	configure(KRON_CONFIG_DEFAULT);
	assert_int_equal(csr() & KRON_CSR_WAIT_STATES, KRON_CSR_WAIT_STATES);
	assert_int_equal(now, before + 1);
	assert_int_equal((uint32_t)get(KRON_WORD_WAIT), 0); /* not a wait that is counted */
	put(KRON_WORD_RESET, 0);
	assert_int_equal(csr() & KRON_CSR_WAIT_STATES, KRON_CSR_WAIT_STATES);
	write4(KRON_BOARD_RESET, 0); /* WAIT_CPU is off by now */
	configure(KRON_CONFIG_DEFAULT);
	assert_int_equal(csr() & KRON_CSR_WAIT_STATES, 0);
}

/* ---- source address registers ---- */

static void source_registers_are_read_and_written(void **state)
{
	UNUSED_STATE;
	begin();
	for (unsigned i = 0; i < 8; i++)
		put(KRON_WORD_SOURCE + i, 0xc0ffee00 + i);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal((uint32_t)get(KRON_WORD_SOURCE + i), 0xc0ffee00 + i);
	assert_int_equal(get(40), ONES64);
}

/* ---- 32-bit mode ---- */

static void high_register_supplies_bits_32_63_in_32_bit_mode(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_CSR, KRON_CSR_MODE32);
	write4(KRON_CHIP_BYTE(KRON_WORD_HIGH), 0x12121212);
	write4(KRON_CHIP_BYTE(KRON_WORD_CLOCK), 0x34343434);
	assert_int_equal(get(KRON_WORD_CLOCK), 0x1212121234343434ull);
	write4(KRON_CHIP_BYTE(KRON_WORD_HIGH), 0x33333333);
	put(KRON_WORD_CLOCK, 0x2222222211111111ull); /* the pins 32-63 do not matter */
	assert_int_equal(get(KRON_WORD_CLOCK), 0x3333333311111111ull);
	write4(KRON_CHIP_BYTE(KRON_WORD_HIGH), 0xcafe0001);
	trace(0x1111111122222222ull);
	assert_int_equal((uint32_t)get(KRON_WORD_FIFO + 3), 0xcafe0001);
	assert_int_equal((uint32_t)get(KRON_WORD_FIFO + 4), 0x22222222);
}

static void reads_fill_the_high_register_in_either_mode(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_CLOCK, 0x1234123443214321ull);
	for (unsigned mode = 0; mode < 2; mode++) {
		put(KRON_WORD_CSR, mode ? KRON_CSR_MODE32 : KRON_CSR_MODE64);
		assert_int_equal(read4(KRON_CHIP_BYTE(KRON_WORD_CLOCK)), 0x43214321);
		assert_int_equal(read4(KRON_CHIP_BYTE(KRON_WORD_HIGH)), 0x12341234);
		assert_int_equal(read4(KRON_CHIP_BYTE(KRON_WORD_HIGH)), 0x12341234);
		get(KRON_WORD_FILTER); /* unused bits are ones there, too */
		assert_int_equal(read4(KRON_CHIP_BYTE(KRON_WORD_HIGH)), ONES);
		csr();
		assert_int_equal(read4(KRON_CHIP_BYTE(KRON_WORD_HIGH)), 0);
	}
}

static void two_halves_are_not_indivisible(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_CSR, KRON_CSR_MODE32);
	write4(KRON_CHIP_BYTE(KRON_WORD_HIGH), 0x11111111); /* one processor */
	write4(KRON_CHIP_BYTE(KRON_WORD_HIGH), 0x22222222); /* another one */
	write4(KRON_CHIP_BYTE(KRON_WORD_TRACE), 1);
	assert_int_equal((uint32_t)get(KRON_WORD_FIFO + 3), 0x22222222);
}

static void bus_supplies_all_64_bits_in_64_bit_mode(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_HIGH, 0x99999999);
	trace(0x0123456789abcdefull);
	assert_int_equal((uint32_t)get(KRON_WORD_FIFO + 3), 0x01234567);
	assert_int_equal((uint32_t)get(KRON_WORD_FIFO + 4), 0x89abcdef);
	put(KRON_WORD_RESET, 0);
	put(KRON_WORD_FILTER, 0xffff);
	put(KRON_WORD_CSR, KRON_CSR_SAMPLING);
	write4(KRON_CHIP_BYTE(KRON_WORD_TRACE), 7);
	assert_int_equal((uint32_t)get(KRON_WORD_FIFO + 3), 0); /* the board's zeros */
	assert_int_equal((uint32_t)get(KRON_WORD_FIFO + 4), 7);
	write4(KRON_CHIP_BYTE(KRON_WORD_ENABLE), 0x22222222); /* counters 8-15 stay as they are */
	assert_int_equal(get(KRON_WORD_ENABLE), 0x1111111122222222ull);
}

/* ---- timestamp ---- */

static void timestamp_counts_its_own_clock(void **state)
{
	UNUSED_STATE;
	begin();
	assert_int_equal(model_timestamp(&board), 0);
	tick(3);
	assert_int_equal(model_timestamp(&board), 0);
	tick(1);
	assert_int_equal(model_timestamp(&board), 1);
	tick(40000000ull * 10 - 4); /* ten seconds at 40 MHz */
	assert_int_equal(model_timestamp(&board), 100000000);
	assert_int_equal(get(KRON_WORD_TIMESTAMP), 0xff00000000000000ull | 100000000);
}

static void timestamp_wraps_at_56_bits(void **state)
{
	const uint64_t end = 1ull << 56;

	UNUSED_STATE;
	begin();
	tick(4 * (end - 1)); /* 228 years */
	assert_int_equal(model_timestamp(&board), end - 1);
	trace(0);
	assert_int_equal((uint32_t)get(KRON_WORD_FIFO) & 0xffffff, 0xffffff);
	assert_int_equal((uint32_t)get(KRON_WORD_FIFO + 1), ONES);
	tick(4);
	assert_int_equal(model_timestamp(&board), 0);
	assert_int_equal(get(KRON_WORD_TIMESTAMP), 0xff00000000000000ull);
	tick(4 * end + 4);
	assert_int_equal(model_timestamp(&board), 1);
}

static void timestamp_cannot_be_written_outside_test_mode(void **state)
{
	UNUSED_STATE;
	begin();
	tick(400);
	put(KRON_WORD_TIMESTAMP, 5);
	put(KRON_WORD_INCR_TIMESTAMP, 0);
	assert_int_equal(model_timestamp(&board), 100);
}

/* ---- error counters ---- */

static void error_counters_are_cleared_by_any_write(void **state)
{
	UNUSED_STATE;
	begin();
	for (unsigned i = 0; i < 7; i++)
		trace(i);
	assert_int_equal((uint32_t)get(KRON_WORD_OVERRUN), 3);
	put(KRON_WORD_OVERRUN, 1234);
	assert_int_equal((uint32_t)get(KRON_WORD_OVERRUN), 0);
	put(KRON_WORD_CSR, KRON_CSR_WAIT);
	trace(9);
	assert_int_equal((uint32_t)get(KRON_WORD_WAIT), 40);
	put(KRON_WORD_INCR_WAIT, 0); /* test mode only */
	put(KRON_WORD_INCR_OVERRUN, 0);
	assert_int_equal((uint32_t)get(KRON_WORD_WAIT), 40);
	assert_int_equal((uint32_t)get(KRON_WORD_OVERRUN), 0);
	put(KRON_WORD_WAIT, 99);
	assert_int_equal((uint32_t)get(KRON_WORD_WAIT), 0);
}

static void error_counters_wrap(void **state)
{
	UNUSED_STATE;
	begin();
	switch_config(0, KRON_CONFIG_TESTB);
	put(KRON_WORD_OVERRUN, 0xfffffffe);
	put(KRON_WORD_WAIT, 0xfffffff0);
	switch_config(KRON_CONFIG_TESTB, 0);
	for (unsigned i = 0; i < 7; i++)
		trace(i);
	assert_int_equal((uint32_t)get(KRON_WORD_OVERRUN), 1);
	put(KRON_WORD_CSR, KRON_CSR_WAIT);
	trace(9); /* waits 40 */
	assert_int_equal((uint32_t)get(KRON_WORD_WAIT), 40 - 16);
}

/* ---- test mode ---- */

static void begin_test_mode(void)
{
	begin();
	switch_config(0, KRON_CONFIG_TESTB);
}

static void test_mode_stops_the_counters(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_CLOCK, 0x1111111111111111ull);
	put(KRON_WORD_MODE, 0x1111111111111111ull);
	put(KRON_WORD_ENABLE, 0x2222222222222222ull);
	tick(100);
	switch_config(0, KRON_CONFIG_TESTB);
	tick(1000);
	assert_int_equal(model_timestamp(&board), 25);
	assert_int_equal((uint32_t)get(KRON_WORD_COUNTER + 7), 100);
	for (unsigned i = 0; i < 50; i++)
		trace(i);
	assert_int_equal((uint32_t)get(KRON_WORD_OVERRUN), 0);
	put(KRON_WORD_CSR, KRON_CSR_WAIT);
	assert_true(trace(0));
	assert_int_equal((uint32_t)get(KRON_WORD_WAIT), 0);
	switch_config(KRON_CONFIG_TESTB, 0);
	tick(100);
	assert_int_equal(model_timestamp(&board), 50);
	assert_int_equal((uint32_t)get(KRON_WORD_COUNTER + 7), 200);
}

static void test_mode_writes_the_counters(void **state)
{
	UNUSED_STATE;
	begin_test_mode();
	put(KRON_WORD_TIMESTAMP, 0xab123456789abcdeull);
	assert_int_equal(get(KRON_WORD_TIMESTAMP), 0xff123456789abcdeull);
	put(KRON_WORD_WAIT, 0xffffffff12345678ull);
	assert_int_equal(get(KRON_WORD_WAIT), 0xffffffff12345678ull);
	put(KRON_WORD_OVERRUN, 0x87654321);
	assert_int_equal(get(KRON_WORD_OVERRUN), 0xffffffff87654321ull);
	put(KRON_WORD_COUNTER + 2, 0x11223344);
	assert_int_equal(get(KRON_WORD_COUNTER + 2), 0xffffffff11223344ull);
}

/* Appendix A: "All registers, counters, and the FIFO are read/write in Test Mode." */
static void test_mode_reads_and_writes_everything(void **state)
{
	static const struct {
		uint8_t first, n;
		uint64_t value, unused;
	} v[] = {{KRON_WORD_TIMESTAMP, 1, 0x00fedcba98765432ull, 0xffull << 56},
		 {KRON_WORD_FILTER, 1, 0x9669, ~0xffffull},
		 {KRON_WORD_WAIT, 1, 0x13579bdf, UPPER_ONES},
		 {KRON_WORD_OVERRUN, 1, 0x2468ace0, UPPER_ONES},
		 {KRON_WORD_HIGH, 1, 0x0badcafe, UPPER_ONES},
		 {KRON_WORD_ENABLE, 1, 0x1221211212212112ull, 0},
		 {KRON_WORD_MODE, 1, 0x7654321776543217ull, 0},
		 {KRON_WORD_CLOCK, 1, 0x1234567112345671ull, 0},
		 {KRON_WORD_SOURCE, 8, 0x76543210, UPPER_ONES},
		 {KRON_WORD_COUNTER, 16, 0x01234567, UPPER_ONES},
		 {KRON_WORD_FIFO, 1, 0xc0ffee11, UPPER_ONES}};

	UNUSED_STATE;
	begin_test_mode();
	put(KRON_WORD_CSR, 0x4015);
	assert_int_equal(get(KRON_WORD_CSR), 0x4015);
	put(KRON_WORD_CSR, KRON_CSR_MODE64);
	for (unsigned i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		for (unsigned k = 0; k < v[i].n; k++)
			put(v[i].first + k, v[i].value + k);
		for (unsigned k = 0; k < v[i].n; k++)
			assert_int_equal(get(v[i].first + k), (v[i].value + k) | v[i].unused);
	}
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(get(KRON_WORD_FIFO + i), UPPER_ONES | 0xc0ffee11);
}

static void test_mode_increments_the_counters(void **state)
{
	UNUSED_STATE;
	begin_test_mode();
	put(KRON_WORD_TIMESTAMP, 0x00ffffffffffffffull);
	put(KRON_WORD_INCR_TIMESTAMP, 123);
	assert_int_equal(get(KRON_WORD_TIMESTAMP), 0xff00000000000000ull);
	put(KRON_WORD_INCR_TIMESTAMP, 0);
	assert_int_equal(model_timestamp(&board), 1);
	put(KRON_WORD_INCR_WAIT, 5);
	put(KRON_WORD_INCR_WAIT, 5);
	assert_int_equal((uint32_t)get(KRON_WORD_WAIT), 2);
	put(KRON_WORD_INCR_OVERRUN, 5);
	assert_int_equal((uint32_t)get(KRON_WORD_OVERRUN), 1);
	put(KRON_WORD_INCREMENT + 3, 0); /* disabled and in mode External: test mode all the same */
	assert_int_equal((uint32_t)get(KRON_WORD_COUNTER + 3), 1);
}

static void network_is_switched_in_test_mode(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_NETWORK_OFF, 0); /* not in test mode: nothing */
	trace(1);
	tick(100);
	assert_int_equal(words_stored, 5);
	switch_config(0, KRON_CONFIG_TESTB);
	put(KRON_WORD_NETWORK_OFF, 0);
	trace(2);
	tick(1000);
	assert_int_equal(words_stored, 5);
	assert_int_equal((uint32_t)get(KRON_WORD_FIFO + 4), 2);
	switch_config(KRON_CONFIG_TESTB, 0); /* stays off; cannot be switched on here */
	put(KRON_WORD_NETWORK_ON, 0);
	tick(1000);
	assert_int_equal(words_stored, 5);
	switch_config(0, KRON_CONFIG_TESTB);
	put(KRON_WORD_NETWORK_ON, 0);
	tick(40 + 5);
	assert_int_equal(words_stored, 10);
	assert_int_equal(memory[9], 2);
}

static void fifo_groups_are_readable_at_any_time(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_SOURCE, 0x5a5a5a5a);
	tick(4000); /* timestamp 1000 */
	trace(0x1122334455667788ull);
	trace(0x99);
	assert_int_equal((uint32_t)get(KRON_WORD_FIFO), 0x10000000);
	assert_int_equal((uint32_t)get(KRON_WORD_FIFO + 1), 1000);
	assert_int_equal((uint32_t)get(KRON_WORD_FIFO + 2), 0x5a5a5a5a);
	assert_int_equal((uint32_t)get(KRON_WORD_FIFO + 3), 0x11223344);
	assert_int_equal((uint32_t)get(KRON_WORD_FIFO + 4), 0x55667788);
	assert_int_equal((uint32_t)get(KRON_WORD_FIFO + 4), 0x55667788); /* not shifted */
	tick(40); /* the network takes it away */
	assert_int_equal((uint32_t)get(KRON_WORD_FIFO + 4), 0x99);
}

static void fifo_write_fills_all_groups(void **state)
{
	UNUSED_STATE;
	begin_test_mode();
	put(KRON_WORD_NETWORK_OFF, 0);
	for (unsigned i = 0; i < 5; i++) {
		put(KRON_WORD_FIFO + i, 0x1234500000000ull + 0xabc0 + i);
		if (i < 4)
			assert_int_equal(csr() & KRON_CSR_FIFO_FULL,
					 i == 3 ? KRON_CSR_FIFO_FULL : 0);
	}
	for (unsigned n = 0; n < 4; n++) {
		for (unsigned i = 0; i < 5; i++)
			assert_int_equal((uint32_t)get(KRON_WORD_FIFO + i), 0xabc0 + n);
		put(KRON_WORD_ADVANCE, 0);
	}
	assert_int_equal(get(KRON_WORD_FIFO), ONES64); /* the fifth had no room */
	put(KRON_WORD_FIFO + 2, 0x01020304);
	put(KRON_WORD_NETWORK_ON, 0);
	tick(45);
	assert_int_equal(words_stored, 5);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(memory[i], 0x01020304);
	switch_config(KRON_CONFIG_TESTB, 0);
	put(KRON_WORD_FIFO, 1); /* not outside test mode */
	assert_int_equal(get(KRON_WORD_FIFO), ONES64);
}

static void advance_shifts_the_fifo_and_frees_the_shadows(void **state)
{
	UNUSED_STATE;
	begin_test_mode();
	put(KRON_WORD_NETWORK_OFF, 0);
	resource(1);
	trace(2);
	switch_config(KRON_CONFIG_TESTB, 0);
	put(KRON_WORD_ADVANCE, 0); /* test mode only */
	assert_int_equal((uint32_t)get(KRON_WORD_FIFO + 4), 1);
	switch_config(0, KRON_CONFIG_TESTB);
	assert_int_equal(csr() & KRON_CSR_SHADOW_BUSY, KRON_CSR_SHADOW_BUSY);
	put(KRON_WORD_ADVANCE, 0);
	assert_int_equal((uint32_t)get(KRON_WORD_FIFO + 4), 2);
	assert_int_equal(csr() & (KRON_CSR_SHADOW_BUSY | KRON_CSR_BIT161), 0);
	put(KRON_WORD_ADVANCE, 0);
	put(KRON_WORD_ADVANCE, 0);
	assert_int_equal(get(KRON_WORD_FIFO + 4), ONES64);
	tick(1000);
	assert_int_equal(words_stored, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(power_on_state),
		cmocka_unit_test(unassigned_words_read_ones_and_write_nothing),
		cmocka_unit_test(unused_bits_read_as_ones_but_in_the_csr),
		cmocka_unit_test(unused_bits_of_a_write_are_ignored),
		cmocka_unit_test(software_reset_leaves_the_timestamp),
		cmocka_unit_test(hardware_reset_zeroes_the_timestamp),
		cmocka_unit_test(chips_with_one_clock_and_reset_agree),
		cmocka_unit_test(csr_ones_are_commands),
		cmocka_unit_test(csr_zeros_change_nothing),
		cmocka_unit_test(csr_defaults),
		cmocka_unit_test(csr_status_bits_cannot_be_written),
		cmocka_unit_test(csr_unused_bits_read_as_zero),
		cmocka_unit_test(csr_fifo_full),
		cmocka_unit_test(csr_shadow_registers_full),
		cmocka_unit_test(csr_overruns),
		cmocka_unit_test(csr_bit_161),
		cmocka_unit_test(csr_wait_states),
		cmocka_unit_test(source_registers_are_read_and_written),
		cmocka_unit_test(high_register_supplies_bits_32_63_in_32_bit_mode),
		cmocka_unit_test(reads_fill_the_high_register_in_either_mode),
		cmocka_unit_test(two_halves_are_not_indivisible),
		cmocka_unit_test(bus_supplies_all_64_bits_in_64_bit_mode),
		cmocka_unit_test(timestamp_counts_its_own_clock),
		cmocka_unit_test(timestamp_wraps_at_56_bits),
		cmocka_unit_test(timestamp_cannot_be_written_outside_test_mode),
		cmocka_unit_test(error_counters_are_cleared_by_any_write),
		cmocka_unit_test(error_counters_wrap),
		cmocka_unit_test(test_mode_stops_the_counters),
		cmocka_unit_test(test_mode_writes_the_counters),
		cmocka_unit_test(test_mode_reads_and_writes_everything),
		cmocka_unit_test(test_mode_increments_the_counters),
		cmocka_unit_test(network_is_switched_in_test_mode),
		cmocka_unit_test(fifo_groups_are_readable_at_any_time),
		cmocka_unit_test(fifo_write_fills_all_groups),
		cmocka_unit_test(advance_shifts_the_fifo_and_frees_the_shadows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

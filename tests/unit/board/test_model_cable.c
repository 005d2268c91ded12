/* SPDX-License-Identifier: MIT */
/*
 * The External Cable Interface (NISTIR 5993, 2.6): what the board FIFO gives to the cable, 16 bits at a
 * time, and what happens when the far end has no room.
 */
#include "model_rig.h"

static void begin_with_cable(uint32_t drain, uint32_t room)
{
	struct model_geometry g = MODEL_GEOMETRY_DEFAULT;

	g.cable = room;
	g.drain_cable = drain;
	begin_with(g);
	configure(0x3001);
	put(KRON_WORD_FILTER, 0xffff);
	put(KRON_WORD_CSR, KRON_CSR_SAMPLING);
}

static void begin_usual(void)
{
	begin_with_cable(MODEL_GEOMETRY_DEFAULT.drain_cable, MODEL_CABLE_MAX);
}

static void take(uint32_t n)
{
	model_cable_take(&board, now, n);
	carry_out_stores();
}

static uint8_t byte_over_cable(unsigned i)
{
	return (uint8_t)(cabled[i / 2] >> (i % 2 ? 0 : 8));
}

/* The sequences are counted one by one: each sends the two oldest bytes, and the others stay. */
static void cable_takes_two_bytes_at_a_time(void **state)
{
	static const uint8_t sample[20] = {0x10, 0,    0,    0,    0,    0,    0,
					   0,    0xca, 0xfe, 0xba, 0xbe, 0x11, 0x22,
					   0x33, 0x44, 0x55, 0x66, 0x77, 0x88};

	UNUSED_STATE;
	for (unsigned n = 0; n <= 10; n++) {
		begin_with_cable(100, MODEL_CABLE_MAX);
		switch_config(KRON_CONFIG_DIS_STATE, 0);
		put(KRON_WORD_SOURCE, 0xcafebabe);
		trace(0x1122334455667788ull);
		tick(100);
		for (unsigned i = 0; i < n; i++) {
			switch_config(0, KRON_CONFIG_DIS_STATE);
			tick(1);
			switch_config(KRON_CONFIG_DIS_STATE, 0); /* no second one */
			tick(98);
			assert_int_equal(ncabled, i);
			tick(1);
			assert_int_equal(ncabled, i + 1);
			tick(200);
			assert_int_equal(ncabled, i + 1);
			assert_int_equal(cabled[i], sample[2 * i] << 8 | sample[2 * i + 1]);
		}
		assert_int_equal(model_cable_waiting(&board), n);
		assert_int_equal(words_stored, 0);
		switch_config(KRON_CONFIG_TEST, KRON_CONFIG_DIS_STATE);
		for (unsigned i = 2 * n; i < 20; i++)
			assert_int_equal(read4(KRON_BOARD_TEST), 0xffffff00u | sample[i]);
		assert_int_equal(read4(KRON_BOARD_TEST), ONES);
	}
}

static void run_program(uint32_t config)
{
	begin_usual();
	configure(config);
	for (uint32_t i = 0; i < 500; i++) {
		put(KRON_WORD_SOURCE, i * 0x9e3779b9u);
		put(KRON_WORD_COUNTER + i % 16, i * 77);
		if (i % 7 == 3)
			resource(i * 0x123456789abcdull);
		else
			trace(i * 0xfedcba987654321ull);
		tick(i % 7 == 3 ? 700 : 90 + i % 50);
	}
	tick(10000);
}

/* A word of memory has the byte that left the FIFO first as its most significant one. */
static void cable_carries_what_memory_would_hold(void **state)
{
	static uint32_t words[1 << 16];
	unsigned n;

	UNUSED_STATE;
	run_program(0x3201);
	n = words_stored;
	assert_int_equal(n, 5 * 500 + 16 * 71);
	memcpy(words, memory, n * sizeof(*words));
	run_program(0x3001);
	assert_int_equal(words_stored, 0);
	assert_int_equal(ncabled, 2 * n);
	for (unsigned i = 0; i < 4 * n; i++)
		assert_int_equal(byte_over_cable(i), words[i / 4] >> (24 - 8 * (i % 4)) & 0xff);
}

/* A sequence that has begun goes on to its end; what follows goes the other way. */
static void switched_in_a_sequence(void **state)
{
	UNUSED_STATE;
	for (unsigned local = 0; local < 2; local++) {
		begin_with_cable(5, MODEL_CABLE_MAX);
		switch_config(KRON_CONFIG_DIS_STATE, 0);
		put(KRON_WORD_SOURCE, 0xcafebabe);
		trace(0x1122334455667788ull);
		tick(100);
		configure(local ? 0x3201 : 0x3001);
		tick(1);
		configure(local ? 0x3001 : 0x3201);
		tick(1000); /* the first and all others in one call */
		assert_int_equal(ncabled, local ? 8 : 1);
		assert_int_equal(words_stored, local ? 1 : 4);
		assert_int_equal(cabled[0], local ? 0 : 0x1000);
		if (local) {
			assert_int_equal(memory[0], 0x10000000);
			assert_int_equal(cabled[2], 0xcafe);
			assert_int_equal(cabled[7], 0x7788);
		} else {
			assert_int_equal(memory[0], 0); /* of the timestamp */
			assert_int_equal(memory[1], 0x0000cafe);
			assert_int_equal(memory[3], 0x33445566);
		}
	}
}

/* Ticks until a full board FIFO is empty */
static uint64_t time_to_drain(uint32_t config)
{
	uint64_t before;

	begin_usual();
	switch_config(KRON_CONFIG_DIS_STATE, 0);
	for (unsigned i = 0; i < 51; i++) {
		assert_true(trace(i));
		tick(40);
	}
	switch_config(config, KRON_CONFIG_DIS_STATE);
	for (before = now; !model_is_idle(&board);)
		tick(1);
	return now - before;
}

/* Samples of 10,000 that are taken at the network's full rate */
static unsigned taken_at_full_rate(uint32_t config)
{
	unsigned taken = 0;

	begin_usual();
	switch_config(config, 0);
	for (unsigned i = 0; i < 10000; i++) {
		taken += trace(i);
		tick(40);
		take(model_cable_waiting(&board));
	}
	assert_int_equal((uint32_t)get(KRON_WORD_OVERRUN), 10000 - taken);
	return taken;
}

static void cable_is_slower_than_memory(void **state)
{
	uint64_t memory_ticks, cable_ticks;

	UNUSED_STATE;
	memory_ticks = time_to_drain(KRON_CONFIG_LOCAL);
	assert_int_equal(words_stored, 51 * 5);
	cable_ticks = time_to_drain(0);
	assert_int_equal(words_stored, 0);
	assert_int_equal(ncabled, 51 * 10);
	assert_true(cable_ticks > memory_ticks);
	assert_int_equal(memory_ticks, 51 * 5 * 5);
	assert_int_equal(cable_ticks, 2 * 51 * 5 * 5);
	/* "The average sample collection rate": 25 and 50 ticks a sample, when one comes each 40 */
	assert_int_equal(taken_at_full_rate(KRON_CONFIG_LOCAL), 10000);
	assert_in_range(taken_at_full_rate(0), 8000, 8100);
}

/* "More samples than will fit in the local memory", none of which gets there */
static void cable_takes_more_than_memory_holds(void **state)
{
	UNUSED_STATE;
	begin_usual();
	for (unsigned i = 0; i < 838860 + 100000; i++) {
		assert_true(trace(i));
		tick(60);
		take(model_cable_waiting(&board));
	}
	tick(100);
	take(model_cable_waiting(&board));
	assert_int_equal((uint32_t)get(KRON_WORD_OVERRUN), 0);
	assert_int_equal(ncabled, 10 * (838860 + 100000));
	assert_int_equal(words_stored, 0);
	switch_config(KRON_CONFIG_LOCAL, 0);
	tick(100);
	assert_int_equal(words_stored, 0); /* nothing is left for the memory */
	assert_int_equal(model_map(&board), 0);
}

/* The far end has room for 100 values and stops: both FIFOs fill, then samples are lost and counted; when it
 * goes on, all that were taken come, in order. */
static void far_end_without_room(void **state)
{
	unsigned taken = 0;

	UNUSED_STATE;
	begin_with_cable(5, 100);
	for (unsigned i = 0; i < 200; i++) {
		taken += trace(i);
		tick(60);
		assert_true(model_cable_waiting(&board) <= 100);
	}
	assert_int_equal(taken, 10 + 51 + 4);
	assert_int_equal((uint32_t)get(KRON_WORD_OVERRUN), 200 - 65);
	assert_true(csr() & KRON_CSR_OVERRUN);
	assert_int_equal(ncabled, 100);
	put(KRON_WORD_CSR, KRON_CSR_WAIT); /* nobody can foresee when it goes on */
	assert_false(trace(0));
	assert_true(last.no_answer);
	assert_int_equal((uint32_t)get(KRON_WORD_OVERRUN), 200 - 65 + 1);
	while (model_cable_waiting(&board)) {
		take(7);
		tick(1000);
	}
	assert_int_equal(ncabled, 10 * 65);
	for (unsigned i = 0; i < 65; i++)
		assert_int_equal(cabled[10 * i + 9], i);
	/* a wait that the cable itself ends is one */
	for (unsigned i = 0; i < 60; i++) {
		take(100);
		assert_true(trace(i));
	}
	assert_true((uint32_t)get(KRON_WORD_WAIT) > 0);
}

static void cable_with_nobody_at_the_other_end(void **state)
{
	unsigned taken;

	UNUSED_STATE;
	begin();
	switch_config(0, KRON_CONFIG_LOCAL);
	for (taken = 0; trace(taken); taken++)
		tick(40);
	assert_int_equal(taken, 55);
	assert_int_equal(ncabled, 0);
	switch_config(KRON_CONFIG_LOCAL, 0); /* they go to memory now */
	tick(10000);
	assert_int_equal(words_stored, 5 * 55);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cable_takes_two_bytes_at_a_time),
		cmocka_unit_test(cable_carries_what_memory_would_hold),
		cmocka_unit_test(switched_in_a_sequence),
		cmocka_unit_test(cable_is_slower_than_memory),
		cmocka_unit_test(cable_takes_more_than_memory_holds),
		cmocka_unit_test(far_end_without_room),
		cmocka_unit_test(cable_with_nobody_at_the_other_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

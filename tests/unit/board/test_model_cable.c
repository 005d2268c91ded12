/* SPDX-License-Identifier: MIT */
/*
 * The External Cable Interface (NISTIR 5993, 2.6): what the board FIFO gives to the cable.  The model
 * has nobody at its other end, so what is seen is what stays in the FIFO, and how long it takes.
 */
#include "model_rig.h"

static void begin_with_cable(uint32_t drain)
{
	struct model_geometry g = MODEL_GEOMETRY_DEFAULT;

	g.cable = 1;
	g.drain_cable = drain;
	begin_with(g);
	configure(0x3001);
	put(KRON_WORD_FILTER, 1);
	put(KRON_WORD_CSR, KRON_CSR_SAMPLING);
}

/* The sequences are counted one by one; what each has left is looked at by TEST operations. */
static void cable_takes_two_bytes_at_a_time(void **state)
{
	static const uint8_t sample[20] = {0x10, 0,    0,    0,    0,    0,    0,
					   0,    0xca, 0xfe, 0xba, 0xbe, 0x11, 0x22,
					   0x33, 0x44, 0x55, 0x66, 0x77, 0x88};

	UNUSED_STATE;
	for (unsigned n = 0; n <= 10; n++) {
		begin_with_cable(100);
		switch_config(KRON_CONFIG_DIS_STATE, 0);
		put(KRON_WORD_SOURCE, 0xcafebabe);
		trace(0x1122334455667788ull);
		tick(100);
		for (unsigned i = 0; i < n; i++) {
			switch_config(0, KRON_CONFIG_DIS_STATE);
			tick(1);
			switch_config(KRON_CONFIG_DIS_STATE, 0); /* no second one */
			tick(200);
		}
		switch_config(KRON_CONFIG_TEST, KRON_CONFIG_DIS_STATE);
		for (unsigned i = 2 * n; i < 20; i++)
			assert_int_equal(read4(KRON_BOARD_TEST), 0xffffff00u | sample[i]);
		assert_int_equal(read4(KRON_BOARD_TEST), ONES);
	}
}

/* Ticks until a full board FIFO is empty */
static uint64_t time_to_drain(uint32_t config)
{
	uint64_t before;

	begin_with_cable(MODEL_GEOMETRY_DEFAULT.drain_cable);
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

static void cable_is_slower_than_memory(void **state)
{
	UNUSED_STATE;
	assert_int_equal(time_to_drain(KRON_CONFIG_LOCAL), 51 * 5 * 5);
	assert_int_equal(words_stored, 51 * 5);
	assert_int_equal(time_to_drain(0), 2 * 51 * 5 * 5);
	assert_int_equal(words_stored, 0);
}

/* "More samples than will fit in the local memory", none of which gets there */
static void cable_takes_more_than_memory_holds(void **state)
{
	UNUSED_STATE;
	begin_with_cable(MODEL_GEOMETRY_DEFAULT.drain_cable);
	for (unsigned i = 0; i < 838860 + 100000; i++) {
		assert_true(trace(i));
		tick(60);
	}
	assert_int_equal((uint32_t)get(KRON_WORD_OVERRUN), 0);
	assert_int_equal(words_stored, 0);
	tick(100);
	switch_config(KRON_CONFIG_LOCAL, 0);
	tick(100);
	assert_int_equal(words_stored, 0); /* nothing is left for the memory */
	assert_int_equal(model_map(&board), 0);
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
	switch_config(KRON_CONFIG_LOCAL, 0); /* they go to memory now */
	tick(10000);
	assert_int_equal(words_stored, 5 * 55);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cable_takes_two_bytes_at_a_time),
		cmocka_unit_test(cable_is_slower_than_memory),
		cmocka_unit_test(cable_takes_more_than_memory_holds),
		cmocka_unit_test(cable_with_nobody_at_the_other_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

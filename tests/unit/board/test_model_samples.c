/* SPDX-License-Identifier: MIT */
/*
 * Samples: their formats (NISTIR 5571, Table B2), every row of Tables B3a and B3b, filter, CPU
 * ID, error flags, and how long everything takes.
 */
#include "model_rig.h"

/* ---- formats, Table B2 ---- */

static void trace_sample_in_memory(void **state)
{
	UNUSED_STATE;
	begin();
	switch_config(0x80, 0x7f); /* CPU 7 */
	put(KRON_WORD_SOURCE + 7, 0xfeedf00d);
	tick(4ull * 0x12345678);
	put(KRON_WORD_TRACE + 5, 0x1122334455667788ull);
	assert_true(last.taken);
	tick(44);
	assert_int_equal(words_stored, 4);
	tick(1);
	assert_int_equal(words_stored, 5);
	assert_int_equal(memory[0], 0xf0000000); /* CPU 7 = 111, Trace = 10, no errors */
	assert_int_equal(memory[1], 0x12345678);
	assert_int_equal(memory[2], 0xfeedf00d);
	assert_int_equal(memory[3], 0x11223344);
	assert_int_equal(memory[4], 0x55667788);
	assert_int_equal(model_map(&board), 5);
	tick(10000);
	assert_int_equal(words_stored, 5);
}

static void resource_sample_in_memory(void **state)
{
	UNUSED_STATE;
	begin();
	for (unsigned i = 0; i < 16; i++)
		put(KRON_WORD_COUNTER + i, 0x01010101u * (i + 1));
	put(KRON_WORD_SOURCE, 0x12345678);
	tick(400);
	put(KRON_WORD_RESOURCE + 15, 0xa1a2a3a4a5a6a7a8ull);
	assert_true(last.taken);
	tick(168 + 5);
	assert_int_equal(words_stored, 21);
	assert_int_equal(memory[0], 0x18000000); /* CPU 0, Resource = 11 */
	assert_int_equal(memory[1], 100);
	assert_int_equal(memory[2], 0x12345678);
	assert_int_equal(memory[3], 0xa1a2a3a4);
	assert_int_equal(memory[4], 0xa5a6a7a8);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(memory[5 + i], 0x01010101u * (i + 1));
	tick(10000);
	assert_int_equal(words_stored, 21);
}

/* The order of the bytes on their way, taken by hand out of the board FIFO. */
static void header_is_sent_first(void **state)
{
	static const uint8_t expected[20] = {0x10, 0,    0,    0,    0,    0,    0,
					     0x19, 0xca, 0xfe, 0xba, 0xbe, 0x11, 0x22,
					     0x33, 0x44, 0x55, 0x66, 0x77, 0x88};

	UNUSED_STATE;
	begin();
	put(KRON_WORD_SOURCE, 0xcafebabe);
	switch_config(KRON_CONFIG_TEST, 0);
	tick(100);
	trace(0x1122334455667788ull);
	tick(40);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(read4(KRON_BOARD_TEST), 0xffffff00u | expected[i]);
	assert_int_equal(read4(KRON_BOARD_TEST), ONES);
}

static void header_names_the_cpu(void **state)
{
	UNUSED_STATE;
	begin();
	for (unsigned cpu = 0; cpu < 8; cpu++) {
		put(KRON_WORD_SOURCE + cpu, 1000 + cpu);
		switch_config(1u << cpu, 0xff & ~(1u << cpu));
		trace(cpu);
		resource(cpu);
		tick(300);
		assert_int_equal(memory[26 * cpu] >> 24, cpu << 5 | 2 << 3);
		assert_int_equal(memory[26 * cpu + 2], 1000 + cpu);
		assert_int_equal(memory[26 * cpu + 5] >> 24, cpu << 5 | 3 << 3);
		assert_int_equal(memory[26 * cpu + 7], 1000 + cpu);
	}
}

/* Only one line may be active; what no or several lines do is our reading. */
static void odd_cpu_lines(void **state)
{
	UNUSED_STATE;
	begin();
	for (unsigned cpu = 0; cpu < 8; cpu++)
		put(KRON_WORD_SOURCE + cpu, 1000 + cpu);
	switch_config(0, 0xff);
	trace(0);
	tick(100);
	assert_int_equal(memory[0] >> 29, 0);
	assert_int_equal(memory[2], 1000);
	switch_config(0xa8, 0);
	trace(0);
	tick(100);
	assert_int_equal(memory[5] >> 29, 3);
	assert_int_equal(memory[7], 1003);
}

static void external_cpu_lines(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_SOURCE + 0, 1000);
	put(KRON_WORD_SOURCE + 6, 1006);
	last.cpu_lines = 0x40;
	trace(0); /* EXT_CPU is off: the Configuration Register counts */
	switch_config(KRON_CONFIG_EXT_CPU, 0);
	trace(0);
	tick(200);
	assert_int_equal(memory[2], 1000);
	assert_int_equal(memory[5] >> 29, 6);
	assert_int_equal(memory[7], 1006);
}

/* The access layer's transaction: store the source and trigger. */
static void source_and_trigger_in_one_cycle(void **state)
{
	UNUSED_STATE;
	begin();
	last.set_source = true;
	last.source = 4711;
	last.cpu_lines = 0x20;
	trace(0); /* without EXT_CPU the lines mean nothing */
	switch_config(KRON_CONFIG_EXT_CPU, 0);
	trace(1);
	last.cpu_lines = 0x21;
	trace(2); /* not one line */
	last.set_source = false;
	tick(300);
	assert_int_equal(memory[2], 0);
	assert_int_equal(memory[7], 4711);
	assert_int_equal((uint32_t)get(KRON_WORD_SOURCE + 5), 4711);
	assert_int_equal((uint32_t)get(KRON_WORD_SOURCE), 0);
}

/* ---- filter ---- */

static void filter_level_is_the_address_low_four_bits(void **state)
{
	UNUSED_STATE;
	begin();
	for (unsigned level = 0; level < 16; level++) {
		put(KRON_WORD_FILTER, 1u << level);
		assert_true(last.gates_changed);
		for (unsigned i = 0; i < 32; i++) {
			put(KRON_WORD_TRACE + i, i);
			assert_int_equal(last.taken, i % 16 == level);
			assert_false(last.no_answer); /* acknowledged all the same */
			tick(200);
		}
	}
	assert_int_equal(words_stored, 16 * (5 + 21));
	assert_int_equal((uint32_t)get(KRON_WORD_OVERRUN), 0);
}

static void any_combination_of_levels(void **state)
{
	UNUSED_STATE;
	begin();
	for (uint32_t filter = 0; filter < 0x10000; filter += 0x1235) {
		put(KRON_WORD_FILTER, filter);
		for (unsigned level = 0; level < 16; level++) {
			put(KRON_WORD_TRACE + level, 0);
			assert_int_equal(last.taken, filter >> level & 1);
			tick(50);
		}
	}
}

static void filtered_triggers_take_the_same_time(void **state)
{
	uint64_t before;

	UNUSED_STATE;
	begin();
	put(KRON_WORD_FILTER, 2);
	before = now;
	put(KRON_WORD_TRACE + 0, 0);
	put(KRON_WORD_TRACE + 1, 0);
	assert_int_equal(now, before);
	/* nor does an unwanted one wait or count when everything is full */
	for (unsigned i = 0; i < 3; i++)
		put(KRON_WORD_TRACE + 1, 0);
	put(KRON_WORD_CSR, KRON_CSR_WAIT);
	before = now;
	put(KRON_WORD_TRACE + 0, 0);
	assert_int_equal(now, before);
	put(KRON_WORD_CSR, KRON_CSR_DISCARD);
	put(KRON_WORD_OVERRUN, 0);
	put(KRON_WORD_TRACE + 0, 0);
	assert_int_equal((uint32_t)get(KRON_WORD_OVERRUN), 0);
	assert_int_equal(csr() & KRON_CSR_OVERRUN, 0);
}

/* ... also where a cycle takes time: with a wait state it is one NODECLK. */
static void filtered_triggers_have_the_same_wait_state(void **state)
{
	UNUSED_STATE;
	begin();
	switch_config(KRON_CONFIG_WAIT_CPU, 0);
	write4(KRON_BOARD_RESET, 0);
	configure(KRON_CONFIG_DEFAULT);
	put(KRON_WORD_FILTER, 2);
	for (unsigned i = 0; i < 6; i++) {
		uint64_t before;

		put(KRON_WORD_CSR, i < 4 ? KRON_CSR_SAMPLING : KRON_CSR_STOP);
		before = now;
		put(KRON_WORD_TRACE + i % 2, 0);
		assert_int_equal(last.taken, i < 4 && i % 2);
		assert_int_equal(now, before + 1);
	}
}

static void no_sample_while_sampling_is_disabled(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_CSR, KRON_CSR_STOP);
	assert_false(trace(0));
	assert_false(resource(0));
	tick(1000);
	assert_int_equal(words_stored, 0);
	put(KRON_WORD_CSR, KRON_CSR_SAMPLING);
	assert_true(trace(0));
}

/* ---- Table B3a ---- */

enum { AVAIL, FULL };

/*
 * FIFO and shadow registers as the table has them, with the network switched off.  The Resource
 * sample is the last one, so that the FIFO has room long before the shadow registers are free.
 */
static void make(bool wait, int fifo, int shadow)
{
	begin();
	switch_config(0, KRON_CONFIG_TESTB);
	put(KRON_WORD_NETWORK_OFF, 0);
	for (unsigned i = shadow == FULL; fifo == FULL && i < board.geometry.chip_fifo; i++)
		assert_true(trace(100 + i));
	if (shadow == FULL)
		assert_true(resource(99));
	assert_int_equal(!!(csr() & KRON_CSR_FIFO_FULL), fifo == FULL);
	assert_int_equal(!!(csr() & KRON_CSR_SHADOW_BUSY), shadow == FULL);
	put(KRON_WORD_CSR, wait ? KRON_CSR_WAIT : KRON_CSR_DISCARD);
	put(KRON_WORD_NETWORK_ON, 0);
	switch_config(KRON_CONFIG_TESTB, 0);
}

/* One row: what the sample does, to the counters and to the header of the next one taken. */
static void row(bool wait, bool is_resource, int fifo, int shadow, unsigned header_fifo,
		unsigned header_shadow, unsigned overruns, unsigned waits)
{
	uint64_t before;

	make(wait, fifo, shadow);
	before = now;
	assert_int_equal(is_resource ? resource(1) : trace(1), overruns == 0);
	assert_int_equal(now - before, waits);
	assert_int_equal((uint32_t)get(KRON_WORD_OVERRUN), overruns);
	assert_int_equal((uint32_t)get(KRON_WORD_WAIT), waits);
	assert_int_equal(csr() >> 8 & 1, header_fifo);
	assert_int_equal(csr() >> 9 & 1, header_shadow);
	tick(5000); /* everything is out */
	words_stored = 0;
	assert_true(trace(2));
	tick(100);
	assert_int_equal(words_stored, 5);
	assert_int_equal(memory[model_map(&board) - 5] >> 24,
			 2u << 3 | header_shadow << 2 | header_fifo << 1);
	assert_int_equal(csr() & 0x300, 0);
	assert_true(trace(3)); /* only the next sample has the flags */
	tick(100);
	assert_int_equal(memory[model_map(&board) - 5] >> 24, 2u << 3);
}

/* With the network on again a Trace sample takes 40 NODECLKs to leave, a Resource one 168. */
static void wait_for_room(void **state)
{
	UNUSED_STATE;
	/*  wait   R      FIFO   shadow hdr   overruns waits */
	row(true, false, AVAIL, AVAIL, 0, 0, 0, 0);
	row(true, true, AVAIL, AVAIL, 0, 0, 0, 0);
	row(true, false, AVAIL, FULL, 0, 0, 0, 0);
	row(true, true, AVAIL, FULL, 0, 0, 0, 168);
	row(true, false, FULL, AVAIL, 0, 0, 0, 40);
	row(true, true, FULL, AVAIL, 0, 0, 0, 40);
	row(true, false, FULL, FULL, 0, 0, 0, 40);
	row(true, true, FULL, FULL, 0, 0, 0, 3 * 40 + 168);
}

static void discard_without_room(void **state)
{
	UNUSED_STATE;
	row(false, false, AVAIL, AVAIL, 0, 0, 0, 0);
	row(false, true, AVAIL, AVAIL, 0, 0, 0, 0);
	row(false, false, AVAIL, FULL, 0, 0, 0, 0);
	row(false, true, AVAIL, FULL, 0, 1, 1, 0);
	row(false, false, FULL, AVAIL, 1, 0, 1, 0);
	row(false, true, FULL, AVAIL, 1, 0, 1, 0);
	row(false, false, FULL, FULL, 1, 0, 1, 0);
	row(false, true, FULL, FULL, 1, 1, 1, 0);
}

/* Both: the Resource sample is the last of four, so FIFO room comes long before the shadows. */
static void wait_for_both(void **state)
{
	UNUSED_STATE;
	begin();
	for (unsigned i = 0; i < 3; i++)
		trace(i);
	resource(3);
	put(KRON_WORD_CSR, KRON_CSR_WAIT);
	assert_true(resource(4));
	assert_int_equal(now, 3 * 40 + 168);
	assert_int_equal((uint32_t)get(KRON_WORD_WAIT), 3 * 40 + 168);
	tick(168 + 5);
	assert_int_equal(memory[5 * 3 + 21 + 1], (3 * 40 + 168) / 4); /* taken after the wait */
	assert_int_equal(memory[5 * 3 + 21 + 4], 4);
}

static void wait_that_cannot_end_is_a_time_out(void **state)
{
	UNUSED_STATE;
	begin();
	switch_config(0, KRON_CONFIG_TESTB);
	put(KRON_WORD_NETWORK_OFF, 0);
	switch_config(KRON_CONFIG_TESTB, 0);
	for (unsigned i = 0; i < 4; i++)
		trace(i);
	put(KRON_WORD_CSR, KRON_CSR_WAIT);
	assert_false(trace(5));
	assert_true(last.no_answer);
	assert_int_equal((uint32_t)get(KRON_WORD_OVERRUN), 1);
	assert_int_equal((uint32_t)get(KRON_WORD_WAIT), 0);
	assert_int_equal(csr() & KRON_CSR_OVERRUN, KRON_CSR_OVERRUN);
}

/* ... also when it is the board FIFO that nobody empties. */
static void wait_for_a_full_board_fifo_is_a_time_out(void **state)
{
	unsigned taken = 0;

	UNUSED_STATE;
	begin();
	switch_config(KRON_CONFIG_DIS_STATE, 0);
	put(KRON_WORD_CSR, KRON_CSR_WAIT);
	while (trace(taken))
		taken++;
	assert_true(last.no_answer);
	assert_int_equal(taken, 51 + 4); /* 1024 bytes and four places */
	switch_config(0, KRON_CONFIG_DIS_STATE);
	tick(10000);
	assert_int_equal(words_stored, 5 * 55);
	for (unsigned i = 0; i < taken; i++)
		assert_int_equal(memory[5 * i + 4], i);
}

/* ---- Table B3b ---- */

static void read_with_copy_when_available(void **state)
{
	UNUSED_STATE;
	for (unsigned wait = 0; wait < 2; wait++) {
		begin();
		put(KRON_WORD_CSR, wait ? KRON_CSR_READ_WAIT : KRON_CSR_READ_NOWAIT);
		put(KRON_WORD_COUNTER + 3, 333);
		assert_int_equal((uint32_t)get(KRON_WORD_INCREMENT + 3), 0); /* the shadow still */
		assert_int_equal((uint32_t)get(KRON_WORD_COUNTER + 3), 333);
		assert_int_equal((uint32_t)get(KRON_WORD_INCREMENT + 3), 333);
		assert_int_equal(csr() & KRON_CSR_SHADOW_BUSY, 0); /* never from a read */
		assert_int_equal((uint32_t)get(KRON_WORD_WAIT), 0);
	}
}

static void read_with_copy_waits(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_CSR, KRON_CSR_READ_WAIT);
	resource(0);
	tick(10);
	put(KRON_WORD_COUNTER + 3, 333);
	assert_int_equal((uint32_t)get(KRON_WORD_COUNTER + 3), 333);
	assert_int_equal(now, 168);
	assert_int_equal((uint32_t)get(KRON_WORD_WAIT), 158);
	assert_int_equal((uint32_t)get(KRON_WORD_OVERRUN), 0);
}

static void read_with_copy_returns_bad_data(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_COUNTER + 3, 332);
	resource(0);
	put(KRON_WORD_COUNTER + 3, 333);
	assert_int_equal((uint32_t)get(KRON_WORD_COUNTER + 3), ONES);
	assert_false(last.no_answer);
	assert_int_equal(now, 0);
	assert_int_equal((uint32_t)get(KRON_WORD_WAIT), 0);
	assert_int_equal((uint32_t)get(KRON_WORD_OVERRUN), 0);
	tick(200);
	assert_int_equal(memory[5 + 3], 332); /* the sample is not disturbed */
	assert_int_equal((uint32_t)get(KRON_WORD_INCREMENT + 3), 332); /* there was no copy */
}

static void read_without_copy_delays_the_network(void **state)
{
	UNUSED_STATE;
	for (unsigned wait = 0; wait < 2; wait++) {
		begin();
		put(KRON_WORD_CSR, wait ? KRON_CSR_READ_WAIT : KRON_CSR_READ_NOWAIT);
		put(KRON_WORD_COUNTER + 3, 333);
		get(KRON_WORD_INCREMENT + 3); /* not busy: nothing to delay */
		resource(0);
		put(KRON_WORD_COUNTER + 3, 444);
		tick(10);
		assert_int_equal((uint32_t)get(KRON_WORD_INCREMENT + 3), 333);
		assert_int_equal((uint32_t)get(KRON_WORD_INCREMENT + 4), 0);
		assert_int_equal(now, 10); /* the processor is not */
		tick(168 + 2 * 2 - 10 - 1);
		assert_int_equal(csr() & KRON_CSR_SHADOW_BUSY, KRON_CSR_SHADOW_BUSY);
		tick(1);
		assert_int_equal(csr() & KRON_CSR_SHADOW_BUSY, 0);
		assert_int_equal((uint32_t)get(KRON_WORD_WAIT), 0);
	}
}

static void each_read_delays_the_network_at_any_time(void **state)
{
	UNUSED_STATE;
	begin();
	tick(1ull << 50);
	resource(0);
	for (unsigned i = 0; i < 16; i++)
		get(KRON_WORD_INCREMENT + i);
	tick(168 + 2 * 16 - 1);
	assert_int_equal(csr() & KRON_CSR_SHADOW_BUSY, KRON_CSR_SHADOW_BUSY);
	tick(1);
	assert_int_equal(csr() & KRON_CSR_SHADOW_BUSY, 0);
}

static void read_with_copy_that_cannot_end(void **state)
{
	UNUSED_STATE;
	begin();
	switch_config(0, KRON_CONFIG_TESTB);
	put(KRON_WORD_NETWORK_OFF, 0);
	switch_config(KRON_CONFIG_TESTB, 0);
	resource(0);
	put(KRON_WORD_CSR, KRON_CSR_READ_WAIT);
	assert_int_equal(get(KRON_WORD_COUNTER), ONES64);
	assert_true(last.no_answer);
}

/* ---- time ---- */

static void network_sends_a_byte_in_two_nodeclks(void **state)
{
	UNUSED_STATE;
	begin();
	switch_config(KRON_CONFIG_TEST, 0);
	trace(0);
	resource(0);
	for (unsigned n = 0; n < 20 + 84; n++) {
		tick(1);
		assert_int_equal(read4(KRON_BOARD_TEST), ONES);
		tick(1);
		assert_int_not_equal(read4(KRON_BOARD_TEST), ONES);
	}
	tick(100);
	assert_int_equal(read4(KRON_BOARD_TEST), ONES);
}

/* "51 samples", 40 NODECLKs a Trace sample: a burst at full speed, then the steady state. */
static void trace_samples_every_40_nodeclks(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_CSR, KRON_CSR_WAIT);
	for (unsigned i = 0; i < 4; i++)
		assert_true(trace(i));
	assert_int_equal(now, 0);
	for (unsigned i = 4; i < 100; i++) {
		assert_true(trace(i));
		assert_int_equal(now, 40 * (i - 3));
	}
	put(KRON_WORD_CSR, KRON_CSR_DISCARD);
	tick(1000);
	for (unsigned i = 0; i < 100; i++) {
		assert_true(trace(i));
		tick(40); /* keeps up */
	}
	assert_int_equal((uint32_t)get(KRON_WORD_OVERRUN), 0);
	tick(1000);
	for (unsigned i = 0; i < 400; i++) {
		trace(i);
		tick(20); /* twice as fast: half of them are lost, but for the FIFO's four */
	}
	assert_in_range((uint32_t)get(KRON_WORD_OVERRUN), 195, 197);
}

static void resource_samples_every_168_nodeclks(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_CSR, KRON_CSR_WAIT);
	for (unsigned i = 0; i < 50; i++) {
		assert_true(resource(i));
		assert_int_equal(now, 168 * i);
	}
	assert_int_equal((uint32_t)get(KRON_WORD_WAIT), 168 * 49);
}

static void shadows_stay_busy_until_they_are_out(void **state)
{
	UNUSED_STATE;
	begin();
	trace(0);
	resource(1); /* its transmission begins after 40 */
	trace(2);
	tick(40 + 167);
	assert_int_equal(csr() & KRON_CSR_SHADOW_BUSY, KRON_CSR_SHADOW_BUSY);
	tick(1);
	assert_int_equal(csr() & KRON_CSR_SHADOW_BUSY, 0);
	assert_true(resource(3));
}

/* Counters go on while their copies wait in the shadow registers for the network. */
static void resource_sample_is_of_one_instant(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_CLOCK, 0x1111111111111111ull);
	put(KRON_WORD_MODE, 0x1111111111111111ull);
	put(KRON_WORD_ENABLE, 0x3333333333333333ull);
	tick(1000);
	resource(0);
	tick(500);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(memory[5 + i], 1000);
	assert_int_equal((uint32_t)get(KRON_WORD_COUNTER + 15), 1500);
}

static void timestamp_of_the_trigger_not_of_the_output(void **state)
{
	UNUSED_STATE;
	begin();
	for (unsigned i = 0; i < 4; i++) {
		tick(8);
		trace(i);
	}
	tick(1000);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(memory[5 * i + 1], 2 * (i + 1));
}

static void depth_of_the_chip_fifo_is_geometry(void **state)
{
	struct model_geometry g = MODEL_GEOMETRY_DEFAULT;

	UNUSED_STATE;
	for (g.chip_fifo = 1; g.chip_fifo <= MODEL_CHIP_FIFO_MAX; g.chip_fifo++) {
		begin_with(g);
		configure(KRON_CONFIG_DEFAULT);
		put(KRON_WORD_FILTER, 0xffff);
		put(KRON_WORD_CSR, KRON_CSR_SAMPLING);
		for (unsigned i = 0; i < g.chip_fifo; i++)
			assert_true(trace(i));
		assert_false(trace(99));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trace_sample_in_memory),
		cmocka_unit_test(resource_sample_in_memory),
		cmocka_unit_test(header_is_sent_first),
		cmocka_unit_test(header_names_the_cpu),
		cmocka_unit_test(odd_cpu_lines),
		cmocka_unit_test(external_cpu_lines),
		cmocka_unit_test(source_and_trigger_in_one_cycle),
		cmocka_unit_test(filter_level_is_the_address_low_four_bits),
		cmocka_unit_test(any_combination_of_levels),
		cmocka_unit_test(filtered_triggers_take_the_same_time),
		cmocka_unit_test(filtered_triggers_have_the_same_wait_state),
		cmocka_unit_test(no_sample_while_sampling_is_disabled),
		cmocka_unit_test(wait_for_room),
		cmocka_unit_test(discard_without_room),
		cmocka_unit_test(wait_for_both),
		cmocka_unit_test(wait_that_cannot_end_is_a_time_out),
		cmocka_unit_test(wait_for_a_full_board_fifo_is_a_time_out),
		cmocka_unit_test(read_with_copy_when_available),
		cmocka_unit_test(read_with_copy_waits),
		cmocka_unit_test(read_with_copy_returns_bad_data),
		cmocka_unit_test(read_without_copy_delays_the_network),
		cmocka_unit_test(each_read_delays_the_network_at_any_time),
		cmocka_unit_test(read_with_copy_that_cannot_end),
		cmocka_unit_test(network_sends_a_byte_in_two_nodeclks),
		cmocka_unit_test(trace_samples_every_40_nodeclks),
		cmocka_unit_test(resource_samples_every_168_nodeclks),
		cmocka_unit_test(shadows_stay_busy_until_they_are_out),
		cmocka_unit_test(resource_sample_is_of_one_instant),
		cmocka_unit_test(timestamp_of_the_trigger_not_of_the_output),
		cmocka_unit_test(depth_of_the_chip_fifo_is_geometry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * The board around the chips (NISTIR 5993): address map, Configuration Register bit by bit,
 * resets, clocks, FIFO, local memory and its pointer, TEST operations.
 */
#include "model_rig.h"

/* ---- Table 1 ---- */

static void addresses_without_a_device_read_ones(void **state)
{
	static const uint32_t v[] = {0,      4,      0xffc,  0x1210,   0x1ffc,    0x3ffc,    0x4000,
				     0x5000, 0x7ffc, 0x8000, 0xfffffc, 0x2000000, 0xfffffffc};
	struct model_state before;

	UNUSED_STATE;
	begin();
	for (unsigned i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		before = board;
		assert_int_equal(read4(v[i]), ONES);
		assert_int_equal(read8(v[i]), ONES64);
		assert_false(last.no_answer);
		write4(v[i], 0x55555555);
		assert_false(last.no_answer);
		assert_memory_equal(&board, &before, sizeof(board));
	}
	assert_int_equal(read4(KRON_BOARD_RESET), ONES); /* write only */
}

static void chip_words_are_at_0x1000(void **state)
{
	UNUSED_STATE;
	begin();
	write8(0x1010, 0x8421); /* Filter Register: word 4 */
	assert_int_equal(model_filter(&board), 0x8421);
	write8(0x1000 + 4 * 37, 0xabcd);
	assert_int_equal((uint32_t)get(KRON_WORD_SOURCE + 5), 0xabcd);
	write8(0x11fc, 1); /* Resource trigger of level 15 */
	assert_true(last.taken);
}

static void eight_bytes_are_one_word_of_the_chip(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_CLOCK, ONES64);
	write8(KRON_CHIP_BYTE(KRON_WORD_WAIT), 0); /* not the Overrun Counter as well */
	for (unsigned i = 0; i < 5; i++)
		trace(i);
	write8(KRON_CHIP_BYTE(KRON_WORD_WAIT), 0);
	assert_int_equal((uint32_t)get(KRON_WORD_OVERRUN), 1);
	assert_int_equal(read8(KRON_CHIP_BYTE(KRON_WORD_CLOCK)), ONES64);
}

/* "The data path configures to handle 32 or 64 bit data": what has 32 bits gets them in turn. */
static void eight_bytes_are_two_words_of_the_board(void **state)
{
	UNUSED_STATE;
	begin();
	configure(0x3001);
	write8(KRON_BOARD_CONFIG, 0x0012345600003001ull);
	assert_int_equal(model_config(&board), 0x90003001);
	assert_int_equal(model_map(&board), 0x123456);
	assert_int_equal(read8(KRON_BOARD_CONFIG), 0xff12345690003001ull);
	write8(KRON_BOARD_MEMORY + 0x100, 0x1111111122222222ull);
	assert_int_equal(memory[0x40], 0x22222222);
	assert_int_equal(memory[0x41], 0x11111111);
	write8(KRON_BOARD_MEMORY + 0xfffffc, 0x3333333344444444ull);
	assert_int_equal(memory[0x3fffff], 0x44444444);
	assert_int_equal(memory[0], 0);
}

/* ---- Table 2, the Configuration Register ---- */

static void config_is_zero_after_reset_and_has_version_90(void **state)
{
	UNUSED_STATE;
	begin();
	configure(ONES);
	assert_int_equal(read4(KRON_BOARD_CONFIG), 0x90ffffff);
	assert_true((configure(0x123456), last.gates_changed));
	assert_int_equal(read4(KRON_BOARD_CONFIG), 0x90123456);
	assert_false(last.gates_changed); /* by a read, or a write to something else */
	last.gates_changed = true;
	write4(KRON_BOARD_MEMORY, 0);
	assert_false(last.gates_changed);
	write4(KRON_BOARD_RESET, 0x123);
	assert_int_equal(read4(KRON_BOARD_CONFIG), 0x90000000);
}

static void default_configuration_works(void **state)
{
	UNUSED_STATE;
	begin_with((struct model_geometry)MODEL_GEOMETRY_DEFAULT);
	configure(0x3001); /* the pointer can be written without LOCAL */
	write4(KRON_BOARD_MAP, 0x3ffffe);
	write4(KRON_BOARD_RESET, 0);
	configure(0x3201);
	put(KRON_WORD_FILTER, 1);
	put(KRON_WORD_CSR, KRON_CSR_SAMPLING);
	put(KRON_WORD_SOURCE, 0x5a);
	assert_true(trace(7));
	assert_int_equal(now, 0); /* no wait states */
	assert_int_equal(csr() & KRON_CSR_WAIT_STATES, 0);
	tick(45);
	assert_int_equal(words_stored, 5); /* to memory, circular */
	assert_int_equal(model_map(&board), 0x400003);
	assert_int_equal(memory[0x3ffffe] >> 29, 0); /* CPU 0 */
	assert_int_equal(memory[0], 0x5a);
	assert_int_equal(memory[2], 7);
	tick(40000000 - 45);
	assert_int_equal(model_timestamp(&board), 10000000); /* 10 MHz */
}

static void outputs_disabled_is_a_bus_time_out(void **state)
{
	struct model_state before;

	UNUSED_STATE;
	begin();
	switch_config(0, KRON_CONFIG_MK_OE);
	before = board;
	assert_int_equal(get(KRON_WORD_CSR), ONES64);
	assert_true(last.no_answer);
	assert_int_equal(read4(KRON_CHIP_BYTE(KRON_WORD_FILTER)), ONES);
	put(KRON_WORD_FILTER, 1);
	assert_true(last.no_answer);
	assert_false(trace(1));
	assert_true(last.no_answer);
	assert_memory_equal(&board, &before, sizeof(board));
	assert_int_equal(read4(KRON_BOARD_CONFIG), 0x90001201); /* the board does answer */
	assert_false(last.no_answer);
	tick(400);
	assert_int_equal(model_timestamp(&board), 100); /* the chip goes on inside */
	switch_config(KRON_CONFIG_MK_OE, 0);
	assert_int_equal(csr(), KRON_CSR_SAMPLING | KRON_CSR_MODE64);
}

static void outputs_disabled_loses_samples_under_way(void **state)
{
	UNUSED_STATE;
	begin();
	trace(1);
	switch_config(0, KRON_CONFIG_MK_OE);
	tick(100);
	switch_config(KRON_CONFIG_MK_OE, 0);
	trace(2);
	tick(100);
	assert_int_equal(words_stored, 5);
	assert_int_equal(memory[4], 2);
}

/* What is left must not be taken for the beginning of the word that is being sent. */
static void words_of_what_is_left(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_SOURCE, 0x01020304);
	tick(4 * 0x00aabbcc);
	trace(0x1112131415161718ull);
	tick(4); /* two bytes are out: 10 00 */
	switch_config(0, KRON_CONFIG_MK_OE);
	tick(8); /* four are lost: 00 00 00 aa */
	switch_config(KRON_CONFIG_MK_OE, 0);
	tick(1000);
	assert_int_equal(words_stored, 4);
	assert_int_equal(memory[0], 0x1000bbcc);
	assert_int_equal(memory[1], 0x01020304);
	assert_int_equal(memory[2], 0x11121314);
	assert_int_equal(memory[3], 0x15161718);
}

static void reset_samples_wait_cpu(void **state)
{
	UNUSED_STATE;
	begin();
	switch_config(KRON_CONFIG_WAIT_CPU, 0);
	assert_int_equal(csr() & KRON_CSR_WAIT_STATES, 0);
	write4(KRON_BOARD_RESET, 0);
	configure(KRON_CONFIG_DEFAULT);
	assert_int_equal(csr() & KRON_CSR_WAIT_STATES, KRON_CSR_WAIT_STATES);
}

/* ---- clocks ---- */

static void ts_ratio(void **state)
{
	UNUSED_STATE;
	begin();
	tick(1200);
	assert_int_equal(model_timestamp(&board), 300);
	switch_config(KRON_CONFIG_TS_RATIO, 0);
	tick(1200);
	assert_int_equal(model_timestamp(&board), 300 + 400);
	tick(40000000);
	assert_int_equal(model_timestamp(&board), 700 + 13333333); /* 13.3 MHz */
}

static void div2_halves_the_node_clock(void **state)
{
	UNUSED_STATE;
	begin();
	switch_config(KRON_CONFIG_DIV2, 0);
	tick(8000);
	assert_int_equal(model_timestamp(&board), 1000); /* 20 MHz / 4 */
	trace(1);
	tick(79);
	assert_int_equal(get(KRON_WORD_FIFO + 4), UPPER_ONES | 1);
	tick(1); /* 40 NODECLKs are 80 ticks */
	assert_int_equal(get(KRON_WORD_FIFO + 4), ONES64);
	tick(5); /* the state machine has its own clock */
	assert_int_equal(words_stored, 5);
	put(KRON_WORD_CSR, KRON_CSR_WAIT);
	for (unsigned i = 0; i < 5; i++)
		assert_true(trace(i));
	assert_int_equal((uint32_t)get(KRON_WORD_WAIT), 40); /* in NODECLKs */
}

/* 20 MHz with 6.66 MHz */
static void ts_ratio_of_half_the_clock(void **state)
{
	UNUSED_STATE;
	begin();
	switch_config(KRON_CONFIG_DIV2 | KRON_CONFIG_TS_RATIO, 0);
	tick(40000000);
	assert_int_equal(model_timestamp(&board), 6666666);
	trace(1);
	tick(79);
	assert_int_equal(get(KRON_WORD_FIFO + 4), UPPER_ONES | 1);
	tick(1); /* NODECLK is half as fast */
	assert_int_equal(get(KRON_WORD_FIFO + 4), ONES64);
}

static void external_clock_is_not_there(void **state)
{
	UNUSED_STATE;
	begin();
	tick(400);
	trace(1);
	for (unsigned i = 0; i < 2; i++) { /* DIV2 or not */
		switch_config(KRON_CONFIG_EN_EXT | (i ? KRON_CONFIG_DIV2 : 0), 0);
		tick(100000);
		assert_int_equal(model_timestamp(&board), 100);
		assert_int_equal(words_stored, 0);
	}
	switch_config(0, KRON_CONFIG_DIV2);
	assert_int_equal(get(KRON_WORD_CSR), ONES64);
	assert_true(last.no_answer);
	put(KRON_WORD_FILTER, 0);
	assert_true(last.no_answer);
	assert_int_equal(read4(KRON_BOARD_MAP), 0xff000000); /* PCI clock */
	switch_config(0, KRON_CONFIG_EN_EXT);
	assert_int_equal(model_filter(&board), 0xffff);
	tick(45);
	assert_int_equal(words_stored, 5);
	switch_config(KRON_CONFIG_EN_EXT, 0);
	write4(KRON_BOARD_RESET, 0); /* "always resets" */
	assert_int_equal(model_timestamp(&board), 0);
	assert_int_equal(model_filter(&board), 0);
}

/* ---- reset ---- */

static void software_reset_resets_board_and_chips(void **state)
{
	UNUSED_STATE;
	begin();
	switch_config(KRON_CONFIG_DIS_STATE, 0);
	write4(KRON_BOARD_MEMORY, 0x1234);
	for (unsigned i = 0; i < 4; i++)
		trace(i);
	tick(50); /* one in the board FIFO, three in the chip */
	write4(KRON_BOARD_RESET, 0);
	assert_true(last.gates_changed);
	configure(KRON_CONFIG_DEFAULT);
	tick(1000);
	assert_int_equal(words_stored, 1); /* nothing has come out of either FIFO */
	assert_int_equal(memory[0], 0x1234);
	assert_int_equal(model_timestamp(&board), 250);
	assert_int_equal(csr(), KRON_CSR_MODE64);
}

static void reset_leaves_memory_and_its_pointer(void **state)
{
	UNUSED_STATE;
	begin();
	trace(5);
	tick(100);
	write4(KRON_BOARD_RESET, 0);
	assert_int_equal(model_map(&board), 5);
	assert_int_equal(memory[4], 5);
}

static void reset_clears_a_hung_sequence(void **state)
{
	struct model_geometry g = MODEL_GEOMETRY_DEFAULT;

	UNUSED_STATE;
	g.drain_memory = MODEL_DRAIN_MAX; /* as good as hung */
	begin_with(g);
	configure(KRON_CONFIG_DEFAULT);
	put(KRON_WORD_FILTER, 1);
	put(KRON_WORD_CSR, KRON_CSR_SAMPLING);
	trace(0);
	tick(100);
	write4(KRON_BOARD_RESET, 0);
	tick(2 * MODEL_DRAIN_MAX);
	assert_int_equal(words_stored, 0);
}

/* ---- Memory Address Pointer ---- */

/* The pointer's new value goes through: only while LOCAL is off. */
static void set_map(uint32_t value)
{
	uint32_t config = model_config(&board);

	configure((config | KRON_CONFIG_DIS_STATE) & ~KRON_CONFIG_LOCAL);
	write4(KRON_BOARD_MAP, value);
	configure(config);
}

static void map_has_24_bits(void **state)
{
	UNUSED_STATE;
	begin();
	set_map(0xab123456);
	assert_int_equal(read4(KRON_BOARD_MAP), 0xff123456);
}

static void map_ignores_writes_in_local_mode(void **state)
{
	UNUSED_STATE;
	begin();
	write4(KRON_BOARD_MAP, 77);
	assert_int_equal(model_map(&board), 0);
	switch_config(KRON_CONFIG_TEST, 0);
	write4(KRON_BOARD_MAP, 77);
	assert_int_equal(model_map(&board), 0);
	switch_config(0, KRON_CONFIG_LOCAL);
	write4(KRON_BOARD_MAP, 77);
	assert_int_equal(model_map(&board), 77);
}

static void map_is_the_next_free_word(void **state)
{
	UNUSED_STATE;
	begin();
	for (unsigned i = 1; i <= 10; i++) {
		trace(i);
		tick(100);
		assert_int_equal(read4(KRON_BOARD_MAP), 0xff000000 + 5 * i);
		assert_int_equal(memory[5 * i - 1], i);
		assert_int_equal(memory[5 * i], 0);
	}
}

/* The way that the report shows for writing the pointer during an experiment. */
static void map_can_be_moved_during_an_experiment(void **state)
{
	UNUSED_STATE;
	begin();
	trace(1);
	tick(10); /* a word is half way through */
	switch_config(KRON_CONFIG_DIS_STATE, 0);
	tick(100); /* the sequence under way completes; the rest stays in the FIFO */
	assert_int_equal(model_map(&board), 1);
	switch_config(0, KRON_CONFIG_LOCAL);
	tick(100);
	write4(KRON_BOARD_MAP, 1000);
	switch_config(KRON_CONFIG_LOCAL, 0);
	switch_config(0, KRON_CONFIG_DIS_STATE);
	tick(100);
	assert_int_equal(model_map(&board), 1004);
	assert_int_equal(memory[1003], 1);
}

static void circular_memory_wraps(void **state)
{
	static const uint32_t ends[] = {0x3fffff, 0x7fffff, 0xbfffff, 0xffffff};

	UNUSED_STATE;
	for (unsigned i = 0; i < 4; i++) {
		begin();
		set_map(ends[i] - 1);
		trace(i + 100);
		tick(100);
		assert_int_equal(model_map(&board), (ends[i] + 4) & 0xffffff);
		assert_int_equal(memory[0x3ffffe], 0x10000000);
		assert_int_equal(memory[2], i + 100); /* all three wraps are word 0 again */
	}
}

/* It goes on from 3FFFFF to 400000: the top two bits count. */
static void wrap_bits_count(void **state)
{
	UNUSED_STATE;
	begin();
	set_map(0x3ffffb);
	for (unsigned i = 0; i < 4; i++) {
		trace(i);
		tick(100);
		assert_int_equal(model_map(&board), ((i + 1) * 0x400000) & 0xffffff);
		set_map((i + 2) * 0x400000 - 5);
	}
}

static void simple_memory_stops(void **state)
{
	UNUSED_STATE;
	begin();
	switch_config(KRON_CONFIG_WRAPB, 0);
	set_map(0x3ffffc);
	memory[0] = 0x5555;
	trace(1);
	tick(100);
	assert_int_equal(words_stored, 4); /* the fifth word had no place */
	assert_int_equal(memory[0x3fffff], 0);
	assert_int_equal(model_map(&board), 0x3fffff);
	for (unsigned i = 0; i < 100; i++) {
		assert_true(trace(2)); /* discarded by the board: the chip does not know */
		tick(100);
	}
	assert_int_equal(words_stored, 4);
	assert_int_equal(model_map(&board), 0x3fffff);
	assert_int_equal(memory[0], 0x5555);
	assert_int_equal((uint32_t)get(KRON_WORD_OVERRUN), 0);
}

/* "Over 800,000": 838,860 Trace samples, oldest kept. */
static void simple_memory_holds_838860_samples(void **state)
{
	UNUSED_STATE;
	begin();
	switch_config(KRON_CONFIG_WRAPB, 0);
	for (unsigned i = 0; i < 838870; i++) {
		trace(i);
		tick(50);
	}
	assert_int_equal(words_stored, 0x400000);
	for (unsigned i = 0; i < 838860; i++)
		assert_int_equal(memory[5 * i + 4], i);
	switch_config(0, KRON_CONFIG_WRAPB); /* circular: it goes on with the last word */
	trace(5);
	tick(100);
	assert_int_equal(model_map(&board), 0x400004);
}

static void pointer_write_empties_a_full_memory(void **state)
{
	UNUSED_STATE;
	begin();
	switch_config(KRON_CONFIG_WRAPB, 0);
	set_map(0x3ffffc);
	trace(1);
	tick(100);
	set_map(0);
	trace(2);
	tick(100);
	assert_int_equal(model_map(&board), 5);
	assert_int_equal(memory[4], 2);
}

static void cpu_writes_memory_while_samples_arrive(void **state)
{
	UNUSED_STATE;
	begin();
	for (unsigned i = 0; i < 50; i++) {
		trace(i);
		tick(13);
		write4(KRON_BOARD_MEMORY + 4 * (0x1000 + i), ~i);
		tick(30);
	}
	tick(100);
	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(memory[0x1000 + i], ~i);
		assert_int_equal(memory[5 * i + 4], i);
	}
}

/* ---- board FIFO ---- */

static void board_fifo_holds_51_trace_samples(void **state)
{
	unsigned taken;

	UNUSED_STATE;
	begin();
	switch_config(KRON_CONFIG_DIS_STATE, 0);
	for (taken = 0; trace(taken); taken++)
		tick(40);
	/* 51 are out; the chip keeps the one that is 4 bytes out, and three after it */
	assert_int_equal(taken, 51 + 4);
	assert_int_equal(words_stored, 0);
	switch_config(0, KRON_CONFIG_DIS_STATE);
	tick(100000);
	assert_int_equal(words_stored, 5 * taken);
	for (unsigned i = 0; i < taken; i++)
		assert_int_equal(memory[5 * i + 4], i);
}

static void full_board_fifo_stops_the_network(void **state)
{
	struct model_geometry g = MODEL_GEOMETRY_DEFAULT;

	UNUSED_STATE;
	g.board_fifo = 8;
	begin_with(g);
	configure(KRON_CONFIG_DEFAULT | KRON_CONFIG_TEST);
	put(KRON_WORD_FILTER, 1);
	put(KRON_WORD_CSR, KRON_CSR_SAMPLING);
	trace(0x55);
	tick(1001);
	for (unsigned i = 0; i < 8; i++)
		read4(KRON_BOARD_TEST);
	assert_int_equal(read4(KRON_BOARD_TEST), ONES);
	tick(1); /* the next network clock */
	assert_int_not_equal(read4(KRON_BOARD_TEST), ONES);
	tick(22);
	for (unsigned i = 0; i < 7; i++)
		read4(KRON_BOARD_TEST);
	tick(100);
	for (unsigned i = 0; i < 3; i++)
		read4(KRON_BOARD_TEST);
	assert_int_equal(read4(KRON_BOARD_TEST), 0xffffff55);
}

static void dis_state_completes_a_begun_sequence(void **state)
{
	UNUSED_STATE;
	begin();
	trace(1);
	tick(8); /* four bytes are there: the sequence begins now */
	switch_config(KRON_CONFIG_DIS_STATE, 0);
	tick(4);
	assert_int_equal(words_stored, 0);
	tick(1);
	assert_int_equal(words_stored, 1);
	tick(1000);
	assert_int_equal(words_stored, 1);
	switch_config(0, KRON_CONFIG_DIS_STATE);
	tick(4 * 5);
	assert_int_equal(words_stored, 5);
}

static void words_follow_each_other_out_of_the_fifo(void **state)
{
	UNUSED_STATE;
	begin();
	switch_config(KRON_CONFIG_DIS_STATE, 0);
	trace(1);
	tick(100);
	switch_config(0, KRON_CONFIG_DIS_STATE);
	for (unsigned i = 1; i <= 5; i++) {
		tick(4);
		assert_int_equal(words_stored, i - 1);
		tick(1);
		assert_int_equal(words_stored, i);
	}
}

/* ---- TEST operation ---- */

static void test_write_moves_four_bytes_to_memory(void **state)
{
	UNUSED_STATE;
	begin();
	switch_config(KRON_CONFIG_TEST, 0);
	put(KRON_WORD_SOURCE, 0xcafebabe);
	trace(0x1122334455667788ull);
	tick(1000);
	assert_int_equal(words_stored, 0); /* the CPU controls the output */
	for (unsigned i = 1; i <= 5; i++) {
		write4(KRON_BOARD_TEST, 0x999);
		assert_int_equal(model_map(&board), i);
	}
	assert_int_equal(memory[0], 0x10000000);
	assert_int_equal(memory[2], 0xcafebabe);
	assert_int_equal(memory[3], 0x11223344);
	assert_int_equal(memory[4], 0x55667788);
	write4(KRON_BOARD_TEST, 0x999); /* empty: nothing */
	assert_int_equal(model_map(&board), 5);
	assert_int_equal(words_stored, 5);
}

static void test_operation_needs_test(void **state)
{
	UNUSED_STATE;
	begin();
	switch_config(KRON_CONFIG_DIS_STATE, 0);
	trace(1);
	tick(100);
	assert_int_equal(read4(KRON_BOARD_TEST), ONES); /* TEST is off */
	write4(KRON_BOARD_TEST, 0);
	switch_config(KRON_CONFIG_TEST, 0);
	assert_int_equal(read4(KRON_BOARD_TEST), ONES); /* a new sequence will not begin */
	write4(KRON_BOARD_TEST, 0);
	assert_int_equal(words_stored, 0);
	switch_config(0, KRON_CONFIG_DIS_STATE);
	assert_int_equal(read4(KRON_BOARD_TEST), 0xffffff10);
}

static void test_operation_awaits_the_sequence_under_way(void **state)
{
	uint64_t before;

	UNUSED_STATE;
	begin();
	trace(1);
	tick(9);
	switch_config(KRON_CONFIG_TEST, 0);
	before = now;
	assert_int_equal(read4(KRON_BOARD_TEST), 0xffffff00); /* byte 4, at tick 10 */
	assert_int_equal(now, before + 4);
	assert_int_equal(words_stored, 1);
}

/* An 8-byte write at the pointer is one to it and then a TEST operation. */
static void pointer_and_test_operation_in_one_transfer(void **state)
{
	UNUSED_STATE;
	begin();
	tick(8);
	trace(0x1122334455667788ull);
	tick(10);          /* the first word is under way */
	configure(0x3101); /* TEST, not LOCAL */
	tick(2);
	write8(KRON_BOARD_MAP, 1000);
	assert_int_equal(memory[0], 0x10000000); /* where the pointer was */
	assert_int_equal(model_map(&board), 1000);
	tick(100);
	write8(KRON_BOARD_MAP, 2000);
	assert_int_equal(memory[2000], 2);
	assert_int_equal(model_map(&board), 2001);
}

/* ---- MultiKron_vc ---- */

static void vc_answers_if_installed(void **state)
{
	struct model_geometry g = MODEL_GEOMETRY_DEFAULT;

	UNUSED_STATE;
	g.vc = 1;
	begin_with(g);
	write4(0x4000, 1);
	assert_true(last.no_answer); /* MK_OE is off */
	configure(KRON_CONFIG_DEFAULT);
	write4(0x4000, 1);
	assert_false(last.no_answer);
	assert_int_equal(read8(0x7ff8), ONES64);
	assert_int_equal(read4(0x7ffc), ONES);
	assert_false(last.no_answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_without_a_device_read_ones),
		cmocka_unit_test(chip_words_are_at_0x1000),
		cmocka_unit_test(eight_bytes_are_one_word_of_the_chip),
		cmocka_unit_test(eight_bytes_are_two_words_of_the_board),
		cmocka_unit_test(config_is_zero_after_reset_and_has_version_90),
		cmocka_unit_test(default_configuration_works),
		cmocka_unit_test(outputs_disabled_is_a_bus_time_out),
		cmocka_unit_test(outputs_disabled_loses_samples_under_way),
		cmocka_unit_test(words_of_what_is_left),
		cmocka_unit_test(reset_samples_wait_cpu),
		cmocka_unit_test(ts_ratio),
		cmocka_unit_test(div2_halves_the_node_clock),
		cmocka_unit_test(ts_ratio_of_half_the_clock),
		cmocka_unit_test(external_clock_is_not_there),
		cmocka_unit_test(software_reset_resets_board_and_chips),
		cmocka_unit_test(reset_leaves_memory_and_its_pointer),
		cmocka_unit_test(reset_clears_a_hung_sequence),
		cmocka_unit_test(map_has_24_bits),
		cmocka_unit_test(map_ignores_writes_in_local_mode),
		cmocka_unit_test(map_is_the_next_free_word),
		cmocka_unit_test(map_can_be_moved_during_an_experiment),
		cmocka_unit_test(circular_memory_wraps),
		cmocka_unit_test(wrap_bits_count),
		cmocka_unit_test(simple_memory_stops),
		cmocka_unit_test(simple_memory_holds_838860_samples),
		cmocka_unit_test(pointer_write_empties_a_full_memory),
		cmocka_unit_test(cpu_writes_memory_while_samples_arrive),
		cmocka_unit_test(board_fifo_holds_51_trace_samples),
		cmocka_unit_test(full_board_fifo_stops_the_network),
		cmocka_unit_test(dis_state_completes_a_begun_sequence),
		cmocka_unit_test(words_follow_each_other_out_of_the_fifo),
		cmocka_unit_test(test_write_moves_four_bytes_to_memory),
		cmocka_unit_test(test_operation_needs_test),
		cmocka_unit_test(test_operation_awaits_the_sequence_under_way),
		cmocka_unit_test(pointer_and_test_operation_in_one_transfer),
		cmocka_unit_test(vc_answers_if_installed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

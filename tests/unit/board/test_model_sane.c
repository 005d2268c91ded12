/* SPDX-License-Identifier: MIT */
/*
 * A model whose state a stranger wrote: model_is_sane() says whether it can be used, and then
 * no call may go astray, loop for long or make it insane.  Best built with --enable-asan.
 * KRON_TEST_SEED=N begins with another seed.
 */
#include "model_rig.h"

static uint64_t seed;

static uint32_t roll(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed * 0x2545f4914f6cdd1dull) >> 32) % n;
}

static void set_seed(void)
{
	const char *given = getenv("KRON_TEST_SEED");

	seed = given ? strtoull(given, NULL, 0) * 2 + 1 : 0x123456789abcdefull;
}

static void scribble(struct model_state *s, unsigned from, unsigned to)
{
	while (from < to)
		((uint8_t *)s)[from++] = (uint8_t)roll(256);
}

/* What model_used_bytes() promises is enough, must never be more than there is. */
static void use(struct model_state *s, unsigned cycles)
{
	struct model_cycle c;

	assert_in_range(model_used_bytes(s), 1, sizeof(*s));
	while (cycles--) {
		memset(&c, 0, sizeof(c));
		c.offset = roll(3) ? KRON_CHIP_BYTE(roll(128)) : 0x1200 + 4 * roll(4);
		if (roll(4) == 0)
			c.offset = KRON_VC_BYTE(roll(128));
		c.bytes = roll(2) ? 4 : 8;
		c.write = roll(2);
		c.data = (uint64_t)roll(0xffffffff) << 32 | roll(0xffffffff);
		c.cpu_lines = (uint8_t)roll(256);
		c.set_source = roll(2);
		if (roll(40) == 0)
			c.offset = 4 * roll(0xffffffff);
		if (roll(100) == 0)
			model_set_external(s, s->time + roll(1000), roll(0xffffffff), roll(2));
		model_cycle(s, roll(50) ? s->time + roll(100) : roll(0xffffffff) * s->time, &c);
		for (unsigned i = 0; i < model_stores(s); i++)
			assert_in_range(model_store(s, i).word, 0, KRON_MAP_WORD);
		for (unsigned i = 0; i < model_vc_stores(s); i++)
			assert_in_range(model_vc_store(s, i).word, 0, KRON_VC_COUNTERS - 1);
		for (unsigned i = 0; i < s->ncable; i++)
			model_cable_value(s, i);
		if (roll(20) == 0)
			model_cable_take(s, s->time + roll(100), roll(roll(2) ? 30 : 0xffffffff));
		for (unsigned i = 0; i < 16; i++)
			model_counter(s, i);
		assert_true(model_is_sane(s));
	}
}

static void random_bytes_are_told_from_a_model(void **state)
{
	static struct model_state s;

	UNUSED_STATE;
	set_seed();
	for (unsigned i = 0; i < 3000; i++) {
		scribble(&s, 0, sizeof(s));
		model_used_bytes(&s);
		if (model_is_sane(&s))
			use(&s, 100);
	}
}

static void a_scribbled_model_does_no_harm(void **state)
{
	unsigned sane = 0;

	UNUSED_STATE;
	set_seed();
	for (unsigned i = 0; i < 3000; i++) {
		begin();
		use(&board, roll(100));
		for (unsigned n = 1 + roll(8); n-- > 0;) {
			unsigned at = roll(roll(2) ? 360 : sizeof(board) - 8);

			scribble(&board, at, at + 1 + roll(8));
		}
		if (!model_is_sane(&board))
			continue;
		sane++;
		use(&board, 300);
	}
	assert_true(sane > 100);
}

/* Every field whose bounds matter, one step beyond them. */
static void each_bound_is_checked(void **state)
{
	static const struct {
		size_t at, size;
		uint64_t good, bad;
	} v[] = {
#define FIELD(f, good, bad) \
	{offsetof(struct model_state, f), sizeof(((struct model_state *)0)->f), good, bad}
		FIELD(geometry.chip_fifo, 16, 17),
		FIELD(geometry.chip_fifo, 1, 0),
		FIELD(geometry.board_fifo, 1024, 1025),
		FIELD(geometry.board_fifo, 4, 3),
		FIELD(geometry.drain_memory, 1, 0),
		FIELD(geometry.drain_memory, MODEL_DRAIN_MAX, MODEL_DRAIN_MAX + 1),
		FIELD(geometry.drain_cable, 1, 0),
		FIELD(geometry.drain_cable, MODEL_DRAIN_MAX, MODEL_DRAIN_MAX + 1),
		FIELD(geometry.cable, MODEL_CABLE_MAX, MODEL_CABLE_MAX + 1),
		FIELD(cable_sent, 0, 1),
		FIELD(cable_taken, 0, 1),
		FIELD(ncable, MODEL_CABLE_STORES_MAX + 1, MODEL_CABLE_STORES_MAX + 2),
		FIELD(config, 0xffffff & ~(1u << 8), 0x1000000),
		FIELD(map, 0xffffff, 0x1000000),
		FIELD(half, 0, 2),
		FIELD(ts_phase, 3, 4),
		FIELD(sequence, 0, 3),
		FIELD(nfifo, 0, 5),
		FIELD(sent, 0, 1),
		FIELD(wr, 1024, 1025),
		FIELD(wr, 0, 4 * MODEL_STORES_MAX + 1),
		FIELD(rd, 0, 1),
		FIELD(nstores, MODEL_STORES_MAX, MODEL_STORES_MAX + 1),
		FIELD(ncpu, 2, 3),
		FIELD(ts, 0, 1ull << 60),
		FIELD(time, 1ull << 62, (1ull << 62) + 1),
		FIELD(node, 0, 1ull << 60),
		FIELD(counters.counted_node, 0, 1ull << 60),
		FIELD(counters.counted_ts, 0, 1ull << 60),
		FIELD(counters.prescaler, 0, 1ull << 60),
	};

	UNUSED_STATE;
	for (unsigned i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		begin();
		memcpy((uint8_t *)&board + v[i].at, &v[i].good, v[i].size);
		if (!model_is_sane(&board))
			fail_msg("good value of field %u is refused", i);
		memcpy((uint8_t *)&board + v[i].at, &v[i].bad, v[i].size);
		if (model_is_sane(&board))
			fail_msg("bad value of field %u is taken", i);
	}
}

/* ... and those that depend on each other. */
static void inconsistent_states_are_refused(void **state)
{
	UNUSED_STATE;
	begin();
	trace(0);
	board.network = board.node; /* a byte in the past */
	assert_false(model_is_sane(&board));
	board.network = board.node + (1ull << 40); /* or for ever away */
	assert_false(model_is_sane(&board));
	begin();
	trace(0);
	board.sent = 20;
	assert_false(model_is_sane(&board));
	begin();
	board.sequence = MODEL_TO_MEMORY; /* of bytes that are not there */
	board.sequence_end = board.time + 5;
	assert_false(model_is_sane(&board));
	board.wr = 4;
	assert_true(model_is_sane(&board));
	board.sequence_end = board.time;
	assert_false(model_is_sane(&board));
	board.sequence_end = board.time + MODEL_DRAIN_MAX + 1;
	assert_false(model_is_sane(&board));
	begin();
	board.sequence = MODEL_TO_CABLE; /* where no room is left */
	board.sequence_end = board.time + 5;
	board.wr = 2;
	board.geometry.cable = board.cable_sent = 3;
	assert_false(model_is_sane(&board));
	board.cable_sent = 2;
	assert_true(model_is_sane(&board));
}

/* Years at once, with everything on. */
static void a_jump_of_years_is_one_step(void **state)
{
	UNUSED_STATE;
	begin();
	put(KRON_WORD_MODE, 0x9999999999999999ull);
	put(KRON_WORD_CLOCK, 0x1111222233334444ull);
	put(KRON_WORD_ENABLE, 0x2222222222222222ull);
	for (unsigned i = 0; i < 1000; i++) {
		trace(i);
		resource(i);
		tick(40000000ull * 3600 * 24 * 365);
	}
	assert_int_equal(model_timestamp(&board),
			 10000000ull * 3600 * 24 * 365 * 1000 % (1ull << 56));
	assert_int_equal(words_stored, 26 * 1000);
	model_advance(&board, ONES64); /* the end of time is well defined */
	carry_out_stores();
	model_advance(&board, 5); /* and time never runs back */
	carry_out_stores();
}

/* ... also while the network tries in vain to send: it is blocked, switched off, or has no clock. */
static void years_of_waiting_are_one_step(void **state)
{
	static const uint32_t blocked[] = {KRON_CONFIG_DIS_STATE, KRON_CONFIG_TEST,
					   KRON_CONFIG_EN_EXT,
					   KRON_CONFIG_DIS_STATE | KRON_CONFIG_DIV2};

	UNUSED_STATE;
	for (unsigned i = 0; i < 4; i++) {
		begin();
		switch_config(KRON_CONFIG_DIS_STATE, 0);
		for (unsigned n = 0; n < 60; n++) {
			trace(n);
			tick(40);
		}
		switch_config(blocked[i], KRON_CONFIG_DIS_STATE & ~blocked[i]);
		for (unsigned year = 0; year < 100; year++)
			tick(40000000ull * 3600 * 24 * 365);
		switch_config(0, blocked[i]);
		tick(10000);
		assert_int_equal(words_stored, 5 * 55);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_bytes_are_told_from_a_model),
		cmocka_unit_test(a_scribbled_model_does_no_harm),
		cmocka_unit_test(each_bound_is_checked),
		cmocka_unit_test(inconsistent_states_are_refused),
		cmocka_unit_test(a_jump_of_years_is_one_step),
		cmocka_unit_test(years_of_waiting_are_one_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

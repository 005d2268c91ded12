/* SPDX-License-Identifier: MIT */
/*
 * test_reset.c - boards that are reset at one instant have one time.  Truth is the processor's counter,
 * read around each look at a board.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <cmocka.h>

#include "base/clock.h"
#include "board/model/access_layout.h"

#define CHIP(word) KRON_CHIP_BYTE(word)
#define BOARDS 3
#define HZ 2000000000u /* of the first board: what the counter really does is of no matter */
#define SOON (1u << 21)

static const struct model_geometry geometry = MODEL_GEOMETRY_DEFAULT;

static struct board make_board(uint64_t hz)
{
	uint8_t *at = mmap(NULL, KRON_WINDOW_SIZE, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct board b = {.ctl = (struct kron_ctl *)(at + KRON_CTL_OFFSET),
			  .model = (struct model *)(at + KRON_MODEL_OFFSET),
			  .memory = at + KRON_MEMORY_OFFSET};

	assert_ptr_not_equal(at, MAP_FAILED);
	board_init(&b, &geometry, ACCESS_CLOCK_REAL, hz);
	return b;
}

static void drop_board(struct board *b)
{
	munmap(b->memory, KRON_WINDOW_SIZE);
}

static uint64_t timestamp(const struct board *b)
{
	return board_read64(b, CHIP(KRON_WORD_TIMESTAMP)) & 0x00ffffffffffffffull;
}

/* Of a board at its first instant, by hand. */
static uint64_t timestamp_at(uint64_t tsc, uint64_t start)
{
	return (uint64_t)((long double)(tsc - start) * KRON_OSCILLATOR_HZ / HZ / 4);
}

static void nap(long ms)
{
	const struct timespec t = {.tv_nsec = ms * 1000000};

	nanosleep(&t, NULL);
}

/* What was on its way when the reset came had arrived by then. */
static void check_samples(const struct board *b)
{
	uint32_t words[3 * 5];

	board_read_memory(b, 0, 15, words);
	for (uint32_t k = 0; k < 3; k++)
		assert_int_equal(words[5 * k + 4], 70 + k);
}

/* Of different ages and rates, one with its clock divided, each with samples on the way. */
static void make_boards(struct board *b)
{
	static const int ppm[BOARDS] = {0, 100, -100};
	static const uint32_t config[BOARDS] = {0, KRON_CONFIG_DIV2, KRON_CONFIG_TS_RATIO};

	for (int i = 0; i < BOARDS; i++) {
		b[i] = make_board((uint64_t)(HZ + (int64_t)HZ / 1000000 * ppm[i]));
		board_write32(&b[i], KRON_BOARD_CONFIG, KRON_CONFIG_DEFAULT | config[i]);
		board_write32(&b[i], CHIP(KRON_WORD_FILTER), 0xffff);
		board_write32(&b[i], CHIP(KRON_WORD_CSR), KRON_CSR_SAMPLING);
		nap(3);
		for (uint32_t k = 0; k < 3; k++)
			board_write32(&b[i], CHIP(KRON_WORD_TRACE), 70 + k);
	}
}

static uint64_t reset_all(struct board *b)
{
	uint64_t start = clock_tsc() + SOON;

	for (int i = 0; i < BOARDS; i++) {
		assert_int_equal(board_reset_at(&b[i], start, KRON_CONFIG_DEFAULT), 0);
		board_use_rate_of(&b[i], &b[0]);
	}
	return start;
}

static void boards_of_one_reset_have_one_time(void **state)
{
	struct board b[BOARDS];
	uint64_t start, last = 0, end;

	(void)state;
	make_boards(b);
	start = reset_all(b);
	while (clock_tsc() < start)
		;
	for (int i = 0; i < BOARDS; i++)
		check_samples(&b[i]);
	end = start + HZ / 2;
	for (unsigned i = 0; clock_tsc() < end; i++) {
		uint64_t before = clock_tsc(), now = timestamp(&b[i % BOARDS]), after = clock_tsc();

		assert_true(now >= last);
		/* a tick more or less: each clock is read in whole ones */
		assert_true(now + 1 >= timestamp_at(before, start));
		assert_true(now <= timestamp_at(after, start) + 1);
		last = now;
	}
	for (int i = 0; i < BOARDS; i++)
		drop_board(&b[i]);
}

static void time_stands_still_until_then(void **state)
{
	struct board b = make_board(HZ);
	uint64_t start = clock_tsc() + SOON, seen;

	(void)state;
	assert_int_equal(board_reset_at(&b, start, KRON_CONFIG_DEFAULT), 0);
	do {
		seen = timestamp(&b);
		assert_true(seen <= 1 || clock_tsc() > start);
	} while (clock_tsc() < start);
	seen = timestamp(&b);
	assert_true(seen <= timestamp_at(clock_tsc(), start) + 1);
	drop_board(&b);
}

static void a_board_that_has_gone_on_is_left_alone(void **state)
{
	struct board b = make_board(HZ);
	uint64_t start = clock_tsc(), active, before;

	(void)state;
	nap(3);
	board_write32(&b, KRON_BOARD_CONFIG, KRON_CONFIG_DEFAULT);
	board_write32(&b, CHIP(KRON_WORD_FILTER), 0xabcd);
	before = timestamp(&b);
	active = b.model->active;
	assert_int_equal(board_reset_at(&b, start, KRON_CONFIG_DEFAULT), -ETIME);
	assert_true(b.model->active == active);
	assert_int_equal(board_read32(&b, CHIP(KRON_WORD_FILTER)) & 0xffff, 0xabcd);
	assert_true(timestamp(&b) >= before);
	drop_board(&b);
}

/* Who is late himself, for somebody had taken the processor, is not too late for an idle board. */
static void an_instant_that_is_over_is_good_for_an_idle_board(void **state)
{
	struct board b = make_board(HZ);
	uint64_t start, late, after;

	(void)state;
	board_write32(&b, KRON_BOARD_CONFIG, KRON_CONFIG_DEFAULT);
	nap(3);
	start = clock_tsc();
	nap(3);
	late = clock_tsc();
	assert_int_equal(board_reset_at(&b, start, KRON_CONFIG_DEFAULT), 0);
	after = timestamp(&b);
	assert_true(after <= timestamp_at(clock_tsc(), start) + 1);
	assert_true(after + 1 >= timestamp_at(late, start));
	drop_board(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(boards_of_one_reset_have_one_time),
		cmocka_unit_test(time_stands_still_until_then),
		cmocka_unit_test(a_board_that_has_gone_on_is_left_alone),
		cmocka_unit_test(an_instant_that_is_over_is_good_for_an_idle_board),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

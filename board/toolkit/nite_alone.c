/* SPDX-License-Identifier: MIT */
/*
 * nite_alone.c - tests for who has the board alone: filter, CPU ID, overruns and waits, 32-bit
 * mode, memory address pointer, both kinds of buffer, FIFO by hand, test mode, resets.
 *
 * Each begins on an initialised board, and may leave it as it likes.
 */
#include <inttypes.h>

#include "board/toolkit/nite.h"

static const struct tester_expected plain = {.source = NITE_SOURCE};

static void configure(struct tester *t, uint32_t value)
{
	bus_write32(&t->bus, KRON_BOARD_CONFIG, value);
}

/* The CPU may write the pointer only while no sample can be on its way (NISTIR 5993, 2.7). */
static void set_pointer(struct tester *t, uint32_t config, uint32_t pointer)
{
	configure(t, (config & ~KRON_CONFIG_LOCAL) | KRON_CONFIG_DIS_STATE);
	bus_write32(&t->bus, KRON_BOARD_MAP, pointer);
	configure(t, config);
}

/* One more trigger, nothing looked at. */
static void trigger(struct tester *t, uint32_t data)
{
	chip_write64(t, KRON_WORD_TRACE, data);
}

/* Timestamp clocks go by. */
static void pass_time(struct tester *t, uint32_t clocks)
{
	uint64_t from = tester_timestamp(t), end = tester_now() + 1000000000u;

	while (((tester_timestamp(t) - from) & TESTER_TIME_MASK) < clocks)
		if (tester_now() > end) {
			tester_error(t, "Timestamp: less than %" PRIu32 " clocks in a second",
				     clocks);
			return;
		}
}

static void check_plain_sample(struct tester *t, uint32_t data)
{
	struct tester_expected want = plain;
	struct tester_sample s;

	want.data = data;
	tester_take_sample(t, 0, &want, &s);
}

/* ---- filter levels, CPU ID ---- */

static void filter(struct nite *n)
{
	struct tester *t = &n->t;
	uint32_t mask = nite_random(n, 0x10000), at = tester_pointer(t);

	chip_write32(t, KRON_WORD_FILTER, mask);
	tester_expect(t, "Filter Register", chip_read32(t, KRON_WORD_FILTER), 0xffff0000 | mask);
	for (unsigned level = 0; level < KRON_LEVELS; level++) {
		chip_write64(t, KRON_WORD_TRACE + level, level);
		chip_write64(t, KRON_WORD_RESOURCE + level, level);
		at += mask >> level & 1 ? (KRON_SAMPLE_SIZE + KRON_RESOURCE_SIZE) / 4 : 0;
		if (!tester_wait_pointer(t, at))
			tester_error(t,
				     "filter %04" PRIx32 ", level %u: pointer %06" PRIx32
				     ", expected %06" PRIx32,
				     mask, level, tester_pointer(t), at);
	}
}

static void cpus(struct nite *n)
{
	struct tester *t = &n->t;
	struct tester_sample s;

	for (unsigned i = 0; i < KRON_SOURCES; i++)
		chip_write32(t, KRON_WORD_SOURCE + i, NITE_SOURCE + 0x01000000u * i);
	for (unsigned k = 0; k < KRON_SOURCES; k++) {
		unsigned cpu = nite_random(n, KRON_SOURCES);
		struct tester_expected want = {
			.cpu = cpu,
			.resource = nite_random(n, 2),
			.source = NITE_SOURCE + 0x01000000u * cpu,
			.data = (uint64_t)nite_random(n, UINT32_MAX) << 32 | k,
		};

		test_select_cpu(t, cpu);
		tester_take_sample(t, nite_random(n, KRON_LEVELS), &want, &s);
	}
}

/* ---- FIFO full ---- */

/* The board's FIFO holds 51 Trace samples when nothing empties it; the chip's some more. */
static void discard(struct nite *n)
{
	struct tester *t = &n->t;
	uint32_t at = tester_pointer(t), burst = 80, taken, overruns;
	struct tester_sample s;

	chip_write32(t, KRON_WORD_CSR, KRON_CSR_DISCARD);
	configure(t, KRON_CONFIG_DEFAULT | KRON_CONFIG_DIS_STATE);
	for (uint32_t i = 0; i < burst; i++) {
		trigger(t, i);
		pass_time(t, 11); /* 40 NODECLKs, so that the chip has sent it */
	}
	overruns = chip_read32(t, KRON_WORD_OVERRUN);
	tester_expect(t, "FIFO overrun in the CSR",
		      chip_read32(t, KRON_WORD_CSR) & KRON_CSR_OVERRUN, KRON_CSR_OVERRUN);
	taken = burst - overruns;
	if (taken < 52 || taken >= burst)
		tester_error(t, "full FIFOs hold %" PRIu32 " Trace samples, expected 52 or more",
			     taken);
	configure(t, KRON_CONFIG_DEFAULT);
	if (!tester_wait_pointer(t, at + 5 * taken))
		tester_error(t,
			     "%" PRIu32 " triggers, %" PRIu32
			     " overruns, but the pointer went from %06" PRIx32 " to %06" PRIx32,
			     burst, overruns, at, tester_pointer(t));
	for (uint32_t i = 0; i < taken; i++) {
		tester_read_sample(t, at + 5 * i, 5, &s);
		tester_expect(t, "data of a sample before the overrun", s.word[4], i);
	}
	/* the next one tells of the loss, the one after it does not */
	at = tester_pointer(t);
	trigger(t, 1000);
	trigger(t, 1001);
	tester_wait_pointer(t, at + 10);
	tester_read_sample(t, at, 5, &s);
	tester_expect(t, "FIFO overflow in the next sample", s.word[0] >> 24,
		      (KRON_HEAD_TRACE(0) | KRON_HEAD_FIFO_OVERFLOW) >> 24);
	tester_read_sample(t, at + 5, 5, &s);
	tester_expect(t, "FIFO overflow in the sample after it", s.word[0] >> 24,
		      KRON_HEAD_TRACE(0) >> 24);
}

static void wait(struct nite *n)
{
	struct tester *t = &n->t;
	uint32_t at = tester_pointer(t), burst = 1 + nite_random(n, 100);
	struct tester_sample s;

	for (uint32_t i = 0; i < burst; i++)
		chip_write64(t, KRON_WORD_RESOURCE, i);
	if (!tester_wait_pointer(t, at + 21 * burst))
		tester_error(t,
			     "%" PRIu32 " Resource samples with waits: pointer from %06" PRIx32
			     " to %06" PRIx32,
			     burst, at, tester_pointer(t));
	for (uint32_t i = 0; i < burst; i++) {
		tester_read_sample(t, at + 21 * i, 21, &s);
		tester_expect(t, "data of a sample with waits", s.word[4], i);
	}
	tester_expect(t, "Overrun Counter with waits", chip_read32(t, KRON_WORD_OVERRUN), 0);
	chip_write32(t, KRON_WORD_WAIT, 1);
	tester_expect(t, "Wait Counter after it was cleared", chip_read32(t, KRON_WORD_WAIT), 0);
}

/* ---- 32-bit mode ---- */

static void mode32(struct nite *n)
{
	struct tester *t = &n->t;
	uint32_t high = nite_random(n, UINT32_MAX), low = nite_random(n, UINT32_MAX);
	uint32_t at = tester_pointer(t);
	struct tester_sample s;

	chip_write32(t, KRON_WORD_CSR, KRON_CSR_MODE32);
	chip_write32(t, KRON_WORD_HIGH, high);
	chip_write32(t, KRON_WORD_TRACE, low);
	if (!tester_wait_pointer(t, at + 5))
		tester_error(t, "32-bit mode: the sample is not in memory");
	tester_read_sample(t, at, 5, &s);
	tester_expect(t, "user data of a sample in 32-bit mode",
		      (uint64_t)s.word[3] << 32 | s.word[4], (uint64_t)high << 32 | low);
	chip_write32(t, KRON_WORD_HIGH, 0x22222222);
	chip_write32(t, KRON_WORD_MODE, 0x11111111);
	tester_expect(t, "Mode Register, low half", chip_read32(t, KRON_WORD_MODE), 0x11111111);
	tester_expect(t, "Mode Register, high half", chip_read32(t, KRON_WORD_HIGH), 0x22222222);
}

/* ---- memory address pointer and the two kinds of buffer ---- */

static void pointer(struct nite *n)
{
	struct tester *t = &n->t;
	uint32_t value = nite_random(n, KRON_MAP_MASK + 1), wraps = nite_random(n, 4);

	set_pointer(t, KRON_CONFIG_DEFAULT, value);
	tester_expect(t, "memory address pointer", tester_pointer(t), value);
	bus_write32(&t->bus, KRON_BOARD_MAP, ~value);
	tester_expect(t, "memory address pointer, written while LOCAL", tester_pointer(t), value);
	check_plain_sample(t, value);
	/* round the end: the top two bits count it */
	value = wraps << KRON_MAP_WRAPS_SHIFT | (KRON_MAP_WORD - nite_random(n, 5));
	set_pointer(t, KRON_CONFIG_DEFAULT, value);
	check_plain_sample(t, value);
	tester_expect(t, "wraps", tester_pointer(t) >> KRON_MAP_WRAPS_SHIFT, (wraps + 1) & 3);
}

/* A simple buffer stops at its end: what is there stays, and what comes later is nowhere. */
static void simple_buffer(struct nite *n)
{
	struct tester *t = &n->t;
	uint32_t at = KRON_BOARD_MEMORY_WORDS - 10;
	struct tester_sample s;

	bus_write32(&t->bus, board_memory_byte(0), n->seq);
	set_pointer(t, KRON_CONFIG_DEFAULT | KRON_CONFIG_WRAPB, at);
	for (uint32_t i = 0; i < 4; i++) {
		trigger(t, i);
		pass_time(t, 100);
	}
	for (uint32_t i = 0; i < 2; i++) {
		tester_read_sample(t, at + 5 * i, 5, &s);
		tester_expect(t, "data of a sample at the end of the buffer", s.word[4], i);
	}
	tester_expect(t, "word 0 after the simple buffer was full",
		      bus_read32(&t->bus, board_memory_byte(0)), n->seq);
	chip_write32(t, KRON_WORD_CSR, KRON_CSR_STOP);
}

/* ---- by hand ---- */

/* TEST: each read takes one byte out of the board's FIFO, header first. */
static void fifo_by_hand(struct nite *n)
{
	struct tester *t = &n->t;
	struct tester_expected want = plain;
	struct tester_sample s = {.words = 5};

	configure(t, KRON_CONFIG_DEFAULT | KRON_CONFIG_TEST);
	want.data = nite_random(n, UINT32_MAX);
	want.after = tester_timestamp(t);
	chip_write64(t, KRON_WORD_TRACE, want.data);
	want.before = tester_timestamp(t);
	pass_time(t, 20);
	for (unsigned i = 0; i < KRON_SAMPLE_SIZE; i++)
		s.word[i / 4] = s.word[i / 4] << 8 | (bus_read32(&t->bus, KRON_BOARD_TEST) & 0xff);
	tester_check_sample(t, &s, &want);
}

static void test_mode(struct nite *n)
{
	struct tester *t = &n->t;
	uint32_t v = nite_random(n, UINT32_MAX);

	configure(t, KRON_CONFIG_DEFAULT & ~KRON_CONFIG_TESTB);
	chip_write32(t, KRON_WORD_WAIT, v);
	chip_write32(t, KRON_WORD_OVERRUN, ~v);
	chip_write32(t, KRON_WORD_INCR_WAIT, 0);
	chip_write32(t, KRON_WORD_INCR_OVERRUN, 0);
	tester_expect(t, "Wait Counter in test mode", chip_read32(t, KRON_WORD_WAIT), v + 1);
	tester_expect(t, "Overrun Counter in test mode", chip_read32(t, KRON_WORD_OVERRUN),
		      (uint32_t)(~v + 1));
	chip_write32(t, KRON_WORD_NETWORK_OFF, 0);
	chip_write32(t, KRON_WORD_FIFO, v);
	for (unsigned i = 0; i < 5; i++)
		tester_expect(t, "FIFO group, written", chip_read32(t, KRON_WORD_FIFO + i), v);
	chip_write32(t, KRON_WORD_ADVANCE, 0);
	trigger(t, ~v);
	tester_expect(t, "FIFO group C", chip_read32(t, KRON_WORD_FIFO + 2), NITE_SOURCE);
	tester_expect(t, "FIFO group E", chip_read32(t, KRON_WORD_FIFO + 4), ~v);
}

/* Only test mode can bring the Timestamp near its end; outside of it, it counts past it. */
static void end_of_time(struct nite *n)
{
	struct tester *t = &n->t;
	uint64_t value = TESTER_TIME_MASK - nite_random(n, 100), now;

	configure(t, KRON_CONFIG_DEFAULT & ~KRON_CONFIG_TESTB);
	chip_write64(t, KRON_WORD_TIMESTAMP, value);
	configure(t, KRON_CONFIG_DEFAULT);
	pass_time(t, 200);
	now = tester_timestamp(t);
	if (now >= value)
		tester_error(t, "Timestamp: %014" PRIx64 " after %014" PRIx64, now, value);
	check_plain_sample(t, 56);
}

static void resets(struct nite *n)
{
	struct tester *t = &n->t;
	uint64_t before = tester_timestamp(t);

	chip_write32(t, KRON_WORD_RESET, 0);
	if (tester_timestamp(t) < before)
		tester_error(t, "Timestamp: restarted by the chip's software reset");
	tester_expect(t, "CSR after the chip's reset",
		      chip_read32(t, KRON_WORD_CSR) &
			      (KRON_CSR_SAMPLING | KRON_CSR_WAIT | KRON_CSR_READ_WAIT),
		      0);
	pass_time(t, 1000);
	bus_write32(&t->bus, KRON_BOARD_RESET, 0);
	tester_expect(t, "Configuration Register after the board's reset",
		      bus_read32(&t->bus, KRON_BOARD_CONFIG) & KRON_CONFIG_WRITABLE &
			      ~0x00e20000u, /* the unused bits read as whatever they like */
		      0);
	configure(t, KRON_CONFIG_DEFAULT);
	if (tester_timestamp(t) >= before + 1000)
		tester_error(t, "Timestamp: not restarted by the board's reset");
}

void nite_alone(struct nite *n)
{
	static void (*const tests[])(struct nite *) = {
		filter,        cpus,         discard,   wait,        mode32, pointer,
		simple_buffer, fifo_by_hand, test_mode, end_of_time, resets,
	};

	tests[nite_random(n, sizeof(tests) / sizeof(*tests))](n);
	n->kind[NITE_ALONE].done++;
	nite_init_board(n);
}

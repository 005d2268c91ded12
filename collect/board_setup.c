/* SPDX-License-Identifier: MIT */
/* board_setup.c - see board_setup.h */
#define _GNU_SOURCE
#include "collect/board_setup.h"
#include "base/clock.h"

#include <time.h>

static void put_chip(struct bus *b, unsigned word, uint32_t value)
{
	bus_write32(b, KRON_CHIP_BYTE(word), value);
}

void board_setup_make(struct bus *b, const struct board_setup *s)
{
	uint32_t config = (KRON_CONFIG_DEFAULT & ~KRON_CONFIG_CPU_ID) | s->config |
			  (s->lines ? s->lines : KRON_CONFIG_EXT_CPU);

	bus_write32(b, KRON_BOARD_RESET, 0);
	/* The pointer ignores writes while LOCAL is set. */
	bus_write32(b, KRON_BOARD_CONFIG, config & ~KRON_CONFIG_LOCAL);
	bus_write32(b, KRON_BOARD_MAP, 0);
	bus_write32(b, KRON_BOARD_CONFIG, config);
	put_chip(b, KRON_WORD_CSR,
		 KRON_CSR_STOP | (s->mode32 ? KRON_CSR_MODE32 : KRON_CSR_MODE64) |
			 (s->when_full == KRON_WHEN_FULL_WAIT ? KRON_CSR_WAIT : KRON_CSR_DISCARD));
	if (s->mode32)
		put_chip(b, KRON_WORD_HIGH, 0);
	put_chip(b, KRON_WORD_WAIT, 0);
	put_chip(b, KRON_WORD_OVERRUN, 0);
	put_chip(b, KRON_WORD_FILTER, s->filter & 0xffff);
}

uint32_t board_setup_adopt(struct bus *b, const struct board_setup *s)
{
	uint32_t config = bus_read32(b, KRON_BOARD_CONFIG) & KRON_CONFIG_WRITABLE;
	uint32_t needed =
		KRON_CONFIG_LOCAL | KRON_CONFIG_EXT_CPU | KRON_CONFIG_MK_OE | KRON_CONFIG_TESTB;
	uint32_t wrong = KRON_CONFIG_WRAPB | KRON_CONFIG_TEST | KRON_CONFIG_DIS_STATE;

	bus_write32(b, KRON_BOARD_CONFIG, (config | needed) & ~wrong);
	put_chip(b, KRON_WORD_CSR,
		 KRON_CSR_MODE64 | (s->when_full == KRON_WHEN_FULL_WAIT ? KRON_CSR_WAIT : 0));
	return config;
}

void board_setup_restore(struct bus *b, uint32_t config)
{
	bus_write32(b, KRON_BOARD_CONFIG, config);
}

void board_setup_sampling(struct bus *b, bool on)
{
	put_chip(b, KRON_WORD_CSR, on ? KRON_CSR_SAMPLING : KRON_CSR_STOP);
}

/* ---- time ---- */

static uint64_t timestamp(const struct board *b)
{
	return board_read64(b, KRON_CHIP_BYTE(KRON_WORD_TIMESTAMP)) & 0x00ffffffffffffffull;
}

/* Counter ticks in a second of the board's, as the board reckons. */
static double tsc_per_second(const struct board *b)
{
	uint64_t seconds = 1000;
	uint64_t now = board_now(b);
	uint64_t span = board_tsc_of_tick(b, now + seconds * KRON_OSCILLATOR_HZ) -
			board_tsc_of_tick(b, now);

	return (double)span / (double)seconds;
}

void board_clock_read(struct board_clock *c, const struct board *b)
{
	struct tightest tight = {0};
	double per_second = tsc_per_second(b);

	c->hz = bus_timestamp_hz(board_read32(b, KRON_BOARD_CONFIG));
	c->ticks_per_tsc = per_second > 0 ? c->hz / per_second : 0;
	while (tightest_begin(&tight)) {
		uint64_t ticks = timestamp(b);

		if (tightest_end(&tight))
			c->ticks = ticks;
	}
	c->tsc = tight.tsc;
}

uint64_t board_clock_ticks(const struct board_clock *c, uint64_t tsc)
{
	double ticks;

	if (!c)
		return tsc;
	ticks = (double)(int64_t)(tsc - c->tsc) * c->ticks_per_tsc;
	if (ticks < 0 && (double)c->ticks < -ticks)
		return 0;
	return ticks < 0 ? c->ticks - (uint64_t)-ticks : c->ticks + (uint64_t)ticks;
}

void board_time_point(const struct board *b, struct time_point *t)
{
	struct tightest tight = {0};

	while (tightest_begin(&tight)) {
		uint64_t mono = clock_ns(CLOCK_MONOTONIC);
		uint64_t ticks = timestamp(b);

		if (!tightest_end(&tight))
			continue;
		t->tsc = ticks;
		t->mono_ns = mono;
		t->real_ns = clock_ns(CLOCK_REALTIME);
	}
}

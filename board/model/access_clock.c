/* SPDX-License-Identifier: MIT */
/*
 * access_clock.c - the board's oscillator: the machine's time stamp counter, or a test's hand.
 *
 *   tick = anchor.tick + (TSC - anchor.tsc) * 40 MHz / tsc_hz
 *
 * The anchor is part of the model's state.  It changes when the TSC is found to have begun
 * anew: the machine slept, and the board lay in shared memory.  Time never runs back: the
 * model takes an earlier tick for the latest that it has seen.
 */
#include "board/model/access_layout.h"
#include "board/model/access_sys.h"

#define TICKS_TO_SLEEP 2000u /* 50 us: less is spun away */
#define TSC_MAX (1ull << 33) /* two seconds and more */
#define NS_PER_TICK (1000000000u / KRON_OSCILLATOR_HZ)

/* high:0 / by; no 128-bit division from a library.  high < by */
static uint64_t divide(uint64_t high, uint64_t low, uint64_t by)
{
	uint64_t quotient, rest;

	__asm__("divq %4" : "=a"(quotient), "=d"(rest) : "0"(low), "1"(high), "r"(by) : "cc");
	return quotient;
}

uint64_t access_tsc_mult(uint64_t tsc_hz)
{
	const uint64_t high = KRON_OSCILLATOR_HZ >> (64 - ACCESS_TSC_SHIFT);

	/* Slower counters than 1 MHz are mistakes. */
	return divide(high, 0, tsc_hz < 1000000u ? 1000000u : tsc_hz);
}

void board_set_rate(const struct board *b, uint64_t tsc_hz)
{
	__atomic_store_n(&b->model->tsc_mult, access_tsc_mult(tsc_hz), __ATOMIC_RELAXED);
}

void board_use_rate_of(const struct board *b, const struct board *other)
{
	__atomic_store_n(&b->model->tsc_mult, ACCESS_READ(&other->model->tsc_mult),
			 __ATOMIC_RELAXED);
}

static void wait_real(const struct board *b, const struct access_clock_point *anchor, uint64_t done)
{
	uint64_t mult = b->model->tsc_mult;
	uint64_t start = access_tsc(), tsc = start;

	/* The clock may be damaged, too. */
	if (mult < ACCESS_MULT_MIN)
		return;
	while (tsc - start < TSC_MAX) {
		uint64_t now = access_tick(mult, anchor, tsc);

		if (now >= done || done - now > ACCESS_WAIT_MAX)
			break;
		if (!b->quiet && done - now > TICKS_TO_SLEEP)
			access_sys_sleep((done - now - TICKS_TO_SLEEP / 2) * NS_PER_TICK);
		else
			__builtin_ia32_pause();
		tsc = access_tsc();
	}
}

static void wait_virtual(const struct board *b, uint64_t done)
{
	uint64_t now = ACCESS_READ(&b->model->virtual_now);
	unsigned tries = 0;

	while (now < done && ++tries < 10000 &&
	       !__atomic_compare_exchange_n(&b->model->virtual_now, &now, done, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void access_wait(const struct board *b, const struct access_clock_point *anchor, uint64_t done)
{
	if (b->model->clock == ACCESS_CLOCK_VIRTUAL)
		wait_virtual(b, done);
	else
		wait_real(b, anchor, done);
}

uint64_t board_tsc_of_tick(const struct board *b, uint64_t tick)
{
	struct access_clock_point anchor = {0, 0};
	uint64_t mult = b->model->tsc_mult;
	uint64_t ticks, time;

	if (b->model->clock == ACCESS_CLOCK_VIRTUAL || !access_read_anchor(b, &anchor, &time))
		return tick;
	if (tick < anchor.tick)
		ticks = anchor.tick - tick;
	else
		ticks = tick - anchor.tick;
	if (ticks >> (64 - ACCESS_TSC_SHIFT) >= mult)
		return 0; /* in millions of years */
	ticks = divide(ticks >> (64 - ACCESS_TSC_SHIFT), ticks << ACCESS_TSC_SHIFT, mult);
	return tick < anchor.tick ? anchor.tsc - ticks : anchor.tsc + ticks;
}

uint64_t board_now(const struct board *b)
{
	struct access_clock_point anchor = {0, 0};
	uint64_t now, time;

	if (b->model->clock == ACCESS_CLOCK_VIRTUAL)
		return ACCESS_READ(&b->model->virtual_now);
	if (!access_read_anchor(b, &anchor, &time))
		return 0;
	now = access_tick(b->model->tsc_mult, &anchor, access_tsc());
	return now > time ? now : time;
}

/* SPDX-License-Identifier: MIT */
/*
 * device.c - the machine's time, its power-on and who answers a bus cycle.
 *
 * Nothing is stepped clock by clock: each part computes what `n` clocks would have done.  Only
 * bytes that pass a FIFO while others do are moved one by one, and there are never more of them
 * than the FIFOs hold.
 */
#include "board/model/device_parts.h"

static uint32_t clamp(uint32_t v, uint32_t min, uint32_t max)
{
	return v < min ? min : v > max ? max : v;
}

void device_power_on(struct device_state *s, const struct device_geometry *g)
{
	typedef uint64_t __attribute__((may_alias)) word_t;
	word_t *p = (word_t *)s;
	unsigned i;

	for (i = 0; i < sizeof(*s) / sizeof(*p); i++) {
		p[i] = 0;
		DEVICE_PLAIN_LOOP();
	}
	s->geometry.chip_fifo = clamp(g->chip_fifo, 1, DEVICE_CHIP_FIFO_MAX);
	s->geometry.board_fifo = clamp(g->board_fifo, 4, DEVICE_BOARD_FIFO_MAX);
	s->geometry.drain_memory = clamp(g->drain_memory, 1, DEVICE_DRAIN_MAX);
	s->geometry.drain_cable = clamp(g->drain_cable, 1, DEVICE_DRAIN_MAX);
	s->geometry.cable = g->cable != 0;
	s->geometry.vc = g->vc != 0;
	device_chip_reset(s);
}

/* The timestamp clock is NODECLK / 3 or / 4, divided on the board. */
static void run_clocks(struct device_state *s, uint64_t ticks)
{
	uint64_t n = ticks;
	uint64_t phase, q;

	if (!device_has_node_clock(s))
		return;
	if (s->config & KRON_CONFIG_DIV2) {
		n = (ticks + s->half) >> 1;
		s->half = (ticks + s->half) & 1;
	}
	if (n == 0)
		return;
	s->node += n;
	phase = s->ts_phase + n;
	if (s->config & KRON_CONFIG_TS_RATIO) {
		/* It divided by 4 until now: the next NODECLK is the third one, too. */
		if (s->ts_phase == 3)
			phase--;
		q = phase / 3;
		s->ts_phase = (uint8_t)(phase - 3 * q);
	} else {
		q = phase >> 2;
		s->ts_phase = phase & 3;
	}
	s->ts += q;
	if (!device_is_test_mode(s))
		s->timestamp += q;
}

void device_run(struct device_state *s, uint64_t until)
{
	if (until > DEVICE_TIME_MAX)
		until = DEVICE_TIME_MAX;
	device_fifo_run(s, until);
	run_clocks(s, until - s->time);
	s->time = until;
}

static void begin_call(struct device_state *s, uint64_t now)
{
	if (now < s->time)
		now = s->time;
	device_fifo_begin_call(s);
	device_run(s, now);
}

void device_advance(struct device_state *s, uint64_t now)
{
	begin_call(s, now);
}

void device_set_external(struct device_state *s, uint64_t now, unsigned counter, bool high)
{
	uint16_t bit = (uint16_t)(1u << (counter % KRON_COUNTERS));
	bool edge = high && !(s->external & bit);

	begin_call(s, now);
	device_counters_settle(s);
	s->external = high ? s->external | bit : s->external & (uint16_t)~bit;
	if (edge)
		device_counter_edge(s, counter % KRON_COUNTERS);
}

static bool is_chip(const struct device_state *s, uint32_t offset)
{
	if (offset - KRON_BOARD_CHIP < 4 * KRON_CHIP_WORDS)
		return true;
	return s->geometry.vc && offset - KRON_BOARD_VC < KRON_BOARD_VC_SIZE;
}

void device_cycle(struct device_state *s, uint64_t now, struct device_cycle *c)
{
	begin_call(s, now);
	c->no_answer = false;
	c->taken = false;
	c->gates_changed = false;
	if (is_chip(s, c->offset))
		device_chip_cycle(s, c);
	else
		device_board_cycle(s, c);
	c->done = s->time;
}

uint32_t device_used_bytes(const struct device_state *s)
{
	uint32_t entries = s->nfifo < DEVICE_CHIP_FIFO_MAX ? s->nfifo : DEVICE_CHIP_FIFO_MAX;
	uint32_t rd = s->rd;
	uint32_t wr = s->wr < DEVICE_ARENA_BYTES ? s->wr : DEVICE_ARENA_BYTES;

	if (rd < wr)
		return (uint32_t) __builtin_offsetof(struct device_state, store) + ((wr + 7) & ~7u);
	return (uint32_t)(__builtin_offsetof(struct device_state, entry) +
			  entries * sizeof(s->entry[0]) + 7) &
	       ~7u;
}

static bool geometry_is_sane(const struct device_geometry *g)
{
	return g->chip_fifo >= 1 && g->chip_fifo <= DEVICE_CHIP_FIFO_MAX && g->board_fifo >= 4 &&
	       g->board_fifo <= DEVICE_BOARD_FIFO_MAX && g->drain_memory >= 1 &&
	       g->drain_memory <= DEVICE_DRAIN_MAX && g->drain_cable >= 1 &&
	       g->drain_cable <= DEVICE_DRAIN_MAX;
}

/*
 * Whatever could lead an index astray or a time round the end.  Registers may hold anything
 * that fits them.
 */
bool device_is_sane(const struct device_state *s)
{
	return geometry_is_sane(&s->geometry) && s->config <= KRON_CONFIG_WRITABLE &&
	       s->map <= KRON_MAP_MASK && s->time <= DEVICE_TIME_MAX && s->node <= s->time &&
	       s->ts <= s->node && s->half < device_period(s) && s->ts_phase < 4 &&
	       device_counters_are_sane(s) && device_fifo_is_sane(s);
}

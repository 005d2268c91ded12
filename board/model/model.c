/* SPDX-License-Identifier: MIT */
/*
 * model.c - the model's time, its power-on and who answers a bus cycle.
 *
 * Nothing is stepped clock by clock: each part computes what `n` clocks would have done.  Only
 * bytes that pass a FIFO while others do are moved one by one, and there are never more of them
 * than the FIFOs hold.
 */
#include "board/model/model_parts.h"

static uint32_t clamp(uint32_t v, uint32_t min, uint32_t max)
{
	return v < min ? min : v > max ? max : v;
}

void model_power_on(struct model_state *s, const struct model_geometry *g)
{
	typedef uint64_t __attribute__((may_alias)) word_t;
	word_t *p = (word_t *)s;
	unsigned i;

	for (i = 0; i < sizeof(*s) / sizeof(*p); i++) {
		p[i] = 0;
		MODEL_PLAIN_LOOP();
	}
	s->geometry.chip_fifo = clamp(g->chip_fifo, 1, MODEL_CHIP_FIFO_MAX);
	s->geometry.board_fifo = clamp(g->board_fifo, 4, MODEL_BOARD_FIFO_MAX);
	s->geometry.drain_memory = clamp(g->drain_memory, 1, MODEL_DRAIN_MAX);
	s->geometry.drain_cable = clamp(g->drain_cable, 1, MODEL_DRAIN_MAX);
	s->geometry.cable = clamp(g->cable, 0, MODEL_CABLE_MAX);
	s->geometry.vc = g->vc != 0;
	model_chip_reset(s);
	if (s->geometry.vc)
		model_vc_board_reset(s);
}

/* The timestamp clock is NODECLK / 3 or / 4, divided on the board. */
static void run_clocks(struct model_state *s, uint64_t ticks)
{
	uint64_t n = ticks;
	uint64_t phase, q;

	if (!model_has_node_clock(s))
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
	if (model_is_test_mode(s))
		return;
	s->timestamp += q;
	if (s->geometry.vc)
		s->vc.timestamp += q;
}

void model_run(struct model_state *s, uint64_t until)
{
	if (until > MODEL_TIME_MAX)
		until = MODEL_TIME_MAX;
	model_fifo_run(s, until);
	run_clocks(s, until - s->time);
	s->time = until;
}

static void begin_call(struct model_state *s, uint64_t now)
{
	if (now < s->time)
		now = s->time;
	model_fifo_begin_call(s);
	model_run(s, now);
}

void model_advance(struct model_state *s, uint64_t now)
{
	begin_call(s, now);
}

void model_reset(struct model_state *s, uint64_t now, uint32_t config)
{
	begin_call(s, now);
	model_board_reset(s, config);
}

void model_cable_take(struct model_state *s, uint64_t now, uint32_t n)
{
	uint32_t there = model_cable_waiting(s);

	begin_call(s, now);
	s->cable_taken += n < there ? n : there;
}

void model_set_external(struct model_state *s, uint64_t now, unsigned counter, bool high)
{
	uint16_t bit = (uint16_t)(1u << (counter % KRON_COUNTERS));
	bool edge = high && !(s->external & bit);

	begin_call(s, now);
	model_counters_settle(s, &s->counters);
	if (s->geometry.vc)
		model_counters_settle(s, &s->vc.page_in);
	s->external = high ? s->external | bit : s->external & (uint16_t)~bit;
	if (!edge)
		return;
	model_counter_edge(s, &s->counters, counter % KRON_COUNTERS);
	if (s->geometry.vc)
		model_counter_edge(s, &s->vc.page_in, counter % KRON_COUNTERS);
}

void model_cycle(struct model_state *s, uint64_t now, struct model_cycle *c)
{
	begin_call(s, now);
	c->no_answer = false;
	c->taken = false;
	c->gates_changed = false;
	if (c->offset - KRON_BOARD_CHIP < 4 * KRON_CHIP_WORDS)
		model_chip_cycle(s, c);
	else if (model_vc_answers(s, c->offset))
		model_vc_cycle(s, c);
	else
		model_board_cycle(s, c);
	c->done = s->time;
}

uint32_t model_head_bytes(const struct model_state *s)
{
	uint32_t entries = s->nfifo < MODEL_CHIP_FIFO_MAX ? s->nfifo : MODEL_CHIP_FIFO_MAX;

	if (s->geometry.vc)
		return (uint32_t) __builtin_offsetof(struct model_state, store);
	return (uint32_t)(__builtin_offsetof(struct model_state, entry) +
			  entries * sizeof(s->entry[0]) + 7) &
	       ~7u;
}

uint32_t model_arena_bytes(const struct model_state *s)
{
	uint32_t stores = 4u * s->nstores + (s->ncable ? 2u * (s->ncable - 1u) : 0);
	uint32_t fifo = s->rd < s->wr ? s->wr : 0;

	return ((stores > fifo ? stores : fifo) + 7) & ~7u;
}

uint32_t model_used_bytes(const struct model_state *s)
{
	uint32_t rd = s->rd;
	uint32_t wr = s->wr < MODEL_ARENA_BYTES ? s->wr : MODEL_ARENA_BYTES;

	if (rd < wr)
		return (uint32_t) __builtin_offsetof(struct model_state, store) + ((wr + 7) & ~7u);
	return model_head_bytes(s);
}

static bool geometry_is_sane(const struct model_geometry *g)
{
	return g->chip_fifo >= 1 && g->chip_fifo <= MODEL_CHIP_FIFO_MAX && g->board_fifo >= 4 &&
	       g->board_fifo <= MODEL_BOARD_FIFO_MAX && g->drain_memory >= 1 &&
	       g->drain_memory <= MODEL_DRAIN_MAX && g->drain_cable >= 1 &&
	       g->drain_cable <= MODEL_DRAIN_MAX && g->cable <= MODEL_CABLE_MAX;
}

/*
 * Whatever could lead an index astray or a time round the end.  Registers may hold anything
 * that fits them.
 */
bool model_is_sane(const struct model_state *s)
{
	return geometry_is_sane(&s->geometry) && s->config <= KRON_CONFIG_WRITABLE &&
	       s->map <= KRON_MAP_MASK && s->time <= MODEL_TIME_MAX && s->node <= s->time &&
	       s->ts <= s->node && s->half < model_period(s) && s->ts_phase < 4 &&
	       model_counters_are_sane(s, &s->counters) && model_fifo_is_sane(s) &&
	       (!s->geometry.vc || model_vc_is_sane(s));
}

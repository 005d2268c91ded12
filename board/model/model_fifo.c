/* SPDX-License-Identifier: MIT */
/*
 * model_fifo.c - from the chip FIFO over the output network and the board FIFO to memory.
 *
 *   chip FIFO ── 1 byte / 2 NODECLKs, if there is room ──► board FIFO ── state machine ──► memory
 *   head: entry[0]           network                     rd ... wr       sequence          cable
 *
 * Problem.  The network and the state machine run on different clocks and each may block the
 * other; a probe must not pay for 20 simulated bytes.  So model_fifo_run() has two ways:
 *
 *   word by word   while the state machine is idle and the board FIFO holds nothing but the
 *                  first bytes of the word that is being sent, that word goes to memory at once;
 *   byte by byte   everything else: the earlier of "sequence completes" and "byte goes" happens,
 *                  and again, up to the wanted tick.
 *
 * tests/unit/board/test_model_steps.c holds both against one that is stepped tick by tick.
 */
#include "board/model/model_parts.h"

#define TRACE_BYTES KRON_SAMPLE_SIZE
#define NETWORK_CLOCK 2u /* NODECLKs */
/* The network can never be further behind than this (model_fifo_delay_network()). */
#define NETWORK_DELAY_MAX (1u << 30)

static uint32_t head_bytes(const struct model_state *s)
{
	return s->fifo_resource & 1 ? KRON_RESOURCE_SIZE : TRACE_BYTES;
}

static uint32_t head_word(const struct model_state *s, unsigned entry, unsigned i)
{
	return i < 5 ? s->entry[entry].group[i] : s->counters.shadow[i - 5];
}

/* ---- chip FIFO ---- */

struct model_entry *model_fifo_push(struct model_state *s, bool resource)
{
	unsigned n = s->nfifo++;

	if (n == 0)
		s->network = s->node + NETWORK_CLOCK;
	s->fifo_resource = (uint16_t)((s->fifo_resource & ~(1u << n)) | (unsigned)resource << n);
	return &s->entry[n];
}

void model_fifo_pop(struct model_state *s, unsigned n)
{
	unsigned left = s->nfifo - n;
	unsigned i, k;

	for (i = 0; i < left; i++) {
		for (k = 0; k < 5; k++) {
			s->entry[i].group[k] = s->entry[i + n].group[k];
			MODEL_PLAIN_LOOP();
		}
	}
	s->nfifo = (uint8_t)left;
	s->fifo_resource = (uint16_t)(s->fifo_resource >> n);
	s->sent = 0;
}

void model_fifo_enable_network(struct model_state *s)
{
	if (s->network_off)
		s->network = s->node + NETWORK_CLOCK;
	s->network_off = 0;
}

static bool is_sending(const struct model_state *s)
{
	return s->nfifo > 0 && !s->network_off && model_has_node_clock(s);
}

void model_fifo_delay_network(struct model_state *s)
{
	if (is_sending(s) && s->network - s->node < NETWORK_DELAY_MAX)
		s->network += 2;
}

void model_fifo_reset_chip(struct model_state *s)
{
	s->nfifo = 0;
	s->fifo_resource = 0;
	s->sent = 0;
	s->network_off = 0;
	s->shadow_busy = 0;
}

/* ---- board FIFO and memory ---- */

void model_fifo_reset_board(struct model_state *s)
{
	s->rd = s->wr;
	s->sequence = MODEL_IDLE;
}

/*
 * The words of the call before are gone.  The board FIFO moves to the front once as much has been
 * taken from it as is in it, for model_used_bytes(), and to have room for all that comes.
 */
void model_fifo_begin_call(struct model_state *s)
{
	uint8_t *arena = (uint8_t *)s->store;
	unsigned i, fill = model_fifo_fill(s);

	s->nstores = 0;
	s->ncpu = 0;
	s->ncable = 0;
	if (s->geometry.vc)
		s->vc.nout = 0;
	if (s->rd < fill && s->wr + s->nfifo * KRON_RESOURCE_SIZE <= MODEL_ARENA_BYTES)
		return;
	for (i = 0; i < fill; i++) {
		arena[i] = arena[s->rd + i];
		MODEL_PLAIN_LOOP();
	}
	s->rd = 0;
	s->wr = (uint16_t)fill;
}

uint8_t model_fifo_take(struct model_state *s)
{
	return ((const uint8_t *)s->store)[s->rd++];
}

bool model_fifo_next_word(struct model_state *s, uint32_t *word)
{
	bool simple = s->config & KRON_CONFIG_WRAPB;

	if (simple && s->memory_full)
		return false;
	*word = s->map & KRON_MAP_WORD;
	s->memory_full = simple && *word == KRON_MAP_WORD;
	if (!s->memory_full)
		s->map = (s->map + 1) & KRON_MAP_MASK;
	return true;
}

static void store_word(struct model_state *s, uint32_t value)
{
	uint32_t word;

	if (!model_fifo_next_word(s, &word))
		return;
	if (s->nstores == 0)
		s->store_first = word;
	s->store[s->nstores++] = value;
}

/* Two entries become one value of 16 bits. */
static void send_over_cable(struct model_state *s)
{
	uint8_t *out = (uint8_t *)s->store + 4u * s->nstores + 2u * s->ncable;
	uint8_t upper = model_fifo_take(s);
	uint8_t lower = model_fifo_take(s);

	if (s->ncable == 0) {
		s->cable_first = (uint16_t)(upper << 8 | lower);
	} else {
		out[-2] = upper;
		out[-1] = lower;
	}
	s->ncable++;
	s->cable_sent++;
}

void model_fifo_finish_sequence(struct model_state *s)
{
	uint32_t value = 0;
	unsigned i;

	if (s->sequence == MODEL_TO_MEMORY) {
		for (i = 0; i < 4; i++)
			value = value << 8 | model_fifo_take(s);
		store_word(s, value);
	} else if (s->sequence == MODEL_TO_CABLE) {
		send_over_cable(s);
	}
	s->sequence = MODEL_IDLE;
}

static void begin_sequence(struct model_state *s, uint64_t tick)
{
	unsigned fill = model_fifo_fill(s);

	if (s->sequence != MODEL_IDLE || fill < 2 ||
	    (s->config & (KRON_CONFIG_TEST | KRON_CONFIG_DIS_STATE)))
		return;
	if (s->config & KRON_CONFIG_LOCAL) {
		if (fill < 4)
			return;
		s->sequence = MODEL_TO_MEMORY;
		s->sequence_end = tick + s->geometry.drain_memory;
	} else if (model_cable_waiting(s) < s->geometry.cable) {
		s->sequence = MODEL_TO_CABLE;
		s->sequence_end = tick + s->geometry.drain_cable;
	}
}

/* ---- time ---- */

/* The tick at which the network's next byte goes. */
static uint64_t network_tick(const struct model_state *s)
{
	if (!is_sending(s))
		return MODEL_NEVER;
	return s->time + (s->network - s->node) * model_period(s) - s->half;
}

static bool is_board_full(const struct model_state *s)
{
	return model_fifo_fill(s) >= s->geometry.board_fifo;
}

/* As configured, a word has left the board FIFO before the next one can be complete. */
static bool is_way_clear(const struct model_state *s)
{
	const uint32_t switches =
		KRON_CONFIG_LOCAL | KRON_CONFIG_MK_OE | KRON_CONFIG_TEST | KRON_CONFIG_DIS_STATE;

	return (s->config & switches) == (KRON_CONFIG_LOCAL | KRON_CONFIG_MK_OE) &&
	       s->geometry.board_fifo >= 8 &&
	       s->geometry.drain_memory <= 4 * NETWORK_CLOCK * model_period(s);
}

/* The head sample has one byte less to send. */
static void count_sent(struct model_state *s, unsigned n)
{
	s->sent = (uint8_t)(s->sent + n);
	if (s->sent != head_bytes(s))
		return;
	if (s->fifo_resource & 1)
		s->shadow_busy = 0;
	model_fifo_pop(s, 1);
}

/* Is what is in the board FIFO the beginning of `word`, of which `n` bytes were sent? */
static bool is_begun(const struct model_state *s, uint32_t word, unsigned n)
{
	const uint8_t *byte = (const uint8_t *)s->store + s->rd;
	unsigned i;

	if (model_fifo_fill(s) != n)
		return false;
	for (i = 0; i < n; i++) {
		if (byte[i] != (uint8_t)(word >> (24 - 8 * i)))
			return false;
	}
	return true;
}

/*
 * Words of the head samples that are in memory by `until`, the next byte going at `tick`.
 * Returns when the first byte goes that was not moved.
 */
static uint64_t move_words(struct model_state *s, uint64_t tick, uint64_t until)
{
	uint32_t byte_ticks = NETWORK_CLOCK * model_period(s);
	uint32_t word;
	unsigned n, left;
	uint64_t sent;

	while (s->nfifo && s->sequence == MODEL_IDLE) {
		n = s->sent % 4;
		left = 4 - n;
		word = head_word(s, 0, s->sent / 4);
		sent = tick + left * byte_ticks;
		if (sent - byte_ticks + s->geometry.drain_memory > until || !is_begun(s, word, n))
			break;
		store_word(s, word);
		s->rd = s->wr = (uint16_t)(4 * s->nstores);
		s->network += left * NETWORK_CLOCK;
		count_sent(s, left);
		tick = sent;
	}
	return s->nfifo ? tick : MODEL_NEVER;
}

static void send_byte(struct model_state *s)
{
	uint8_t byte = (uint8_t)(head_word(s, 0, s->sent / 4) >> (24 - 8 * (s->sent % 4)));

	count_sent(s, 1);
	/* Reading of MK_OE: the chip sends, but its pins are off, and the byte is lost. */
	if (s->config & KRON_CONFIG_MK_OE)
		((uint8_t *)s->store)[s->wr++] = byte;
}

/*
 * NETRDY is not there at `tick`: how many network clocks until the next try that can succeed,
 * or until the first one after `until`.
 */
static uint64_t clocks_to_retry(const struct model_state *s, uint64_t tick, uint64_t until)
{
	uint32_t byte_ticks = NETWORK_CLOCK * model_period(s);

	if (s->sequence == MODEL_IDLE || s->sequence_end > until)
		return (until - tick) / byte_ticks + 1;
	return (s->sequence_end - tick + byte_ticks - 1) / byte_ticks;
}

/* One try of the network; returns when the next one is. */
static uint64_t try_byte(struct model_state *s, uint64_t tick, uint64_t until)
{
	uint64_t n = 1;

	if (is_board_full(s)) {
		n = clocks_to_retry(s, tick, until);
	} else {
		send_byte(s);
		begin_sequence(s, tick);
	}
	s->network += n * NETWORK_CLOCK;
	return s->nfifo ? tick + n * NETWORK_CLOCK * model_period(s) : MODEL_NEVER;
}

void model_fifo_run(struct model_state *s, uint64_t until)
{
	bool clear = is_way_clear(s);
	uint64_t tick = network_tick(s);

	begin_sequence(s, s->time);
	if (clear && tick <= until)
		tick = move_words(s, tick, until);
	for (;;) {
		if (s->sequence != MODEL_IDLE && s->sequence_end <= until &&
		    s->sequence_end <= tick) {
			model_fifo_finish_sequence(s);
			begin_sequence(s, s->sequence_end);
			if (clear && tick <= until)
				tick = move_words(s, tick, until);
		} else if (tick <= until) {
			tick = try_byte(s, tick, until);
		} else {
			break;
		}
	}
}

uint64_t model_fifo_next(const struct model_state *s)
{
	uint64_t byte = is_board_full(s) ? MODEL_NEVER : network_tick(s);
	uint64_t word = s->sequence != MODEL_IDLE ? s->sequence_end : MODEL_NEVER;
	uint64_t next = byte < word ? byte : word;

	return next <= MODEL_TIME_MAX ? next : MODEL_NEVER;
}

bool model_fifo_is_sane(const struct model_state *s)
{
	uint32_t fill = model_fifo_fill(s);

	if (s->nfifo > s->geometry.chip_fifo || s->rd > s->wr || s->wr > MODEL_ARENA_BYTES ||
	    fill > s->geometry.board_fifo || s->nstores > MODEL_STORES_MAX || s->ncpu > 2)
		return false;
	if (model_cable_waiting(s) > s->geometry.cable ||
	    4u * s->nstores + 2u * s->ncable > MODEL_ARENA_BYTES + 2u)
		return false;
	if (s->nfifo ? s->sent >= head_bytes(s) : s->sent != 0)
		return false;
	if (s->nfifo && !s->network_off &&
	    (s->network <= s->node || s->network - s->node > NETWORK_DELAY_MAX + 2))
		return false;
	if (s->sequence > MODEL_TO_CABLE ||
	    (s->sequence == MODEL_TO_CABLE && model_cable_waiting(s) == s->geometry.cable))
		return false;
	if (s->sequence != MODEL_IDLE &&
	    (s->sequence_end <= s->time || s->sequence_end - s->time > MODEL_DRAIN_MAX))
		return false;
	return fill >= (s->sequence == MODEL_TO_MEMORY  ? 4u
			: s->sequence == MODEL_TO_CABLE ? 2u
							: 0u);
}

/* SPDX-License-Identifier: MIT */
/*
 * device_fifo.c - from the chip FIFO over the output network and the board FIFO to memory.
 *
 *   chip FIFO ── 1 byte / 2 NODECLKs, if there is room ──► board FIFO ── state machine ──► memory
 *   head: entry[0]           network                     rd ... wr       sequence          cable
 *
 * Problem.  The network and the state machine run on different clocks and each may block the
 * other; a probe must not pay for 20 simulated bytes.  So device_fifo_run() has two ways:
 *
 *   word by word   while the state machine is idle and the board FIFO holds nothing but the
 *                  first bytes of the word that is being sent, that word goes to memory at once;
 *   byte by byte   everything else: the earlier of "sequence completes" and "byte goes" happens,
 *                  and again, up to the wanted tick.
 *
 * tests/unit/board/test_device_steps.c holds both against a machine that is stepped tick by tick.
 */
#include "board/model/device_parts.h"

#define TRACE_BYTES KRON_SAMPLE_SIZE
#define NETWORK_CLOCK 2u /* NODECLKs */
/* The network can never be further behind than this (device_fifo_delay_network()). */
#define NETWORK_DELAY_MAX (1u << 30)

static uint32_t head_bytes(const struct device_state *s)
{
	return s->fifo_resource & 1 ? KRON_RESOURCE_SIZE : TRACE_BYTES;
}

static uint32_t head_word(const struct device_state *s, unsigned entry, unsigned i)
{
	return i < 5 ? s->entry[entry].group[i] : s->shadow[i - 5];
}

/* ---- chip FIFO ---- */

struct device_entry *device_fifo_push(struct device_state *s, bool resource)
{
	unsigned n = s->nfifo++;

	if (n == 0)
		s->network = s->node + NETWORK_CLOCK;
	s->fifo_resource = (uint16_t)((s->fifo_resource & ~(1u << n)) | (unsigned)resource << n);
	return &s->entry[n];
}

void device_fifo_pop(struct device_state *s, unsigned n)
{
	unsigned left = s->nfifo - n;
	unsigned i, k;

	for (i = 0; i < left; i++) {
		for (k = 0; k < 5; k++) {
			s->entry[i].group[k] = s->entry[i + n].group[k];
			DEVICE_PLAIN_LOOP();
		}
	}
	s->nfifo = (uint8_t)left;
	s->fifo_resource = (uint16_t)(s->fifo_resource >> n);
	s->sent = 0;
}

void device_fifo_enable_network(struct device_state *s)
{
	if (s->network_off)
		s->network = s->node + NETWORK_CLOCK;
	s->network_off = 0;
}

static bool is_sending(const struct device_state *s)
{
	return s->nfifo > 0 && !s->network_off && device_has_node_clock(s);
}

void device_fifo_delay_network(struct device_state *s)
{
	if (is_sending(s) && s->network - s->node < NETWORK_DELAY_MAX)
		s->network += 2;
}

void device_fifo_reset_chip(struct device_state *s)
{
	s->nfifo = 0;
	s->fifo_resource = 0;
	s->sent = 0;
	s->network_off = 0;
	s->shadow_busy = 0;
}

/* ---- board FIFO and memory ---- */

void device_fifo_reset_board(struct device_state *s)
{
	s->rd = s->wr;
	s->sequence = DEVICE_IDLE;
}

/*
 * The words of the call before are gone.  The board FIFO moves to the front once as much has been
 * taken from it as is in it, for device_used_bytes(), and to have room for all that comes.
 */
void device_fifo_begin_call(struct device_state *s)
{
	uint8_t *arena = (uint8_t *)s->store;
	unsigned i, fill = device_fifo_fill(s);

	s->nstores = 0;
	s->ncpu = 0;
	if (s->rd < fill && s->wr + s->nfifo * KRON_RESOURCE_SIZE <= DEVICE_ARENA_BYTES)
		return;
	for (i = 0; i < fill; i++) {
		arena[i] = arena[s->rd + i];
		DEVICE_PLAIN_LOOP();
	}
	s->rd = 0;
	s->wr = (uint16_t)fill;
}

uint8_t device_fifo_take(struct device_state *s)
{
	return ((const uint8_t *)s->store)[s->rd++];
}

bool device_fifo_next_word(struct device_state *s, uint32_t *word)
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

static void store_word(struct device_state *s, uint32_t value)
{
	uint32_t word;

	if (!device_fifo_next_word(s, &word))
		return;
	if (s->nstores == 0)
		s->store_first = word;
	s->store[s->nstores++] = value;
}

void device_fifo_finish_sequence(struct device_state *s)
{
	uint32_t value = 0;
	unsigned i;

	if (s->sequence == DEVICE_TO_MEMORY) {
		for (i = 0; i < 4; i++)
			value = value << 8 | device_fifo_take(s);
		store_word(s, value);
	} else if (s->sequence == DEVICE_TO_CABLE) {
		s->rd += 2;
	}
	s->sequence = DEVICE_IDLE;
}

static void begin_sequence(struct device_state *s, uint64_t tick)
{
	unsigned fill = device_fifo_fill(s);

	if (s->sequence != DEVICE_IDLE || fill < 2 ||
	    (s->config & (KRON_CONFIG_TEST | KRON_CONFIG_DIS_STATE)))
		return;
	if (s->config & KRON_CONFIG_LOCAL) {
		if (fill < 4)
			return;
		s->sequence = DEVICE_TO_MEMORY;
		s->sequence_end = tick + s->geometry.drain_memory;
	} else if (s->geometry.cable) {
		s->sequence = DEVICE_TO_CABLE;
		s->sequence_end = tick + s->geometry.drain_cable;
	}
}

/* ---- time ---- */

/* The tick at which the network's next byte goes. */
static uint64_t network_tick(const struct device_state *s)
{
	if (!is_sending(s))
		return DEVICE_NEVER;
	return s->time + (s->network - s->node) * device_period(s) - s->half;
}

static bool is_board_full(const struct device_state *s)
{
	return device_fifo_fill(s) >= s->geometry.board_fifo;
}

/* As configured, a word has left the board FIFO before the next one can be complete. */
static bool is_way_clear(const struct device_state *s)
{
	const uint32_t switches =
		KRON_CONFIG_LOCAL | KRON_CONFIG_MK_OE | KRON_CONFIG_TEST | KRON_CONFIG_DIS_STATE;

	return (s->config & switches) == (KRON_CONFIG_LOCAL | KRON_CONFIG_MK_OE) &&
	       s->geometry.board_fifo >= 8 &&
	       s->geometry.drain_memory <= 4 * NETWORK_CLOCK * device_period(s);
}

/* The head sample has one byte less to send. */
static void count_sent(struct device_state *s, unsigned n)
{
	s->sent = (uint8_t)(s->sent + n);
	if (s->sent != head_bytes(s))
		return;
	if (s->fifo_resource & 1)
		s->shadow_busy = 0;
	device_fifo_pop(s, 1);
}

/* Is what is in the board FIFO the beginning of `word`, of which `n` bytes were sent? */
static bool is_begun(const struct device_state *s, uint32_t word, unsigned n)
{
	const uint8_t *byte = (const uint8_t *)s->store + s->rd;
	unsigned i;

	if (device_fifo_fill(s) != n)
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
static uint64_t move_words(struct device_state *s, uint64_t tick, uint64_t until)
{
	uint32_t byte_ticks = NETWORK_CLOCK * device_period(s);
	uint32_t word;
	unsigned n, left;
	uint64_t sent;

	while (s->nfifo && s->sequence == DEVICE_IDLE) {
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
	return s->nfifo ? tick : DEVICE_NEVER;
}

static void send_byte(struct device_state *s)
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
static uint64_t clocks_to_retry(const struct device_state *s, uint64_t tick, uint64_t until)
{
	uint32_t byte_ticks = NETWORK_CLOCK * device_period(s);

	if (s->sequence == DEVICE_IDLE || s->sequence_end > until)
		return (until - tick) / byte_ticks + 1;
	return (s->sequence_end - tick + byte_ticks - 1) / byte_ticks;
}

/* One try of the network; returns when the next one is. */
static uint64_t try_byte(struct device_state *s, uint64_t tick, uint64_t until)
{
	uint64_t n = 1;

	if (is_board_full(s)) {
		n = clocks_to_retry(s, tick, until);
	} else {
		send_byte(s);
		begin_sequence(s, tick);
	}
	s->network += n * NETWORK_CLOCK;
	return s->nfifo ? tick + n * NETWORK_CLOCK * device_period(s) : DEVICE_NEVER;
}

void device_fifo_run(struct device_state *s, uint64_t until)
{
	bool clear = is_way_clear(s);
	uint64_t tick = network_tick(s);

	begin_sequence(s, s->time);
	if (clear && tick <= until)
		tick = move_words(s, tick, until);
	for (;;) {
		if (s->sequence != DEVICE_IDLE && s->sequence_end <= until &&
		    s->sequence_end <= tick) {
			device_fifo_finish_sequence(s);
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

uint64_t device_fifo_next(const struct device_state *s)
{
	uint64_t byte = is_board_full(s) ? DEVICE_NEVER : network_tick(s);
	uint64_t word = s->sequence != DEVICE_IDLE ? s->sequence_end : DEVICE_NEVER;
	uint64_t next = byte < word ? byte : word;

	return next <= DEVICE_TIME_MAX ? next : DEVICE_NEVER;
}

bool device_fifo_is_sane(const struct device_state *s)
{
	uint32_t fill = device_fifo_fill(s);

	if (s->nfifo > s->geometry.chip_fifo || s->rd > s->wr || s->wr > DEVICE_ARENA_BYTES ||
	    fill > s->geometry.board_fifo || s->nstores > DEVICE_STORES_MAX || s->ncpu > 2)
		return false;
	if (s->nfifo ? s->sent >= head_bytes(s) : s->sent != 0)
		return false;
	if (s->nfifo && !s->network_off &&
	    (s->network <= s->node || s->network - s->node > NETWORK_DELAY_MAX + 2))
		return false;
	if (s->sequence > DEVICE_TO_CABLE)
		return false;
	if (s->sequence != DEVICE_IDLE &&
	    (s->sequence_end <= s->time || s->sequence_end - s->time > DEVICE_DRAIN_MAX))
		return false;
	return fill >= (s->sequence == DEVICE_TO_MEMORY  ? 4u
			: s->sequence == DEVICE_TO_CABLE ? 2u
							 : 0u);
}

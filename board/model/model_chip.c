/* SPDX-License-Identifier: MIT */
/*
 * model_chip.c - the MultiKron II chip's bus interface: 128 words, triggers, waits.
 *
 *        write                             read
 *   4-byte, 32-bit mode: High Order ┐      every word is 64 bits; 63..32 go to the High Order
 *   4-byte, 64-bit mode: zeros      ├ 63..32    register as well, in either mode
 *   8-byte, 64-bit mode: the bus    ┘
 *
 * Readings:
 *   - After a reset the chip is in 64-bit mode and all filter levels are off.
 *   - Word 0 does not read WAIT_CPU: the "software reset" that does is the board's, at 1200.
 *   - Reading the High Order register leaves it alone: else it could not be read twice.
 *   - CSR bits 8 and 9 are the error flags that the next successful sample's header will have:
 *     that sample, or a reset, clears them.
 *   - No CPU ID line active: the encoder gives 0.  Several, which is forbidden: the lowest one.
 *   - A wait that nothing can end is a bus time-out.  Its sample counts as an overrun.
 *   - In test mode samples can be taken, and wait or fail, but the two error counters stand.
 *   - An entry written into the FIFO in test mode has no bit 161, and goes out as a Trace sample.
 *     If the FIFO is full it is ignored.  The output network stays off until it is enabled or
 *     the chip is reset, whatever the mode.
 *   - FIFO groups read as ones while the FIFO is empty.
 */
#include "board/model/model_parts.h"

#define CSR_FLAGS (KRON_CSR_OVERRUN | KRON_CSR_SHADOW_OVERRUN)
#define CSR_KEPT                                                              \
	(KRON_CSR_SAMPLING | KRON_CSR_WAIT | KRON_CSR_READ_WAIT | CSR_FLAGS | \
	 KRON_CSR_WAIT_STATES | KRON_CSR_MODE32)

void model_chip_reset(struct model_state *s)
{
	unsigned i;

	s->csr &= KRON_CSR_WAIT_STATES;
	s->filter = 0;
	s->high = 0;
	s->wait = 0;
	s->overrun = 0;
	for (i = 0; i < KRON_SOURCES; i++) {
		s->source[i] = 0;
		MODEL_PLAIN_LOOP();
	}
	model_counters_reset(s, &s->counters);
	model_fifo_reset_chip(s);
}

/* ---- Control and Status Register ---- */

uint32_t model_csr(const struct model_state *s)
{
	uint32_t csr = s->csr & CSR_KEPT;

	if (s->nfifo >= s->geometry.chip_fifo)
		csr |= KRON_CSR_FIFO_FULL;
	if (s->shadow_busy)
		csr |= KRON_CSR_SHADOW_BUSY;
	if (s->nfifo && (s->fifo_resource & 1))
		csr |= KRON_CSR_BIT161;
	if (!(csr & KRON_CSR_MODE32))
		csr |= KRON_CSR_MODE64;
	return csr;
}

/*
 * Ones are commands, zeros leave things as they are.  Reading: of a pair of contradicting ones
 * the second, the reset default, wins.
 */
static void write_csr(struct model_state *s, uint32_t data)
{
	const uint32_t on =
		KRON_CSR_SAMPLING | KRON_CSR_WAIT | KRON_CSR_READ_WAIT | KRON_CSR_MODE32;

	s->csr |= data & on;
	s->csr &= (uint16_t) ~(data >> 1 & on);
}

/* ---- samples ---- */

static unsigned cpu_line(const struct model_state *s, const struct model_cycle *c)
{
	uint32_t lines =
		s->config & KRON_CONFIG_EXT_CPU ? c->cpu_lines : s->config & KRON_CONFIG_CPU_ID;

	return lines ? (unsigned)__builtin_ctz(lines) : 0;
}

/* The operating system's part at a context switch, and the probe, in one transaction. */
static void set_source(struct model_state *s, const struct model_cycle *c)
{
	uint8_t lines = c->cpu_lines;

	if ((s->config & KRON_CONFIG_EXT_CPU) && lines && !(lines & (lines - 1)))
		s->source[cpu_line(s, c)] = c->source;
}

static bool has_room(const struct model_state *s, bool resource)
{
	return s->nfifo < s->geometry.chip_fifo && !(resource && s->shadow_busy);
}

/* Table B3a, "Wait on Overrun" = 0: data discarded. */
static void count_overrun(struct model_state *s, bool resource)
{
	if (s->nfifo >= s->geometry.chip_fifo)
		s->csr |= KRON_CSR_OVERRUN;
	if (resource && s->shadow_busy)
		s->csr |= KRON_CSR_SHADOW_OVERRUN;
	if (!model_is_test_mode(s))
		s->overrun++;
}

/*
 * The bus is held until there is room for a sample (FIFO, shadows) or for a copy (shadows):
 * nothing happens meanwhile but what the FIFOs do by themselves.  False: never.
 */
static bool wait_until(struct model_state *s, bool fifo, bool shadows)
{
	uint64_t since = s->node;
	uint64_t next;
	bool ok = true;

	while ((fifo && s->nfifo >= s->geometry.chip_fifo) || (shadows && s->shadow_busy)) {
		next = model_fifo_next(s);
		ok = next != MODEL_NEVER;
		if (!ok)
			break;
		model_run(s, next);
	}
	if (!model_is_test_mode(s))
		s->wait += (uint32_t)(s->node - since);
	return ok;
}

static void take_sample(struct model_state *s, unsigned cpu, bool resource, uint64_t data)
{
	uint64_t timestamp = s->timestamp & MODEL_TIMESTAMP_MASK;
	struct model_entry *e = model_fifo_push(s, resource);
	uint32_t head = (uint32_t)cpu << KRON_HEAD_CPU_SHIFT;

	head |= (resource ? KRON_HEAD_TYPE_RESOURCE : KRON_HEAD_TYPE_TRACE) << KRON_HEAD_TYPE_SHIFT;
	if (s->csr & KRON_CSR_SHADOW_OVERRUN)
		head |= KRON_HEAD_SHADOW_OVERFLOW;
	if (s->csr & KRON_CSR_OVERRUN)
		head |= KRON_HEAD_FIFO_OVERFLOW;
	s->csr &= (uint16_t)~CSR_FLAGS;
	e->group[0] = head | (uint32_t)(timestamp >> 32);
	e->group[1] = (uint32_t)timestamp;
	e->group[2] = s->source[cpu];
	e->group[3] = (uint32_t)(data >> 32);
	e->group[4] = (uint32_t)data;
	if (resource) {
		model_counters_copy(s, &s->counters);
		s->shadow_busy = 1;
	}
}

static void trigger(struct model_state *s, struct model_cycle *c, unsigned word, uint64_t data)
{
	bool resource = word >= KRON_WORD_RESOURCE;

	if (!(s->csr & KRON_CSR_SAMPLING) || !(s->filter >> (word % KRON_LEVELS) & 1))
		return;
	if (!has_room(s, resource)) {
		c->no_answer = (s->csr & KRON_CSR_WAIT) && !wait_until(s, true, resource);
		if (!(s->csr & KRON_CSR_WAIT) || c->no_answer) {
			count_overrun(s, resource);
			return;
		}
	}
	take_sample(s, cpu_line(s, c), resource, data);
	c->taken = true;
}

/* ---- test mode ---- */

static void write_fifo(struct model_state *s, uint32_t data)
{
	struct model_entry *e;
	unsigned i;

	if (s->nfifo >= s->geometry.chip_fifo)
		return;
	e = model_fifo_push(s, false);
	for (i = 0; i < 5; i++)
		e->group[i] = data;
}

static void advance_fifo(struct model_state *s)
{
	if (s->nfifo) {
		model_fifo_pop(s, 1);
		s->network = s->node + 2;
	}
	s->shadow_busy = 0;
}

/* Words that do nothing unless the chip is in test mode. */
static void write_test(struct model_state *s, unsigned word, uint64_t data)
{
	switch (word) {
	case KRON_WORD_TIMESTAMP:
		s->timestamp = data & MODEL_TIMESTAMP_MASK;
		break;
	case KRON_WORD_INCR_TIMESTAMP:
		s->timestamp++;
		break;
	case KRON_WORD_INCR_WAIT:
		s->wait++;
		break;
	case KRON_WORD_INCR_OVERRUN:
		s->overrun++;
		break;
	case KRON_WORD_NETWORK_OFF:
		s->network_off = 1;
		break;
	case KRON_WORD_NETWORK_ON:
		model_fifo_enable_network(s);
		break;
	case KRON_WORD_ADVANCE:
		advance_fifo(s);
		break;
	default: /* 25-29 */
		write_fifo(s, (uint32_t)data);
	}
}

static bool is_test_word(unsigned word)
{
	return word == KRON_WORD_TIMESTAMP ||
	       (word >= KRON_WORD_INCR_TIMESTAMP && word <= KRON_WORD_ADVANCE) ||
	       (word >= KRON_WORD_FIFO && word < KRON_WORD_FIFO + 5);
}

/* ---- the words ---- */

static void write_control(struct model_state *s, unsigned word, uint64_t data)
{
	switch (word) {
	case KRON_WORD_RESET:
		model_chip_reset(s);
		break;
	case KRON_WORD_CSR:
		write_csr(s, (uint32_t)data);
		break;
	case KRON_WORD_FILTER:
		s->filter = (uint16_t)data;
		break;
	case KRON_WORD_WAIT:
		s->wait = model_is_test_mode(s) ? (uint32_t)data : 0;
		break;
	case KRON_WORD_OVERRUN:
		s->overrun = model_is_test_mode(s) ? (uint32_t)data : 0;
		break;
	case KRON_WORD_HIGH:
		s->high = (uint32_t)data;
		break;
	case KRON_WORD_ENABLE:
		model_counters_enable(s, &s->counters, data);
		break;
	case KRON_WORD_MODE:
		model_counters_mode(s, &s->counters, data);
		break;
	case KRON_WORD_CLOCK:
		model_counters_clock(s, &s->counters, data);
		break;
	default: /* not assigned */
		break;
	}
}

static void write_word(struct model_state *s, struct model_cycle *c, unsigned word, uint64_t data)
{
	if (word >= KRON_WORD_TRACE)
		trigger(s, c, word, data);
	else if (word >= KRON_WORD_INCREMENT)
		model_counter_increment(s, &s->counters, word % KRON_COUNTERS);
	else if (word >= KRON_WORD_COUNTER)
		model_counter_write(s, &s->counters, word % KRON_COUNTERS, data);
	else if (word - KRON_WORD_SOURCE < KRON_SOURCES)
		s->source[word % KRON_SOURCES] = (uint32_t)data;
	else if (!is_test_word(word))
		write_control(s, word, data);
	else if (model_is_test_mode(s))
		write_test(s, word, data);
	c->gates_changed =
		word == KRON_WORD_RESET || word == KRON_WORD_CSR || word == KRON_WORD_FILTER;
}

/* Table B3b. */
static uint64_t read_with_copy(struct model_state *s, struct model_cycle *c, unsigned i)
{
	if (s->shadow_busy) {
		if (!(s->csr & KRON_CSR_READ_WAIT))
			return MODEL_BAD_DATA;
		c->no_answer = !wait_until(s, false, true);
		if (c->no_answer)
			return MODEL_ONES64;
	}
	model_counters_copy(s, &s->counters);
	return model_counter_shadow(&s->counters, i);
}

static uint64_t read_without_copy(struct model_state *s, unsigned i)
{
	if (s->shadow_busy)
		model_fifo_delay_network(s);
	return model_counter_shadow(&s->counters, i);
}

static uint64_t read_control(const struct model_state *s, unsigned word)
{
	switch (word) {
	case KRON_WORD_CSR:
		return model_csr(s);
	case KRON_WORD_TIMESTAMP:
		return s->timestamp | ~MODEL_TIMESTAMP_MASK;
	case KRON_WORD_FILTER:
		return s->filter | ~0xffffull;
	case KRON_WORD_WAIT:
		return s->wait | MODEL_UNUSED_HIGH;
	case KRON_WORD_OVERRUN:
		return s->overrun | MODEL_UNUSED_HIGH;
	case KRON_WORD_HIGH:
		return s->high | MODEL_UNUSED_HIGH;
	case KRON_WORD_ENABLE:
		return s->counters.enable;
	case KRON_WORD_MODE:
		return model_counters_mode_read(&s->counters);
	case KRON_WORD_CLOCK:
		return s->counters.clock;
	default: /* not assigned, or to be written only */
		return MODEL_ONES64;
	}
}

static uint64_t read_word(struct model_state *s, struct model_cycle *c, unsigned word)
{
	if (word >= KRON_WORD_TRACE)
		return MODEL_ONES64;
	if (word >= KRON_WORD_INCREMENT)
		return read_without_copy(s, word % KRON_COUNTERS);
	if (word >= KRON_WORD_COUNTER)
		return read_with_copy(s, c, word % KRON_COUNTERS);
	if (word - KRON_WORD_SOURCE < KRON_SOURCES)
		return s->source[word % KRON_SOURCES] | MODEL_UNUSED_HIGH;
	if (word - KRON_WORD_FIFO < 5 && s->nfifo)
		return s->entry[0].group[word - KRON_WORD_FIFO] | MODEL_UNUSED_HIGH;
	return read_control(s, word);
}

/* ---- the cycle ---- */

/* Data bits 63-0 as the chip sees them. */
static uint64_t input(const struct model_state *s, const struct model_cycle *c)
{
	uint32_t low = (uint32_t)c->data;

	if (s->csr & KRON_CSR_MODE32)
		return (uint64_t)s->high << 32 | low;
	return c->bytes == 8 ? c->data : low | MODEL_UNDRIVEN_HIGH;
}

void model_chip_cycle(struct model_state *s, struct model_cycle *c)
{
	unsigned word = (c->offset - KRON_BOARD_CHIP) / 4;
	uint64_t value = MODEL_ONES64;

	if (!model_chip_answers(s)) {
		c->no_answer = true;
		if (!c->write)
			model_output(c, value);
		return;
	}
	if (s->csr & KRON_CSR_WAIT_STATES)
		model_run(s, s->time + model_period(s));
	if (c->set_source)
		set_source(s, c);
	if (c->write) {
		write_word(s, c, word, input(s, c));
		return;
	}
	value = read_word(s, c, word);
	if (word != KRON_WORD_HIGH && !c->no_answer)
		s->high = (uint32_t)(value >> 32);
	model_output(c, value);
}

/* ---- looking without touching ---- */

uint32_t model_filter(const struct model_state *s)
{
	return s->filter;
}

uint64_t model_timestamp(const struct model_state *s)
{
	return s->timestamp & MODEL_TIMESTAMP_MASK;
}

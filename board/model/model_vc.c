/* SPDX-License-Identifier: MIT */
/*
 * model_vc.c - the MultiKron_vc chip: sixteen counters of 8,192, a page of them at a time.
 *
 *     page register ──► counters 0-15 ◄── clocks, external signals, software
 *                        │ store   ▲ retrieve
 *                        ▼         │
 *        SRAM:  page 0 │ page 1 │ ... │ page 511       16 counters each, a word a counter
 *
 * NISTIR 5743, the chip's report, is not among the sources.  NISTIR 5993 says: 64 bits, a holding register
 * for bits 63..32 of its own, 8,192 virtual counters, an SRAM that stores them and of which "each
 * virtual counter in a page" is stored and retrieved in a clock cycle, two with WAIT_MEM; control
 * registers; clocks, reset, external inputs, WAIT_CPU, MK_OE and test mode shared with the
 * MultiKron II.  Readings, all else:
 *   - A page has sixteen counters, which are Resource Counters as the MultiKron II's in everything
 *     (model_counters.c): 32 bits, pairs of 64, shadow registers.  Control registers are the chip's,
 *     not a page's.  No sample holds shadow registers, so they are never busy.
 *   - "8 Kbyte" of SRAM is 8 K words: 8,192 counters of 32 bits have 32 Kbyte.
 *   - Another page is selected by its number, or by COUNT of one of its counters.  16 clock cycles
 *     store and 16 retrieve; the bus is held, and nothing is counted meanwhile.
 *   - A reset clears the chip and selects page 0 without storing or retrieving: the counters in the
 *     chip are zero, the SRAM keeps what it had.
 *   - The timestamp has 64 bits; a hardware reset zeroes it, the chip's own leaves it, as in the other.
 */
#include "board/model/model_parts.h"

#define VC_CSR_AT_RESET (KRON_CSR_WAIT_STATES | KRON_CSR_WAIT_MEM)
#define VC_PAGE_CYCLES (2u * KRON_COUNTERS)
#define VC_WORDS 96u /* those after INCREMENT are not assigned */

static void chip_reset(struct model_state *s)
{
	struct model_vc *v = &s->vc;

	v->csr &= VC_CSR_AT_RESET;
	v->high = 0;
	v->page = 0;
	v->nout = 0;
	model_counters_reset(s, &v->page_in);
}

void model_vc_board_reset(struct model_state *s)
{
	s->vc.csr = 0;
	if (s->config & KRON_CONFIG_WAIT_CPU)
		s->vc.csr |= KRON_CSR_WAIT_STATES;
	if (s->config & KRON_CONFIG_WAIT_MEM)
		s->vc.csr |= KRON_CSR_WAIT_MEM;
	s->vc.timestamp = 0;
	chip_reset(s);
}

bool model_vc_is_sane(const struct model_state *s)
{
	return s->vc.page < KRON_VC_PAGES && s->vc.page_out < KRON_VC_PAGES &&
	       s->vc.nout <= KRON_COUNTERS && model_counters_are_sane(s, &s->vc.page_in);
}

/* ---- pages ---- */

static unsigned page_of(unsigned word, uint32_t data)
{
	return word == KRON_VC_PAGE ? data % KRON_VC_PAGES
				    : data % KRON_VC_COUNTERS / KRON_COUNTERS;
}

int model_vc_page(const struct model_state *s, const struct model_cycle *c)
{
	unsigned word = (c->offset - KRON_BOARD_VC) / 4;
	unsigned page = page_of(word, (uint32_t)c->data);

	if (!model_vc_answers(s, c->offset) || !c->write || !model_chip_answers(s) ||
	    (word != KRON_VC_PAGE && word != KRON_VC_COUNT) || page == s->vc.page)
		return -1;
	return (int)page;
}

static void select_page(struct model_state *s, const struct model_cycle *c, unsigned page)
{
	struct model_vc *v = &s->vc;
	struct model_counters *k = &v->page_in;
	unsigned i, cycles = VC_PAGE_CYCLES;

	if (page == v->page)
		return;
	if (v->csr & KRON_CSR_WAIT_MEM)
		cycles *= 2;
	model_counters_settle(s, k);
	model_run(s, s->time + (uint64_t)cycles * model_period(s));
	for (i = 0; i < KRON_COUNTERS; i++) {
		v->out[i] = k->counter[i];
		k->counter[i] = c->page ? c->page[i] : 0;
		MODEL_PLAIN_LOOP();
	}
	v->page_out = v->page;
	v->nout = KRON_COUNTERS;
	v->page = (uint16_t)page;
	k->counted_node = s->node;
	k->counted_ts = s->ts;
}

/* ---- words ---- */

static void write_csr(struct model_vc *v, uint32_t data)
{
	v->csr |= data & KRON_CSR_MODE32;
	if (data & KRON_CSR_MODE64)
		v->csr &= (uint16_t)~KRON_CSR_MODE32;
}

static uint32_t read_csr(const struct model_vc *v)
{
	return v->csr | (v->csr & KRON_CSR_MODE32 ? 0 : KRON_CSR_MODE64);
}

static void write_control(struct model_state *s, unsigned word, uint64_t data)
{
	struct model_vc *v = &s->vc;

	switch (word) {
	case KRON_WORD_RESET:
		chip_reset(s);
		break;
	case KRON_WORD_CSR:
		write_csr(v, (uint32_t)data);
		break;
	case KRON_WORD_TIMESTAMP:
		if (model_is_test_mode(s))
			v->timestamp = data;
		break;
	case KRON_WORD_INCR_TIMESTAMP:
		if (model_is_test_mode(s))
			v->timestamp++;
		break;
	case KRON_WORD_HIGH:
		v->high = (uint32_t)data;
		break;
	case KRON_WORD_ENABLE:
		model_counters_enable(s, &v->page_in, data);
		break;
	case KRON_WORD_MODE:
		model_counters_mode(s, &v->page_in, data);
		break;
	case KRON_WORD_CLOCK:
		model_counters_clock(s, &v->page_in, data);
		break;
	default: /* not assigned */
		break;
	}
}

static void write_word(struct model_state *s, const struct model_cycle *c, unsigned word,
		       uint64_t data)
{
	struct model_counters *k = &s->vc.page_in;

	if (word >= VC_WORDS)
		return;
	if (word >= KRON_WORD_INCREMENT) {
		model_counter_increment(s, k, word % KRON_COUNTERS);
	} else if (word >= KRON_WORD_COUNTER) {
		model_counter_write(s, k, word % KRON_COUNTERS, data);
	} else if (word == KRON_VC_PAGE || word == KRON_VC_COUNT) {
		select_page(s, c, page_of(word, (uint32_t)data));
		if (word == KRON_VC_COUNT)
			model_counter_increment(s, k, (uint32_t)data % KRON_COUNTERS);
	} else {
		write_control(s, word, data);
	}
}

static uint64_t read_control(const struct model_vc *v, unsigned word)
{
	switch (word) {
	case KRON_WORD_CSR:
		return read_csr(v);
	case KRON_WORD_TIMESTAMP:
		return v->timestamp;
	case KRON_WORD_HIGH:
		return v->high | MODEL_UNUSED_HIGH;
	case KRON_WORD_ENABLE:
		return v->page_in.enable;
	case KRON_WORD_MODE:
		return model_counters_mode_read(&v->page_in);
	case KRON_WORD_CLOCK:
		return v->page_in.clock;
	case KRON_VC_PAGE:
		return v->page | ~(uint64_t)(KRON_VC_PAGES - 1);
	default: /* not assigned, or to be written only */
		return MODEL_ONES64;
	}
}

static uint64_t read_word(struct model_state *s, unsigned word)
{
	struct model_counters *k = &s->vc.page_in;

	if (word < KRON_WORD_COUNTER || word >= VC_WORDS)
		return read_control(&s->vc, word);
	if (word < KRON_WORD_INCREMENT)
		model_counters_copy(s, k);
	return model_counter_shadow(k, word % KRON_COUNTERS);
}

/* Data bits 63-0 as the chip sees them. */
static uint64_t input(const struct model_vc *v, const struct model_cycle *c)
{
	if (v->csr & KRON_CSR_MODE32)
		return (uint64_t)v->high << 32 | (uint32_t)c->data;
	return c->bytes == 8 ? c->data : (uint32_t)c->data | MODEL_UNDRIVEN_HIGH;
}

void model_vc_cycle(struct model_state *s, struct model_cycle *c)
{
	unsigned word = (c->offset - KRON_BOARD_VC) / 4;
	uint64_t value = MODEL_ONES64;

	if (!model_chip_answers(s)) {
		c->no_answer = true;
		if (!c->write)
			model_output(c, value);
		return;
	}
	if (s->vc.csr & KRON_CSR_WAIT_STATES)
		model_run(s, s->time + model_period(s));
	if (c->write) {
		write_word(s, c, word, input(&s->vc, c));
		return;
	}
	value = read_word(s, word);
	if (word != KRON_WORD_HIGH)
		s->vc.high = (uint32_t)(value >> 32);
	model_output(c, value);
}

/* ---- looking without touching ---- */

uint64_t model_vc_counter(const struct model_state *s, unsigned counter)
{
	return model_counter_now(s, &s->vc.page_in, counter);
}

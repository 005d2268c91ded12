/* SPDX-License-Identifier: MIT */
/*
 * model_rig.h - a board on the bench, with a clock that stands still until a test moves it.
 *
 * One board, global to the test program.  now is in oscillator ticks, which are NODECLKs as long
 * as DIV2 is off.  Words for local memory go to memory[] at once, what goes over the cable to cabled[].  Every call checks that the
 * model is sane.
 */
#ifndef TESTS_MODEL_RIG_H
#define TESTS_MODEL_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "board/model/model.h"

#define UNUSED_STATE (void)state
#define ONES 0xffffffffu
#define ONES64 0xffffffffffffffffull
#define UPPER_ONES 0xffffffff00000000ull

static struct model_state board;
static struct model_cycle last; /* the last cycle, as it came back */
static uint64_t now;
static uint32_t *memory;
static uint32_t sram[KRON_VC_COUNTERS]; /* what the MultiKron_vc has stored */
static unsigned words_stored;
static uint16_t cabled[1 << 16]; /* what the board has sent over the cable: the last of them */
static unsigned ncabled;

static inline void carry_out_stores(void)
{
	for (unsigned i = 0; i < model_stores(&board); i++) {
		struct model_store w = model_store(&board, i);

		memory[w.word] = w.value;
		words_stored++;
	}
	for (unsigned i = 0; i < model_vc_stores(&board); i++)
		sram[model_vc_store(&board, i).word] = model_vc_store(&board, i).value;
	for (unsigned i = 0; i < board.ncable; i++)
		cabled[ncabled++ % (1 << 16)] = model_cable_value(&board, i);
	assert_true(model_is_sane(&board));
}

static inline void begin_with(struct model_geometry g)
{
	free(memory);
	memory = calloc(KRON_BOARD_MEMORY_WORDS, 4);
	assert_non_null(memory);
	memset(sram, 0, sizeof(sram));
	now = 0;
	words_stored = ncabled = 0;
	memset(&board, 0xa5, sizeof(board));
	model_power_on(&board, &g);
	assert_true(model_is_sane(&board));
}

static inline void cycle(uint32_t offset, unsigned bytes, bool write, uint64_t data)
{
	last.offset = offset;
	last.bytes = (uint8_t)bytes;
	last.write = write;
	last.data = data;
	last.page = NULL;
	if (model_vc_page(&board, &last) >= 0)
		last.page = sram + model_vc_page(&board, &last) * KRON_COUNTERS;
	model_cycle(&board, now, &last);
	now = last.done;
	carry_out_stores();
}

static inline void write4(uint32_t offset, uint32_t data)
{
	cycle(offset, 4, true, data);
}

static inline void write8(uint32_t offset, uint64_t data)
{
	cycle(offset, 8, true, data);
}

static inline uint32_t read4(uint32_t offset)
{
	cycle(offset, 4, false, 0);
	return (uint32_t)last.data;
}

static inline uint64_t read8(uint32_t offset)
{
	cycle(offset, 8, false, 0);
	return last.data;
}

/* A chip word over the whole 64-bit data path. */
static inline void put(unsigned word, uint64_t data)
{
	write8(KRON_CHIP_BYTE(word), data);
}

static inline uint64_t get(unsigned word)
{
	return read8(KRON_CHIP_BYTE(word));
}

static inline uint32_t csr(void)
{
	return (uint32_t)get(KRON_WORD_CSR);
}

static inline void tick(uint64_t n)
{
	now += n;
	model_advance(&board, now);
	carry_out_stores();
}

static inline void configure(uint32_t config)
{
	write4(KRON_BOARD_CONFIG, config);
}

static inline void external(unsigned counter, bool high)
{
	model_set_external(&board, now, counter, high);
	carry_out_stores();
}

/* The report's recommended configuration, all levels on, sampling, discard. */
static inline void begin(void)
{
	begin_with((struct model_geometry)MODEL_GEOMETRY_DEFAULT);
	memset(&last, 0, sizeof(last));
	configure(KRON_CONFIG_DEFAULT);
	put(KRON_WORD_FILTER, 0xffff);
	put(KRON_WORD_CSR, KRON_CSR_SAMPLING);
}

static inline bool trace(uint64_t data)
{
	put(KRON_WORD_TRACE, data);
	return last.taken;
}

static inline bool resource(uint64_t data)
{
	put(KRON_WORD_RESOURCE, data);
	return last.taken;
}

/* The configuration with some bits switched on and others off. */
static inline void switch_config(uint32_t on, uint32_t off)
{
	configure((model_config(&board) | on) & ~off);
}

#endif

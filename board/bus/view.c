/* SPDX-License-Identifier: MIT */
/* view.c - see view.h */
#include "board/bus/view.h"

#include <errno.h>
#include <string.h>

#define ENABLE_MASK 3u /* Tables B5-B7: the bits of a field that count */
#define MODE_MASK 7u
#define CLOCK_MASK 7u

/* ---- names ---- */

const struct view_bit view_csr_bits[] = {
	{0, "sampling", "sampling enabled"},
	{2, "write_wait", "a sample waits for a full FIFO or busy shadow registers"},
	{4, "read_wait", "a read with copy waits for busy shadow registers"},
	{6, "fifo_full", "FIFO full"},
	{7, "shadow_full", "resource shadow registers full"},
	{8, "fifo_overrun", "FIFO overrun"},
	{9, "shadow_overrun", "resource shadow register overrun"},
	{10, "bit161", "161st FIFO output bit: a Resource sample leaves the FIFO"},
	{12, "wait_states", "number of wait states"},
	{14, "mode32", "32-bit mode enabled"},
	{15, "mode64", "32-bit mode disabled (64-bit mode)"},
	{0, NULL, NULL},
};

const struct view_bit view_config_bits[] = {
	{8, "TEST", "the CPU empties the board FIFO by hand"},
	{9, "LOCAL", "samples go to local memory (0: to the cable)"},
	{10, "EXT_CPU", "CPU ID from the external lines (0: from bits 0-7)"},
	{11, "WAIT_CPU", "CPU wait state"},
	{12, "TESTB", "operational (0: test mode)"},
	{13, "MK_OE", "outputs enabled"},
	{14, "WRAPB", "local memory is a simple buffer (0: circular)"},
	{15, "EN_EXT", "external clock and reset"},
	{16, "DIS_STATE", "FIFO state machine disabled"},
	{18, "TS_RATIO", "timestamp clock is NODECLK/3 (0: NODECLK/4)"},
	{19, "DIV2", "NODECLK is the oscillator divided by 2"},
	{20, "WAIT_MEM", "MultiKron_vc memory wait state"},
	{0, NULL, NULL},
};

const char *view_enable_word(unsigned field)
{
	static const char *const words[] = {"-", "disabled", "enabled", "reset and enabled"};

	return words[field & ENABLE_MASK];
}

const char *view_mode_word(unsigned field)
{
	static const char *const words[] = {"-",        "internal clock",
					    "software", "clock while external",
					    "external", "internal clock",
					    "software", "clock while external"};

	return words[field & MODE_MASK];
}

bool view_is_double(uint64_t mode, unsigned counter)
{
	return view_field(mode, counter & ~1u) & KRON_MODE_DOUBLE;
}

const char *view_clock_word(unsigned field)
{
	static const char *const words[] = {"-",         "NODECLK", "NODECLK/10", "NODECLK/100",
					    "timestamp", "NODECLK", "NODECLK/10", "NODECLK/100"};

	return words[field & CLOCK_MASK];
}

/* ---- looking ---- */

/* A read cycle on a copy of the model: no time passes, nobody else sees it. */
static uint64_t read_at(struct model_state *s, uint32_t offset, unsigned bytes)
{
	struct model_cycle c = {
		.offset = offset,
		.bytes = (uint8_t)bytes,
	};

	model_cycle(s, 0, &c);
	return bytes == 8 ? c.data : (uint32_t)c.data;
}

static uint64_t read_copy(struct model_state *s, unsigned word, unsigned bytes)
{
	return read_at(s, KRON_CHIP_BYTE(word), bytes);
}

static void look_at_vc(struct model_state *s, struct view_vc *v)
{
	v->high = (uint32_t)read_at(s, KRON_VC_BYTE(KRON_WORD_HIGH),
				    4); /* before a read changes it */
	v->csr = (uint32_t)read_at(s, KRON_VC_BYTE(KRON_WORD_CSR), 4);
	v->timestamp = read_at(s, KRON_VC_BYTE(KRON_WORD_TIMESTAMP), 8);
	v->enable = read_at(s, KRON_VC_BYTE(KRON_WORD_ENABLE), 8);
	v->mode = read_at(s, KRON_VC_BYTE(KRON_WORD_MODE), 8);
	v->clock = read_at(s, KRON_VC_BYTE(KRON_WORD_CLOCK), 8);
	v->page = (uint32_t)read_at(s, KRON_VC_BYTE(KRON_VC_PAGE), 4) % KRON_VC_PAGES;
}

static void enable_outputs(struct model_state *s)
{
	struct model_cycle c = {
		.offset = KRON_BOARD_CONFIG,
		.bytes = 4,
		.write = true,
		.data = model_config(s) | KRON_CONFIG_MK_OE,
	};

	model_cycle(s, 0, &c);
}

static int look_at_copy(struct bus *b, struct bus_view *v, struct err *err)
{
	struct model_state s;

	if (!board_snapshot(&b->board, &s))
		return err_set(err, EIO, "board %s is damaged: its state makes no sense", b->name);
	v->geometry = s.geometry;
	v->csr = model_csr(&s);
	v->filter = model_filter(&s);
	v->config = model_config(&s);
	v->map = model_map(&s);
	v->timestamp = model_timestamp(&s);
	for (unsigned i = 0; i < KRON_COUNTERS; i++)
		v->counter[i] = model_counter(&s, i);
	enable_outputs(&s);
	/* First: what is read next leaves its upper half there. */
	v->high = (uint32_t)read_copy(&s, KRON_WORD_HIGH, 4);
	v->wait = (uint32_t)read_copy(&s, KRON_WORD_WAIT, 4);
	v->overrun = (uint32_t)read_copy(&s, KRON_WORD_OVERRUN, 4);
	v->enable = read_copy(&s, KRON_WORD_ENABLE, 8);
	v->mode = read_copy(&s, KRON_WORD_MODE, 8);
	v->clock = read_copy(&s, KRON_WORD_CLOCK, 8);
	for (unsigned i = 0; i < KRON_SOURCES; i++)
		v->source[i] = (uint32_t)read_copy(&s, KRON_WORD_SOURCE + i, 4);
	if (s.geometry.vc)
		look_at_vc(&s, &v->vc);
	return 0;
}

static void look_at_hardware(struct bus *b, struct bus_view *v)
{
	v->config = bus_read32(b, KRON_BOARD_CONFIG);
	v->map = bus_memory_pointer(b);
	v->high = bus_read32(b, KRON_CHIP_BYTE(KRON_WORD_HIGH)); /* before a read changes it */
	v->csr = bus_read32(b, KRON_CHIP_BYTE(KRON_WORD_CSR)) & 0xffff;
	v->filter = bus_read32(b, KRON_CHIP_BYTE(KRON_WORD_FILTER)) & 0xffff;
	v->wait = bus_read32(b, KRON_CHIP_BYTE(KRON_WORD_WAIT));
	v->overrun = bus_read32(b, KRON_CHIP_BYTE(KRON_WORD_OVERRUN));
	v->timestamp = bus_read_chip64(b, KRON_WORD_TIMESTAMP) & 0x00ffffffffffffffull;
	v->enable = bus_read_chip64(b, KRON_WORD_ENABLE);
	v->mode = bus_read_chip64(b, KRON_WORD_MODE);
	v->clock = bus_read_chip64(b, KRON_WORD_CLOCK);
	for (unsigned i = 0; i < KRON_SOURCES; i++)
		v->source[i] = bus_read32(b, KRON_CHIP_BYTE(KRON_WORD_SOURCE + i));
	for (unsigned i = 0; i < KRON_COUNTERS; i++) /* without copy */
		v->counter[i] = bus_read32(b, KRON_CHIP_BYTE(KRON_WORD_INCREMENT + i));
	for (unsigned i = 0; i < KRON_COUNTERS; i += 2)
		if (view_is_double(v->mode, i))
			v->counter[i] |= v->counter[i + 1] << 32;
	v->counters_are_shadows = true;
}

int bus_look(struct bus *b, struct bus_view *v, struct err *err)
{
	memset(v, 0, sizeof(*v));
	if (bus_is_exact(b))
		return look_at_copy(b, v, err);
	look_at_hardware(b, v);
	return 0;
}

/* A simple buffer that is full says 400000: all of it, and not a wrap. */
uint32_t view_words_used(const struct bus_view *v)
{
	if (v->map > KRON_MAP_WORD)
		return KRON_BOARD_MEMORY_WORDS;
	return v->map;
}

unsigned view_wraps(const struct bus_view *v)
{
	return v->config & KRON_CONFIG_WRAPB ? 0 : v->map >> KRON_MAP_WRAPS_SHIFT;
}

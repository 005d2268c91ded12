/* SPDX-License-Identifier: MIT */
/* bus.c - the two ways of an access, and what the toolkit does first.  See bus.h. */
#define _GNU_SOURCE
#include "board/bus/bus.h"

#include <sys/mman.h>
#include <unistd.h>

#include "board/bus/bus_impl.h"
#include "board/bus/object.h"

/* ---- exact: a bus cycle of the model ---- */

static uint32_t exact_read32(struct bus *b, uint32_t offset)
{
	return board_read32(&b->board, offset);
}

static uint64_t exact_read64(struct bus *b, uint32_t offset)
{
	return board_read64(&b->board, offset);
}

static void exact_write32(struct bus *b, uint32_t offset, uint32_t value)
{
	board_write32(&b->board, offset, value);
}

static void exact_write64(struct bus *b, uint32_t offset, uint64_t value)
{
	board_write64(&b->board, offset, value);
}

static void exact_read_memory(struct bus *b, uint32_t first, uint32_t n, uint32_t *out)
{
	board_read_memory(&b->board, first, n, out);
}

const struct bus_ops bus_exact_ops = {
	.name = "exact",
	.read32 = exact_read32,
	.read64 = exact_read64,
	.write32 = exact_write32,
	.write64 = exact_write64,
	.read_memory = exact_read_memory,
};

/* ---- device, the hardware: the loads and stores that are asked for, no more, no fewer ---- */

/* 64 bits at any word: the board's addresses are multiples of 4. */
typedef uint64_t __attribute__((aligned(4))) word64;

static uint32_t hardware_read32(struct bus *b, uint32_t offset)
{
	return *(volatile uint32_t *)(b->window + offset);
}

static uint64_t hardware_read64(struct bus *b, uint32_t offset)
{
	return *(volatile word64 *)(b->window + offset);
}

static void hardware_write32(struct bus *b, uint32_t offset, uint32_t value)
{
	*(volatile uint32_t *)(b->window + offset) = value;
}

static void hardware_write64(struct bus *b, uint32_t offset, uint64_t value)
{
	*(volatile word64 *)(b->window + offset) = value;
}

static void hardware_read_memory(struct bus *b, uint32_t first, uint32_t n, uint32_t *out)
{
	for (uint32_t i = 0; i < n; i++)
		out[i] = hardware_read32(b, KRON_BOARD_MEMORY + 4 * (first + i));
}

const struct bus_ops bus_hardware_ops = {
	.name = "device",
	.read32 = hardware_read32,
	.read64 = hardware_read64,
	.write32 = hardware_write32,
	.write64 = hardware_write64,
	.read_memory = hardware_read_memory,
};

/* ---- both ---- */

void bus_use_board(struct bus *b, const struct board *board)
{
	*b = (struct bus){.ops = &bus_exact_ops, .board = *board, .fd = -1};
}

bool bus_has_virtual_clock(const struct bus *b)
{
	const uint64_t tick = 1u << 20;

	/* Nothing else counts ticks as the counter's: that one is a hundred times as fast. */
	return bus_is_exact(b) && board_tsc_of_tick(&b->board, tick) == tick;
}

/* A register that both chips have, of the one that has this word, too. */
static uint32_t of_its_chip(unsigned word, unsigned reg)
{
	return KRON_CHIP_BYTE(word) < KRON_BOARD_VC ? KRON_CHIP_BYTE(reg) : KRON_VC_BYTE(reg);
}

static bool is_in_32_bit_mode(struct bus *b, unsigned word)
{
	return bus_read32(b, of_its_chip(word, KRON_WORD_CSR)) & KRON_CSR_MODE32;
}

/*
 * Output bits 32-63 are on the pins and in the High Order register in both modes; a 64-bit load
 * of a word takes the next word, too, on a bus of 32 bits.
 */
uint64_t bus_read_chip64(struct bus *b, unsigned word)
{
	uint32_t low;

	if (bus_is_exact(b))
		return bus_read64(b, KRON_CHIP_BYTE(word));
	low = bus_read32(b, KRON_CHIP_BYTE(word));
	return (uint64_t)bus_read32(b, of_its_chip(word, KRON_WORD_HIGH)) << 32 | low;
}

void bus_write_chip64(struct bus *b, unsigned word, uint64_t value)
{
	if (is_in_32_bit_mode(b, word)) {
		bus_write32(b, of_its_chip(word, KRON_WORD_HIGH), (uint32_t)(value >> 32));
		bus_write32(b, KRON_CHIP_BYTE(word), (uint32_t)value);
	} else {
		bus_write64(b, KRON_CHIP_BYTE(word), value);
	}
}

void bus_close(struct bus *b)
{
	if (b->base)
		munmap(b->base, b->mapped);
	if (b->fd >= 0)
		close(b->fd);
	b->base = NULL;
	b->window = NULL;
	b->board = (struct board){0};
	b->fd = -1;
}

double bus_timestamp_hz(uint32_t config)
{
	double hz = KRON_OSCILLATOR_HZ;

	/* DIV2 has no effect on an external clock; how fast that is, nobody knows: as ours. */
	if ((config & KRON_CONFIG_DIV2) && !(config & KRON_CONFIG_EN_EXT))
		hz /= 2;
	return hz / (config & KRON_CONFIG_TS_RATIO ? 3 : 4);
}

/* The pointer cannot be written while samples go to local memory (interlock), and the model
 * that moves them should be idle when LOCAL changes: NISTIR 5993, 2.7. */
void bus_configure_default(struct bus *b, uint32_t source)
{
	bus_write32(b, KRON_BOARD_CONFIG, BUS_CONFIG_IDLE);
	bus_write32(b, KRON_BOARD_MAP, 0);
	bus_write32(b, KRON_BOARD_CONFIG, KRON_CONFIG_DEFAULT);
	bus_write32(b, KRON_CHIP_BYTE(KRON_WORD_FILTER), 0xffff);
	bus_write32(b, KRON_CHIP_BYTE(KRON_WORD_SOURCE), source);
	bus_write32(b, KRON_CHIP_BYTE(KRON_WORD_CSR), KRON_CSR_SAMPLING);
}

void bus_init_default(struct bus *b, uint32_t source)
{
	bus_write32(b, KRON_BOARD_RESET, 0);
	bus_configure_default(b, source);
}

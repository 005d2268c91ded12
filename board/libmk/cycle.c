/* SPDX-License-Identifier: MIT */
/*
 * cycle.c - see cycle.h.
 */
#define _GNU_SOURCE
#include "board/libmk/cycle.h"

#include <sched.h>
#include <string.h>

#include "board/libmk/sys.h"

static struct board board;

void cycle_use(const struct board *b)
{
	board = *b;
}

static bool is_trigger(uint32_t offset)
{
	return offset - KRON_CHIP_BYTE(KRON_WORD_TRACE) <
	       KRON_CHIP_BYTE(KRON_CHIP_WORDS) - KRON_CHIP_BYTE(KRON_WORD_TRACE);
}

/* The operating system's part: the register of our CPU's line says who we are. */
static void set_source(struct model_cycle *c)
{
	c->set_source = true;
	c->source = KRON_SOURCE(board.ctl->node, sys4(__NR_gettid, 0, 0, 0, 0));
}

static void run(struct model_cycle *c)
{
	int cpu = sched_getcpu();

	c->cpu_lines = (uint8_t)(1u << (cpu < 0 ? 0 : cpu & 7));
	if (c->write && is_trigger(c->offset) &&
	    (__atomic_load_n(&board.ctl->config, __ATOMIC_RELAXED) & KRON_CONFIG_EXT_CPU))
		set_source(c);
	/* A damaged segment is a board that does not answer. */
	if (board_cycle(&board, c))
		c->data = ~0ull;
}

static void read_cycle(uint32_t offset, void *out, unsigned bytes)
{
	struct model_cycle c = {.offset = offset, .bytes = (uint8_t)bytes};

	run(&c);
	memcpy(out, &c.data, bytes);
}

static void write_cycle(uint32_t offset, const void *in, unsigned bytes)
{
	struct model_cycle c = {.offset = offset, .bytes = (uint8_t)bytes, .write = true};

	memcpy(&c.data, in, bytes);
	run(&c);
}

/* How many of `left` bytes at `offset` go in one cycle.  Less than 4: a part of a word. */
static unsigned piece(uint32_t offset, unsigned left, unsigned bytes)
{
	unsigned in_word = 4 - (offset & 3);

	if (in_word < 4 || left < 4)
		return in_word < left ? in_word : left;
	if (left >= 8 && (bytes == 8 || offset >= KRON_BOARD_MEMORY))
		return 8;
	return 4;
}

void cycle_load(uint64_t addr, void *out, unsigned bytes)
{
	uint32_t offset = (uint32_t)(addr - KRON_WINDOW_ADDR);
	uint8_t *to = out, word[4];
	unsigned left, n;

	for (left = bytes; left; left -= n) {
		n = piece(offset, left, bytes);
		if (n >= 4) {
			read_cycle(offset, to, n);
		} else {
			read_cycle(offset & ~3u, word, 4);
			memcpy(to, word + (offset & 3), n);
		}
		to += n;
		offset += n;
	}
}

bool cycle_can_store(uint64_t addr, unsigned bytes)
{
	return ((addr | bytes) & 3) == 0 || cycle_is_memory(addr);
}

static void store_part(uint32_t offset, const void *in, unsigned bytes)
{
	uint8_t word[4];

	read_cycle(offset & ~3u, word, 4);
	memcpy(word + (offset & 3), in, bytes);
	write_cycle(offset & ~3u, word, 4);
}

void cycle_store(uint64_t addr, const void *in, unsigned bytes)
{
	uint32_t offset = (uint32_t)(addr - KRON_WINDOW_ADDR);
	const uint8_t *from = in;
	unsigned left, n;

	for (left = bytes; left; left -= n) {
		n = piece(offset, left, bytes);
		if (n >= 4)
			write_cycle(offset, from, n);
		else
			store_part(offset, from, n);
		from += n;
		offset += n;
	}
}

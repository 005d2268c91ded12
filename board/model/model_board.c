/* SPDX-License-Identifier: MIT */
/*
 * model_board.c - what is on the board besides the chips: NISTIR 5993, Tables 1 and 2.
 *
 * Readings:
 *   - The chips are 64 bits wide.  To everything else an 8-byte transfer is two of 4 bytes, the
 *     lower address first.
 *   - Bits 0-23 of the Configuration Register are zero after a reset and keep what is written,
 *     the N/A ones too.
 *   - A board reset samples WAIT_CPU before it clears it.  It leaves the Memory Address Pointer
 *     and the local memory alone ("the user should initialize the memory address pointer").
 *   - The Memory Address Pointer ignores writes while LOCAL is set, whatever TEST says.
 *   - As a simple buffer the memory is full once word 3FFFFF is written: the pointer stays
 *     there.  A write to the pointer, or circular mode, goes on.
 *   - TEST operations need TEST = 1 and, being sequences of the state machine, DIS_STATE = 0;
 *     they begin when the sequence under way is complete.  Without enough bytes nothing
 *     happens, and a read returns ones.
 */
#include "board/model/model_parts.h"

uint32_t model_config(const struct model_state *s)
{
	return KRON_CONFIG_VERSION | s->config;
}

uint32_t model_map(const struct model_state *s)
{
	return s->map;
}

static void board_reset(struct model_state *s)
{
	s->csr = s->config & KRON_CONFIG_WAIT_CPU ? KRON_CSR_WAIT_STATES : 0;
	model_chip_reset(s);
	model_fifo_reset_board(s);
	if (s->geometry.vc)
		model_vc_board_reset(s);
	s->timestamp = 0;
	s->ts_phase = 0;
	s->half = 0;
	s->config = 0;
}

static void write_config(struct model_state *s, uint32_t value)
{
	uint32_t config = value & KRON_CONFIG_WRITABLE;
	uint32_t changed = config ^ s->config;

	if (changed & KRON_CONFIG_TESTB) {
		model_counters_settle(s, &s->counters);
		if (s->geometry.vc)
			model_counters_settle(s, &s->vc.page_in);
	}
	s->config = config;
	if (changed & KRON_CONFIG_DIV2)
		s->half = 0;
}

void model_board_reset(struct model_state *s, uint32_t config)
{
	board_reset(s);
	write_config(s, config);
}

static void write_map(struct model_state *s, uint32_t value)
{
	if (s->config & KRON_CONFIG_LOCAL)
		return;
	s->map = value & KRON_MAP_MASK;
	s->memory_full = 0;
}

/* ---- TEST operation ---- */

static bool begin_test_operation(struct model_state *s, uint32_t bytes)
{
	if ((s->config & (KRON_CONFIG_TEST | KRON_CONFIG_DIS_STATE)) != KRON_CONFIG_TEST)
		return false;
	if (s->sequence != MODEL_IDLE)
		model_run(s, s->sequence_end);
	return s->sequence == MODEL_IDLE && model_fifo_fill(s) >= bytes;
}

static uint32_t test_read(struct model_state *s)
{
	return begin_test_operation(s, 1) ? 0xffffff00u | model_fifo_take(s) : MODEL_ONES;
}

static void store_cpu(struct model_state *s, uint32_t word, uint32_t value)
{
	if (s->ncpu == 0)
		s->cpu_word = word;
	s->cpu_value[s->ncpu++ & 1] = value;
}

static void test_write(struct model_state *s)
{
	uint32_t value = 0;
	uint32_t word;
	unsigned i;

	if (!begin_test_operation(s, 4))
		return;
	for (i = 0; i < 4; i++)
		value = value << 8 | model_fifo_take(s);
	if (model_fifo_next_word(s, &word))
		store_cpu(s, word, value);
}

/* ---- the map ---- */

static void write4(struct model_state *s, struct model_cycle *c, uint32_t offset, uint32_t value)
{
	switch (offset) {
	case KRON_BOARD_RESET:
		board_reset(s);
		c->gates_changed = true;
		break;
	case KRON_BOARD_CONFIG:
		write_config(s, value);
		c->gates_changed = true;
		break;
	case KRON_BOARD_MAP:
		write_map(s, value);
		break;
	case KRON_BOARD_TEST:
		test_write(s);
		break;
	default:
		if (offset - KRON_BOARD_MEMORY < KRON_BOARD_MEMORY_SIZE)
			store_cpu(s, (offset - KRON_BOARD_MEMORY) / 4, value);
	}
}

static uint32_t read4(struct model_state *s, uint32_t offset)
{
	switch (offset) {
	case KRON_BOARD_CONFIG:
		return model_config(s);
	case KRON_BOARD_MAP:
		return s->map | ~KRON_MAP_MASK;
	case KRON_BOARD_TEST:
		return test_read(s);
	default: /* N/A, write only, or local memory, which the caller reads */
		return MODEL_ONES;
	}
}

/*
 * Of an 8-byte transfer the first half may move the Memory Address Pointer and the second be a
 * TEST operation: the sequence under way must not end between them.
 */
void model_board_cycle(struct model_state *s, struct model_cycle *c)
{
	uint32_t offset = c->offset & ~3u;
	bool two = c->bytes == 8;

	if (two && offset == KRON_BOARD_MAP)
		begin_test_operation(s, 0);
	if (c->write) {
		write4(s, c, offset, (uint32_t)c->data);
		if (two)
			write4(s, c, offset + 4, (uint32_t)(c->data >> 32));
		return;
	}
	c->data = read4(s, offset);
	if (two)
		c->data |= (uint64_t)read4(s, offset + 4) << 32;
}

/* SPDX-License-Identifier: MIT */
/*
 * action.c - stores that a probe makes to the board, where they are more than one instruction.
 *
 *   count    lane bus: counts.c
 *            exact and device: a store to the increment register
 *   trigger  a sample, as if a probe had been there
 *   call     a counter of the function's own: calls.c
 *   pages    what an instruction reads and writes: pages.c
 *   else     a register of the model: the Filter Register, the CSR, a counter's enable field
 */
#include "runtime/bus/bus.h"
#include "runtime/core/rt.h"
#include "runtime/core/thread.h"
#include "runtime/sys/mini.h"

static bool is_open(uint32_t level)
{
	uint8_t gate = __atomic_load_n(&kron_rt.ctl->gate[level & 15], __ATOMIC_RELAXED);

	return (gate & 3) == KRON_GATE_TAKE;
}

static void increment(uint32_t counter, uint64_t times)
{
	if (rt_bus() == KRON_BUS_LANE) {
		rt_count(counter, times);
		return;
	}
	rt_busy_begin(); /* the model asks who writes */
	for (; times; times--)
		board_write32(&kron_rt.board, KRON_CHIP_BYTE(KRON_WORD_INCREMENT + counter), 1);
	rt_busy_end();
}

static void trigger(uint32_t word, uint64_t data)
{
	if (rt_bus() == KRON_BUS_EXACT)
		rt_trigger(word, data);
	else if (!is_open(word - KRON_WORD_TRACE))
		return;
	else if (word < KRON_WORD_RESOURCE)
		kron_rt_slow((uint32_t)data, (uint32_t)(data >> 32));
	else
		kron_rt_resource((uint32_t)data, (uint32_t)(data >> 32));
}

static void write_board(uint32_t word, uint64_t data)
{
	rt_busy_begin();
	board_write64(&kron_rt.board, KRON_CHIP_BYTE(word), data);
	rt_busy_end();
}

static void store(uint32_t word, uint64_t data)
{
	if (word >= KRON_WORD_TRACE)
		trigger(word, data);
	else if (word >= KRON_WORD_INCREMENT)
		increment(word - KRON_WORD_INCREMENT, 1);
	else if (!rt_lane_is_mute()) /* the model reads the time */
		write_board(word, data);
}

/* The same store as the trampoline makes. */
static void store_to_hardware(uint32_t word, uint64_t data, bool counts)
{
	uintptr_t at = KRON_WINDOW_ADDR + KRON_CHIP_BYTE(word);

	for (; counts && data; data--)
		*(volatile uint32_t *)at = 1;
	if (counts)
		return;
	if (word == KRON_WORD_TIMESTAMP || word == KRON_WORD_ENABLE || word == KRON_WORD_MODE ||
	    word == KRON_WORD_CLOCK)
		*(volatile uint64_t *)at = data;
	else
		*(volatile uint32_t *)at = (uint32_t)data;
}

void kron_rt_action(uint64_t code, uint64_t data, uint64_t flags)
{
	uint32_t word = code & 127;
	bool counts = code & KRON_ACTION_COUNT;

	if (code & KRON_ACTION_PAGES) {
		if (kron_rt.live)
			rt_pages_count(code, data, flags);
		return;
	}
	if (kron_rt.live && code & KRON_ACTION_CALLS) {
		uint32_t number;

		mini_copy(&number, (const void *)(data + KRON_ACTION_NUMBER), sizeof(number));
		rt_count_call(number);
		return;
	}
	if (!kron_rt.live || (code & KRON_ACTION_GATED && !is_open(code >> 8)))
		return;
	if (rt_bus() == KRON_BUS_HARDWARE)
		store_to_hardware(word, data, counts);
	else if (counts)
		increment(word - KRON_WORD_INCREMENT, data);
	else
		store(word, data);
}

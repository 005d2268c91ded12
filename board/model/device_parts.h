/* SPDX-License-Identifier: MIT */
/*
 * device_parts.h - what the files of the machine ask of each other.
 *
 *   device.c           time, power-on, resets, which part a bus cycle is for
 *   device_chip.c      the chip's 128 words, triggers, waits
 *   device_counters.c  Resource Counters and their shadow registers
 *   device_fifo.c      from the chip FIFO to local memory
 *   device_board.c     Configuration Register, Memory Address Pointer, TEST operation
 *
 * What happens at the same oscillator tick happens in this order:
 *   1. the board's FIFO state machine completes a sequence;
 *   2. NODECLK: timestamp, Resource Counters;
 *   3. the output network delivers a byte to the board FIFO;
 *   4. bus cycles, in the order of their calls;
 *   5. the state machine begins a sequence.
 */
#ifndef BOARD_DEVICE_PARTS_H
#define BOARD_DEVICE_PARTS_H

#include "board/model/device.h"

#define DEVICE_ONES 0xffffffffu
#define DEVICE_ONES64 0xffffffffffffffffull
#define DEVICE_NEVER DEVICE_ONES64
/* Reading: unused bits above a 32-bit register read as ones. */
#define DEVICE_UNUSED_HIGH 0xffffffff00000000ull
/*
 * Reading: "the data path dynamically and transparently configures to handle 32 or 64 bit data":
 * in 64-bit mode the board gives the chip these pins 32-63 with a 4-byte transfer.  Zeros, which
 * change no field of the control registers.
 */
#define DEVICE_UNDRIVEN_HIGH 0ull
/* Reading: a read-with-copy that does not wait for busy shadow registers returns this. */
#define DEVICE_BAD_DATA DEVICE_ONES64
#define DEVICE_TIMESTAMP_MASK 0x00ffffffffffffffull
/* 3,600 years: the machine's time ends here, so that nothing that is added to it overflows. */
#define DEVICE_TIME_MAX (1ull << 62)

/* In the body of a small copying loop: the compiler must not make a call of memcpy of it. */
#define DEVICE_PLAIN_LOOP() __asm__ volatile("")

static inline bool device_is_test_mode(const struct device_state *s)
{
	return !(s->config & KRON_CONFIG_TESTB);
}

/* Reading of EN_EXT: the emulated board's connector has no clock, so the chips stand still. */
static inline bool device_has_node_clock(const struct device_state *s)
{
	return !(s->config & KRON_CONFIG_EN_EXT);
}

/* No acknowledgement comes from a chip without clock or with its outputs off. */
static inline bool device_chip_answers(const struct device_state *s)
{
	return device_has_node_clock(s) && (s->config & KRON_CONFIG_MK_OE);
}

/* Oscillator ticks a NODECLK. */
static inline uint32_t device_period(const struct device_state *s)
{
	return s->config & KRON_CONFIG_DIV2 ? 2 : 1;
}

/* device.c: all clocks and both FIFOs on to `until` (not before s->time) */
void device_run(struct device_state *s, uint64_t until);

/* device_chip.c */
void device_chip_cycle(struct device_state *s, struct device_cycle *c);
void device_chip_reset(struct device_state *s);

/* device_counters.c */
void device_counters_reset(struct device_state *s);
void device_counters_settle(struct device_state *s);
void device_counters_copy(struct device_state *s);
void device_counter_write(struct device_state *s, unsigned i, uint64_t data);
void device_counter_increment(struct device_state *s, unsigned i);
/* A rising edge of its external signal, which has been settled up to now. */
void device_counter_edge(struct device_state *s, unsigned i);
uint64_t device_counter_shadow(const struct device_state *s, unsigned i);
void device_counters_enable(struct device_state *s, uint64_t fields);
void device_counters_mode(struct device_state *s, uint64_t fields);
void device_counters_clock(struct device_state *s, uint64_t fields);
uint64_t device_counters_mode_read(const struct device_state *s);
bool device_counters_are_sane(const struct device_state *s);

/* device_fifo.c */
void device_fifo_begin_call(struct device_state *s);
void device_fifo_run(struct device_state *s, uint64_t until);
/* The next tick at which something comes out of or into a FIFO, or DEVICE_NEVER. */
uint64_t device_fifo_next(const struct device_state *s);
/* The entry after the last; the caller has seen to it that there is one. */
struct device_entry *device_fifo_push(struct device_state *s, bool resource);
void device_fifo_pop(struct device_state *s, unsigned n);
void device_fifo_enable_network(struct device_state *s);
void device_fifo_delay_network(struct device_state *s);
void device_fifo_reset_chip(struct device_state *s);
void device_fifo_reset_board(struct device_state *s);
/* The oldest byte of the board FIFO; it must have one. */
uint8_t device_fifo_take(struct device_state *s);
void device_fifo_finish_sequence(struct device_state *s);
/* Where the next word for memory goes; false: nowhere, the simple buffer is full. */
bool device_fifo_next_word(struct device_state *s, uint32_t *word);
bool device_fifo_is_sane(const struct device_state *s);

static inline uint32_t device_fifo_fill(const struct device_state *s)
{
	return (uint32_t)s->wr - s->rd;
}

/* device_board.c: a cycle that is not for a chip */
void device_board_cycle(struct device_state *s, struct device_cycle *c);

#endif

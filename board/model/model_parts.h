/* SPDX-License-Identifier: MIT */
/*
 * model_parts.h - what the files of the model ask of each other.
 *
 *   model.c           time, power-on, resets, which part a bus cycle is for
 *   model_chip.c      the chip's 128 words, triggers, waits
 *   model_counters.c  Resource Counters and their shadow registers
 *   model_vc.c        the MultiKron_vc chip
 *   model_fifo.c      from the chip FIFO to local memory
 *   model_board.c     Configuration Register, Memory Address Pointer, TEST operation
 *
 * What happens at the same oscillator tick happens in this order:
 *   1. the board's FIFO state machine completes a sequence;
 *   2. NODECLK: timestamp, Resource Counters;
 *   3. the output network delivers a byte to the board FIFO;
 *   4. bus cycles, in the order of their calls;
 *   5. the state machine begins a sequence.
 */
#ifndef BOARD_MODEL_PARTS_H
#define BOARD_MODEL_PARTS_H

#include "board/model/model.h"

#define MODEL_ONES 0xffffffffu
#define MODEL_ONES64 0xffffffffffffffffull
#define MODEL_NEVER MODEL_ONES64
/* Reading: unused bits above a 32-bit register read as ones. */
#define MODEL_UNUSED_HIGH 0xffffffff00000000ull
/*
 * Reading: "the data path dynamically and transparently configures to handle 32 or 64 bit data":
 * in 64-bit mode the board gives the chip these pins 32-63 with a 4-byte transfer.  Zeros, which
 * change no field of the control registers.
 */
#define MODEL_UNDRIVEN_HIGH 0ull
/* Reading: a read-with-copy that does not wait for busy shadow registers returns this. */
#define MODEL_BAD_DATA MODEL_ONES64
#define MODEL_TIMESTAMP_MASK 0x00ffffffffffffffull
/* 3,600 years: the model's time ends here, so that nothing that is added to it overflows. */
#define MODEL_TIME_MAX (1ull << 62)

/* In the body of a small copying loop: the compiler must not make a call of memcpy of it. */
#define MODEL_PLAIN_LOOP() __asm__ volatile("")

static inline bool model_is_test_mode(const struct model_state *s)
{
	return !(s->config & KRON_CONFIG_TESTB);
}

/* Reading of EN_EXT: the emulated board's connector has no clock, so the chips stand still. */
static inline bool model_has_node_clock(const struct model_state *s)
{
	return !(s->config & KRON_CONFIG_EN_EXT);
}

/* No acknowledgement comes from a chip without clock or with its outputs off. */
static inline bool model_chip_answers(const struct model_state *s)
{
	return model_has_node_clock(s) && (s->config & KRON_CONFIG_MK_OE);
}

/* Oscillator ticks a NODECLK. */
static inline uint32_t model_period(const struct model_state *s)
{
	return s->config & KRON_CONFIG_DIV2 ? 2 : 1;
}

/* model.c: all clocks and both FIFOs on to `until` (not before s->time) */
void model_run(struct model_state *s, uint64_t until);

static inline void model_output(struct model_cycle *c, uint64_t value)
{
	c->data = c->bytes == 8 ? value : (uint32_t)value;
}

/* model_chip.c */
void model_chip_cycle(struct model_state *s, struct model_cycle *c);
void model_chip_reset(struct model_state *s);

/* model_counters.c */
void model_counters_reset(const struct model_state *s, struct model_counters *k);
void model_counters_settle(const struct model_state *s, struct model_counters *k);
void model_counters_copy(const struct model_state *s, struct model_counters *k);
void model_counter_write(const struct model_state *s, struct model_counters *k, unsigned i,
			 uint64_t data);
void model_counter_increment(const struct model_state *s, struct model_counters *k, unsigned i);
/* A rising edge of its external signal, which has been settled up to now. */
void model_counter_edge(const struct model_state *s, struct model_counters *k, unsigned i);
uint64_t model_counter_shadow(const struct model_counters *k, unsigned i);
uint64_t model_counter_now(const struct model_state *s, const struct model_counters *k,
			   unsigned counter); /* without copy */
void model_counters_enable(const struct model_state *s, struct model_counters *k, uint64_t fields);
void model_counters_mode(const struct model_state *s, struct model_counters *k, uint64_t fields);
void model_counters_clock(const struct model_state *s, struct model_counters *k, uint64_t fields);
uint64_t model_counters_mode_read(const struct model_counters *k);
bool model_counters_are_sane(const struct model_state *s, const struct model_counters *k);

/* model_vc.c; but for model_vc_answers() only where one is installed */
static inline bool model_vc_answers(const struct model_state *s, uint32_t offset)
{
	return s->geometry.vc && offset - KRON_BOARD_VC < KRON_BOARD_VC_SIZE;
}
void model_vc_cycle(struct model_state *s, struct model_cycle *c);
void model_vc_board_reset(struct model_state *s);
bool model_vc_is_sane(const struct model_state *s);

/* model_fifo.c */
void model_fifo_begin_call(struct model_state *s);
void model_fifo_run(struct model_state *s, uint64_t until);
/* The next tick at which something comes out of or into a FIFO, or MODEL_NEVER. */
uint64_t model_fifo_next(const struct model_state *s);
/* The entry after the last; the caller has seen to it that there is one. */
struct model_entry *model_fifo_push(struct model_state *s, bool resource);
void model_fifo_pop(struct model_state *s, unsigned n);
void model_fifo_enable_network(struct model_state *s);
void model_fifo_delay_network(struct model_state *s);
void model_fifo_reset_chip(struct model_state *s);
void model_fifo_reset_board(struct model_state *s);
/* The oldest byte of the board FIFO; it must have one. */
uint8_t model_fifo_take(struct model_state *s);
void model_fifo_finish_sequence(struct model_state *s);
/* Where the next word for memory goes; false: nowhere, the simple buffer is full. */
bool model_fifo_next_word(struct model_state *s, uint32_t *word);
bool model_fifo_is_sane(const struct model_state *s);

static inline uint32_t model_fifo_fill(const struct model_state *s)
{
	return (uint32_t)s->wr - s->rd;
}

/* model_board.c: a cycle that is not for a chip */
void model_board_cycle(struct model_state *s, struct model_cycle *c);
void model_board_reset(struct model_state *s, uint32_t config);

#endif

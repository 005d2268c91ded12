/* SPDX-License-Identifier: MIT */
/*
 * tester.h - what the toolkit's test programs share: a board to themselves or a seat on it, the
 * chip's registers by word, samples in local memory, errors found.
 *
 *   mk_mem_test  test_mk  mk_sample_test ──► whole board      one process
 *   mk_nite_test ──────────────────────────► a seat           up to TESTER_SEATS at once
 *   mk_nite_test -x ───────────────────────► whole board      one process
 *
 * Who has what is a lock on a byte of the board's file, which its process's death releases.
 * The locks bind test programs only: who else uses the board meanwhile gets what he deserves,
 * but for a kron record, which the testers see and leave alone.
 */
#ifndef TOOLKIT_TESTER_H
#define TOOLKIT_TESTER_H

#include <stdbool.h>
#include <stdint.h>

#include "board/bus/bus.h"
#include "board/toolkit/tool.h"

enum tester_status {
	TESTER_OK = TOOL_OK,
	TESTER_ERRORS = TOOL_ERROR, /* the board does not do what it should */
	TESTER_USAGE = TOOL_USAGE,
	TESTER_CANNOT = 3, /* no board, or it is in use: nothing was tested */
};

#define TESTER_SEATS 7u     /* one Source Address Register each; register 0 is everybody's */
#define TESTER_SHOW 20u     /* errors that are printed; the others only count */
#define TESTER_HZ 40000000u /* NODECLK after the default initialisation */

struct tester {
	const struct opt_command *program;
	struct bus bus;
	unsigned seat; /* 1 to TESTER_SEATS; 0: the whole board */
	uint64_t errors;
};

/*
 * Open the board that `name` means (bus_open), or $KRON_BOARD; else one of our own.  TESTER_OK, or
 * TESTER_CANNOT after saying why.
 */
int tester_open(struct tester *t, const struct opt_command *program, const char *name);
/* The whole board.  TESTER_OK, or TESTER_CANNOT after saying who has it. */
int tester_take_board(struct tester *t);
/*
 * A seat.  *first: nobody else has one, so the caller initialises the board and then calls
 * tester_seated(); nobody comes in before that.
 */
int tester_take_seat(struct tester *t, bool *first);
void tester_seated(struct tester *t);
void tester_close(struct tester *t);
/* Words of local memory for us alone, among testers; false: another one has some of them. */
bool tester_lock_memory(struct tester *t, uint32_t first, uint32_t count);
void tester_unlock_memory(struct tester *t, uint32_t first, uint32_t count);
/* Has another tester locked any of these?  Round the end of the memory, if need be. */
bool tester_is_memory_locked(struct tester *t, uint32_t first, uint32_t count);

/* Wrong usage: the sentence and a word about --help; TESTER_USAGE. */
int tester_usage(const struct opt_command *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Seconds, with a fraction if need be. */
bool tester_seconds(const char *text, double max, double *out);

/* An error of the board: counted, and the first TESTER_SHOW of them printed. */
void tester_error(struct tester *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* got == want, else an error that says what it was. */
bool tester_expect(struct tester *t, const char *what, uint64_t got, uint64_t want);
/* The last line: "mk_mem_test: WHAT: no errors".  Returns the exit status. */
int tester_summary(const struct tester *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The option that they all have. */
#define TESTER_BOARD_OPTION(var)                                                     \
	{                                                                            \
		'b', "board", OPT_STR, &(var), "NAME",                               \
			"The board, by its name, or the path of a device. Default: " \
			"$KRON_BOARD, else one of its own, which goes with it.",     \
			0, 0                                                         \
	}

/* ---- the chip, by word (NISTIR 5571, Table B4) ---- */
static inline uint32_t chip_read32(struct tester *t, uint32_t word)
{
	return bus_read32(&t->bus, KRON_CHIP_BYTE(word));
}
static inline uint64_t chip_read64(struct tester *t, uint32_t word)
{
	return bus_read64(&t->bus, KRON_CHIP_BYTE(word));
}
static inline void chip_write32(struct tester *t, uint32_t word, uint32_t value)
{
	bus_write32(&t->bus, KRON_CHIP_BYTE(word), value);
}
static inline void chip_write64(struct tester *t, uint32_t word, uint64_t value)
{
	bus_write64(&t->bus, KRON_CHIP_BYTE(word), value);
}
static inline uint32_t board_memory_byte(uint32_t word)
{
	return KRON_BOARD_MEMORY + 4u * (word & KRON_MAP_WORD);
}

#define TESTER_TIME_MASK 0x00ffffffffffffffull /* 56 bits; what is above reads as ones */
uint64_t tester_timestamp(struct tester *t);
uint32_t tester_pointer(struct tester *t); /* Memory Address Pointer, 24 bits */
/* bus_init_default(), then: wait, do not discard; 64-bit mode. */
void tester_init_board(struct tester *t, uint32_t source);
/* Nanoseconds of the machine's own clock. */
uint64_t tester_now(void);
/*
 * Until the pointer stands at `pointer`, at most 100 ms.  A board with a virtual clock is moved
 * on meanwhile.  False: it did not come there.
 */
bool tester_wait_pointer(struct tester *t, uint32_t pointer);

/* ---- samples as they lie in local memory ---- */
struct tester_sample {
	unsigned words; /* 5 or 21 */
	uint32_t word[KRON_RESOURCE_SIZE / 4];
};
static inline uint64_t tester_sample_time(const struct tester_sample *s)
{
	return (uint64_t)(s->word[0] & KRON_HEAD_TIME_MASK) << 32 | s->word[1];
}
void tester_read_sample(struct tester *t, uint32_t at, unsigned words, struct tester_sample *s);

struct tester_expected {
	uint32_t cpu; /* CPU ID, encoded */
	bool resource;
	uint32_t source;
	uint64_t data;
	uint64_t after, before; /* the timestamp lies between, both included */
};
/* Header, timestamp, source and data; not the counters. */
bool tester_check_sample(struct tester *t, const struct tester_sample *s,
			 const struct tester_expected *want);
/*
 * Trigger at filter level `level`, wait for the sample in local memory, read and check it.  For
 * who has the whole board.
 */
bool tester_take_sample(struct tester *t, unsigned level, struct tester_expected *want,
			struct tester_sample *s);

#endif

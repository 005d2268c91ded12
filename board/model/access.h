/* SPDX-License-Identifier: MIT */
/*
 * access.h - the board in shared memory: bus cycles from many processes at once.
 *
 *   struct model (in the segment)
 *     active ──► slot 17: the model's state        local memory: {value, tag} a word
 *                slot 18: being written by A        ▲
 *                slot 19: being written by B        └ stores of the active state, carried out
 *                ...                                  by whoever comes next
 *
 * There is no lock.  A cycle copies the active state into a free slot, runs the model there,
 * and makes that slot the active one by a single compare-and-swap, which also counts the
 * generations.  Who loses the race does it again.  So:
 *   - a process that is killed inside a cycle has either done it or not;
 *   - a process that is stopped inside a cycle stops nobody else;
 *   - a signal handler that interrupts a cycle can do cycles of its own;
 *   - siglongjmp out of one costs a slot for a while, nothing else.
 * access.c has the argument, step by step.
 *
 * Freestanding.  Async-signal-safe.  Needs less than 1 KiB of stack (board_is_sane() 4) and no
 * memory.  Trusts nothing that it reads from the segment.  Reads the TSC: not for threads that
 * may not (PR_SET_TSC).
 */
#ifndef BOARD_ACCESS_H
#define BOARD_ACCESS_H

#include "board/model/model.h"
#include <kron/segment.h>

/*
 * A mapped board, as one process sees it.  Filled by who maps the segment: the three pointers,
 * and zeroes.  One struct serves all threads of the process and its forked children.
 */
struct board {
	struct kron_ctl *ctl;
	struct model *model; /* KRON_MODEL_OFFSET of the segment */
	void *memory;        /* KRON_MEMORY_OFFSET: the tagged words of local memory */

	/* No system calls, because a seccomp filter may kill for them: waits spin, slots that
	 * killed threads left behind are found by others.  May be set at any time. */
	bool quiet;
	/* No thread data, because %fs may lead anywhere.  Atomic; only set. */
	bool strange;
};

enum access_clock {
	ACCESS_CLOCK_REAL = 0,   /* the machine's time stamp counter, scaled to the oscillator */
	ACCESS_CLOCK_VIRTUAL = 1 /* moved by board_tick(): for tests and reproducible runs */
};

/*
 * Make the model part of a fresh, zeroed segment: power-on state, clock.  Before anybody else
 * sees the segment.  The gates are closed by it.
 */
void board_init(const struct board *b, const struct model_geometry *g, enum access_clock clock,
		uint64_t tsc_hz);

/* The real clock's rate is known better than at its start: soon, for time jumps by what it was wrong. */
void board_set_rate(const struct board *b, uint64_t tsc_hz);

/*
 * Boards that are reset at one instant and run at one rate have one time: the same TSC is the same
 * timestamp to both.  For real clocks.
 *
 * A reset cycle and one that writes the Configuration Register, without which no time is counted, both at this
 * TSC, which is now or a few milliseconds to come; the board's time stands still until then.  -ETIME: something has happened on the board later than that, so it was not done; else as
 * board_cycle().
 */
int board_reset_at(const struct board *b, uint64_t tsc, uint32_t config);
/* Its clock goes like the other's; right after board_reset_at(), for what has gone by jumps. */
void board_use_rate_of(const struct board *b, const struct board *other);

/* Header, clock and active state make sense.  To be asked once after mapping. */
bool board_is_sane(const struct board *b);

/*
 * Let each thread remember its own number; without this every cycle asks the kernel (0.1 us).
 * Once in a process, for all boards.  `wiped` is a word that is zero at first and in every forked
 * child (memory with MADV_WIPEONFORK), NULL: it is made here.  0, or -errno: not remembered.
 */
int board_remember_threads(uint32_t *wiped);

/*
 * One bus cycle, now.  Returns after the board has acknowledged: with waits enabled that may be
 * later.  Recomputes the gates when the cycle changed what they depend on.
 * 0, or -EIO: the segment is damaged, or for seconds no slot could be had; the cycle was not
 * done (no_answer, data all ones).
 */
int board_cycle(const struct board *b, struct model_cycle *c);

/* Short forms of board_cycle() by the CPU that the Configuration Register names. */
uint32_t board_read32(const struct board *b, uint32_t offset);
uint64_t board_read64(const struct board *b, uint32_t offset);
void board_write32(const struct board *b, uint32_t offset, uint32_t value);
void board_write64(const struct board *b, uint32_t offset, uint64_t value);

/*
 * A trigger by a thread: its CPU's line is active and holds its source address, in one
 * indivisible step, so that no sample ever has another thread's source.  1: taken; 0: the board was
 * there and did not take it; -errno: it could not be asked.
 */
int board_trigger(const struct board *b, uint32_t word, unsigned cpu, uint32_t source,
		  uint64_t data);

/* Time goes on by itself, or (virtual clock) by n oscillator ticks; what is due is carried out. */
void board_tick(const struct board *b, uint64_t n);

/* A consistent copy of the model as it is now.  false: the segment is damaged. */
bool board_snapshot(const struct board *b, struct model_state *out);

/* Copy n words of local memory from `first` on, round the end; cheaper than n read cycles. */
void board_read_memory(const struct board *b, uint32_t first, uint32_t n, uint32_t *out);

/*
 * The far end of the cable, which one thread at a time may be: that the last call's `took` values have been taken is
 * said to the board, and the next are read, at most `max`; they wait there until the next call.  The
 * first call has zeroes in *c.  0, or as board_cycle().
 */
struct access_cable {
	uint32_t took; /* read by this call */
	/* out */
	uint32_t first;   /* the number of the first of them, modulo 2^32 */
	uint32_t waiting; /* these and those after them */
};
int board_take_cable(const struct board *b, struct access_cable *c, uint16_t *out, uint32_t max);

/*
 * All KRON_VC_COUNTERS virtual counters of the MultiKron_vc at one moment, as 32-bit words.  false: none is
 * installed, the segment is damaged, or others make cycles without pause.
 */
bool board_read_counters(const struct board *b, uint32_t *out);

/* One of the external signals X0 to X15.  Toggling is indivisible, too.  0, or as board_cycle(). */
enum access_level { ACCESS_LOW = 0, ACCESS_HIGH = 1, ACCESS_TOGGLE = 2 };
int board_set_external(const struct board *b, unsigned counter, enum access_level level);

/*
 * Make the gates what the model's registers say.  Cycles do it themselves; this is for who
 * has changed ctl->bus or ctl->constant_time, and for the collector's tick: a process that was
 * killed while it wrote gates may have left old ones.
 */
void board_repair_gates(const struct board *b);

/* The TSC at a tick of the board's oscillator (model_state.time), and the tick that it is now.
 * With the virtual clock both count the same. */
uint64_t board_tsc_of_tick(const struct board *b, uint64_t tick);
uint64_t board_now(const struct board *b);

#endif

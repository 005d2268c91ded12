/* SPDX-License-Identifier: MIT */
/*
 * test_testers.c - who tests the testers?  A board with a fault that we chose.
 *
 *   mk_mem_test, test_mk, ... ─► tester ─► faulty bus ─► the model (board/model/model.h)
 *
 * Each fault must be found by the test that is there for it, and a board without fault must
 * pass everything: nothing here takes the testers' word.  The clock is the machine's, as the
 * testers compare with it.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "board/model/model.h"
#include "board/toolkit/memory_test.h"
#include "board/toolkit/nite.h"

enum fault {
	NONE,
	STUCK_BIT,    /* a bit of one word of memory is always one */
	ADDRESS_LINE, /* two words of memory are one */
	SOURCE_BIT,   /* bit 7 of the Source Address Registers is lost */
	LOST_SAMPLE,  /* every 50th trigger comes to nothing */
	TWICE,        /* every 50th trigger comes twice */
	WRONG_DATA,   /* high half of the user data is lost */
	WRONG_TYPE,   /* a Resource trigger takes a Trace sample */
	FAST_CLOCK,   /* the oscillator runs a tenth too fast */
	SLOW_CLOCK,
	STOPPED_CLOCK,
	DEAF_COUNTER,  /* every tenth increment is lost */
	COPY_FAILS,    /* read-with-copy does not copy */
	FILTER_STUCK,  /* level 3 cannot be switched off */
	CPU_STUCK,     /* the CPU ID lines do not follow the register */
	INTERLOCK,     /* a write to the pointer always arrives */
	OVERRUN_COUNT, /* overruns are not counted */
};

static struct {
	struct model_state model;
	uint32_t *memory;
	enum fault fault;
	uint32_t triggers, increments;
	uint64_t start;
	int file; /* for the locks */
} board;

static uint64_t nanoseconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t clock_now(void)
{
	uint64_t ticks = (nanoseconds() - board.start) / 25;

	if (board.fault == FAST_CLOCK)
		return ticks + ticks / 10;
	if (board.fault == SLOW_CLOCK)
		return ticks - ticks / 10;
	return board.fault == STOPPED_CLOCK ? 0 : ticks;
}

static void carry_out(void)
{
	for (uint32_t i = 0; i < model_stores(&board.model); i++) {
		struct model_store s = model_store(&board.model, i);

		if (board.fault == STUCK_BIT && s.word == 1234)
			s.value |= 0x10000;
		if (board.fault == ADDRESS_LINE)
			s.word &= ~(1u << 5);
		board.memory[s.word] = s.value;
	}
}

static uint64_t cycle(uint32_t offset, uint8_t bytes, bool write, uint64_t data)
{
	struct model_cycle c = {.offset = offset, .bytes = bytes, .write = write, .data = data};

	model_cycle(&board.model, clock_now(), &c);
	carry_out();
	while (board.fault != STOPPED_CLOCK && clock_now() < c.done)
		;
	return c.data;
}

static bool is_chip_word(uint32_t offset, uint32_t word, uint32_t n)
{
	return offset >= KRON_CHIP_BYTE(word) && offset < KRON_CHIP_BYTE(word + n);
}

static uint64_t faulty_read(uint32_t offset, uint8_t bytes)
{
	if (offset >= KRON_BOARD_MEMORY) {
		uint32_t word = (offset - KRON_BOARD_MEMORY) / 4;

		cycle(KRON_CHIP_BYTE(KRON_WORD_FILTER), 4, false, 0); /* time goes on */
		return board.memory[board.fault == ADDRESS_LINE ? word & ~(1u << 5) : word];
	}
	if (board.fault == COPY_FAILS && is_chip_word(offset, KRON_WORD_COUNTER, KRON_COUNTERS))
		offset += 4 * (KRON_WORD_INCREMENT - KRON_WORD_COUNTER);
	if (board.fault == OVERRUN_COUNT && is_chip_word(offset, KRON_WORD_OVERRUN, 1))
		return 0;
	return cycle(offset, bytes, false, 0);
}

/* The write as the fault leaves it; false: it is gone. */
static bool spoil_write(uint32_t *offset, uint64_t *data)
{
	switch (board.fault) {
	case SOURCE_BIT:
		if (is_chip_word(*offset, KRON_WORD_SOURCE, KRON_SOURCES))
			*data &= ~0x80ull;
		break;
	case LOST_SAMPLE:
		return !is_chip_word(*offset, KRON_WORD_TRACE, 32) || ++board.triggers % 50;
	case WRONG_DATA:
		if (is_chip_word(*offset, KRON_WORD_TRACE, 32))
			*data &= 0xffffffffu;
		break;
	case WRONG_TYPE:
		if (is_chip_word(*offset, KRON_WORD_RESOURCE, KRON_LEVELS))
			*offset -= 4 * KRON_LEVELS;
		break;
	case DEAF_COUNTER:
		return !is_chip_word(*offset, KRON_WORD_INCREMENT, KRON_COUNTERS) ||
		       ++board.increments % 10;
	case FILTER_STUCK:
		if (*offset == KRON_CHIP_BYTE(KRON_WORD_FILTER))
			*data |= 1u << 3;
		break;
	case CPU_STUCK:
		if (*offset == KRON_BOARD_CONFIG)
			*data = (*data & ~0xffull) | 1;
		break;
	default:
		break;
	}
	return true;
}

static void faulty_write(uint32_t offset, uint8_t bytes, uint64_t data)
{
	uint32_t config = model_config(&board.model);

	if (!spoil_write(&offset, &data))
		return;
	if (board.fault == INTERLOCK && offset == KRON_BOARD_MAP) {
		cycle(KRON_BOARD_CONFIG, 4, true,
		      (config & ~KRON_CONFIG_LOCAL) | KRON_CONFIG_DIS_STATE);
		cycle(offset, bytes, true, data);
		cycle(KRON_BOARD_CONFIG, 4, true, config);
		return;
	}
	cycle(offset, bytes, true, data);
	if (board.fault == TWICE && is_chip_word(offset, KRON_WORD_TRACE, 32) &&
	    ++board.triggers % 50 == 0)
		cycle(offset, bytes, true, data);
}

static uint32_t read32(struct bus *b, uint32_t offset)
{
	(void)b;
	return (uint32_t)faulty_read(offset, 4);
}

static uint64_t read64(struct bus *b, uint32_t offset)
{
	(void)b;
	return faulty_read(offset, 8);
}

static void write32(struct bus *b, uint32_t offset, uint32_t value)
{
	(void)b;
	faulty_write(offset, 4, value);
}

static void write64(struct bus *b, uint32_t offset, uint64_t value)
{
	(void)b;
	faulty_write(offset, 8, value);
}

static void read_memory(struct bus *b, uint32_t first, uint32_t n, uint32_t *out)
{
	for (uint32_t i = 0; i < n; i++)
		out[i] = read32(b, KRON_BOARD_MEMORY + 4 * (first + i));
}

static const struct bus_ops ops = {"faulty", read32, read64, write32, write64, read_memory};
static const struct opt_command program = {.name = "test_testers", .alone = true};

static void new_board(struct tester *t, enum fault fault)
{
	const struct model_geometry g = MODEL_GEOMETRY_DEFAULT;
	uint32_t *memory = board.memory;
	int file = memory ? board.file : memfd_create("board", 0);

	memset(&board, 0, sizeof(board));
	board.memory = memory ? memory : calloc(KRON_BOARD_MEMORY_WORDS, 4);
	board.fault = fault;
	board.file = file;
	board.start = nanoseconds();
	model_power_on(&board.model, &g);
	*t = (struct tester){.program = &program, .bus = {.ops = &ops, .fd = board.file}};
}

/* ---- each tester on a board with each fault: errors or none ---- */

static uint64_t memory(enum fault fault)
{
	struct memory_fault f;
	struct tester t;

	new_board(&t, fault);
	return memory_test(&t.bus, 1000, 1000, 0, false, &f, 1) +
	       memory_test(&t.bus, 1000, 1000, UINT32_MAX, true, &f, 1);
}

static uint64_t samples(enum fault fault)
{
	struct tester t;

	new_board(&t, fault);
	t.errors = TESTER_SHOW; /* count, do not print */
	tester_init_board(&t, 0);
	test_source_register(&t, 0);
	test_set_counters(&t);
	for (unsigned i = 0; i < 4; i++) {
		struct tester_expected want = {.cpu = i % 2,
					       .resource = i / 2,
					       .source = 0xff00 + i % 2,
					       .data = ~0ull - i};
		struct tester_sample s;

		test_select_cpu(&t, want.cpu);
		chip_write32(&t, KRON_WORD_SOURCE + want.cpu, want.source);
		if (tester_take_sample(&t, i, &want, &s) && want.resource)
			test_check_counters(&t, &s);
	}
	return t.errors - TESTER_SHOW;
}

static uint64_t timestamp(enum fault fault)
{
	struct test_clock from, to;
	struct tester t;

	new_board(&t, fault);
	t.errors = TESTER_SHOW;
	tester_init_board(&t, 0);
	test_clock_read(&t, &from);
	usleep(200000);
	test_clock_read(&t, &to);
	test_clock_rate(&t, &from, &to, 10e6);
	return t.errors - TESTER_SHOW;
}

static uint64_t night(enum fault fault, unsigned seat, void (*test)(struct nite *), unsigned times)
{
	struct nite n = {.random = 42 + seat, .own = 0x80000000u | seat};

	new_board(&n.t, fault);
	n.t.errors = TESTER_SHOW;
	n.t.seat = seat;
	nite_init_board(&n);
	for (unsigned i = 0; i < times && n.t.errors == TESTER_SHOW; i++)
		test(&n);
	return n.t.errors - TESTER_SHOW;
}

static void no_fault(void **state)
{
	(void)state;
	assert_int_equal(memory(NONE), 0);
	assert_int_equal(samples(NONE), 0);
	assert_int_equal(timestamp(NONE), 0);
	for (unsigned seat = 0; seat <= TESTER_SEATS; seat += TESTER_SEATS) {
		assert_int_equal(night(NONE, seat, nite_memory, 20), 0);
		assert_int_equal(night(NONE, seat, nite_samples, 100), 0);
		assert_int_equal(night(NONE, seat, nite_registers, 20), 0);
		assert_int_equal(night(NONE, seat, nite_counters, 100), 0);
	}
	assert_int_equal(night(NONE, 0, nite_alone, 200), 0);
}

static void memory_faults(void **state)
{
	(void)state;
	assert_in_range(memory(STUCK_BIT), 1, 2);
	assert_in_range(memory(ADDRESS_LINE), 500, 2000);
	assert_true(night(ADDRESS_LINE, 3, nite_memory, 20) > 0);
}

static void sample_faults(void **state)
{
	(void)state;
	assert_true(samples(SOURCE_BIT) > 0);
	assert_true(samples(WRONG_DATA) > 0);
	assert_true(samples(WRONG_TYPE) > 0);
	assert_true(samples(CPU_STUCK) > 0);
	assert_true(samples(STOPPED_CLOCK) > 0);
}

/* Who is stopped while reading the clock knows less: a busy machine gets several tries. */
static bool is_clock_fault_found(enum fault fault)
{
	for (int i = 0; i < 20; i++)
		if (timestamp(fault))
			return true;
	return false;
}

static void clock_faults(void **state)
{
	(void)state;
	assert_true(is_clock_fault_found(FAST_CLOCK));
	assert_true(is_clock_fault_found(SLOW_CLOCK));
	assert_true(is_clock_fault_found(STOPPED_CLOCK));
}

static void faults_at_night(void **state)
{
	(void)state;
	assert_true(night(LOST_SAMPLE, 2, nite_samples, 20) > 0);
	assert_true(night(TWICE, 2, nite_samples, 20) > 0);
	assert_true(night(WRONG_DATA, 2, nite_samples, 20) > 0);
	assert_true(night(WRONG_TYPE, 2, nite_samples, 20) > 0);
	assert_true(night(SOURCE_BIT, 2, nite_registers, 1) > 0);
	assert_true(night(DEAF_COUNTER, 2, nite_counters, 20) > 0);
	assert_true(night(COPY_FAILS, 2, nite_counters, 1) > 0);
}

static void faults_alone(void **state)
{
	(void)state;
	assert_true(night(FILTER_STUCK, 0, nite_alone, 200) > 0);
	assert_true(night(CPU_STUCK, 0, nite_alone, 200) > 0);
	assert_true(night(INTERLOCK, 0, nite_alone, 200) > 0);
	assert_true(night(OVERRUN_COUNT, 0, nite_alone, 200) > 0);
	assert_true(night(LOST_SAMPLE, 0, nite_alone, 200) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_fault),        cmocka_unit_test(memory_faults),
		cmocka_unit_test(sample_faults),   cmocka_unit_test(clock_faults),
		cmocka_unit_test(faults_at_night), cmocka_unit_test(faults_alone),
	};

	return cmocka_run_group_tests_name("test programs of the toolkit", tests, NULL, NULL);
}

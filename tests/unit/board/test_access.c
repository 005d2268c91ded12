/* SPDX-License-Identifier: MIT */
/*
 * test_access.c - the board in shared memory, by one user and by the virtual clock: what cycles
 * do, where words go, what gates say, what becomes of slots.  Many users: tests/faults/board_*.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "board/model/access_layout.h"

#define CHIP(word) KRON_CHIP_BYTE(word)
#define LINE 3u /* the CPU that triggers */

static const struct model_geometry geometry = MODEL_GEOMETRY_DEFAULT;

static struct board make_segment(void)
{
	uint8_t *at = mmap(NULL, KRON_WINDOW_SIZE, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct board b = {.ctl = (struct kron_ctl *)(at + KRON_CTL_OFFSET),
			  .model = (struct model *)(at + KRON_MODEL_OFFSET),
			  .memory = at + KRON_MEMORY_OFFSET};

	assert_ptr_not_equal(at, MAP_FAILED);
	return b;
}

static struct board make_board(void)
{
	struct board b = make_segment();

	board_init(&b, &geometry, ACCESS_CLOCK_VIRTUAL, 0);
	assert_true(board_is_sane(&b));
	return b;
}

static void drop_board(struct board *b)
{
	munmap(b->memory, KRON_WINDOW_SIZE);
}

static void start_sampling(const struct board *b)
{
	board_write32(b, KRON_BOARD_CONFIG, KRON_CONFIG_DEFAULT | KRON_CONFIG_EXT_CPU);
	board_write32(b, CHIP(KRON_WORD_FILTER), 0xffff);
	board_write32(b, CHIP(KRON_WORD_CSR), KRON_CSR_SAMPLING);
}

static uint64_t generation(const struct board *b)
{
	return access_generation(b->model->active);
}

/* ---- cycles ---- */

static void a_new_board_is_reset(void **state)
{
	struct board b = make_board();
	struct model_state s;
	unsigned level;

	(void)state;
	assert_true(board_snapshot(&b, &s));
	assert_int_equal(model_csr(&s) & KRON_CSR_SAMPLING, 0);
	/* Its outputs are off: nobody answers for the chip. */
	assert_int_equal(board_read32(&b, CHIP(KRON_WORD_CSR)), 0xffffffff);
	for (level = 0; level < KRON_LEVELS; level++)
		assert_int_equal(b.ctl->gate[level], KRON_GATE_CLOSED);
	drop_board(&b);
}

static void registers_keep_what_is_written(void **state)
{
	struct board b = make_board();

	(void)state;
	board_write32(&b, KRON_BOARD_CONFIG, KRON_CONFIG_DEFAULT);
	board_write32(&b, CHIP(KRON_WORD_SOURCE + 5), 0x12345678);
	board_write64(&b, CHIP(KRON_WORD_MODE), 0x2222222222222222ull);
	assert_int_equal(board_read32(&b, KRON_BOARD_CONFIG),
			 KRON_CONFIG_VERSION | KRON_CONFIG_DEFAULT);
	assert_int_equal(board_read32(&b, CHIP(KRON_WORD_SOURCE + 5)), 0x12345678);
	assert_int_equal(board_read64(&b, CHIP(KRON_WORD_MODE)), 0x2222222222222222ull);
	drop_board(&b);
}

static void each_cycle_is_a_generation(void **state)
{
	struct board b = make_board();
	uint64_t g = generation(&b);

	(void)state;
	board_read32(&b, CHIP(KRON_WORD_CSR));
	board_tick(&b, 1);
	board_set_external(&b, 2, ACCESS_HIGH);
	assert_int_equal(generation(&b), g + 3);
	drop_board(&b);
}

/* 40 NODECLKs out of the chip, 5 for each word's sequence into memory. */
static void a_trigger_lands_in_memory(void **state)
{
	const uint32_t nothing[5] = {0};
	struct board b = make_board();
	uint32_t word[5];

	(void)state;
	start_sampling(&b);
	assert_true(board_trigger(&b, KRON_WORD_TRACE + 2, LINE, 0xabcd, 0x1122334455667788ull));
	board_read_memory(&b, 0, 5, word);
	assert_memory_equal(word, nothing, sizeof(word));
	board_tick(&b, 100);
	board_read_memory(&b, 0, 5, word);
	assert_int_equal(word[0] >> 24, LINE << 5 | KRON_HEAD_TYPE_TRACE << 3);
	assert_int_equal(word[1], 0);
	assert_int_equal(word[2], 0xabcd);
	assert_int_equal(word[3], 0x11223344);
	assert_int_equal(word[4], 0x55667788);
	assert_int_equal(board_read32(&b, KRON_BOARD_MAP) & KRON_MAP_MASK, 5);
	drop_board(&b);
}

static void the_clock_is_in_the_samples(void **state)
{
	struct board b = make_board();
	uint32_t word[10];

	(void)state;
	start_sampling(&b);
	board_tick(&b, 4000);
	board_trigger(&b, KRON_WORD_TRACE, LINE, 1, 0);
	board_tick(&b, 8000);
	board_trigger(&b, KRON_WORD_TRACE, LINE, 1, 0);
	board_tick(&b, 100);
	board_read_memory(&b, 0, 10, word);
	assert_int_equal(word[6] - word[1], 2000);
	drop_board(&b);
}

static void the_same_calls_give_the_same_state(void **state)
{
	struct board b[2] = {make_board(), make_board()};
	struct model_state s[2];
	unsigned i, n;

	(void)state;
	for (i = 0; i < 2; i++) {
		start_sampling(&b[i]);
		for (n = 0; n < 500; n++) {
			board_trigger(&b[i], KRON_WORD_TRACE + n % 16, n & 7, n, n);
			board_tick(&b[i], n * 7 % 90);
		}
		assert_true(board_snapshot(&b[i], &s[i]));
	}
	assert_memory_equal(&s[0], &s[1], offsetof(struct model_state, store));
	assert_int_not_equal(s[0].map, 0);
	drop_board(&b[0]);
	drop_board(&b[1]);
}

static void boards_are_independent(void **state)
{
	struct board a = make_board(), b = make_board();

	(void)state;
	start_sampling(&a);
	board_write32(&a, CHIP(KRON_WORD_SOURCE), 7);
	assert_int_equal(generation(&b), 1);
	assert_int_equal(board_read32(&b, KRON_BOARD_CONFIG), KRON_CONFIG_VERSION);
	drop_board(&a);
	drop_board(&b);
}

/* Process-wide memory of a board's last state must not outlive its mapping. */
static void another_board_at_the_same_address(void **state)
{
	struct board b = make_board(), other = make_board();

	(void)state;
	board_write32(&other, KRON_BOARD_CONFIG, KRON_CONFIG_DEFAULT);
	board_write32(&other, CHIP(KRON_WORD_SOURCE + 1), 0x2222);
	board_write32(&b, KRON_BOARD_CONFIG, KRON_CONFIG_DEFAULT);
	board_write32(&b, CHIP(KRON_WORD_SOURCE + 1), 0x1111);
	assert_int_equal(b.model->active, other.model->active);
	assert_ptr_equal(mremap(other.memory, KRON_WINDOW_SIZE, KRON_WINDOW_SIZE,
				MREMAP_MAYMOVE | MREMAP_FIXED, b.memory),
			 b.memory);
	assert_true(board_is_sane(&b));
	assert_int_equal(board_read32(&b, CHIP(KRON_WORD_SOURCE + 1)), 0x2222);
	drop_board(&b);
}

static void what_another_process_did_counts(void **state)
{
	struct board b = make_board();
	int i;

	(void)state;
	board_write32(&b, KRON_BOARD_CONFIG, KRON_CONFIG_DEFAULT);
	for (i = 0; i < 3; i++) {
		pid_t pid;

		board_write32(&b, CHIP(KRON_WORD_SOURCE + 1), 0x1111);
		pid = fork();
		if (pid == 0) {
			board_write32(&b, CHIP(KRON_WORD_SOURCE + 1), 0x2222);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_int_equal(board_read32(&b, CHIP(KRON_WORD_SOURCE + 1)), 0x2222);
	}
	drop_board(&b);
}

static void a_snapshot_changes_nothing(void **state)
{
	struct board b = make_board();
	struct model_state s;
	uint64_t g;

	(void)state;
	start_sampling(&b);
	board_trigger(&b, KRON_WORD_TRACE, LINE, 1, 2);
	/* Due, and not carried out by anybody. */
	b.model->virtual_now += 1000;
	g = generation(&b);
	assert_true(board_snapshot(&b, &s));
	assert_int_equal(generation(&b), g);
	assert_int_equal(model_map(&s), 5);
	assert_int_equal(model_config(&s) & KRON_CONFIG_WRITABLE,
			 KRON_CONFIG_DEFAULT | KRON_CONFIG_EXT_CPU);
	drop_board(&b);
}

/* ---- local memory ---- */

static void memory_keeps_what_is_written(void **state)
{
	struct board b = make_board();
	uint32_t word[4];

	(void)state;
	board_write32(&b, KRON_BOARD_CONFIG, KRON_CONFIG_MK_OE | KRON_CONFIG_TESTB);
	board_write32(&b, KRON_BOARD_MEMORY, 1);
	board_write32(&b, KRON_BOARD_MEMORY + KRON_BOARD_MEMORY_SIZE - 4, 2);
	board_write64(&b, KRON_BOARD_MEMORY + 8, 0x4444444433333333ull);
	assert_int_equal(board_read32(&b, KRON_BOARD_MEMORY), 1);
	assert_int_equal(board_read32(&b, KRON_BOARD_MEMORY + KRON_BOARD_MEMORY_SIZE - 4), 2);
	assert_int_equal(board_read64(&b, KRON_BOARD_MEMORY + 8), 0x4444444433333333ull);
	/* Round the end. */
	board_read_memory(&b, KRON_BOARD_MEMORY_WORDS - 1, 4, word);
	assert_int_equal(word[0], 2);
	assert_int_equal(word[1], 1);
	assert_int_equal(word[3], 0x33333333);
	drop_board(&b);
}

static void the_last_write_of_a_word_counts(void **state)
{
	struct board b = make_board();
	unsigned i;

	(void)state;
	for (i = 0; i < 100; i++)
		board_write32(&b, KRON_BOARD_MEMORY + 40, i);
	assert_int_equal(board_read32(&b, KRON_BOARD_MEMORY + 40), 99);
	board_write32(&b, KRON_BOARD_MEMORY + 40, 99);
	assert_int_equal(board_read32(&b, KRON_BOARD_MEMORY + 40), 99);
	drop_board(&b);
}

/* The CPU writes a word in the very cycle in which the state machine writes it. */
static void one_state_writes_a_word_once(void **state)
{
	struct board b = make_board();
	uint64_t wanted;

	(void)state;
	start_sampling(&b);
	board_trigger(&b, KRON_WORD_TRACE, LINE, 1, 2);
	b.model->virtual_now += 1000;
	board_write32(&b, KRON_BOARD_MEMORY + 8, 0x5a5a5a5a);
	wanted = 0x5a5a5a5aull | generation(&b) << 32;
	assert_int_equal(access_carry_out(&b, b.model->active), ACCESS_CARRIED);
	assert_int_equal(((uint64_t *)b.memory)[2], wanted);
	assert_int_equal(access_carry_out(&b, b.model->active), ACCESS_CARRIED);
	assert_int_equal(((uint64_t *)b.memory)[2], wanted);
	drop_board(&b);
}

/* Who was stopped between looking at the active state and storing changes nothing. */
static void a_late_writer_changes_nothing(void **state)
{
	struct board b = make_board();
	uint64_t late;

	(void)state;
	board_write32(&b, KRON_BOARD_MEMORY + 40, 1);
	late = b.model->active;
	board_write32(&b, KRON_BOARD_MEMORY + 40, 2);
	assert_int_equal(access_carry_out(&b, b.model->active), ACCESS_CARRIED);
	assert_int_equal(access_carry_out(&b, late), ACCESS_MOVED_ON);
	assert_int_equal(board_read32(&b, KRON_BOARD_MEMORY + 40), 2);
	drop_board(&b);
}

/* ---- time ---- */

static void a_wait_moves_the_virtual_clock(void **state)
{
	struct board b = make_board();
	unsigned i;

	(void)state;
	start_sampling(&b);
	board_write32(&b, CHIP(KRON_WORD_CSR), KRON_CSR_WAIT);
	for (i = 0; i < 200; i++)
		assert_true(board_trigger(&b, KRON_WORD_TRACE, LINE, 1, i));
	/* 200 samples of 40 NODECLKs, but for what the FIFO of four still holds. */
	assert_in_range(b.model->virtual_now, 195 * 40, 200 * 40);
	assert_int_equal(board_read32(&b, CHIP(KRON_WORD_OVERRUN)), 0);
	assert_in_range(board_read32(&b, CHIP(KRON_WORD_WAIT)), 1, 200 * 40);
	drop_board(&b);
}

static uint64_t measured_tsc_hz(void)
{
	struct timespec from, to, nap = {.tv_nsec = 50000000};
	uint64_t tsc = clock_tsc();

	clock_gettime(CLOCK_MONOTONIC, &from);
	nanosleep(&nap, NULL);
	clock_gettime(CLOCK_MONOTONIC, &to);
	return (uint64_t)((double)(clock_tsc() - tsc) /
			  ((double)(to.tv_sec - from.tv_sec) +
			   (double)(to.tv_nsec - from.tv_nsec) * 1e-9));
}

static void the_real_clock_runs_at_40_mhz(void **state)
{
	struct timespec nap = {.tv_nsec = 100000000}, from, to;
	uint64_t hz = measured_tsc_hz(), tick, tsc;
	struct board b = make_segment();
	double seconds;

	(void)state;
	board_init(&b, &geometry, ACCESS_CLOCK_REAL, hz);
	/* The two clocks are read one after the other: between is at most what was measured. */
	clock_gettime(CLOCK_MONOTONIC, &from);
	tick = board_now(&b);
	nanosleep(&nap, NULL);
	tick = board_now(&b) - tick;
	clock_gettime(CLOCK_MONOTONIC, &to);
	seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
	assert_true((double)tick <= seconds * 40e6 * 1.01);
	assert_true((double)tick >= 0.1 * 40e6 * 0.99);

	tick = board_now(&b);
	tsc = clock_tsc();
	assert_true(board_tsc_of_tick(&b, tick) <= tsc);
	assert_true(board_tsc_of_tick(&b, tick + 40000000) - board_tsc_of_tick(&b, tick) -
			    (hz - hz / 1000) <
		    hz / 500);
	drop_board(&b);
}

static void a_rate_that_is_known_later(void **state)
{
	uint64_t hz = measured_tsc_hz(), tick, second;
	struct board b = make_segment();

	(void)state;
	board_init(&b, &geometry, ACCESS_CLOCK_REAL, hz / 3);
	board_set_rate(&b, hz);
	tick = board_now(&b);
	second = board_tsc_of_tick(&b, tick + 40000000) - board_tsc_of_tick(&b, tick);
	assert_true(second - (hz - hz / 1000) < hz / 500);
	drop_board(&b);
}

/* The machine slept, its TSC began anew, and the board lay in shared memory. */
static void begin_tsc_anew(bool soon_after)
{
	struct board b = make_segment();
	struct model_state s;
	struct access_slot *slot;
	uint64_t before;

	board_init(&b, &geometry, ACCESS_CLOCK_REAL, measured_tsc_hz());
	/* Seven hours pass, then the counter is back where it was. */
	slot = access_slot(&b, access_slot_number(b.model->active));
	slot->anchor_tick = 1ull << 40;
	board_tick(&b, 0);
	slot = access_slot(&b, access_slot_number(b.model->active));
	assert_true(slot->time >= 1ull << 40);
	slot->anchor_tsc = clock_tsc() + (1ull << 50);
	slot->anchor_tick = slot->time - (soon_after ? 1000 : 1ull << 39);
	board_tick(&b, 0);
	before = board_now(&b);
	assert_in_range(before, 1ull << 40, (1ull << 40) + 40000000ull * 60);
	do {
		assert_true(board_snapshot(&b, &s));
	} while (s.time < before + 1000); /* and goes on */
	drop_board(&b);
}

static void a_tsc_that_begins_anew(void **state)
{
	(void)state;
	begin_tsc_anew(false);
	begin_tsc_anew(true);
}

/* ---- gates ---- */

static void gates_follow_the_registers(void **state)
{
	struct board b = make_board();
	unsigned level;

	(void)state;
	start_sampling(&b);
	for (level = 0; level < KRON_LEVELS; level++)
		assert_int_equal(b.ctl->gate[level], KRON_GATE(KRON_GATE_TAKE, level));
	board_write32(&b, CHIP(KRON_WORD_FILTER), 0x8005);
	for (level = 0; level < KRON_LEVELS; level++)
		assert_int_equal(b.ctl->gate[level] != KRON_GATE_CLOSED, 0x8005 >> level & 1);
	assert_int_equal(b.ctl->filter, 0x8005);
	board_write32(&b, CHIP(KRON_WORD_CSR), KRON_CSR_STOP);
	assert_int_equal(b.ctl->gate[0], KRON_GATE_CLOSED);
	assert_int_equal(b.ctl->csr & KRON_CSR_SAMPLING, 0);
	board_write32(&b, CHIP(KRON_WORD_CSR), KRON_CSR_SAMPLING);
	assert_int_equal(b.ctl->gate[2], KRON_GATE(KRON_GATE_TAKE, 2));
	board_write32(&b, KRON_BOARD_CONFIG, KRON_CONFIG_DEFAULT & ~KRON_CONFIG_MK_OE);
	assert_int_equal(b.ctl->gate[2], KRON_GATE_CLOSED);
	board_write32(&b, KRON_BOARD_CONFIG, KRON_CONFIG_DEFAULT);
	assert_int_equal(b.ctl->gate[2], KRON_GATE(KRON_GATE_TAKE, 2));
	board_write32(&b, KRON_BOARD_RESET, 0);
	assert_int_equal(b.ctl->gate[2], KRON_GATE_CLOSED);
	drop_board(&b);
}

static void gates_of_constant_time(void **state)
{
	struct board b = make_board();

	(void)state;
	start_sampling(&b);
	board_write32(&b, CHIP(KRON_WORD_FILTER), 1);
	b.ctl->constant_time = 1;
	b.ctl->bus = KRON_BUS_LANE;
	board_repair_gates(&b);
	assert_int_equal(b.ctl->gate[0], KRON_GATE(KRON_GATE_TAKE, 0));
	assert_int_equal(b.ctl->gate[9], KRON_GATE(KRON_GATE_DROP, 9));
	b.ctl->bus = KRON_BUS_EXACT;
	board_repair_gates(&b);
	assert_int_equal(b.ctl->gate[9], KRON_GATE(KRON_GATE_TAKE, 9));
	drop_board(&b);
}

/* A writer of the Filter Register was killed before it came to the gates. */
static void the_next_cycle_repairs_gates(void **state)
{
	struct board b = make_board();

	(void)state;
	start_sampling(&b);
	b.ctl->filter = 0x1234;
	b.ctl->gate[3] = KRON_GATE_CLOSED;
	board_read32(&b, CHIP(KRON_WORD_CSR));
	assert_int_equal(b.ctl->filter, 0xffff);
	assert_int_equal(b.ctl->gate[3], KRON_GATE(KRON_GATE_TAKE, 3));
	drop_board(&b);
}

/* ---- slots ---- */

static unsigned owned_slots(const struct board *b)
{
	unsigned slot, n = 0;

	for (slot = 0; slot < ACCESS_SLOTS; slot++)
		n += access_slot(b, slot)->owner >> 63;
	return n;
}

/* As if cycles of this thread had been cut off after their claim. */
static void own_all_slots(const struct board *b, uint64_t word)
{
	unsigned slot;

	for (slot = 0; slot < ACCESS_SLOTS; slot++)
		if (slot != access_slot_number(b->model->active))
			access_slot(b, slot)->owner = word;
}

static void no_slot_stays_owned(void **state)
{
	struct board b = make_board();
	unsigned i;

	(void)state;
	for (i = 0; i < 1000; i++)
		board_tick(&b, 1);
	assert_int_equal(owned_slots(&b), 0);
	drop_board(&b);
}

static void *tell_tid(void *tid)
{
	*(uint32_t *)tid = (uint32_t)syscall(SYS_gettid);
	return NULL;
}

static void slots_of_dead_threads_come_back(void **state)
{
	struct board b = make_board();
	pthread_t thread;
	uint32_t tid = 0;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, tell_tid, &tid), 0);
	pthread_join(thread, NULL);
	while (syscall(SYS_tgkill, getpid(), tid, 0) == 0)
		sched_yield(); /* the join may be a little earlier than the end */
	own_all_slots(&b, ACCESS_OWNED | tid);
	board_tick(&b, 1);
	assert_int_equal(owned_slots(&b), 0);
	drop_board(&b);
}

static void slots_of_zombies_come_back(void **state)
{
	struct board b = make_board();
	siginfo_t info;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	own_all_slots(&b, ACCESS_OWNED | (uint32_t)pid);
	board_tick(&b, 1);
	assert_int_equal(owned_slots(&b), 0);
	waitpid(pid, NULL, 0);
	drop_board(&b);
}

static void slots_of_living_threads_stay(void **state)
{
	struct board b = make_board();
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	own_all_slots(&b, ACCESS_OWNED | (uint32_t)pid);
	access_slot(&b, 10)->owner = ACCESS_OWNED | KRON_SOURCE_TID_MASK; /* above pid_max */
	board_tick(&b, 1);
	assert_int_equal(access_slot_number(b.model->active), 10);
	assert_int_equal(owned_slots(&b), ACCESS_SLOTS - 2);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	drop_board(&b);
}

/* Owner words name marks; of two the one stands, of the other there is only the place. */
static void slots_of_left_frames_come_back(void **state)
{
	static struct access_mark marks[2];
	struct board b = make_board();
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	uint64_t word[2];
	unsigned i, alive = 5;

	(void)state;
	for (i = 0; i < 2; i++)
		word[i] = ACCESS_OWNED | tid |
			  (uint64_t)(uintptr_t)&marks[i] >> 6 << ACCESS_OWNER_MARK_SHIFT;
	own_all_slots(&b, word[0]);
	access_slot(&b, alive)->owner = word[1];
	marks[1].value = ACCESS_MARK(alive, tid);
	board_tick(&b, 1);
	assert_int_equal(owned_slots(&b), 1);
	assert_int_equal(access_slot(&b, alive)->owner, word[1]);
	drop_board(&b);
}

/* Threads of another pid namespace own without a name: nobody can tell whether they live. */
static void slots_without_a_name_stay(void **state)
{
	struct board b = make_board();
	struct model_cycle c = {.offset = CHIP(KRON_WORD_CSR), .bytes = 4};

	(void)state;
	own_all_slots(&b, ACCESS_OWNED);
	assert_int_equal(board_cycle(&b, &c), -5); /* EIO, after seconds */
	assert_true(c.no_answer);
	assert_int_equal(owned_slots(&b), ACCESS_SLOTS - 1);
	/* One is enough. */
	access_slot(&b, access_slot_number(b.model->active) ? 0 : 1)->owner = 0;
	assert_int_equal(board_cycle(&b, &c), 0);
	drop_board(&b);
}

/* ---- segments that somebody damaged ---- */

static void another_layout_is_refused(void **state)
{
	struct board b = make_board();
	struct model *d = b.model;

	(void)state;
	d->version++;
	assert_false(board_is_sane(&b));
	d->version--;
	d->stride += 64;
	assert_false(board_is_sane(&b));
	d->stride -= 64;
	d->clock = 2;
	assert_false(board_is_sane(&b));
	d->clock = ACCESS_CLOCK_VIRTUAL;
	assert_true(board_is_sane(&b));
	d->active = ACCESS_SLOTS | 1u << ACCESS_SLOT_BITS;
	assert_false(board_is_sane(&b));
	assert_int_equal(board_read32(&b, CHIP(KRON_WORD_CSR)), 0xffffffff);
	drop_board(&b);
}

static void an_empty_segment_is_refused(void **state)
{
	struct board b = make_segment();

	(void)state;
	assert_false(board_is_sane(&b));
	drop_board(&b);
}

/* Pages go into the SRAM and come back while others do the same, and nothing is counted twice or lost. */
static void virtual_counters_of_several_processes(void **state)
{
	enum { CHILDREN = 3, ROUNDS = 4000, PAGES = 5 };
	static uint32_t out[KRON_VC_COUNTERS];
	struct model_geometry g = geometry;
	struct board b = make_segment();
	pid_t child[CHILDREN];
	uint64_t sum = 0;
	int status;

	(void)state;
	assert_false(board_read_counters(&b, out));
	g.vc = 1;
	board_init(&b, &g, ACCESS_CLOCK_VIRTUAL, 0);
	board_write32(&b, KRON_BOARD_CONFIG, KRON_CONFIG_DEFAULT);
	board_write64(&b, KRON_VC_BYTE(KRON_WORD_MODE), 0x2222222222222222ull);
	board_write64(&b, KRON_VC_BYTE(KRON_WORD_ENABLE), 0x2222222222222222ull);
	for (unsigned i = 0; i < CHILDREN; i++) {
		child[i] = fork();
		assert_true(child[i] >= 0);
		if (child[i])
			continue;
		for (unsigned k = 0; k < ROUNDS; k++)
			board_write32(&b, KRON_VC_BYTE(KRON_VC_COUNT), 16 * (k * 7 % PAGES) + i);
		_exit(0);
	}
	for (unsigned i = 0; i < CHILDREN; i++) {
		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
		assert_int_equal(status, 0);
	}
	assert_true(board_read_counters(&b, out));
	for (unsigned n = 0; n < KRON_VC_COUNTERS; n++)
		sum += out[n];
	assert_int_equal(sum, CHILDREN * ROUNDS);
	for (unsigned page = 0; page < PAGES; page++)
		for (unsigned i = 0; i < CHILDREN; i++)
			assert_int_equal(out[16 * page + i], ROUNDS / PAGES);
	drop_board(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_board_is_reset),
		cmocka_unit_test(registers_keep_what_is_written),
		cmocka_unit_test(each_cycle_is_a_generation),
		cmocka_unit_test(a_trigger_lands_in_memory),
		cmocka_unit_test(the_clock_is_in_the_samples),
		cmocka_unit_test(the_same_calls_give_the_same_state),
		cmocka_unit_test(boards_are_independent),
		cmocka_unit_test(another_board_at_the_same_address),
		cmocka_unit_test(what_another_process_did_counts),
		cmocka_unit_test(a_snapshot_changes_nothing),
		cmocka_unit_test(memory_keeps_what_is_written),
		cmocka_unit_test(the_last_write_of_a_word_counts),
		cmocka_unit_test(one_state_writes_a_word_once),
		cmocka_unit_test(a_late_writer_changes_nothing),
		cmocka_unit_test(a_wait_moves_the_virtual_clock),
		cmocka_unit_test(the_real_clock_runs_at_40_mhz),
		cmocka_unit_test(a_rate_that_is_known_later),
		cmocka_unit_test(a_tsc_that_begins_anew),
		cmocka_unit_test(gates_follow_the_registers),
		cmocka_unit_test(gates_of_constant_time),
		cmocka_unit_test(the_next_cycle_repairs_gates),
		cmocka_unit_test(no_slot_stays_owned),
		cmocka_unit_test(slots_of_dead_threads_come_back),
		cmocka_unit_test(slots_of_zombies_come_back),
		cmocka_unit_test(slots_of_living_threads_stay),
		cmocka_unit_test(slots_of_left_frames_come_back),
		cmocka_unit_test(slots_without_a_name_stay),
		cmocka_unit_test(another_layout_is_refused),
		cmocka_unit_test(an_empty_segment_is_refused),
		cmocka_unit_test(virtual_counters_of_several_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * board.c - what a bus cycle of an emulated board costs by call.
 *
 *     bench/board [--json] [--rounds N]
 *
 *   trigger   board_trigger() without pause: most of them find the chip's FIFO full
 *   taken     the same two microseconds apart: the sample goes into the FIFO, and what was there
 *             goes into local memory; with the two rdtsc that measure it taken off
 *   read      a read of the CSR
 *   memory    a read of a word of local memory
 *   two       `trigger` by two processes at once: processor time of each
 *   eight     by eight
 *
 * Time is processor time of the process, median of the rounds; two processes on one CPU do not
 * disturb each other but by being switched in the middle of a cycle.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/median.h"
#include "board/model/access.h"

#define CALLS 200000u
#define SPACED 20000u
#define SPACE_NS 2000.0
#define ROUNDS_DEFAULT 15u
#define ROUNDS_MAX 1001u
#define MANY 8u

static struct board board;
static double tsc_per_ns;
static unsigned rounds = ROUNDS_DEFAULT;

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void measure_tsc(void)
{
	struct timespec nap = {.tv_nsec = 50000000};
	double ns = now(CLOCK_MONOTONIC);
	uint64_t tsc = clock_tsc();

	nanosleep(&nap, NULL);
	tsc = clock_tsc() - tsc;
	tsc_per_ns = (double)tsc / (now(CLOCK_MONOTONIC) - ns);
}

static void make_board(void)
{
	const struct model_geometry geometry = MODEL_GEOMETRY_DEFAULT;
	uint8_t *at = mmap(NULL, KRON_WINDOW_SIZE, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	board.ctl = (struct kron_ctl *)(at + KRON_CTL_OFFSET);
	board.model = (struct model *)(at + KRON_MODEL_OFFSET);
	board.memory = at + KRON_MEMORY_OFFSET;
	/* page faults are not what we measure */
	memset(board.memory, 0, KRON_MEMORY_BYTES);
	memset(board.model, 0, KRON_MODEL_SIZE);
	board_init(&board, &geometry, ACCESS_CLOCK_REAL, (uint64_t)(tsc_per_ns * 1e9));
	board_remember_threads(NULL);
	board_write32(&board, KRON_BOARD_CONFIG, KRON_CONFIG_DEFAULT | KRON_CONFIG_EXT_CPU);
	board_write32(&board, KRON_CHIP_BYTE(KRON_WORD_FILTER), 0xffff);
	board_write32(&board, KRON_CHIP_BYTE(KRON_WORD_CSR), KRON_CSR_SAMPLING);
}

/* ---- what is measured ---- */

static double triggers(void)
{
	double begin = now(CLOCK_PROCESS_CPUTIME_ID);
	unsigned i;

	for (i = 0; i < CALLS; i++)
		board_trigger(&board, KRON_WORD_TRACE, 0, 1, i);
	return (now(CLOCK_PROCESS_CPUTIME_ID) - begin) / CALLS;
}

static double register_reads(void)
{
	double begin = now(CLOCK_PROCESS_CPUTIME_ID);
	unsigned i;

	for (i = 0; i < CALLS; i++)
		board_read32(&board, KRON_CHIP_BYTE(KRON_WORD_CSR));
	return (now(CLOCK_PROCESS_CPUTIME_ID) - begin) / CALLS;
}

static double memory_reads(void)
{
	double begin = now(CLOCK_PROCESS_CPUTIME_ID);
	unsigned i;

	for (i = 0; i < CALLS; i++)
		board_read32(&board, KRON_BOARD_MEMORY + 4 * (i & 1023));
	return (now(CLOCK_PROCESS_CPUTIME_ID) - begin) / CALLS;
}

static double spaced_triggers(void)
{
	static double cost[SPACED], empty[SPACED];
	uint64_t space = (uint64_t)(SPACE_NS * tsc_per_ns);
	unsigned i;

	for (i = 0; i < SPACED; i++) {
		uint64_t begin = clock_tsc(), end;

		while ((end = clock_tsc()) - begin < space)
			;
		begin = clock_tsc();
		board_trigger(&board, KRON_WORD_TRACE, 0, 1, i);
		end = clock_tsc();
		cost[i] = (double)(end - begin) / tsc_per_ns;
		begin = clock_tsc();
		end = clock_tsc();
		empty[i] = (double)(end - begin) / tsc_per_ns;
	}
	return median_of(cost, SPACED) - median_of(empty, SPACED);
}

struct team {
	unsigned ready, done;
	double ns[MANY];
};

/* Triggers for as long as all others do; processor time of each of them. */
static void be_one_of(struct team *t, unsigned me, unsigned n)
{
	double begin;
	uint64_t calls = 0;

	__atomic_add_fetch(&t->ready, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&t->ready, __ATOMIC_ACQUIRE) < n)
		sched_yield();
	begin = now(CLOCK_PROCESS_CPUTIME_ID);
	for (; __atomic_load_n(&t->done, __ATOMIC_RELAXED) < n; calls++) {
		board_trigger(&board, KRON_WORD_TRACE, 0, 1, calls);
		if (calls == CALLS)
			__atomic_add_fetch(&t->done, 1, __ATOMIC_RELAXED);
	}
	t->ns[me] = (now(CLOCK_PROCESS_CPUTIME_ID) - begin) / (double)calls;
}

/* n processes at once, on as many CPUs as there are; their median. */
static double at_once(unsigned n)
{
	struct team *t =
		mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double result;
	unsigned i;

	for (i = 0; i < n; i++) {
		if (fork() == 0) {
			be_one_of(t, i, n);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	result = median_of(t->ns, n);
	munmap(t, sizeof(*t));
	return result;
}

static double two_at_once(void)
{
	return at_once(2);
}

static double many_at_once(void)
{
	return at_once(MANY);
}

static const struct {
	const char *name, *what;
	double (*measure)(void);
} cases[] = {
	{"trigger_ns", "trigger, FIFO mostly full", triggers},
	{"taken_ns", "trigger, sample taken", spaced_triggers},
	{"read_ns", "register read", register_reads},
	{"memory_ns", "local memory read", memory_reads},
	{"two_ns", "trigger, two processes at once", two_at_once},
	{"eight_ns", "trigger, eight processes at once", many_at_once},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

int main(int argc, char **argv)
{
	static double ns[CASES][ROUNDS_MAX];
	bool json = false;
	unsigned i, round;

	for (i = 1; i < (unsigned)argc; i++) {
		if (!strcmp(argv[i], "--json"))
			json = true;
		else if (!strcmp(argv[i], "--rounds") && i + 1 < (unsigned)argc)
			rounds = (unsigned)atoi(argv[++i]);
		else
			return 2;
	}
	if (!rounds || rounds > ROUNDS_MAX)
		return 2;
	measure_tsc();
	make_board();
	for (round = 0; round < rounds; round++)
		for (i = 0; i < CASES; i++)
			ns[i][round] = cases[i].measure();
	for (i = 0; i < CASES; i++) {
		double m = median_of(ns[i], rounds);

		if (json)
			printf("%s\"%s\": %.2f", i ? ", " : "{", cases[i].name, m);
		else
			printf("%-36s %8.1f ns\n", cases[i].what, m);
	}
	if (json)
		puts("}");
	return 0;
}

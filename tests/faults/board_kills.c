/* SPDX-License-Identifier: MIT */
/*
 * board_kills - many processes on one board; some are killed, some are stopped, again and again.
 *
 *   board_kills [-t SECONDS] [-n PROCESSES] [-s SEED] [-T]
 *
 * -t: for so long (hours); without, a fixed number of kills.  -T: threads that nobody kills, for a
 * race detector, which knows no processes:
 *   gcc -fsanitize=thread -g -O1 -I. -Iinclude -pthread -o board_kills tests/faults/board_*s.c \
 *       tests/faults/board_stream.c board/[!t]*.c && ./board_kills -T -t 10
 *
 * Each process numbers its triggers and says what became of them; the parent reads local memory
 * as it fills.  So each sample has to be whole, somebody's, new, and not earlier than the one
 * before it; none may be missing; and nobody may stall because another is gone.
 */
#define _GNU_SOURCE
#include "board_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKERS_MAX 32
#define ROUNDS 400          /* in CI; per mode */
#define ROUNDS_A_BOARD 4000 /* then the accounts are settled and new ones opened */
#define AHEAD 600000        /* triggers before the reader: 3M of 4M words */
#define STALL_SECONDS 60

struct shared {
	uint64_t triggers;  /* by all */
	uint64_t read_upto; /* triggers that the reader has seen */
	uint64_t increments_begun, increments;
	uint32_t stop;
	uint32_t bad_register; /* what a worker read, if it made no sense */
};

struct worker {
	pid_t pid;
	uint32_t source;
	uint64_t seen; /* acknowledged at the last look */
	bool stopped;
	pthread_t thread;
};

static struct stream stream;
static struct shared *shared;
static struct worker workers[WORKERS_MAX];
static unsigned nworkers = 4;
static pid_t zombies[8];
static unsigned nzombies;
static uint64_t cuts;
static uint32_t next_source;
static uint64_t seed = 1;

static uint32_t roll(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 20) % below);
}

/* ---- a process that triggers ---- */

static void use_registers(const struct board *b, uint64_t i)
{
	uint32_t csr, word;

	__atomic_add_fetch(&shared->increments_begun, 1, __ATOMIC_RELAXED);
	board_write32(b, KRON_CHIP_BYTE(KRON_WORD_INCREMENT), 0);
	__atomic_add_fetch(&shared->increments, 1, __ATOMIC_RELAXED);
	csr = board_read32(b, KRON_CHIP_BYTE(KRON_WORD_CSR));
	if (!(csr & KRON_CSR_SAMPLING) || (csr & KRON_CSR_STOP))
		__atomic_store_n(&shared->bad_register, csr | 1u << 31, __ATOMIC_RELAXED);
	word = board_read32(b, KRON_BOARD_CONFIG) & KRON_CONFIG_WRITABLE;
	if (word != (KRON_CONFIG_DEFAULT | KRON_CONFIG_EXT_CPU))
		__atomic_store_n(&shared->bad_register, word | 1u << 30, __ATOMIC_RELAXED);
	/* The gates' way: a level off and on again, by many at once. */
	if (i % 256 == 0)
		board_write32(b, KRON_CHIP_BYTE(KRON_WORD_FILTER), 0xffff);
	board_read32(b, KRON_BOARD_MEMORY + 4 * (i % 1000));
}

static void work(uint32_t source)
{
	uint64_t i;

	for (i = 0; !__atomic_load_n(&shared->stop, __ATOMIC_RELAXED); i++) {
		uint64_t n = __atomic_add_fetch(&shared->triggers, 1, __ATOMIC_RELAXED);

		while ((int64_t)(n - __atomic_load_n(&shared->read_upto, __ATOMIC_RELAXED)) > AHEAD)
			sched_yield();
		stream_trigger(&stream.board, stream.sources, source);
		if (i % 16 == 0)
			use_registers(&stream.board, i);
	}
}

static void *work_thread(void *worker)
{
	work(((struct worker *)worker)->source);
	return NULL;
}

static bool start(struct worker *w, bool threads)
{
	w->source = next_source++;
	w->seen = 0;
	w->stopped = false;
	if (threads)
		return pthread_create(&w->thread, NULL, work_thread, w) == 0;
	w->pid = fork();
	if (w->pid == 0) {
		work(w->source);
		_exit(0);
	}
	return w->pid > 0;
}

/* ---- what happens to it ---- */

static void reap(unsigned keep)
{
	while (nzombies > keep)
		waitpid(zombies[--nzombies], NULL, 0);
}

static bool kill_one(void)
{
	struct worker *w = &workers[roll(nworkers)];

	kill(w->pid, SIGKILL);
	cuts++;
	/* Some stay zombies for a while: dead, but kill() says that they are there. */
	zombies[nzombies++] = w->pid;
	if (nzombies == sizeof(zombies) / sizeof(zombies[0]) || roll(4) == 0)
		reap(0);
	return start(w, false) || stream_fail(&stream, "fork: %s", strerror(errno));
}

static void stop_or_go_on(void)
{
	struct worker *w = &workers[roll(nworkers)];

	kill(w->pid, w->stopped ? SIGCONT : SIGSTOP);
	w->stopped = !w->stopped;
}

static bool read_on(void)
{
	uint64_t triggers = __atomic_load_n(&shared->triggers, __ATOMIC_RELAXED);
	uint32_t bad;

	if (!stream_read(&stream))
		return false;
	__atomic_store_n(&shared->read_upto, triggers, __ATOMIC_RELAXED);
	bad = __atomic_load_n(&shared->bad_register, __ATOMIC_RELAXED);
	return !bad || stream_fail(&stream, "a worker read a register as %x", bad);
}

/* Everybody who may run has got on since the last time. */
static bool all_get_on(void)
{
	time_t begin = time(NULL);
	unsigned i;

	for (i = 0; i < nworkers; i++) {
		struct worker *w = &workers[i];
		struct source *s = &stream.sources[w->source];
		uint64_t now;

		while (!w->stopped) {
			now = __atomic_load_n(&s->acknowledged, __ATOMIC_ACQUIRE);
			if (now > w->seen)
				break;
			if (time(NULL) - begin > STALL_SECONDS)
				return stream_fail(&stream, "source %u stalls at %" PRIu64,
						   w->source, now);
			usleep(500);
			if (!read_on())
				return false;
		}
		w->seen = __atomic_load_n(&s->acknowledged, __ATOMIC_ACQUIRE);
	}
	return true;
}

static void end_workers(bool threads)
{
	unsigned i;

	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < nworkers; i++) {
		if (threads) {
			pthread_join(workers[i].thread, NULL);
			continue;
		}
		if (stream.wrong[0])
			kill(workers[i].pid, SIGKILL);
		kill(workers[i].pid, SIGCONT);
		waitpid(workers[i].pid, NULL, 0);
	}
	reap(0);
}

/* ---- one board's life ---- */

static const struct mode {
	uint32_t csr;
	bool few_slots;
	const char *what;
} modes[] = {{KRON_CSR_DISCARD, false, "discard: every trigger accounted for"},
	     {KRON_CSR_WAIT, false, "wait: no sample lost"},
	     {KRON_CSR_DISCARD, true, "slots of killed processes are needed at once"}};
#define MODES (sizeof(modes) / sizeof(modes[0]))

static bool registers_held(void)
{
	uint32_t n = board_read32(&stream.board, KRON_CHIP_BYTE(KRON_WORD_COUNTER));
	const struct kron_ctl *ctl = stream.board.ctl;
	unsigned level;

	if (n < shared->increments || n > shared->increments_begun)
		return stream_fail(&stream, "counter 0 is %u; %" PRIu64 " to %" PRIu64, n,
				   shared->increments, shared->increments_begun);
	for (level = 0; level < KRON_LEVELS; level++)
		if (ctl->gate[level] != KRON_GATE(KRON_GATE_TAKE, level))
			return stream_fail(&stream, "gate %u is %x", level, ctl->gate[level]);
	return true;
}

static bool run_rounds(unsigned rounds, time_t end, bool threads)
{
	unsigned round;

	for (round = 0; round < rounds; round++) {
		usleep(roll(1500));
		if (!threads && !kill_one())
			return false;
		if (!threads && roll(3) == 0)
			stop_or_go_on();
		if (!read_on() || (round % 16 == 15 && !all_get_on()))
			return false;
		if (end && time(NULL) >= end)
			break;
	}
	return true;
}

static bool run_board(const struct mode *mode, unsigned rounds, time_t end, bool threads)
{
	const struct board *b = &stream.board;
	bool ok = true;
	unsigned i;

	next_source = 1;
	cuts = 0;
	memset(shared, 0, sizeof(*shared));
	stream_start(&stream, mode->csr);
	/* One for each worker and one for us; those that are killed hold theirs until then. */
	stream_leave_slots(&stream, mode->few_slots ? nworkers + 1 : 0);
	board_write64(b, KRON_CHIP_BYTE(KRON_WORD_MODE), KRON_MODE_SOFTWARE);
	board_write64(b, KRON_CHIP_BYTE(KRON_WORD_ENABLE), KRON_ENABLE_ON);
	for (i = 0; i < nworkers; i++)
		ok = ok && start(&workers[i], threads);
	ok = ok && run_rounds(rounds, end, threads);
	/* So long as they go on they may be waiting for us. */
	__atomic_store_n(&shared->read_upto, ~0ull >> 1, __ATOMIC_RELAXED);
	end_workers(threads);
	ok = ok && stream_drain(&stream) && stream_settle(&stream, cuts) && registers_held();
	if (mode->csr & KRON_CSR_WAIT && ok && board_read32(b, KRON_CHIP_BYTE(KRON_WORD_OVERRUN)))
		ok = stream_fail(&stream, "samples were lost in wait mode");
	return ok;
}

static void report(unsigned number, const char *what, bool ok)
{
	printf("%sok %u - %s\n", ok ? "" : "not ", number, what);
	printf("# %" PRIu64 " triggers, %" PRIu64 " samples, %" PRIu64 " kills\n", shared->triggers,
	       stream.samples, cuts);
	if (!ok)
		printf("# seed %" PRIu64 ": %s\n", seed, stream.wrong);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	bool threads = false, all = true;
	time_t end = 0;
	unsigned i;
	int c;

	while ((c = getopt(argc, argv, "t:n:s:T")) != -1) {
		if (c == 't')
			end = time(NULL) + atol(optarg);
		else if (c == 'n')
			nworkers = (unsigned)atoi(optarg);
		else if (c == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (c == 'T')
			threads = true;
		else
			return 2;
	}
	if (!nworkers || nworkers > WORKERS_MAX || !seed)
		return 2;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED ||
	    !stream_open(&stream, ACCESS_CLOCK_REAL, ROUNDS_A_BOARD + WORKERS_MAX + 1)) {
		printf("Bail out! %s\n", stream.wrong);
		return 99;
	}
	for (i = 0; all && (i < MODES || time(NULL) < end); i++) {
		time_t until = end && i < MODES
				       ? time(NULL) + (end - time(NULL)) / (time_t)(MODES - i)
				       : end;
		bool ok =
			run_board(&modes[i % MODES], end ? ROUNDS_A_BOARD : ROUNDS, until, threads);

		report(i + 1, modes[i % MODES].what, ok);
		all = all && ok;
	}
	printf("1..%u\n", i);
	stream_close(&stream);
	return !all;
}

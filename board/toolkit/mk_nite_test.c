/* SPDX-License-Identifier: MIT */
/*
 * mk_nite_test.c - continuous test of the board until CTRL-C (NISTIR 5993, 3.4): memory,
 * sampling, registers, counters, clock against what they should be.  Several at once share a
 * board as nite.h says; with -x one has it for itself and tests the rest, too.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "board/toolkit/nite.h"

#define SECONDS_MAX 1e8 /* three years */

static const char *const kinds[NITE_KINDS][2] = {
	[NITE_MEMORY] = {"memory", "words"},       [NITE_SAMPLES] = {"sampling", "samples"},
	[NITE_REGISTERS] = {"registers", "tests"}, [NITE_COUNTERS] = {"counters", "tests"},
	[NITE_CLOCK] = {"clock", "readings"},      [NITE_ALONE] = {"whole board", "tests"},
};

static volatile sig_atomic_t stopped;

static const char *board, *time_text;
static uint64_t seed;
static bool alone;
static const struct opt options[] = {
	TESTER_BOARD_OPTION(board),
	{'t', "time", OPT_STR, &time_text, "SECONDS", "End after this time.", 0, 0},
	{'s', "seed", OPT_UINT, &seed, "SEED",
	 "Use the random numbers of the run that printed SEED.", 0, 0},
	{'x', "exclusive", OPT_FLAG, &alone, NULL,
	 "Have the board alone, and test what cannot be shared, too.", 0, 0},
	OPT_END,
};
static const struct opt_command command = {
	.name = "mk_nite_test",
	.alone = true,
	.summary = "Test a MultiKron board until CTRL-C.",
	.opts = options,
};

static void stop(int sig)
{
	(void)sig;
	stopped = 1;
}

static void step(struct nite *n, enum nite_kind kind, void (*test)(struct nite *))
{
	uint64_t errors = n->t.errors;

	if (stopped)
		return;
	test(n);
	n->kind[kind].errors += n->t.errors - errors;
}

static void pass(struct nite *n)
{
	step(n, NITE_REGISTERS, nite_registers);
	step(n, NITE_MEMORY, nite_memory);
	for (int i = 0; i < 4; i++)
		step(n, NITE_SAMPLES, nite_samples);
	step(n, NITE_COUNTERS, nite_counters);
	step(n, NITE_CLOCK, nite_clock);
	if (alone)
		step(n, NITE_ALONE, nite_alone);
	n->passes++;
}

/* A board whose clock stands could only wait for ever. */
static bool is_clock_running(struct nite *n)
{
	uint64_t before = tester_timestamp(&n->t);
	struct timespec pause = {.tv_nsec = 10000000};

	nanosleep(&pause, NULL);
	if (tester_timestamp(&n->t) != before)
		return true;
	tool_note(&command, "board %s: its clock does not run", n->t.bus.name);
	return false;
}

static int begin(struct nite *n)
{
	bool first = true;
	int status = alone ? tester_take_board(&n->t) : tester_take_seat(&n->t, &first);

	if (status)
		return status;
	if (first)
		nite_init_board(n);
	else
		nite_park_counters(n);
	if (!is_clock_running(n))
		return TESTER_CANNOT;
	if (!alone)
		tester_seated(&n->t);
	test_clock_read(&n->t, &n->start);
	return TESTER_OK;
}

static int report(struct nite *n, double seconds)
{
	uint64_t verified = 0;

	for (int k = 0; k < NITE_KINDS; k++) {
		if (!n->kind[k].done)
			continue;
		printf("    %-12s %12" PRIu64 " %s", kinds[k][0], n->kind[k].done, kinds[k][1]);
		if (n->kind[k].skipped)
			printf(", %" PRIu64 " not checked", n->kind[k].skipped);
		printf(", %" PRIu64 " error%s\n", n->kind[k].errors,
		       n->kind[k].errors == 1 ? "" : "s");
	}
	verified = n->kind[NITE_SAMPLES].done - n->kind[NITE_SAMPLES].skipped;
	if (n->passes >= 20 && !verified)
		tester_error(&n->t, "no sample could be checked in %" PRIu64 " passes", n->passes);
	return tester_summary(&n->t, "%.1f s, %" PRIu64 " passes", seconds, n->passes);
}

static int run(double seconds)
{
	struct nite n = {.random = seed};
	uint64_t start = tester_now(), now;
	int status = tester_open(&n.t, &command, board);

	if (status)
		return status;
	if (getrandom(&n.own, sizeof(n.own), 0) != sizeof(n.own))
		n.own = (uint32_t)start; /* ours alone all the same: see below */
	status = begin(&n);
	if (!status) {
		n.own = n.own << 3 | n.t.seat; /* two at once never have the same */
		n.own |= 1u << 31;             /* nor is it a counter near zero */
		printf("%s: board %s, seat %u, seed %" PRIu64 "\n", command.name, n.t.bus.name,
		       n.t.seat, seed);
		fflush(stdout);
		do {
			pass(&n);
			now = tester_now();
		} while (!stopped && (seconds < 0 || (double)(now - start) < seconds * 1e9));
		status = report(&n, (double)(now - start) / 1e9);
	}
	tester_close(&n.t);
	return status;
}

int main(int argc, char **argv)
{
	struct sigaction act = {.sa_handler = stop};
	double seconds = -1;
	int status;

	if (!tool_parse(&command, argc, argv, &status))
		return status;
	if (time_text && !tester_seconds(time_text, SECONDS_MAX, &seconds))
		return tester_usage(&command, "%s is not a time in seconds", time_text);
	if (!seed)
		seed = tester_now() % 1000000000 + 1;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	return run(seconds);
}

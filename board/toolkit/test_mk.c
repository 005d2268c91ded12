/* SPDX-License-Identifier: MIT */
/*
 * test_mk.c - tests the basic data flow to and from the MultiKron chip (NISTIR 5993, 3.4): a
 * Source Address Register, a Resource sample, 2048 words of memory, the rate of the Timestamp.
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "board/toolkit/chip_test.h"
#include "board/toolkit/memory_test.h"

#define WORDS 2048u
#define WAIT_MAX 400.0 /* the low 32 bits last for 429 s */

static const char *board, *wait_text = "10";
static const struct opt options[] = {
	TESTER_BOARD_OPTION(board),
	{'w', "wait", OPT_STR, &wait_text, "SECONDS",
	 "Time between the two readings of the Timestamp, 400 at most. Default 10.", 0, 0},
	OPT_END,
};
static const struct opt_command command = {
	.name = "test_mk",
	.alone = true,
	.summary = "Test the data flow to and from a MultiKron board's chip.",
	.opts = options,
};

static const char *verdict(const struct tester *t, uint64_t errors_before)
{
	return t->errors == errors_before ? "ok" : "ERRORS";
}

static void test_registers(struct tester *t)
{
	uint64_t errors = t->errors;

	test_source_register(t, 0);
	printf("Source Address Register 0, write and read: %s\n", verdict(t, errors));
}

static void test_resource_sample(struct tester *t)
{
	struct tester_expected want = {
		.resource = true,
		.source = 0x00c0ffee,
		.data = 0x0123456789abcdefull,
	};
	uint64_t errors = t->errors;
	struct tester_sample s;

	chip_write32(t, KRON_WORD_SOURCE, want.source);
	test_set_counters(t);
	if (tester_take_sample(t, 0, &want, &s))
		test_check_counters(t, &s);
	printf("Resource sample: %s\n", verdict(t, errors));
}

static void test_memory(struct tester *t)
{
	struct memory_fault f;
	uint64_t errors = t->errors;

	for (int pass = 0; pass < 2; pass++)
		for (uint32_t n = memory_test(&t->bus, 0, WORDS, pass ? UINT32_MAX : 0, false, &f,
					      1),
			      i = 0;
		     i < n; i++)
			tester_error(t,
				     "memory from word %06" PRIx32 " on: wrote %08" PRIx32
				     ", read %08" PRIx32,
				     f.word, f.wrote, f.read);
	printf("Local memory, words 0 to %u: %s\n", WORDS - 1, verdict(t, errors));
}

static void test_timestamp(struct tester *t, double seconds)
{
	struct timespec pause = {.tv_sec = (time_t)seconds};
	double hz = bus_timestamp_hz(bus_read32(&t->bus, KRON_BOARD_CONFIG)), rate;
	uint64_t errors = t->errors;
	struct test_clock from, to;

	pause.tv_nsec = (long)((seconds - (double)pause.tv_sec) * 1e9);
	test_clock_read(t, &from);
	printf("Timestamp, low 32 bits: %08" PRIx32 "\n", (uint32_t)from.timestamp);
	fflush(stdout);
	nanosleep(&pause, NULL);
	test_clock_read(t, &to);
	printf("          after %5.1f s: %08" PRIx32 "\n", seconds, (uint32_t)to.timestamp);
	rate = test_clock_rate(t, &from, &to, hz);
	printf("Timestamp clock: %.4f MHz, expected %.4f: %s\n", rate / 1e6, hz / 1e6,
	       verdict(t, errors));
}

static int run(double seconds)
{
	struct tester t;
	int status = tester_open(&t, &command, board);

	if (status)
		return status;
	status = tester_take_board(&t);
	if (!status) {
		tester_init_board(&t, 0);
		test_registers(&t);
		test_resource_sample(&t);
		test_memory(&t);
		test_timestamp(&t, seconds);
		bus_init_default(&t.bus, 0); /* leave it as the initialisation does */
		status = tester_summary(&t, "register, sample, memory, clock");
	}
	tester_close(&t);
	return status;
}

int main(int argc, char **argv)
{
	double seconds;
	int status;

	if (!tool_parse(&command, argc, argv, &status))
		return status;
	if (!tester_seconds(wait_text, WAIT_MAX, &seconds))
		return tester_usage(&command, "%s is not a time from 0 to %.0f s", wait_text,
				    WAIT_MAX);
	return run(seconds);
}

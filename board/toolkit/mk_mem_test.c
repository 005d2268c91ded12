/* SPDX-License-Identifier: MIT */
/*
 * mk_mem_test.c - tests the board's local memory (NISTIR 5993, 3.4).
 *
 *     mk_mem_test <start> <count>
 *
 * Writes a pattern into each word, reads it back, and does both again with every bit the other
 * way round.  Touches no register.
 */
#include <inttypes.h>
#include <stdio.h>

#include "board/toolkit/memory_test.h"
#include "board/toolkit/tester.h"

static const char *board;
static const struct opt options[] = {
	TESTER_BOARD_OPTION(board),
	OPT_END,
};
static const struct opt_command command = {
	.name = "mk_mem_test",
	.alone = true,
	.operands = "START COUNT",
	.summary = "Test COUNT words of a MultiKron board's local memory from word START on.",
	.opts = options,
	.min_operands = 2,
	.max_operands = 2,
};

static void test(struct tester *t, uint32_t start, uint32_t count, uint32_t flip)
{
	struct memory_fault faults[TESTER_SHOW];
	uint32_t n = memory_test(&t->bus, start, count, flip, false, faults, TESTER_SHOW);

	for (uint32_t i = 0; i < n; i++) {
		const struct memory_fault *f = &faults[i < TESTER_SHOW ? i : TESTER_SHOW - 1];

		tester_error(t, "word %06" PRIx32 ": wrote %08" PRIx32 ", read %08" PRIx32, f->word,
			     f->wrote, f->read);
	}
}

static int run(uint32_t start, uint32_t count)
{
	struct tester t;
	int status = tester_open(&t, &command, board);

	if (status)
		return status;
	status = tester_take_board(&t);
	if (!status) {
		test(&t, start, count, 0);
		test(&t, start, count, UINT32_MAX);
		status =
			tester_summary(&t, "%" PRIu32 " word%s from %06" PRIx32 " on, two patterns",
				       count, count == 1 ? "" : "s", start);
	}
	tester_close(&t);
	return status;
}

int main(int argc, char **argv)
{
	uint64_t start, count;
	int status, first = tool_parse(&command, argc, argv, &status);

	if (!first)
		return status;
	argv += first;
	if (tool_number(argv[0], &start) || start >= KRON_BOARD_MEMORY_WORDS)
		return tester_usage(&command, "%s is not a word of the local memory, 0 to %u",
				    argv[0], KRON_BOARD_MEMORY_WORDS - 1);
	if (tool_number(argv[1], &count) || !count || count > KRON_BOARD_MEMORY_WORDS - start)
		return tester_usage(&command,
				    "%s is not a number of words from %s on, 1 to %" PRIu64,
				    argv[1], argv[0], KRON_BOARD_MEMORY_WORDS - start);
	return run((uint32_t)start, (uint32_t)count);
}

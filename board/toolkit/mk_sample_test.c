/* SPDX-License-Identifier: MIT */
/*
 * mk_sample_test.c - tests trace and resource sampling (NISTIR 5993, 3.4), and shows how to use
 * the Source Address Registers and how to take samples: with CPU ID 0, then with CPU ID 1.
 */
#include <inttypes.h>
#include <stdio.h>

#include "board/toolkit/chip_test.h"

static const char *board;
static const struct opt options[] = {
	TESTER_BOARD_OPTION(board),
	OPT_END,
};
static const struct opt_command command = {
	.name = "mk_sample_test",
	.alone = true,
	.summary = "Take samples on a MultiKron board, with CPU ID 0 and 1, show and check them.",
	.opts = options,
};

/* The lines of the CPU ID choose the register whose contents go into the sample. */
static uint32_t source_of(unsigned cpu)
{
	return 0x1000u + 0x111u * cpu;
}

static void take(struct tester *t, unsigned cpu, bool resource)
{
	struct tester_expected want = {
		.cpu = cpu,
		.resource = resource,
		.source = source_of(cpu),
		.data = (resource ? 0x2000000020u : 0x1000000010u) + cpu,
	};
	struct tester_sample s;

	printf("%s sample, CPU ID %u\n", resource ? "Resource" : "Trace", cpu);
	test_select_cpu(t, cpu);
	tester_take_sample(t, 0, &want, &s);
	if (s.words) {
		test_print_bytes(&s);
		test_print_sample(&s);
		if (resource)
			test_check_counters(t, &s);
	}
	printf("    memory address pointer %06" PRIx32 "\n", tester_pointer(t));
}

static int run(void)
{
	struct tester t;
	int status = tester_open(&t, &command, board);

	if (status)
		return status;
	status = tester_take_board(&t);
	if (!status) {
		tester_init_board(&t, 0);
		chip_write32(&t, KRON_WORD_SOURCE + 0, source_of(0));
		chip_write32(&t, KRON_WORD_SOURCE + 1, source_of(1));
		test_set_counters(&t);
		take(&t, 0, false);
		take(&t, 1, false);
		take(&t, 0, true);
		take(&t, 1, true);
		test_select_cpu(&t, 0); /* the samples stay, for mk_rdsample */
		status = tester_summary(&t, "two Trace samples, two Resource samples");
	}
	tester_close(&t);
	return status;
}

int main(int argc, char **argv)
{
	int status;

	return tool_parse(&command, argc, argv, &status) ? run() : status;
}

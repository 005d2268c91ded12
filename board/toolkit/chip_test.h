/* SPDX-License-Identifier: MIT */
/*
 * chip_test.h - the parts that test_mk, mk_sample_test and mk_nite_test are made of.
 *
 * Each expects a board of its own after tester_init_board(), but for those that say otherwise.
 */
#ifndef TOOLKIT_CHIP_TEST_H
#define TOOLKIT_CHIP_TEST_H

#include "board/toolkit/tester.h"

/* Patterns through one Source Address Register, which keeps its value.  Shared: if the register
 * is the caller's. */
void test_source_register(struct tester *t, unsigned i);
/* Values that a Resource sample must show: written into the sixteen counters, which stand. */
void test_set_counters(struct tester *t);
void test_check_counters(struct tester *t, const struct tester_sample *s);
/* CPU ID lines as the Configuration Register drives them. */
void test_select_cpu(struct tester *t, unsigned cpu);

/* ---- the Timestamp against the machine's clock ---- */
struct test_clock {
	uint64_t ns_before, ns_after; /* the timestamp was read between these */
	uint64_t timestamp;
};
void test_clock_read(struct tester *t, struct test_clock *c);
/*
 * Timestamp clocks a second must lie within half a percent of `hz`, and what the machine's clock
 * leaves open.  Returns the rate measured, 0 if the two are the same moment.
 */
double test_clock_rate(struct tester *t, const struct test_clock *from, const struct test_clock *to,
		       double hz);
/* The sample's bytes as the chip sends them, sixteen a line, in hexadecimal. */
void test_print_bytes(const struct tester_sample *s);
void test_print_sample(const struct tester_sample *s);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * report_pages.h - page reference counters: ranges and pages, hottest first, with the mappings that
 * they belong to; as JSON an array of pages.
 *
 * Counters as refcnt(5) has them: one for each page (and node), which counts reads and writes.  When it
 * comes to the most that it can hold, it is added to its mirror of 32 bits, and is 0 again.  The mirror
 * stays at its most.  So both follow from how many references there were, if all came from one node.
 */
#ifndef REPORT_PAGES_H
#define REPORT_PAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "trace/pages.h"
#include "trace/reader.h"

struct pages_options {
	bool json;
	bool sharing;   /* only pages that several threads write, with each thread's share */
	unsigned width; /* bits of a counter of refcnt(5)'s; 0: none are shown */
	uint64_t limit; /* pages, and ranges; 0: all in JSON, 20 in text */
};

/* Then it is known from which node a reference came. */
bool report_pages_one_node(void);

void report_pages(const struct trace *t, const struct trace_pages *p, const struct pages_options *o,
		  FILE *f);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * report_pages.h - page reference counters: ranges and pages, hottest first, with the mappings that
 * they belong to; as JSON an array of pages.
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
	uint64_t limit; /* pages, and ranges; 0: all in JSON, 20 in text */
};

void report_pages(const struct trace *t, const struct trace_pages *p, const struct pages_options *o,
		  FILE *f);

#endif

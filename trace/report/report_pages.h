/* SPDX-License-Identifier: MIT */
/*
 * report_pages.h - page reference counters: mappings, ranges and pages or lines, hottest first, with what lies
 * there; steps over time; nodes.  As JSON an array of pages, or of steps.
 *
 * Counters as refcnt(5) has them: one for each page and node, which counts reads and writes.  When it
 * comes to the most that it can hold, it is added to its mirror of 32 bits, and is 0 again.  The mirror
 * stays at its most.  So both follow from how many references there were from the node.
 */
#ifndef REPORT_PAGES_H
#define REPORT_PAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "trace/pages.h"
#include "trace/reader.h"

/*
 * The variables of a module that lie in [from, to), which are addresses less that of the module's first byte in
 * memory: at most max names, by address; returns how many there are.  The names are the callee's.
 */
#define REPORT_SYMBOLS 3u
struct report_symbols {
	size_t (*find)(void *ctx, const char *module, uint64_t from, uint64_t to,
		       const char *names[], size_t max);
	/* The function that holds the address, and how far from its first byte that is; NULL: not known. */
	const char *(*function)(void *ctx, const char *module, uint64_t at, uint64_t *offset);
	void *ctx;
};

struct pages_options {
	bool json;
	bool sharing;   /* only what several threads write, with each thread's share */
	bool steps;     /* working set over time */
	bool migrate;   /* what was moved */
	bool functions; /* and which of them touch it */
	bool sites;     /* who has allocated what lies there */
	unsigned width; /* bits of a counter of refcnt(5)'s; 0: none are shown */
	uint64_t limit; /* pages, and ranges; 0: all in JSON, 20 in text */
	struct report_symbols symbols;
};

/*
 * Events of a function that allocates for its caller: this and its name, or this and its name in hexadecimal; and _site,
 * with what lies at the top of the stack, or _end.
 */
#define REPORT_SITES_FOR "for_"
#define REPORT_SITES_FOR_HEX "hex_"
/* Does the trace have the events of the pack blocks? */
bool report_pages_has_sites(const struct trace *t);

void report_pages(const struct trace *t, const struct trace_pages *p, const struct pages_options *o,
		  FILE *f);

#endif

/* SPDX-License-Identifier: MIT */
/* rpt_print.h - what mk_rpt prints: tables for people, or JSON. */
#ifndef TOOLKIT_RPT_PRINT_H
#define TOOLKIT_RPT_PRINT_H

#include "board/toolkit/mkdat.h"
#include "board/toolkit/tally.h"

struct rpt {
	struct tally *tally;
	const struct intervals *intervals;
	const struct mkdat_count *count;
	uint64_t hz;
	uint64_t nbins;
	bool histogram, summary; /* of each group, of all groups together */
	bool chronological;      /* lists instead of histograms */
	bool verbose;            /* name what did not occur, and every incomplete one */
};

void rpt_print_text(const struct rpt *r, FILE *out);
void rpt_print_json(const struct rpt *r, FILE *out);

#endif

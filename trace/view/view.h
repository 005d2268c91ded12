/* SPDX-License-Identifier: MIT */
/*
 * view.h - kron view: a trace as one HTML file with pictures, for any browser.
 *
 *   trace ─► passes over the samples ─► sums, bins, the longest calls ─► JSON ─┐
 *   trace/view/{page.html,*.css,*.js}, put into the program when it is built ──┴─► one file
 *
 * The file's size is bounded, whatever the trace's: what does not fit is summed up, and the page
 * says so.  doc/internals/view.md has the whole story.
 */
#ifndef TRACE_VIEW_H
#define TRACE_VIEW_H

#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "trace/reader.h"

#define VIEW_SIZE (20u << 20)      /* default */
#define VIEW_SIZE_MIN (1u << 20)   /* the page itself takes some 100 KiB of it */
#define VIEW_SIZE_MAX (200u << 20) /* more is too much for a browser */
#define VIEW_DETAIL (20u << 20)    /* default, for short calls */
#define VIEW_DETAIL_MAX (400u << 20)

struct view_options {
	uint64_t from_ns, to_ns;     /* from the start of the trace; to_ns UINT64_MAX: to its end */
	const char *intervals;       /* an interval.info, or NULL */
	uint64_t size;               /* bytes the file may have, VIEW_SIZE_MIN to VIEW_SIZE_MAX */
	uint64_t detail;             /* and bytes for short calls, unpacked when they are shown */
	const char *where, *trigger; /* what the trace was filtered by, or NULL: the page says so */
	const char *dir;             /* as the user wrote it, for commands that the page proposes */
};
/* The interval.info cannot be read or is wrong; or nothing lies between from and to. */
int report_view(const struct trace *t, const struct view_options *o, FILE *out, struct err *err);

#endif

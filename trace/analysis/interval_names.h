/* SPDX-License-Identifier: MIT */
/*
 * interval_names.h - an interval.info whose events are those of a trace: numbers, or names of
 * its functions (parse, parse%return, libx.so.1:parse).
 */
#ifndef TRACE_INTERVAL_NAMES_H
#define TRACE_INTERVAL_NAMES_H

#include "trace/analysis/interval_info.h"
#include "trace/analysis/intervals.h"
#include "trace/reader.h"

/*
 * Reads the file, which the error's sentence names.  What *info holds has to be freed in either case;
 * it must be zero beforehand.
 */
int interval_info_open(struct interval_info *info, const struct trace *t, const char *file,
		       struct err *err);
/*
 * Before the first of the trace's samples, merged: they are in order, of the clocks of its hosts, and as sure as those are
 * known.  Each sample's clock is its lane's node.  To be freed after the intervals.
 */
int64_t *interval_clocks(struct intervals *m, const struct trace *t);
/* All of the trace's samples, merged. */
void intervals_of_trace(const struct interval_info *info, const struct trace *t, intervals_fn *fn,
			void *arg);
/* -EINVAL: it has no line of class 4. */
int interval_info_check_messages(const struct interval_info *info, const char *file,
				 struct err *err);

#endif

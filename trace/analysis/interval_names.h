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
/* Of the trace's samples: they are in order, by the clocks of its hosts, as sure as those are known. */
struct intervals *interval_matcher(const struct interval_info *info, const struct trace *t,
				   enum intervals_match match, intervals_fn *fn, void *arg);
/* An event of the trace, next in order; records of the runtime's are none. */
void interval_feed(struct intervals *m, const struct trace *t, const struct trace_event *e,
		   uint64_t mark);
/* All of the trace's samples, merged. */
/* Returns how many sendings and receptions of class 4 are in none. */
uint64_t intervals_of_trace(const struct interval_info *info, const struct trace *t,
			    intervals_fn *fn, void *arg);
/* -EINVAL: it has no line of class 4. */
int interval_info_check_messages(const struct interval_info *info, const char *file,
				 struct err *err);

#endif

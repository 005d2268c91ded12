/* SPDX-License-Identifier: MIT */
/*
 * interval_names.h - an interval.info whose events are those of a trace: numbers, or names of
 * its functions (parse, parse%return, libx.so.1:parse).
 */
#ifndef TRACE_INTERVAL_NAMES_H
#define TRACE_INTERVAL_NAMES_H

#include "trace/analysis/interval_info.h"
#include "trace/reader.h"

/*
 * Reads the file, which the error's sentence names.  What *info holds has to be freed in either case;
 * it must be zero beforehand.
 */
int interval_info_open(struct interval_info *info, const struct trace *t, const char *file,
		       struct err *err);

#endif

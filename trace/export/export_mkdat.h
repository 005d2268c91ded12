/* SPDX-License-Identifier: MIT */
/* export_mkdat.h - the toolkit's data file from a trace: export_mkdat() of export.h, in full. */
#ifndef TRACE_EXPORT_MKDAT_H
#define TRACE_EXPORT_MKDAT_H

#include <stdint.h>
#include <stdio.h>

#include "trace/reader.h"

/*
 * hz: ticks a second, 0: as a board's.  seen, if not NULL: a byte for each function number below
 * limit, set when it occurs.  How many samples were written; the caller asks ferror().
 */
uint64_t export_mkdat_at(const struct trace *t, FILE *out, uint64_t hz, uint8_t *seen,
			 uint32_t limit);

#endif

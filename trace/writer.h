/* SPDX-License-Identifier: MIT */
/* writer.h - appends to a trace directory.  Used by the collector and by `kron recover`. */
#ifndef TRACE_WRITER_H
#define TRACE_WRITER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "trace/format.h"

struct trace_writer;

/*
 * Make dir (the previous trace there becomes dir.old, an older dir.old goes) and lock it.
 * -EBUSY: another kron records there.  -EEXIST: something is there that is no trace directory.
 */
int trace_writer_create(struct trace_writer **out, const char *dir, struct err *err);
/* Open an existing, unfinished trace for appending (recover): cuts off torn tails first. */
int trace_writer_reopen(struct trace_writer **out, const char *dir, struct err *err);

int trace_writer_session(struct trace_writer *w, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Append one line to a text file of the directory; fields are escaped, joined by TAB. */
int trace_writer_line(struct trace_writer *w, const char *file, const char *const *fields,
		      size_t n);
/* Samples of one chunk.  On -ENOSPC or a short write the file is cut back to whole chunks. */
int trace_writer_chunk(struct trace_writer *w, const struct trace_chunk *head,
		       const void *samples);
int trace_writer_flush(struct trace_writer *w); /* text files' buffers to the kernel */
int trace_writer_close(struct trace_writer *w); /* flushes, unlocks, frees; first error */

#endif

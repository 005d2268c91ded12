/* SPDX-License-Identifier: MIT */
/*
 * writer.h - appends to a trace directory.  Used by the collector and by `kron recover`.
 *
 * Every call may come from any thread.  Text lines wait in memory until trace_writer_flush()
 * (or until some 64 KiB have gathered); session lines and chunks go to the kernel at once.
 * A line that could not be written (full disk) stays in memory and is tried again; a chunk
 * that could not be written is the caller's to keep.
 */
#ifndef TRACE_WRITER_H
#define TRACE_WRITER_H

#include <stdbool.h>
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

/* One call a table, in the format of trace/format.h.  Strings may be NULL: empty. */
struct trace_module_line {
	uint32_t id, event_base, nfunctions;
	uint64_t patched_entries, patched_exits, refused_entries, refused_exits;
	const char *build_id, *path;
};
int trace_writer_module(struct trace_writer *w, const struct trace_module_line *m);
int trace_writer_function(struct trace_writer *w, uint32_t n, uint32_t module_id, uint64_t vaddr,
			  uint64_t size, const char *name);
struct trace_event_line {
	uint32_t n, level, module_id;
	bool resource;
	const char *payload; /* what the value is called, NULL: there is none */
	uint64_t vaddr;
	const char *name;
};
int trace_writer_event(struct trace_writer *w, const struct trace_event_line *e);
int trace_writer_refusal(struct trace_writer *w, uint32_t module_id, bool exit, const char *key,
			 uint64_t count, const char *text); /* text may be NULL */
struct trace_proc_line {
	uint32_t uid, parent_uid;
	int32_t pid;
	bool by_fork;
	uint64_t start_tsc;
	const char *note, *exe, *cmdline;
};
int trace_writer_proc(struct trace_writer *w, const struct trace_proc_line *p);
int trace_writer_proc_end(struct trace_writer *w, uint32_t uid, uint64_t end_tsc, uint64_t lost,
			  uint64_t cut_off);
/* end_tsc: 0: it is not known */
int trace_writer_thread(struct trace_writer *w, uint32_t uid, uint32_t tid, const char *name,
			uint64_t end_tsc);
int trace_writer_untraced(struct trace_writer *w, int32_t pid, const char *reason);

/* Samples of one chunk.  On -ENOSPC or a short write the file is cut back to whole chunks. */
int trace_writer_chunk(struct trace_writer *w, const struct trace_chunk *head, const void *samples);
/*
 * Chunks in batches, of any thread: stage() copies one (false: no room, commit first), commit()
 * writes all that were staged, in one go, or none of them.  Its failure is not final: one by one
 * some of them may fit.
 */
bool trace_writer_stage(struct trace_writer *w, const struct trace_chunk *head,
			const void *samples);
int trace_writer_commit(struct trace_writer *w);
/* Context switches; a failure loses them, and nothing else. */
int trace_writer_switches(struct trace_writer *w, const struct trace_switch *v, size_t n);
int trace_writer_flush(struct trace_writer *w); /* text files' buffers to the kernel */
int trace_writer_close(struct trace_writer *w); /* flushes, unlocks, frees; first error */

#endif

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
#include "trace/rows.h"

struct trace_writer;
struct trace_names; /* trace/names.h */

/*
 * Make dir (the previous trace there becomes dir.old, an older dir.old goes by trace_writer_settle()) and lock it.
 * -EBUSY: another kron records there.  -EEXIST: something is there that is not a trace directory.
 */
int trace_writer_create(struct trace_writer **out, const char *dir, struct err *err);
/* Open an existing, unfinished trace for appending (recover): cuts off torn tails first. */
int trace_writer_reopen(struct trace_writer **out, const char *dir, struct err *err);

/*
 * Before samples are written gate(ctx) is asked, outside of the writer's lock: it may wait until there is room for
 * them, or say by -errno that there will be none.
 */
void trace_writer_set_gate(struct trace_writer *w, int (*gate)(void *ctx), void *ctx);

int trace_writer_session(struct trace_writer *w, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* One call a table: trace/rows.h. */
int trace_writer_module(struct trace_writer *w, const struct trace_module_line *m);
int trace_writer_function(struct trace_writer *w, const struct trace_function_line *f);
int trace_writer_jump(struct trace_writer *w, const struct trace_jump_line *j);
int trace_writer_event(struct trace_writer *w, const struct trace_event_line *e);
int trace_writer_refusal(struct trace_writer *w, const struct trace_refusal_line *r);
int trace_writer_import(struct trace_writer *w, const struct trace_import_line *i);
int trace_writer_proc(struct trace_writer *w, const struct trace_proc_line *p);
int trace_writer_proc_end(struct trace_writer *w, const struct trace_proc_end_line *e);
int trace_writer_thread(struct trace_writer *w, const struct trace_thread_line *t);
int trace_writer_sleep(struct trace_writer *w, const struct trace_sleep_line *s);
int trace_writer_change(struct trace_writer *w, const struct trace_change_line *c);
int trace_writer_untraced(struct trace_writer *w, const struct trace_untraced_line *u);
int trace_writer_column(struct trace_writer *w, const struct trace_column_line *c);
int trace_writer_interval(struct trace_writer *w, const struct trace_interval_line *i);
int trace_writer_monitored(struct trace_writer *w, const struct trace_monitored_line *m);

/*
 * What the events of these lines mean, for who looks at samples as they come: from the first call
 * of keep_names() on.  show_names() shows it if there is more than there was at *seen; meanwhile
 * nobody writes.
 */
void trace_writer_keep_names(struct trace_writer *w);
bool trace_writer_show_names(struct trace_writer *w, uint64_t *seen,
			     void (*show)(void *ctx, const struct trace_names *names), void *ctx);

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
/* There will be something to keep: what undo() would need goes. */
void trace_writer_settle(struct trace_writer *w);
int trace_writer_close(struct trace_writer *w); /* flushes, unlocks, frees; first error */
/* There was nothing to record: dir is what it was before create(), and dir.old if it was not settled. */
void trace_writer_undo(struct trace_writer *w);

#endif

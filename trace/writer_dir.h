/* SPDX-License-Identifier: MIT */
/* writer_dir.h - the directory that a trace is written to: made, emptied, locked. */
#ifndef TRACE_WRITER_DIR_H
#define TRACE_WRITER_DIR_H

#include <stdbool.h>

#include "base/err.h"

/* The text files, in the order of writer_files[]. */
enum writer_text {
	WRITER_SESSION,
	WRITER_MODULES,
	WRITER_FUNCTIONS,
	WRITER_REFUSALS,
	WRITER_TASKS,
	WRITER_EVENTS,
	WRITER_IMPORTS,
	WRITER_JUMPS,
	WRITER_CHANGES,
	WRITER_SLEEPS,
	WRITER_MONITOR,
	WRITER_TEXTS
};
extern const char *const writer_files[WRITER_TEXTS];

/*
 * An empty directory of this name.  A trace that is there becomes path.old, and a path.old waits as path.old.aside
 * until it is known whether the recording is one:
 *
 *   writer_prepare_dir ─┬─► writer_settle_dir ─► writer_keep_dir   it is: path.old.aside goes, at the latest at the end
 *                       └─► writer_restore_dir                     it is not: all is as it was
 *
 * -EEXIST and its like, with a sentence, for a directory that holds anything else; then all is as it was, too.
 */
struct writer_aside {
	char *path; /* NULL: kept or restored */
	bool has_old, has_older, was_there;
};
int writer_prepare_dir(const char *path, struct writer_aside *aside, struct err *err);
void writer_settle_dir(struct writer_aside *aside);
void writer_keep_dir(struct writer_aside *aside);
void writer_restore_dir(struct writer_aside *aside);
/* Is a trace there?  -ENOENT, -EINVAL, with a sentence. */
int writer_check_dir(const char *path, struct err *err);
/* Open and flock dir/lock.  A missing lock file is made: an old trace may lack it.  -EBUSY: another
 * kron writes there. */
int writer_lock_dir(const char *path, int *out, struct err *err);

/* A snapshot of a recording is a trace in its directory: 001, 002, ...  (collect/flight/). */
bool writer_is_snapshot(const char *name);
/* Make `to`, with what the text files of the trace `from` hold now.  The last line of each may be torn
 * (trace_writer_reopen() mends that).  -EEXIST: it is there, and stays as it is; else nothing is left of it. */
int writer_copy_tables(const char *from, const char *to, struct err *err);
/* A trace, or what was left of one that could not be written, goes. */
void writer_remove_dir(const char *path);

#endif

/* SPDX-License-Identifier: MIT */
/* writer_dir.h - the directory that a trace is written to: made, emptied, locked. */
#ifndef TRACE_WRITER_DIR_H
#define TRACE_WRITER_DIR_H

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
	WRITER_TEXTS
};
extern const char *const writer_files[WRITER_TEXTS];

/*
 * An empty directory of this name; a trace that is there is set aside or removed.  -EEXIST and its
 * like, with a sentence, for a directory that holds anything else.
 */
int writer_prepare_dir(const char *path, struct err *err);
/* Is a trace there?  -ENOENT, -EINVAL, with a sentence. */
int writer_check_dir(const char *path, struct err *err);
/* Open and flock dir/lock.  A missing lock file is made: an old trace may lack it.  -EBUSY: another
 * kron writes there. */
int writer_lock_dir(const char *path, int *out, struct err *err);

#endif

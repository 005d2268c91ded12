/* SPDX-License-Identifier: MIT */
/*
 * recover.h - finishes a trace whose collector was killed, or whose disk was full: what lies in
 * the segment still is added to the trace, and the segment goes.
 */
#ifndef COLLECT_RECOVER_H
#define COLLECT_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "trace/reader.h"

struct recovery {
	uint64_t in_file;   /* samples that the trace had */
	uint64_t recovered; /* samples that came from the segment */
	uint64_t chunks;
	uint64_t lost, cut_off;
	uint64_t processes;
	uint32_t living; /* traced processes that still run; their gates are closed now */
};

/* Is all of it in the trace?  Changes nothing. */
enum recover_state {
	RECOVER_COMPLETE,
	RECOVER_RECORDING, /* it was still being written when it was opened */
	RECOVER_WAITING,   /* recover_trace() gets the rest */
	RECOVER_GONE       /* what was not written is lost */
};
enum recover_state recover_look(const struct trace *t);

/*
 * -EBUSY: kron still records there.  -EALREADY: the trace is complete.  -ENOENT: there is no
 * trace, or its segment is gone.  -EINVAL: the segment makes no sense.  -ENOSPC and others: the
 * trace could not be written, and the segment stays for another try.
 */
int recover_trace(const char *dir, struct recovery *out, struct err *err);

/* Does the trace name that segment?  False too where no trace is any more. */
bool recover_is_for(const char *dir, const char *object);

/* recover_trace() for the process that holds the segment `object`, open as `memory`; -ENOENT also when the
 * trace is of another one. */
int recover_held(const char *dir, const char *object, int memory, struct recovery *out,
		 struct err *err);

#endif

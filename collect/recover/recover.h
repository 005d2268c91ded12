/* SPDX-License-Identifier: MIT */
/*
 * recover.h - finishes a trace whose collector was killed, or whose disk was full: what lies in
 * the segment still is added to the trace, and the segment goes.  Or what a core has of the segment.
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
	uint64_t
		untraced; /* starts, and libraries, that nobody was there to answer; the trace says why */
	uint32_t living; /* traced processes that still run; their gates are closed now */
	uint64_t
		left_out; /* chunks of others that ran on while the core was written, or that they took */
	bool is_cut; /* the core's file ends before all samples are there */
};

/* Is all of it in the trace?  Changes nothing. */
enum recover_state {
	RECOVER_COMPLETE,
	RECOVER_RECORDING, /* it was still being written when it was opened */
	RECOVER_WAITING,   /* recover_trace() gets the rest */
	RECOVER_SENT, /* it came by the cable: what is missing may wait where it was sent from */
	RECOVER_GONE  /* what was not written is lost */
};
enum recover_state recover_look(const struct trace *t);

/*
 * -EBUSY: kron still records there.  -EALREADY: the trace is complete.  -ENOENT: there is no
 * trace, or its segment is gone.  -EINVAL: the segment makes no sense.  -ENOSPC and others: the
 * trace could not be written, and the segment stays for another try.
 */
int recover_trace(const char *dir, struct recovery *out, struct err *err);

/*
 * The same from the core of a traced process, on another machine too: nothing is asked of this one's processes, and
 * its shared memory stays as it is.  With `out_dir` it becomes a trace there, of what the rings held, and `dir`, which
 * may be complete or be written to, stays as it is.  -EEXIST: `out_dir` is there already; or, without it, what the core
 * has is in shared memory here, and more.  -ENODATA: without it, a core that was cut short.
 */
int recover_core(const char *dir, const char *core, const char *out_dir, struct recovery *out,
		 struct err *err);

/*
 * Where the trace is that a core belongs to: where it was made, or in *dir (allocated), which is replaced then.
 * -ENOENT: in neither, and what to do.
 */
int recover_find_dir(const char *core, char **dir, struct err *err);

/* Does the trace name that segment?  False too where no trace is any more. */
bool recover_is_for(const char *dir, const char *object);

/* recover_trace() for the process that holds the segment `object`, open as `memory`; -ENOENT also when the
 * trace is of another one. */
int recover_held(const char *dir, const char *object, int memory, struct recovery *out,
		 struct err *err);

#endif

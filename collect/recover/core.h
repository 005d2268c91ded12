/* SPDX-License-Identifier: MIT */
/*
 * core.h - the segment of a recording, from the core of a process that it recorded.
 *
 * Cores have it where the samples lie in rings (--flight, --when-full wrap): the runtime asks for that.
 */
#ifndef COLLECT_RECOVER_CORE_H
#define COLLECT_RECOVER_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "board/bus/object.h"

struct core_memory {
	int fd; /* memory of its own, as the segment was */
	uint64_t
		left_out; /* chunks of others that ran on while the core was written, or that they took */
	uint64_t lost; /* samples in those that they took, but for some records */
	bool is_cut;   /* the core's file ends before all samples are there */
};

/*
 * `object` names the segment, as in the trace's session.  -ENOEXEC: no core.  -ENOENT: the segment is not in it,
 * or no samples.  -ESRCH: whose core it is cannot be told.  -EINVAL: what is there is no segment.  What there is was written by somebody else, like any segment.
 */
int core_memory_open(struct core_memory *m, const char *path, const char *object, struct err *err);

/* What it says of its recording. */
struct core_origin {
	char object[OBJECT_NAME]; /* the segment */
	char dir[1024]; /* where the trace was made, absolute; "": it does not say.  The process could have
				     written what it likes */
};
/* false: no core, or of a process without a recorder's own segment. */
bool core_find_origin(const char *path, struct core_origin *out);

#endif

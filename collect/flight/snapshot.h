/* SPDX-License-Identifier: MIT */
/* snapshot.h - what a ring holds, as a trace of its own. */
#ifndef COLLECT_SNAPSHOT_H
#define COLLECT_SNAPSHOT_H

#include <stdint.h>

#include "base/err.h"
#include "collect/drain.h"

struct snapshot {
	struct drain *drain;
	const struct time_point *start; /* of the recording */
	const char *from;               /* the recording's directory */
	const char *to;                 /* to be made: next to what it is renamed to */
	const char *why;
	uint64_t matches; /* of --snapshot-on, that it stands for */
	uint64_t from_tsc,
		until_tsc;      /* what is asked for, within 64 KiB of a thread; 0: all up to now */
	bool is_last;           /* the gates are closed, and nobody takes chunks any more */
	uint64_t gone;          /* samples that were let go, and are not counted as lost */
	struct probe_cost cost; /* on 0: not known */
	/* What came of it. */
	uint64_t tsc;              /* everything up to here */
	uint64_t last_tsc;         /* is_last: of the last sample of all */
	struct task_totals totals; /* what had been lost by then, and the like */
	uint64_t samples;
	uint64_t
		left_out; /* chunks that threads took while they were copied, and those of theirs before */
};

/* By the drain thread, or after its end.  0, or -errno with a sentence: nothing is left of it then. */
int snapshot_take(struct snapshot *s, struct err *err);

#endif

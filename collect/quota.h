/* SPDX-License-Identifier: MIT */
/*
 * quota.h - how many lines of the trace's tables a process can have made for nothing.
 *
 * Whoever asks nonsense, or executes programs that have no samples, can do so without end, and the
 * tables are read into memory as a whole.  So each process has a thousand lines, and one more each
 * second.  What has samples has paid for its lines and does not come through here.
 */
#ifndef COLLECT_QUOTA_H
#define COLLECT_QUOTA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define QUOTA_LINES 1000u
#define QUOTA_PROCESSES 1024u /* others with the same hash share what they have */

struct quota {
	struct quota_of {
		uint32_t used;
		uint32_t second; /* of the last line */
	} of[QUOTA_PROCESSES];
	uint64_t left_out; /* lines */
};

/* One line about this process (0: about several).  False: leave it out; that is counted. */
bool quota_take(struct quota *q, pid_t pid, uint32_t second);
/* It came to be written after all. */
static inline void quota_undo(struct quota *q)
{
	q->left_out--;
}

#endif

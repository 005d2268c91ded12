/* SPDX-License-Identifier: MIT */
/*
 * record.h - what `kron stat` and `kron pages` have of `kron record`: a program is started, or processes are
 * attached to, in the same way, and end in the same way.
 */
#ifndef CMD_RECORD_RECORD_H
#define CMD_RECORD_RECORD_H

#include <stdbool.h>

#include "base/opt.h"
#include "cmd/record/child.h"
#include "collect/collector.h"

struct record_counting {
	const struct opt_command *command; /* whose words these are */
	const char *dir;                   /* for the trace, which somebody else removes */
	struct opt_list only, except, libraries, pids;
	struct opt_list
		specs; /* what counts; none: calls are counted, and the trace has no tables */
	struct opt_list names;    /* of specs, in messages; or none */
	struct opt_list files;    /* more probes */
	struct pages_setup pages; /* of what counts pages */
	const char *lasting;
	bool no_children, quiet;
	bool notes; /* with specs, too: of places that are not there, and whatever is untraced */
	/* Of a program that kron starts, or NULL: right before, by the same thread; and after. */
	void (*starts)(struct collector *c, struct child *child);
	void (*started)(struct child *child);
	/*
	 * Of processes that run already, or NULL: they have their probes, and -errno takes these out at once; and right before
	 * they are left.
	 */
	int (*attached)(struct collector *c, struct err *err);
	void (*leaves)(void);
	/*
	 * Nothing more is counted; what was is there.  Not 0: it could not be shown, and it was said.  With specs
	 * what is missing is its business, too.
	 */
	int (*at_end)(struct collector *c, const struct collector_summary *s);
};
/* Does not return where a signal has ended the program. */
int record_count(const struct record_counting *c, char **argv);
/* Nothing that was asked for is there, so the program is ended before any of its code ran.  From any thread. */
bool record_ended_early(void);

#endif

/* SPDX-License-Identifier: MIT */
/* pids.h - what --pid PID[,PID]... says. */
#ifndef CMD_RECORD_PIDS_H
#define CMD_RECORD_PIDS_H

#include <sys/types.h>

#include "base/err.h"
#include "base/opt.h"
#include "base/vec.h"

struct pids { /* to be freed */
	VEC(pid_t) v;
};

/* Each number once, in order.  No process is looked at: a list that is none is refused, whoever is in it.  -EINVAL. */
int pids_take(struct pids *out, const struct opt_list *lists, struct err *err);
int pids_check(const struct opt_list *lists, struct err *err); /* the same, to know only that */

#endif

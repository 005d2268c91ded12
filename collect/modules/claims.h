/* SPDX-License-Identifier: MIT */
/*
 * claims.h - which functions the branches of a recording trace: each function is traced once.
 *
 * The whole's own are not here: its selection says which they are.
 */
#ifndef COLLECT_CLAIMS_H
#define COLLECT_CLAIMS_H

#include "collect/modules/modules.h"

/*
 * Selects what the branch's selection means, and nobody traces yet.  Left out are functions with hooks of ours, those
 * that choose others when the program starts (IFUNC), and those whose code is changed for another's probes already.
 */
void claims_take(struct modules *branch, struct module *m);
/* Adds to *out.  The module is locked. */
struct claims_count {
	uint64_t meant; /* functions that the selection means, and the whole does not trace */
	uint64_t whole; /* those that the whole traces, or would if they could be probed */
	uint64_t selected;
	uint64_t cannot; /* neither this branch traces them nor another */
};
void claims_count(struct modules *branch, const struct module *m, struct claims_count *out);
/* Nothing of it is traced after all. */
void claims_drop(struct modules *branch, struct module *m);
/* The branch goes: others may trace its functions. */
void claims_release(struct modules *branch);
/* It comes again.  False: what its selection means is not free just as it was then, and it has nothing. */
bool claims_retake(struct modules *branch);
void claims_free(struct modules *whole);

#endif

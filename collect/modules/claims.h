/* SPDX-License-Identifier: MIT */
/*
 * claims.h - which functions the branches of a recording trace: each function is traced once.
 *
 * The whole's own are not here: its selection says which they are.
 */
#ifndef COLLECT_CLAIMS_H
#define COLLECT_CLAIMS_H

#include "collect/modules/modules.h"

/* The runtime is called there, and the place is taken. */
bool claims_has_hook(const struct module *m, size_t function);
/* By function: the whole's selection means it; for xfree(). */
uint8_t *claims_of_whole(const struct modules *branch, const struct module *m);
/* What another branch traces, or the whole, is not selected here any more; the rest is this branch's. */
void claims_take(struct modules *branch, struct module *m);
/* The branch goes: others may trace its functions. */
void claims_release(struct modules *branch);
/* It comes again.  False: what its selection means is not free just as it was then, and it has nothing. */
bool claims_retake(struct modules *branch);
void claims_free(struct modules *whole);

#endif

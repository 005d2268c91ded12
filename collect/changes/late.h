/* SPDX-License-Identifier: MIT */
/*
 * late.h - `kron record --no-wait`: a thread plans what programs have started without, and brings it to them while they
 * run.
 */
#ifndef COLLECT_LATE_H
#define COLLECT_LATE_H

#include "collect/changes/changes.h"

void late_begin(struct changes *all);
/* For struct added_probes: something is late.  ctx: the changes. */
void late_tell(void *ctx);
/* What is late still stays so, and is noted. */
void late_stop(struct changes *all);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * asleep.h - the command file that makes a process's probes sleep, or wakes them, as the recording wants it now.
 *
 *   block   stub: probe, rest      ─►  stub: jmp rest      who is in it records nothing any more
 *   text    f: jmp stub            ─►  f: as it was        where nothing of the function is awake
 */
#ifndef COLLECT_ASLEEP_H
#define COLLECT_ASLEEP_H

#include "collect/attach/answer.h"
#include "collect/kernel/process_maps.h"

/*
 * For the process that has these maps, and whose memory is mem; out->fd stays -1 if all is as it is to be.
 * -ENOTSUP: it has something that cannot be put to sleep.
 */
int asleep_make(struct answer *out, struct answerer *a, const struct process_maps *maps, int mem,
		struct err *err);

#endif

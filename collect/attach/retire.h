/* SPDX-License-Identifier: MIT */
/*
 * retire.h - the command file that takes probes out again: the patches of some blocks the other way round.
 */
#ifndef COLLECT_RETIRE_H
#define COLLECT_RETIRE_H

#include "collect/attach/answer.h"
#include "collect/kernel/process_maps.h"

struct retire_file { /* a command file whose blocks are to be taken out of use */
	uint64_t number;
	int fd;
};

/*
 * For the process that has these maps, and whose memory is mem; out->fd stays -1 if none of their patches is
 * there.  What another has written over a patch meanwhile makes its whole group stay as it is.
 */
int retire_make(struct answer *out, const struct process_maps *maps, uint64_t session, int mem,
		const struct retire_file *files, size_t n, struct err *err);

#endif

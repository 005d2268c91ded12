/* SPDX-License-Identifier: MIT */
/*
 * whole.h - how much of a trace's file may be sent while it is being written.
 *
 * When a recorder is killed in the middle of a write, whoever finishes the trace cuts the torn chunk or line off and goes
 * on there.  A collector that had the torn bytes already would take what follows for their rest.
 */
#ifndef COLLECT_CABLE_WHOLE_H
#define COLLECT_CABLE_WHOLE_H

#include <stdint.h>

#include "collect/cable/frames.h"

/* Of the size bytes that are there: up to the end of a chunk, or of a line; from: an earlier such end. */
uint64_t cable_whole(unsigned file, int fd, uint64_t from, uint64_t size);

#endif

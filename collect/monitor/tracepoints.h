/* SPDX-License-Identifier: MIT */
/*
 * tracepoints.h - the numbers that the running kernel has given to its tracepoints (tracefs).
 *
 * Where tracefs is not mounted, and we may mount it, that is for us alone and for a moment: it is attached nowhere.
 */
#ifndef COLLECT_MONITOR_TRACEPOINTS_H
#define COLLECT_MONITOR_TRACEPOINTS_H

#include <stdint.h>

/* name: "signal/signal_deliver".  -errno: the kernel has none, or it may not be read. */
int tracepoint_number(const char *name, uint64_t *out);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * logical_clock.h - clocks of several hosts, mended by the messages between them: none is received before it was sent.
 *
 *   before   sender    ──s──────────────      after   ──s──────────────
 *                         ↙                               ↘
 *            receiver  ──r──a──b────────              ───────r──a──b───
 *
 * Becker, Rabenseifner, Wolf and Linford's controlled logical clock ("Scalable timestamp synchronization for event traces of
 * message-passing applications", 2009).  A host whose clock is behind goes on later from the reception that shows it.
 * From there on its times run slower, by a hundredth, until they are its own again; what was before is stretched,
 * by a tenth at most if there is room for it since the message before.  No time of a host overtakes another of the same host.
 */
#ifndef TRACE_LOGICAL_CLOCK_H
#define TRACE_LOGICAL_CLOCK_H

#include <stdint.h>

#include "trace/reader.h"
#include "trace/times/timeline.h"

struct logical_clock {
	struct timeline *moves; /* by node: from times on the common line to mended ones */
	uint64_t *most;         /* ticks that a message's time was moved by; likewise */
	size_t nodes;
	uint64_t messages, reversed; /* between different nodes */
	uint64_t most_reversed;      /* ticks */
	uint64_t alone;              /* sendings and receptions that are in no message */
	uint64_t
		circles; /* receptions that could not be put after their sendings: they depend on each other */
};

#define LOGICAL_CLOCK_MPI "mpi"
#define LOGICAL_CLOCK_NET "net"
/* Messages are the intervals of class 4 of the file, or those of trace/messages/messages.h, where it is called by a pack.  What *out holds has to be freed in either case. */
int logical_clock_find(struct logical_clock *out, const struct trace *t, const char *file,
		       struct err *err);
void logical_clock_free(struct logical_clock *l);

#endif

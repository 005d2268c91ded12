/* SPDX-License-Identifier: MIT */
/*
 * watch.h - `kron record --trigger`: looks at the samples as they come and keeps only what
 * lies around the place where a trigger fires; then it closes the gates.
 *
 *   full chunks ──> held in memory, oldest first ──┐                   fired and closed:
 *   chunks that threads still fill, looked into ───┴─> by time ─> trigger ──> the window of what
 *                                                                           is held is written
 *
 * Nothing is written before.  What is older than any window of the future is let go, and counted:
 * samples in the trace + samples outside + lost = triggers of probes.  The window is exact to the
 * sample however late it is noticed, for all samples around it are still held then.
 *
 * A kron that is killed loses what it holds: `kron recover` finds the chunks that threads were
 * filling then, and no more.
 *
 * Belongs to the drain thread (and after its end to collector_finish()).  Buses lane and exact; of
 * a real board, samples stay there.
 */
#ifndef COLLECT_WATCH_H
#define COLLECT_WATCH_H

#include "collect/journal.h"
#include "collect/segment.h"
#include "collect/tasks.h"
#include "trace/window.h"

struct watch_options {
	const char *trigger; /* a sequence (trace/trigger.h); NULL: none */
	const char *pre, *post;
};

struct watch;
struct drain;

/* Checks the words only.  0 or -EINVAL with the message. */
int watch_check(const struct watch_options *o, struct err *err);
struct watch *watch_open(const struct watch_options *o, const char *dir, struct drain *d);
void watch_close(struct watch *w);

#define WATCH_NO_POOL UINT32_MAX
/* A chunk whose samples would go into the trace: copies it.  `pool`: its number, if it has one. */
void watch_take(struct watch *w, uint32_t pool, const struct trace_chunk *head, const void *data,
		const struct chunk_owner *o);
/* Look at what is new.  last: nothing more will come. */
void watch_look(struct watch *w, bool last);

/* For the session: 0 = never fired. */
uint64_t watch_fired_tsc(const struct watch *w);
uint64_t watch_outside(const struct watch *w); /* samples that were let go */

#endif

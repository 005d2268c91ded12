/* SPDX-License-Identifier: MIT */
/*
 * watch.h - `kron record --trigger`: looks at the samples as they come and keeps only what
 * lies around the place where a trigger fires; then it closes the gates.
 *
 *   pool: chunks that threads still fill ─┐ in place, by their events ─► by time ─► trigger
 *         full ones ──────────────────────┤
 *                                         └─► older than any window to come: freed, counted
 *                                             else packed and held, oldest first ─► the window
 *
 * Nothing is written before it fires.  What is held is bounded by the window (--pre, and what a
 * `without` waits for), at 1.2 to 2.5 bytes a sample; what was not looked at yet stays in the
 * pool, which grows up to --buffer, and then --when-full says what happens.
 * samples in the trace + samples outside + lost = triggers of probes.  The window is exact to the
 * sample however late it was noticed, for all samples around it are still there then.
 *
 * A kron that is killed loses what it holds: `kron recover` finds the chunks in the pool, and no
 * more.
 *
 * Belongs to the drain thread (and after its end to collector_finish()).  Buses lane and exact; of
 * a real board, samples stay there.
 */
#ifndef COLLECT_WATCH_H
#define COLLECT_WATCH_H

#include "collect/cable/group.h"
#include "collect/journal.h"
#include "collect/segment.h"
#include "collect/tasks.h"
#include "trace/analysis/window.h"

struct watch_options {
	const char *trigger; /* a sequence (trace/analysis/trigger.h); NULL: none */
	const char *pre, *post;
	/* Of a flight recorder: called when it fires, and then it waits for the next time.  Nothing is
	 * written.  What was looked at stays in the pool until its room is wanted, or it is too old
	 * (drain.h: keep_ticks). */
	void (*fired)(void *ctx, uint64_t since, uint64_t tsc);
	void *fired_ctx;
	/* FUNC>T: it fires when such a call has ended, which began at `since` (trigger_fire_at_end()). */
	bool at_end;
	const char *label;   /* of the trigger, in messages; NULL: "--trigger" */
	struct group *group; /* one of the others fires, or is told; NULL: there are none */
};

/* Of a recording that only the others stop: no event has this number. */
#define WATCH_OTHERS_ONLY "event=0xfffffffe"

struct watch;
struct drain;

/* Checks the words only.  0 or -EINVAL with the message. */
int watch_check(const struct watch_options *o, struct err *err);
struct watch *watch_open(const struct watch_options *o, struct drain *d);
void watch_close(struct watch *w);

/* Samples go there; what is in the window goes on into the trace. */
struct sink *watch_sink(struct watch *w);

/* at_end: its T from now on, in ticks; by the drain thread. */
void watch_set_limit(void *watch, uint64_t ticks);
/* Of a ring: samples before this time are about to go, when it settles; 0: none. */
uint64_t watch_lets_go_before(const void *watch);
/* For the session: 0 = never fired. */
uint64_t watch_fired_tsc(const struct watch *w);
/* Nothing more is kept: it has fired, and what comes after is there.  From any thread; NULL: never. */
bool watch_is_over(const struct watch *w);
uint64_t watch_outside(const struct watch *w); /* samples that were discarded */
/* A name in the trigger that nothing with a probe has; NULL: there is none. */
const char *watch_unknown_name(const struct watch *w);
/* The same of the names so far, from any thread, into `name`.  false: there is none. */
bool watch_unknown_yet(const struct watch *w, char *name, size_t size);
/* Does it wait for the end of one of these functions' calls, or for one of them?  From any thread. */
bool watch_waits_for(const struct watch *w, const uint32_t *functions, size_t n);
const char *watch_label(const struct watch *w);
/* Whose trigger it was: a node of the group; NULL: our own. */
const char *watch_fired_by(const struct watch *w);
uint64_t watch_unsure(const struct watch *w); /* waited for in vain: samples were lost */

#endif

/* SPDX-License-Identifier: MIT */
/*
 * implant.h - the runtime of kron/live.h in a stopped process: put there, called, taken away.
 *
 * One of its threads makes the system calls.  The process need not see any file of ours, and none of its
 * own code runs: neither its allocator nor its loader.
 */
#ifndef COLLECT_LIVE_IMPLANT_H
#define COLLECT_LIVE_IMPLANT_H

#include <kron/live.h>

#include "collect/kernel/process_maps.h"
#include "collect/live/threads.h"

struct implant {
	uint64_t code, data, call, stack, end; /* end of each is the next's beginning */
	uint64_t entry;
};

/* Away from where the kernel puts what programs map: those gaps are the trampolines'.  Programs that are
 * executed while we record have a place of their own. */
#define IMPLANT_ATTACHED 0x7e8000000000ull
#define IMPLANT_CHILD 0x7e8800000000ull
#define IMPLANT_STEP 0x10000000ull
#define IMPLANT_PLACES 64u

/* Where all of it is, by where its code begins. */
void implant_at(struct implant *im, uint64_t code);
/* Is it what implant_choose() takes from IMPLANT_CHILD on? */
bool implant_is_childs(uint64_t code);
/* What is there is this kron's runtime, byte for byte.  A process that stands still. */
bool implant_is_own(const struct implant *im, const struct live_threads *t);
/* Chooses addresses that are free in these maps, from `hint` on. */
int implant_choose(struct implant *im, uint64_t hint, const struct process_maps *maps,
		   struct err *err);
void implant_hello(const struct implant *im, struct kron_hello *out);

/* It is mapped, and *sock is our end of a connection whose other end is *theirs there. */
int implant_put(const struct implant *im, struct live_threads *t, int *sock, int *theirs,
		struct err *err);
/* Closes their end of the connection, if the call that it was made for did not take place. */
void implant_hang_up(struct live_threads *t, int theirs);
/* Makes one call; *call is then what the runtime has made of it. */
int implant_call(const struct implant *im, struct live_threads *t, struct kron_live_call *call,
		 struct err *err);
/*
 * A runtime that is there already, at whose entry it is called: room for the call alone, which implant_remove()
 * takes away again.
 */
int implant_borrow(struct implant *im, uint64_t entry, struct live_threads *t, int *sock,
		   int *theirs, struct err *err);
/* Unmaps what implant_put() has mapped. */
void implant_remove(const struct implant *im, struct live_threads *t);

#endif

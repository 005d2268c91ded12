/* SPDX-License-Identifier: MIT */
/*
 * access_places.c - where the model runs: memory that no other process can write to.
 *
 * Not on the stack, which may be a signal handler's and small, nor in thread data, which may be
 * another's (runtime/dynamic/strangers.c).  A cycle takes a free place, any one, mostly that which its
 * thread had before.  A handler that finds its thread inside of a cycle takes another.
 *
 * A place keeps the state that its last cycle made.  While that is the active one, the next cycle need
 * not copy it, nor ask whether it is sane: generations never come back, and nobody else could
 * write it.
 *
 * Who leaves a cycle by siglongjmp leaves its place taken.  When none is free, those come back whose
 * thread is gone, or is we and our mark is not on the stack any more, as slots do (access_slots.c).
 * Where that cannot be known, and after two seconds, there is none: the cycle does not take place, and
 * whoever asked for it is told.
 */
#include "board/model/access_layout.h"
#include "board/model/access_sys.h"

#define PLACES 128u
#define NAP_NS 100000u
#define NAPS_MAX 20000u

static struct access_place places[PLACES];
uint64_t access_places_era;

static bool take(struct access_hold *h, unsigned place, uint64_t owner)
{
	uint64_t mark = (uint64_t)(uintptr_t)&h->place_mark;
	uint64_t word = ACCESS_OWNED | h->tid;

	if (mark < ACCESS_ADDRESS_MAX)
		word |= (mark >> 6) << ACCESS_OWNER_MARK_SHIFT;
	h->place_mark.value = ACCESS_MARK(place, h->tid);
	/* Acquire: pairs with the release of who had it. */
	if (!__atomic_compare_exchange_n(&places[place].owner, &owner, word, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	h->place = place;
	return true;
}

static bool take_free(struct access_hold *h)
{
	unsigned first = h->tid ? h->tid : (unsigned)((uintptr_t)h >> 16);
	unsigned i;

	for (i = 0; i < PLACES; i++) {
		unsigned place = (first + i) % PLACES;

		if (!ACCESS_READ(&places[place].owner) && take(h, place, 0))
			return true;
	}
	return false;
}

static bool reclaim(struct access_hold *h)
{
	unsigned i;

	for (i = 0; i < PLACES; i++) {
		uint64_t owner = ACCESS_READ(&places[i].owner);

		if (access_can_reclaim(h, i, owner) && take(h, i, owner))
			return true;
	}
	return false;
}

struct access_place *access_place_take(const struct board *b, struct access_hold *h)
{
	unsigned naps;

	for (naps = 0; !take_free(h); naps++) {
		if (b->quiet || !h->tid || naps == NAPS_MAX)
			return NULL;
		if (reclaim(h))
			break;
		access_sys_sleep(NAP_NS);
	}
	return &places[h->place];
}

void access_place_give(struct access_place *p)
{
	__atomic_store_n(&p->owner, 0, __ATOMIC_RELEASE);
}

/* SPDX-License-Identifier: MIT */
/*
 * watch_losses.c - where samples were lost, and a time that is over decides nothing.
 *
 * A thread tells of what it lost with its next sample that finds room: the gap lies between the
 * sample before and that record.  Until then only its process' count tells.  Is that as large as
 * all records together, nothing is missing; else one of its threads may have a gap, and which one
 * nobody knows.  What was counted before the thread's last sample is none of it.
 */
#include "collect/watch/watch_impl.h"

static uint64_t lost_by(const struct watch *w, uint32_t slot)
{
	return __atomic_load_n(&w->d->seg->procs[slot].lost, __ATOMIC_RELAXED);
}

static uint32_t uid_at(const struct watch *w, uint32_t slot)
{
	return (uint32_t)(__atomic_load_n(&w->d->seg->procs[slot].state, __ATOMIC_ACQUIRE) >> 8);
}

void watch_losses_notice(struct watch *w)
{
	uint32_t n = w->board ? 0 : segment_procs_ready(w->d->seg);

	for (uint32_t slot = 0; slot < n; slot++) {
		struct watch_losses *x = &w->losses[slot];
		uint32_t uid = uid_at(w, slot);
		uint64_t lost = lost_by(w, slot);

		if (uid && x->uid != uid) /* one that ended keeps its count */
			*x = (struct watch_losses){.uid = uid};
		if (x->lost == lost)
			continue;
		x->lost = lost;
		x->noticed = watch_clock(w); /* after it was read: no loss in it is later */
	}
}

void watch_losses_tell(struct watch *w, const struct watch_lane *l)
{
	if (!w->board && l->slot < KRON_PROCS_MAX && w->losses[l->slot].uid == l->l.proc_uid)
		w->losses[l->slot].told += l->e.s.payload;
}

bool watch_losses_pending(const struct watch *w, uint32_t slot, uint32_t uid, uint64_t since)
{
	const struct watch_losses *x;
	uint64_t lost;

	if (slot >= segment_procs_ready(w->d->seg))
		return false;
	x = &w->losses[slot];
	lost = lost_by(w, slot);
	if (x->uid != uid)
		return true; /* another has its place: nobody can be asked */
	return lost != x->told && (lost != x->lost || x->noticed > since);
}

bool watch_losses_pending_any(const struct watch *w, uint64_t since)
{
	uint32_t n = w->board ? 0 : segment_procs_ready(w->d->seg);

	for (uint32_t slot = 0; slot < n; slot++)
		if (watch_losses_pending(w, slot, w->losses[slot].uid, since))
			return true;
	return false;
}

/*
 * All share the board's FIFO: the gap begins after the last sample of any.  Of a lane that we have
 * looked at beyond the gap that is not known, so there it may seem longer than it is.
 */
static uint64_t gap_begins(const struct watch *w, const struct watch_lane *l)
{
	uint64_t from = l->lost_after;

	for (size_t i = 0; w->board && i < w->lanes.n; i++) {
		uint64_t sure = w->lanes.v[i].sure;

		if (sure < l->order && sure > from)
			from = sure;
	}
	return from;
}

static bool is_in_gap(const struct watch *w, const struct watch_lane *l, uint64_t tsc)
{
	return l->has_next && l->is_loss && gap_begins(w, l) < tsc;
}

bool watch_losses_gap_any(const struct watch *w, uint64_t tsc)
{
	for (size_t i = 0; i < w->heap.n; i++)
		if (is_in_gap(w, &w->lanes.v[w->heap.v[i]], tsc))
			return true;
	return false;
}

bool watch_losses_gap(const struct watch *w, uint32_t lane, uint64_t tsc)
{
	return w->board ? watch_losses_gap_any(w, tsc) : is_in_gap(w, &w->lanes.v[lane], tsc);
}

/* SPDX-License-Identifier: MIT */
/*
 * samples.c - what the slow path stores in the slots of a chunk that it has claimed.
 *
 *   Trace sample      one slot
 *   Resource sample   KRON_RESOURCE_SLOTS of one claim: sample | counters 0, 1 | 2, 3 | ... (board.h)
 *   with parts        as many of one claim: upper half of the payload, or a text | sample
 */
#include "runtime/core/rt.h"

static struct kron_sample *slot_at(uint64_t addr)
{
	return (struct kron_sample *)addr;
}

static void slot_put(uint64_t addr, struct kron_sample v)
{
	struct kron_sample *s = slot_at(addr);

	s->event = v.event;
	s->payload = v.payload;
	s->source = v.source;
	s->time_lo = v.time_lo;
	/* Release: whoever sees the head sees the sample. */
	__atomic_store_n(&s->head, v.head, __ATOMIC_RELEASE);
}

static struct kron_sample sample_now(struct rt_stamp stamp, uint32_t event, uint32_t payload)
{
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi) : : "memory");
	return (struct kron_sample){
		.head = stamp.head | (hi & KRON_HEAD_TIME_MASK),
		.time_lo = lo & ~1u, /* read, not copied: runtime/dynamic/thunk_sparse.S */
		.source = stamp.source,
		.payload = payload,
		.event = event,
	};
}

void rt_sample_put(struct rt_stamp stamp, uint64_t addr, uint32_t event, uint32_t payload)
{
	slot_at(addr)->payload = payload; /* at once: see board/model/holes.h */
	slot_put(addr, sample_now(stamp, event, payload));
}

/* The board's counters: a sample holds 32 bits of each. */
static void read_counters(uint32_t out[KRON_COUNTERS])
{
	/* Partners: note_used() (runtime/dynamic/), who made the pages (collect/counts.c). */
	uint32_t used = __atomic_load_n(&kron_rt.ctl->counts_used, __ATOMIC_ACQUIRE);
	uint32_t ready = __atomic_load_n(&kron_rt.ctl->counts_ready, __ATOMIC_ACQUIRE);
	uint32_t i, j;

	for (j = 0; j < KRON_COUNTERS; j++)
		out[j] = (uint32_t)__atomic_load_n(&kron_rt.ctl->counts[j], __ATOMIC_RELAXED);
	for (i = 0; i < used && i < ready && i < KRON_COUNTS_MAX; i++) {
		const uint64_t *n = kron_rt.count_table[i].n[0];

		for (j = 0; j < KRON_COUNT_BANKS * KRON_COUNTERS; j++)
			out[j % KRON_COUNTERS] +=
				(uint32_t)__atomic_load_n(&n[j], __ATOMIC_RELAXED);
	}
}

uint32_t rt_trigger_slots(const struct rt_trigger *t)
{
	return t->resource ? KRON_RESOURCE_SLOTS : 1u + t->nparts;
}

/* The counters first, or the parts: when the sample exists, they do.  Cut off, they follow a hole. */
bool rt_trigger_put(struct rt_stamp stamp, uint64_t addr, const struct rt_trigger *t,
		    const uint64_t *claim, uint64_t after)
{
	uint32_t counter[KRON_COUNTERS];
	struct kron_sample s, c;
	uint32_t k;

	slot_at(addr + t->nparts * KRON_SAMPLE_SIZE)->payload = t->payload;
	s = c = sample_now(stamp, t->event, t->payload);
	if (t->source)
		s.source = t->source;
	if (t->resource)
		read_counters(counter);
	/* Time and counters are of one moment: a handler's sample in between shows in the claim word. */
	if (t->resource && claim && __atomic_load_n(claim, __ATOMIC_ACQUIRE) != after)
		return false;
	for (k = 0; t->resource && k < KRON_COUNTERS / 2; k++) {
		c.event = KRON_EVENT_COUNTERS + k;
		c.source = counter[2 * k];
		c.payload = counter[2 * k + 1];
		slot_put(addr + (k + 1) * KRON_SAMPLE_SIZE, c);
	}
	for (k = 0; k < t->nparts; k++, addr += KRON_SAMPLE_SIZE) {
		c.event = t->parts[k].event;
		c.payload = t->parts[k].payload;
		slot_put(addr, c);
	}
	slot_put(addr, s);
	return true;
}

void rt_fill_slots(struct rt_stamp stamp, uint64_t addr, uint32_t slots)
{
	for (; slots; slots--, addr += KRON_SAMPLE_SIZE)
		rt_sample_put(stamp, addr, KRON_EVENT_COUNTERS, 0);
}

/* SPDX-License-Identifier: MIT */
/* drain_write.c - chunks and samples into the trace, and the sink that does so; drain.h has it. */
#define _GNU_SOURCE
#include <stddef.h>
#include <string.h>

#include "collect/drain.h"
#include "collect/grow.h"
#include "collect/lane_counters.h"

static void count_written(struct drain *d, const struct trace_chunk *head,
			  const struct chunk_owner *o, uint32_t samples)
{
	d->totals.samples += samples;
	d->totals.cut_off += head->holes;
	d->totals.chunks++;
	if (o->task) {
		o->task->samples += samples;
		o->task->cut_off += head->holes;
	}
	tasks_name_thread(d->tasks, o);
}

int drain_write(struct drain *d, const struct trace_chunk *head, const void *data,
		const struct chunk_owner *o, uint32_t samples)
{
	int code = journal_chunk(d->journal, head, data);

	if (!code)
		count_written(d, head, o, samples);
	return code;
}

/* As the trace has them; head->nbytes with it. */
static const void *folded(struct drain *d, struct trace_chunk *head, const void *slots)
{
	if (!d->folded)
		d->folded = xmalloc(KRON_CHUNK_SIZE);
	head->nbytes = (uint32_t)lane_counters_fold(d->folded, slots, head->nbytes);
	return d->folded;
}

int drain_write_slots(struct drain *d, const struct trace_chunk *head, const void *slots,
		      const struct chunk_owner *o, uint32_t samples)
{
	struct trace_chunk h = *head;

	if (lane_counters_are_there(slots, h.nbytes))
		slots = folded(d, &h, slots);
	return drain_write(d, &h, slots, o, samples);
}

/* Claims behind the last sample that a kill cut off, some bytes of each stored already: one
 * for each handler that interrupted another one. */
#define CUT_OFF_CLAIMS 8u

static void free_chunk(struct drain *d, uint32_t i, uint32_t used_bytes)
{
	struct kron_chunk *c = segment_chunk(d->seg, i);
	struct kron_ctl *ctl = d->seg->ctl;

	used_bytes += CUT_OFF_CLAIMS * KRON_SAMPLE_SIZE;
	if (used_bytes > KRON_CHUNK_SAMPLES * KRON_SAMPLE_SIZE)
		used_bytes = KRON_CHUNK_SAMPLES * KRON_SAMPLE_SIZE;
	__atomic_store_n(&c->seq, 0, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	memset((char *)c + sizeof(c->seq), 0, sizeof(*c) - sizeof(c->seq) + used_bytes);
	/* Release: the claimer finds zeros; partner: the runtime's claim. */
	__atomic_store_n(&d->seg->states[i], KRON_CHUNK_FREE, __ATOMIC_RELEASE);
	__atomic_fetch_add(&ctl->free_count, 1, __ATOMIC_ACQ_REL);
	d->freed++;
	segment_wake_waiters(d->seg);
}

/* ---- chunks that are written together: the sink ---- */

/* At the end nobody wants it any more, but recover must not add its samples again (invariant 2 of
 * drain.c). */
uint32_t drain_free(struct drain *d, uint32_t i, uint32_t used_bytes)
{
	if (d->ending)
		__atomic_store_n(&segment_chunk(d->seg, i)->seq, 0, __ATOMIC_RELEASE);
	else
		free_chunk(d, i, used_bytes);
	return 1;
}

static uint32_t is_written(struct drain *d, const struct sink_chunk *p)
{
	count_written(d, &p->head, &p->owner, p->samples);
	return drain_free(d, p->chunk, p->head.nbytes);
}

/* By itself: the batch could not be written.  How many chunks are free again. */
static uint32_t write_alone(struct drain *d, const struct sink_chunk *p)
{
	struct trace_chunk head = p->head;
	const void *samples = segment_chunk(d->seg, p->chunk) + 1;
	int code;

	if (p->has_counters)
		samples = folded(d, &head, samples);
	code = journal_stage(d->journal, &head, samples)
		       ? journal_commit(d->journal, false)
		       : journal_chunk(d->journal, &head, samples);

	if (!code)
		return is_written(d, p);
	if (p->owner.task)
		p->owner.task->left = true;
	if (d->ending)
		d->totals.stranded += p->samples;
	return 0;
}

static struct drain *drain_of(struct sink *s)
{
	return (struct drain *)((char *)s - offsetof(struct drain, trace));
}

static uint32_t write_pending(struct sink *s)
{
	struct drain *d = drain_of(s);
	int failed = d->npending ? journal_commit(d->journal, true) : 0;
	uint32_t moved = 0;

	for (uint32_t i = 0; i < d->npending; i++) {
		const struct sink_chunk *p = &d->pending[i];

		moved += failed ? write_alone(d, p) : is_written(d, p);
	}
	d->npending = 0;
	return moved;
}

static bool stage(struct drain *d, const struct sink_chunk *p)
{
	const void *samples = segment_chunk(d->seg, p->chunk) + 1;
	struct trace_chunk head = p->head;

	if (p->has_counters)
		samples = folded(d, &head, samples);
	return journal_stage(d->journal, &head, samples);
}

static uint32_t put_pending(struct sink *s, const struct sink_chunk *p)
{
	struct drain *d = drain_of(s);
	uint32_t moved = 0;

	if (d->npending == DRAIN_PENDING || !stage(d, p)) {
		moved = write_pending(s);
		if (!stage(d, p))
			return moved + write_alone(d, p);
	}
	d->pending[d->npending++] = *p;
	return moved;
}

static int write_bytes(struct sink *s, const struct trace_chunk *head, const void *bytes,
		       uint32_t samples, const struct chunk_owner *o)
{
	return drain_write(drain_of(s), head, bytes, o, samples);
}

const struct sink_ops drain_into_trace = {
	.take = put_pending,
	.take_bytes = write_bytes,
	.flush = write_pending,
};

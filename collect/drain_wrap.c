/* SPDX-License-Identifier: MIT */
/*
 * drain_wrap.c - a pool that keeps the last samples only: some chunks are free at any time.
 *
 *   FULL, the oldest ──► counted as lost, zeroed, FREE     while less than an eighth of the pool is free
 *
 * A thread that finds no free chunk takes the oldest itself (runtime/core/chunks.c).  To find, to count
 * and to clear it are 64 KiB each that no cache has: 3 to 4 ns a sample.  Here it is done beside
 * the program.  When we are late, or killed, the threads do it, and nothing stops.
 */
#include "collect/drain.h"

#include <stdlib.h>

#include "base/vec.h"
#include "collect/grow.h"

#define FEW 8u  /* begin when less than one in so many is free */
#define SOME 4u /* and go on to one in so many */

struct full {
	uint64_t seq, word;
	uint32_t i;
};

static int by_seq(const void *a, const void *b)
{
	const struct full *x = a, *y = b;

	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/*
 * All FULL ones, oldest first.  Threads go on meanwhile: a chunk that we have passed may be taken, filled, and older by
 * then than others that are still before us.  So those count whose numbers were given before.
 */
static size_t list_full(const struct drain *d, struct full *out)
{
	/* Acquire: not after the states; partner: none, the numbers' order is that of the chunks' owners. */
	const uint64_t given = __atomic_load_n(&d->seg->ctl->next_seq, __ATOMIC_ACQUIRE);
	uint32_t ready = segment_ready(d->seg);
	size_t n = 0;

	for (uint32_t i = 0; i < ready; i++) {
		/* Acquire: its samples are there; partner: the runtime's release. */
		uint64_t word = __atomic_load_n(&d->seg->states[i], __ATOMIC_ACQUIRE);
		const struct kron_chunk *c = segment_chunk(d->seg, i);
		const uint64_t seq = __atomic_load_n(&c->seq, __ATOMIC_RELAXED);

		if (kron_chunk_word_state(word) == KRON_CHUNK_FULL && seq <= given)
			out[n++] = (struct full){seq, word, i};
	}
	qsort(out, n, sizeof(*out), by_seq);
	return n;
}

/* Of the process whose chunk it was, if its slot is not another's by now. */
static void count_lost(struct drain *d, uint64_t word, uint64_t triggers)
{
	struct kron_proc *s = &d->seg->procs[kron_chunk_word_slot(word) % KRON_PROCS_MAX];
	uint64_t uid = __atomic_load_n(&s->state, __ATOMIC_RELAXED) >> 8;

	if (kron_chunk_word_slot(word) < segment_procs_ready(d->seg) &&
	    (uid & KRON_CHUNK_UID_MASK) == kron_chunk_word_uid(word))
		__atomic_fetch_add(&s->lost, triggers, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(&d->seg->ctl->lost_unowned, triggers, __ATOMIC_RELAXED);
}

/*
 * It may be another thread's by now: no two chunks ever have the same number.  As in the runtime (take_full), what it
 * holds is nobody's from here on, and without a number before it is counted as lost.
 */
static bool take(struct drain *d, const struct full *f)
{
	uint64_t word = f->word, taking = KRON_TAKEN_BY_RECORDER;
	struct kron_chunk *c = segment_chunk(d->seg, f->i);
	uint64_t *state = &d->seg->states[f->i];

	if (!__atomic_compare_exchange_n(state, &word, taking, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return false;
	if (__atomic_load_n(&c->seq, __ATOMIC_RELAXED) != f->seq) {
		__atomic_compare_exchange_n(state, &taking, f->word, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED);
		return false;
	}
	__atomic_store_n(&c->seq, 0, __ATOMIC_RELEASE);
	return true;
}

/* Not when a thread may still fill a hole of it. */
static uint32_t retire(struct drain *d, const struct full *f)
{
	const struct kron_chunk *c = segment_chunk(d->seg, f->i);
	struct chunk_owner o;
	struct chunk_count n;

	chunk_count(c, &n);
	if (n.holes || n.tail) {
		tasks_of_chunk(d->tasks, f->word, false, &o);
		if (!o.dead && drain_may_be_written(c, &n))
			return 0;
		if (!o.dead)
			n.holes += n.tail;
	}
	if (!take(d, f))
		return 0;
	if (f->seq)
		count_lost(d, f->word, n.samples + n.holes);
	return drain_free(d, f->i, n.nbytes);
}

static int64_t chunks_free(const struct drain *d)
{
	return __atomic_load_n(&d->seg->ctl->free_count, __ATOMIC_ACQUIRE);
}

static bool is_short(const struct drain *d, uint32_t ready)
{
	return ready >= segment_limit(d->seg) && chunks_free(d) < ready / FEW;
}

/* Of the youngest sample that there is: in the newest FULL chunk, or in one that is being filled.  A program may write
 * any time there: none is in the future. */
static uint64_t youngest(const struct drain *d, const struct full *v, size_t n)
{
	const uint64_t now = __builtin_ia32_rdtsc();
	uint64_t last = n ? chunk_last_time(segment_chunk(d->seg, v[n - 1].i)) : 0;
	uint32_t ready = segment_ready(d->seg);

	for (uint32_t i = 0; i < ready; i++) {
		uint64_t word = __atomic_load_n(&d->seg->states[i], __ATOMIC_ACQUIRE), at;
		const struct kron_chunk *c = segment_chunk(d->seg, i);

		if (kron_chunk_word_state(word) != KRON_CHUNK_OWNED ||
		    KRON_CHUNK_KIND(c->kind) != KRON_CHUNK_OF_SAMPLES)
			continue;
		at = chunk_last_time(c);
		last = at > last ? at : last;
	}
	return last < now ? last : now;
}

/*
 * Nothing of a chunk is younger than this: it may go, although there is room.  0: none is too old.  Of a program that
 * has ended, or sleeps, what came last stays.
 */
static uint64_t too_old(const struct drain *d, const struct full *v, size_t n)
{
	uint64_t now;

	if (!d->keep_ticks)
		return 0;
	now = youngest(d, v, n);
	return now > d->keep_ticks ? now - d->keep_ticks : 0;
}

uint32_t drain_wrap(struct drain *d, bool look_at_ages)
{
	uint32_t ready = segment_ready(d->seg), freed = 0;
	bool wants_room = is_short(d, ready);
	uint64_t before;
	struct full *v;
	size_t n;

	if (!wants_room && !(look_at_ages && d->keep_ticks))
		return 0;
	v = xcalloc(ready, sizeof(*v));
	n = list_full(d, v);
	before = look_at_ages ? too_old(d, v, n) : 0;
	for (size_t i = 0; i < n; i++) {
		if (before && chunk_last_time(segment_chunk(d->seg, v[i].i)) >= before)
			before = 0;
		if (!before && !(wants_room && chunks_free(d) < ready / SOME))
			break;
		freed += retire(d, &v[i]);
	}
	xfree(v);
	return freed;
}

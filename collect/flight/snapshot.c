/* SPDX-License-Identifier: MIT */
/*
 * snapshot.c - see snapshot.h.
 *
 *   pool ──► list, oldest first ──► copied in one go ──► names to the recording's tables, copied
 *                                                   └──► packed, behind them: a trace
 *
 * Threads go on.  The one that takes a chunk zeroes its sequence number first, then the rest.  So what was
 * copied is whole if the number is still the same afterwards; else it is left out, and counted, and with
 * it what its thread has stored before: of each thread there is the end of what it did, without a gap.  The
 * oldest ones go first there, so they are copied first here.
 *
 * The last snapshot has nobody who goes on, and copies nothing.
 *
 * All threads end at one moment: what they have stored since is left to the next snapshot.
 */
#define _GNU_SOURCE
#include "collect/flight/snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/vec.h"
#include "collect/calibrate.h"
#include "collect/kernel/cgroup.h"
#include "collect/lane_counters.h"
#include "trace/writer_dir.h"

#define TRIES 8u
#define SPARE 64u /* chunks that come while room is made */
#define TAKERS_MAY_NS 100000000u

struct copied {
	uint64_t seq, word;
	uint32_t i;
	uint32_t nbytes; /* of samples */
	const struct kron_chunk *c;
	bool is_lost; /* somebody has taken it meanwhile */
};

struct copy {
	struct copied *v;
	size_t n;
	uint8_t *room;
	size_t size, wanted; /* bytes, and chunks */
};

static int by_seq(const void *a, const void *b)
{
	const struct copied *x = a, *y = b;

	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* Where the ring is kept by time: nothing of it is younger.  It may be another thread's by now, with other times. */
static bool is_too_old(const struct snapshot *s, const struct kron_chunk *c, uint64_t seq)
{
	const uint64_t keep = s->drain->keep_ticks;
	const uint64_t now = s->is_last ? s->last_tsc : s->tsc;
	const uint64_t from = s->from_tsc ? s->from_tsc : keep && now > keep ? now - keep : 0;

	if (!from || chunk_last_time(c) >= from)
		return false;
	__asm__ volatile("" : : : "memory"); /* x86 loads in order */
	return __atomic_load_n(&c->seq, __ATOMIC_RELAXED) == seq;
}

/* The end may come long after the last sample: what is kept by time is what was before that. */
static uint64_t last_of_all(const struct segment *seg)
{
	uint32_t ready = segment_ready(seg);
	uint64_t last = 0;

	for (uint32_t i = 0; i < ready; i++) {
		const struct kron_chunk *c = segment_chunk(seg, i);
		uint64_t word = __atomic_load_n(&seg->states[i], __ATOMIC_ACQUIRE), at;

		if (!chunk_is_owned(word) || KRON_CHUNK_KIND(c->kind) != KRON_CHUNK_OF_SAMPLES)
			continue;
		at = chunk_last_time(c);
		last = at > last ? at : last;
	}
	return last;
}

static void list_chunks(struct snapshot *snapshot, struct copy *copy)
{
	const struct segment *seg = snapshot->drain->seg;
	uint32_t ready = segment_ready(seg);

	snapshot->tsc = snapshot->until_tsc ? snapshot->until_tsc : clock_tsc();
	snapshot->last_tsc = snapshot->is_last ? last_of_all(seg) : 0;
	if (snapshot->last_tsc > snapshot->tsc) /* a program may write any time there */
		snapshot->last_tsc = snapshot->tsc;
	xfree(copy->v);
	copy->v = xcalloc(ready ? ready : 1, sizeof(*copy->v));
	copy->n = 0;
	for (uint32_t i = 0; i < ready; i++) {
		const struct kron_chunk *c = segment_chunk(seg, i);
		/* While it has a number, the word names whose it is: number, word, number.  Acquire: of a FULL
		 * one, its samples; partner: the runtime's release. */
		uint64_t s = __atomic_load_n(&c->seq, __ATOMIC_ACQUIRE),
			 word = __atomic_load_n(&seg->states[i], __ATOMIC_ACQUIRE);

		if (s && s == __atomic_load_n(&c->seq, __ATOMIC_ACQUIRE) && chunk_is_owned(word) &&
		    KRON_CHUNK_KIND(c->kind) == KRON_CHUNK_OF_SAMPLES &&
		    !is_too_old(snapshot, c, s))
			copy->v[copy->n++] = (struct copied){.seq = s, .word = word, .i = i};
	}
	qsort(copy->v, copy->n, sizeof(*copy->v), by_seq);
}

static bool copy_chunk(struct copied *p, const struct segment *seg, uint8_t *to)
{
	const struct kron_chunk *c = segment_chunk(seg, p->i);

	p->nbytes = chunk_stored(c) * KRON_SAMPLE_SIZE;
	memcpy(to, c, sizeof(*c) + p->nbytes);
	p->c = (const void *)to;
	/* Whoever takes the chunk stores 0 here before it stores anything else: what we have read before
	 * this load is older. */
	__asm__ volatile("" : : : "memory"); /* x86 loads in order */
	return __atomic_load_n(&c->seq, __ATOMIC_RELAXED) == p->seq;
}

/* What was stored after the snapshot's moment. */
static void cut_at(struct copied *p, uint64_t tsc)
{
	const struct kron_sample *s = (const void *)(p->c + 1);
	uint32_t n = p->nbytes / KRON_SAMPLE_SIZE;

	while (n && (!s[n - 1].head || kron_sample_time(&s[n - 1]) > tsc))
		n--;
	p->nbytes = n * KRON_SAMPLE_SIZE;
}

static uint64_t thread_of(const struct copied *p)
{
	return kron_chunk_word_owner(p->word);
}

/* Each thread's by itself, oldest first. */
static int by_thread(const void *a, const void *b)
{
	const uint64_t x = thread_of(a), y = thread_of(b);

	return x != y ? (x < y ? -1 : 1) : by_seq(a, b);
}

/* Nothing of a thread from before a gap. */
static void drop_before_gaps(struct snapshot *s, struct copy *copy)
{
	size_t kept = 0;

	qsort(copy->v, copy->n, sizeof(*copy->v), by_thread);
	for (size_t i = copy->n; i-- > 0;) {
		const struct copied *next = i + 1 < copy->n ? &copy->v[i + 1] : NULL;

		if (next && thread_of(next) == thread_of(&copy->v[i]))
			copy->v[i].is_lost |= next->is_lost;
	}
	for (size_t i = 0; i < copy->n; i++) {
		s->left_out += copy->v[i].is_lost;
		if (!copy->v[i].is_lost && copy->v[i].nbytes)
			copy->v[kept++] = copy->v[i];
	}
	copy->n = kept;
	qsort(copy->v, kept, sizeof(*copy->v), by_seq);
}

static void free_room(struct copy *copy)
{
	if (copy->room)
		munmap(copy->room, copy->size);
	copy->room = NULL;
}

/* Room for the newest ones; what does not fit is left out. */
static void copy_all(const struct segment *seg, struct copy *copy)
{
	const size_t most = copy->size / KRON_CHUNK_SIZE,
		     first = copy->n > most ? copy->n - most : 0;

	for (size_t i = 0; i < copy->n; i++)
		copy->v[i].is_lost =
			i < first ||
			!copy_chunk(&copy->v[i], seg, copy->room + (i - first) * KRON_CHUNK_SIZE);
}

static void use_in_place(const struct segment *seg, struct copy *copy)
{
	vec_for(copy, p) {
		p->c = segment_chunk(seg, p->i);
		p->nbytes = chunk_stored(p->c) * KRON_SAMPLE_SIZE;
	}
}

/* Acquire: what was counted as lost before; partner: the runtime's exchange. */
static bool is_being_taken(const struct segment *seg, uint32_t i)
{
	uint64_t word = __atomic_load_n(&seg->states[i], __ATOMIC_ACQUIRE);

	return kron_chunk_word_state(word) == KRON_CHUNK_TAKEN && word != KRON_TAKEN_BY_RECORDER;
}

/*
 * Whoever takes a chunk counts its samples as lost a moment after it has no number any more.  What is
 * not in the list any more is among the lost ones then.  One that was killed in between counts no more.
 */
static void wait_for_takers(const struct segment *seg)
{
	const uint64_t until = clock_ns(CLOCK_MONOTONIC) + TAKERS_MAY_NS;
	uint32_t ready = segment_ready(seg);

	for (uint32_t i = 0; i < ready; i++)
		while (is_being_taken(seg, i) && clock_ns(CLOCK_MONOTONIC) < until)
			sched_yield();
}

static void copy_once(struct snapshot *s, struct copy *copy)
{
	const struct segment *seg = s->drain->seg;

	tasks_look(s->drain->tasks, false, false); /* who has begun since the last round */
	s->left_out = 0;
	list_chunks(s, copy);
	if (!s->is_last)
		wait_for_takers(seg);
	tasks_totals(s->drain->tasks, &s->totals);
	s->totals.lost += s->gone;
	if (s->is_last)
		use_in_place(seg, copy);
	else
		copy_all(seg, copy);
	vec_for(copy, p)
		if (!p->is_lost)
			cut_at(p, s->tsc);
	drop_before_gaps(s, copy);
}

/* We lost the processor while a small ring went round: once more, from a later moment. */
static bool is_poor(const struct snapshot *s, const struct copy *copy)
{
	return s->left_out > copy->n / 3;
}

/* Nobody should be killed for a snapshot: half of what is there, and what is older is left out. */
static size_t size_of_room(size_t chunks)
{
	uint64_t all = memory_available(), left;
	struct cgroups groups = {0};

	cgroups_find(&groups, "");
	left = cgroups_memory_left(&groups);
	cgroups_free(&groups);
	left = (left < all ? left : all) / 2 / KRON_CHUNK_SIZE;
	return (left < chunks ? left : chunks) * KRON_CHUNK_SIZE;
}

/* Pages first, for they take longer than what is copied into them. */
static int make_room(struct copy *copy, size_t chunks, struct err *err)
{
	void *room;

	if (chunks <= copy->wanted)
		return 0;
	free_room(copy);
	copy->size = size_of_room(chunks);
	copy->wanted = chunks;
	room = mmap(NULL, copy->size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (!copy->size || room == MAP_FAILED)
		return err_set(err, ENOMEM,
			       "no memory is left for a snapshot: take a smaller --flight");
	copy->room = room;
	return 0;
}

/* While room is made the ring may grow, by more than is spared here: then once more. */
static int copy_ring(struct snapshot *s, struct copy *copy, struct err *err)
{
	unsigned tries = 0;
	int code;

	do {
		list_chunks(s, copy);
		code = s->is_last ? 0 : make_room(copy, copy->n + copy->n / 4 + SPARE, err);
		if (!code)
			copy_once(s, copy);
	} while (!code && is_poor(s, copy) && ++tries < TRIES &&
		 copy->size == copy->wanted * KRON_CHUNK_SIZE);
	return code;
}

/* ---- into a trace ---- */

/* Their names go where those of all are. */
static void name_owners(struct snapshot *s, const struct copy *copy)
{
	struct drain *d = s->drain;

	tasks_look(d->tasks, false, false);
	for (size_t i = 0; i < copy->n; i++) {
		struct chunk_owner o;

		tasks_of_chunk(d->tasks, copy->v[i].word, false, &o);
		tasks_name_thread(d->tasks, &o);
	}
}

static uint32_t triggers_in(const struct copied *p, uint32_t *holes)
{
	const struct kron_sample *s = (const void *)(p->c + 1);
	uint32_t n = 0;

	*holes = 0;
	for (uint32_t i = 0; i < p->nbytes / KRON_SAMPLE_SIZE; i++) {
		*holes += !s[i].head;
		n += s[i].head && s[i].event < KRON_EVENT_SPECIAL;
	}
	return n;
}

static int write_chunk(struct snapshot *s, struct journal *j, const struct copied *p, uint8_t *room,
		       uint64_t *cut_off)
{
	struct chunk_owner o;
	struct trace_chunk head = {.magic = TRACE_CHUNK_MAGIC, .nbytes = p->nbytes, .seq = p->seq};
	const void *samples = p->c + 1;
	uint32_t n = triggers_in(p, &head.holes);
	int code;

	tasks_of_chunk(s->drain->tasks, p->word, false, &o);
	head.proc_uid = o.uid;
	head.tid = (uint32_t)o.tid;
	head.source = p->c->source;
	if (lane_counters_are_there(samples, p->nbytes)) {
		head.nbytes = (uint32_t)lane_counters_fold(room, samples, p->nbytes);
		samples = room;
	}
	if (journal_stage(j, &head, samples))
		code = 0;
	else if (!(code = journal_commit(j, false)) && !journal_stage(j, &head, samples))
		code = journal_chunk(j, &head, samples);
	s->samples += code ? 0 : n;
	*cut_off += head.holes;
	return code;
}

static void write_end(struct snapshot *s, struct journal *j, uint64_t cut_off)
{
	struct probe_cost cost = s->cost;
	struct time_point now;
	double hz;

	time_point_take(&now);
	hz = tsc_hz(s->start, &now);
	cost.on = probe_cost_mean(&cost, s->totals.samples, s->totals.samples_static);
	journal_session(j, "snapshot", "%s", s->why);
	if (s->matches)
		journal_session(j, "snapshot_matches", "%" PRIu64, s->matches);
	journal_session(j, "snapshot_left_out", "%" PRIu64, s->left_out);
	journal_session(j, "samples", "%" PRIu64, s->samples);
	journal_session(j, "lost", "%" PRIu64, s->totals.lost);
	journal_session(j, "overwritten", "%" PRIu64, s->totals.lost);
	journal_session(j, "cut_off", "%" PRIu64, cut_off);
	journal_session(j, "processes", "%" PRIu64, s->totals.processes);
	if (cost.on)
		journal_probe_cost(j, &cost);
	journal_session(j, "tsc_hz", "%.0f", hz);
	journal_session(j, "end_mono_ns", "%" PRIu64,
			s->start->mono_ns +
				(uint64_t)((double)(s->tsc - s->start->tsc) / hz * 1e9));
	journal_session(j, "copied_tsc", "%" PRIu64, now.tsc);
	journal_session(j, "end_tsc", "%" PRIu64, s->tsc);
}

static int write_all(struct snapshot *s, const struct copy *copy, struct trace_writer *w)
{
	uint8_t *room = xmalloc(KRON_CHUNK_SIZE);
	struct journal j;
	uint64_t cut_off = 0;
	int code = 0;

	journal_init(&j, w);
	for (size_t i = 0; i < copy->n && !code; i++)
		code = write_chunk(s, &j, &copy->v[i], room, &cut_off);
	if (!code)
		code = journal_commit(&j, false);
	xfree(room);
	if (!code)
		write_end(s, &j, cut_off);
	return code ? code : journal_flush(&j);
}

static int make_trace(struct snapshot *s, const struct copy *copy, struct err *err)
{
	struct trace_writer *w;
	int closed, code = journal_flush(s->drain->journal);

	if (code)
		return err_set(err, -code, "the names of %s could not be written: %s", s->from,
			       strerror(-code));
	writer_remove_dir(s->to); /* of one that failed */
	code = writer_copy_tables(s->from, s->to, err);
	if (!code)
		code = trace_writer_reopen(&w, s->to, err);
	if (code)
		return code;
	code = write_all(s, copy, w);
	closed = trace_writer_close(w);
	code = code ? code : closed;
	return code ? err_set(err, -code, "cannot write %s: %s", s->to, strerror(-code)) : 0;
}

int snapshot_take(struct snapshot *s, struct err *err)
{
	struct copy copy = {.v = NULL};
	int code = copy_ring(s, &copy, err);

	if (!code) {
		name_owners(s, &copy);
		code = make_trace(s, &copy, err);
	}
	free_room(&copy);
	xfree(copy.v);
	if (code)
		writer_remove_dir(s->to);
	return code;
}

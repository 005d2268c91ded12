/* SPDX-License-Identifier: MIT */
/*
 * drain.c - see drain.h.
 *
 * Invariants:
 *  1. A chunk becomes FREE only after its samples are in the file (journal_chunk succeeded) and
 *     it is all zero.
 *  2. Its sequence number is zeroed first: whoever finds a killed collector's segment sees in
 *     that zero that the chunk's samples are in the file already.
 *  3. A chunk with a hole is left alone while its owner lives: the owner may be inside a signal
 *     handler's probes, and will store the missing sample when it returns.  Unless a later
 *     sample shows that the handler has left by longjmp (board/model/holes.h).
 */
#define _GNU_SOURCE
#include "collect/drain.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "board/model/gate.h"
#include "board/model/holes.h"
#include "collect/fetch.h"
#include "collect/grow.h"
#include "collect/lane_counters.h"
#include "collect/pages/pages.h"
#include "collect/switches.h"

#define MS 1000000ull
#define WAIT_SHORTEST_MS 2u
#define WAIT_LONGEST_MS 50u
#define DEAD_EVERY_MS 50u      /* ask the kernel about owners */
#define THOROUGH_EVERY_MS 500u /* and about zombies */
#define COUNT_EVERY_MS 500u    /* set free_count right */
#define STILL_MS 1u            /* the watch needs a moment before it lets a chunk go */
#define GIVE_MOST 64u          /* at once: what `waiters` says anybody may have written */

void chunk_count(const struct kron_chunk *c, struct chunk_count *out)
{
	const struct kron_sample *s = (const void *)(c + 1);
	uint32_t holes = 0, last = 0, stored = 0, specials = 0;
	bool counters = false;

	for (uint32_t i = 0; i < KRON_CHUNK_SAMPLES; i++) {
		/* Acquire: the head is stored last; partner: the thunk's store of it. */
		if (!__atomic_load_n(&s[i].head, __ATOMIC_ACQUIRE))
			continue;
		holes += i - last;
		last = i + 1;
		stored++;
		if (s[i].event >= KRON_EVENT_SPECIAL) {
			specials++;
			counters |= lane_counters_is(s[i].event);
		}
	}
	out->samples = stored - specials;
	out->specials = specials;
	out->has_counters = counters;
	out->holes = holes;
	out->tail = KRON_CHUNK_SAMPLES - last;
	out->nbytes = last * KRON_SAMPLE_SIZE;
}

uint32_t chunk_stored(const struct kron_chunk *c)
{
	const struct kron_sample *s = (const void *)(c + 1);
	uint32_t n = KRON_CHUNK_SAMPLES;

	/* Acquire: the head is stored last; partner: the thunk's store of it. */
	while (n && !__atomic_load_n(&s[n - 1].head, __ATOMIC_ACQUIRE))
		n--;
	return n;
}

uint64_t chunk_last_time(const struct kron_chunk *c)
{
	const struct kron_sample *s = (const void *)(c + 1);
	const uint32_t n = chunk_stored(c);

	return n ? kron_sample_time(&s[n - 1]) : 0;
}

/* ---- one chunk ---- */

static struct trace_chunk head_of(const struct kron_chunk *c, const struct chunk_owner *o,
				  const struct chunk_count *n)
{
	return (struct trace_chunk){
		.magic = TRACE_CHUNK_MAGIC,
		.nbytes = n->nbytes,
		.seq = c->seq,
		.proc_uid = o->uid,
		.tid = (uint32_t)o->tid,
		.source = c->source,
		.holes = n->holes,
	};
}

static bool is_in_file(const struct drain *d, uint64_t seq)
{
	size_t lo = 0, hi = d->nwritten;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (d->written[mid] == seq)
			return true;
		if (d->written[mid] < seq)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

/* seq 0: being prepared by its owner, or written already (invariant 2). */
static bool has_news(const struct drain *d, const struct kron_chunk *c, const struct chunk_count *n)
{
	const uint64_t seq = __atomic_load_n(&c->seq, __ATOMIC_ACQUIRE);

	return seq && n->nbytes && !is_in_file(d, seq);
}

static uint32_t hand_on(struct drain *d, uint32_t i, const struct chunk_owner *o,
			const struct chunk_count *n)
{
	const struct kron_chunk *c = segment_chunk(d->seg, i);
	const struct sink_chunk p = {i, n->samples, n->has_counters, head_of(c, o, n), *o};

	return sink_take(d->sink, &p);
}

enum verdict { CHUNK_LEAVE, CHUNK_TAKE, CHUNK_TO_FULL };

/* Every slot of a full chunk was claimed: an empty last one is a hole, too. */
bool drain_may_be_written(const struct kron_chunk *c, const struct chunk_count *n)
{
	const struct kron_sample *s = (const void *)(c + 1);

	if (!n->holes && !n->tail)
		return false;
	for (uint32_t i = 0; i < KRON_CHUNK_SAMPLES; i++) {
		if (!__atomic_load_n(&s[i].head, __ATOMIC_ACQUIRE) && !kron_hole_is_abandoned(s, i))
			return true;
	}
	return false;
}

static bool wraps(const struct drain *d)
{
	return d->seg->when_full == KRON_WHEN_FULL_WRAP;
}

/* May this chunk be taken now?  The owner is asked only when it matters: it costs a system
 * call. */
static enum verdict judge_chunk(struct drain *d, uint64_t word, const struct kron_chunk *c,
				const struct chunk_count *n, const struct chunk_owner *o)
{
	if (kron_chunk_word_state(word) == KRON_CHUNK_FULL) {
		return !o->dead && drain_may_be_written(c, n) ? CHUNK_LEAVE : CHUNK_TAKE;
	}
	if (!o->dead)
		return CHUNK_LEAVE;
	return wraps(d) ? CHUNK_TO_FULL : CHUNK_TAKE;
}

/* A full chunk that the sink has looked at, all of it, has no holes. */
static enum sink_advice ask_sink(const struct drain *d, uint32_t i, bool full,
				 struct chunk_count *n)
{
	uint32_t samples = 0;
	enum sink_advice a = sink_advise(d->sink, i, full, &samples);

	if (a == SINK_TAKE)
		*n = (struct chunk_count){.samples = samples,
					  .specials = KRON_CHUNK_SAMPLES - samples,
					  .nbytes = KRON_CHUNK_SAMPLES * KRON_SAMPLE_SIZE};
	return a;
}

static struct pages_owner page_owner(uint32_t i, const struct chunk_owner *o, uint64_t word)
{
	return (struct pages_owner){
		.chunk = i,
		.uid = o->uid,
		.ticket = o->task ? o->task->ticket : 0,
		.pid = o->task && !o->task->foreign ? o->task->here : 0,
		.tid = (pid_t)kron_chunk_word_tid(word),
	};
}

/* No samples, but a thread's records of pages: 1 if it is free again. */
static uint32_t drain_pages(struct drain *d, uint32_t i, uint64_t word, bool thorough)
{
	const struct kron_chunk *c = segment_chunk(d->seg, i);
	struct chunk_owner o;

	tasks_of_chunk(d->tasks, word, thorough, &o);
	if (o.dead || d->ending) {
		struct pages_owner owner = page_owner(i, &o, word);
		uint32_t freed;

		if (!d->pages)
			return drain_free(d, i, KRON_CHUNK_SAMPLES * KRON_SAMPLE_SIZE);
		pages_hold(d->pages);
		pages_take(d->pages, c, &owner);
		freed = drain_free(d, i, KRON_CHUNK_SAMPLES * KRON_SAMPLE_SIZE);
		pages_let_go(d->pages);
		return freed;
	}
	if (o.task)
		o.task->left = true;
	if (d->pages && thorough && o.task && o.task->here)
		pages_note_maps(d->pages, o.task->here, o.uid, o.task->ticket);
	return 0;
}

/* What is new in the chunks of threads that live. */
static void look_at_pages(struct drain *d)
{
	uint32_t ready = segment_ready(d->seg);
	pid_t last = 0;

	pages_hold(d->pages);
	for (uint32_t i = 0; i < ready && !segment_is_cut(d->seg); i++) {
		uint64_t word = __atomic_load_n(&d->seg->states[i], __ATOMIC_ACQUIRE);
		const struct kron_chunk *c = segment_chunk(d->seg, i);
		struct pages_owner owner;
		struct chunk_owner o;

		if (kron_chunk_word_state(word) != KRON_CHUNK_OWNED || !pages_are_in(c))
			continue;
		tasks_of_chunk(d->tasks, word, false, &o);
		owner = page_owner(i, &o, word);
		pages_look_chunk(d->pages, c, &owner);
		if (owner.pid && owner.pid != last)
			pages_note_maps(d->pages, owner.pid, owner.uid, owner.ticket);
		last = owner.pid;
	}
	pages_look_end(d->pages);
	pages_let_go(d->pages);
}

static void sum_chunk(struct drain *d, pid_t pid, struct pages_range *r, uint32_t i, uint64_t word)
{
	const struct pages_owner owner = {i, r->uid, 0, pid, (pid_t)kron_chunk_word_tid(word)};
	const struct kron_chunk *c = segment_chunk(d->seg, i);

	if (pages_have_nodes(d->pages)) /* then it stands among what was taken */
		pages_look_chunk(d->pages, c, &owner);
	else
		pages_sum_chunk(d->pages, r, i, c);
}

int drain_sum_pages(struct drain *d, pid_t pid, struct pages_range *r)
{
	uint32_t ready = segment_ready(d->seg);

	if (!d->pages)
		return -ENOTSUP;
	if (segment_is_cut(d->seg))
		return -EIO;
	if (!r->uid)
		r->uid = tasks_process_uid(d->tasks, pid);
	if (!r->uid)
		return -ESRCH;
	pages_hold(d->pages);
	for (uint32_t i = 0; i < ready; i++) {
		uint64_t word = __atomic_load_n(&d->seg->states[i], __ATOMIC_ACQUIRE);
		const struct kron_chunk *c = segment_chunk(d->seg, i);

		if (kron_chunk_word_state(word) == KRON_CHUNK_OWNED &&
		    kron_chunk_word_uid(word) == (r->uid & KRON_CHUNK_UID_MASK) && pages_are_in(c))
			sum_chunk(d, pid, r, i, word);
	}
	pages_sum_taken(d->pages, r);
	pages_let_go(d->pages);
	pages_sum_end(r);
	return 0;
}

void drain_answer_pages(struct drain *d, int fd, const struct kron_control_question *q, pid_t peer)
{
	struct pages_range range = {.start = q->range.start, .end = q->range.end};
	pid_t pid = q->range.pid ? q->range.pid : peer;
	int code = q->version != KRON_CONTROL_VERSION          ? -EPROTO
		   : !d->pages || !pages_are_counted(d->pages) ? -ENOTSUP
							       : drain_sum_pages(d, pid, &range);

	pages_send(d->pages, &range, code, fd);
	vec_free(&range.v);
}

/* A full chunk of a ring stays, and with it its process; it is 64 KiB that nobody should look through. */
static void keep_in_ring(struct drain *d, uint64_t word)
{
	struct chunk_owner o;

	tasks_of_chunk(d->tasks, word, false, &o);
	if (o.task)
		o.task->left = true;
}

/* Its samples are lost; without a number they are counted already.  Bytes that it holds. */
static uint32_t lose_chunk(struct drain *d, uint32_t i)
{
	struct kron_chunk *c = segment_chunk(d->seg, i);
	struct chunk_count n;

	chunk_count(c, &n);
	if (__atomic_load_n(&c->seq, __ATOMIC_ACQUIRE))
		__atomic_fetch_add(&d->seg->ctl->lost_unowned, n.samples + n.holes,
				   __ATOMIC_RELAXED);
	__atomic_store_n(&c->seq, 0, __ATOMIC_RELEASE);
	return n.nbytes;
}

/* Our own never stand here while we look: those of a recorder that was killed do. */
static bool is_taker_gone(struct drain *d, uint64_t word, bool thorough)
{
	struct chunk_owner o;

	if (word == KRON_TAKEN_BY_RECORDER)
		return true;
	tasks_of_chunk(d->tasks, word, thorough, &o);
	if (!o.dead && o.task)
		o.task->left = true;
	return o.dead;
}

/* A chunk that its owner has taken from another.  Of one that was killed in the midst of that, its samples are lost. */
static uint32_t drain_taken(struct drain *d, uint32_t i, uint64_t word, bool thorough)
{
	return is_taker_gone(d, word, thorough) ? drain_free(d, i, lose_chunk(d, i)) : 0;
}

/* How many chunks are free again. */
static uint32_t drain_chunk(struct drain *d, uint32_t i, uint64_t word, bool dead, bool thorough)
{
	struct kron_chunk *c = segment_chunk(d->seg, i);
	bool full = kron_chunk_word_state(word) == KRON_CHUNK_FULL;
	struct chunk_owner o;
	struct chunk_count n = {0};
	enum sink_advice advice;
	enum verdict verdict;

	if (!dead && (!full || wraps(d)))
		return 0;
	if (pages_are_in(c))
		return drain_pages(d, i, word, thorough);
	if (full && wraps(d)) {
		keep_in_ring(d, word);
		return 0;
	}
	advice = ask_sink(d, i, full, &n);
	if (advice == SINK_LEAVE)
		return 0;
	tasks_of_chunk(d->tasks, word, thorough, &o);
	if (advice != SINK_TAKE && (full || o.dead))
		chunk_count(c, &n);
	verdict = advice == SINK_TAKE ? CHUNK_TAKE : judge_chunk(d, word, c, &n, &o);
	if (o.dead)
		tasks_note_thread_end(d->tasks, &o);
	if (verdict == CHUNK_TAKE)
		return has_news(d, c, &n) ? hand_on(d, i, &o, &n) : drain_free(d, i, n.nbytes);
	if (verdict == CHUNK_TO_FULL)
		__atomic_compare_exchange_n(&d->seg->states[i], &word,
					    (word & ~(uint64_t)KRON_STATE_MASK) | KRON_CHUNK_FULL,
					    false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	else if (!full && thorough)
		tasks_name_thread(d->tasks, &o);
	if (o.task)
		o.task->left = true;
	return 0;
}

/* ---- the pool ---- */

static void set_free_count_right(struct drain *d)
{
	uint32_t ready = segment_ready(d->seg);
	int32_t counted = 0;
	int32_t said = __atomic_load_n(&d->seg->ctl->free_count, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < ready; i++)
		counted += __atomic_load_n(&d->seg->states[i], __ATOMIC_RELAXED) == KRON_CHUNK_FREE;
	if (counted != said)
		__atomic_fetch_add(&d->seg->ctl->free_count, counted - said, __ATOMIC_ACQ_REL);
}

/* ---- rounds ---- */

static uint32_t open_gates(const struct drain *d)
{
	const struct kron_ctl *ctl = d->seg->ctl;

	return kron_gates_open(__atomic_load_n(&ctl->csr, __ATOMIC_ACQUIRE),
			       __atomic_load_n(&ctl->filter, __ATOMIC_ACQUIRE),
			       __atomic_load_n(&ctl->config, __ATOMIC_ACQUIRE));
}

struct span {
	uint64_t from, until; /* of the samples' clock */
};

static void note_groups(struct drain *d, uint32_t groups, bool wakes, struct span when)
{
	const struct trace_sleep_line line = {when.from, when.until, wakes, TRACE_SLEEP_GROUPS,
					      d->groups};
	size_t n = 0;

	for (unsigned g = 0; g < KRON_LEVELS; g++)
		if (groups >> g & 1)
			n += (size_t)snprintf(d->groups + n, sizeof(d->groups) - n,
					      n ? " %u" : "%u", g);
	if (groups)
		(void)journal_put_locked(d->journal, trace_writer_sleep, &line);
}

static void note_gates(struct drain *d, uint32_t now, struct span when)
{
	note_groups(d, d->gates & ~now, false, when);
	note_groups(d, now & ~d->gates, true, when);
	d->gates = now;
}

/* false: it is not there any more, or not yet. */
static bool read_change(const struct kron_ctl *ctl, uint32_t number, struct kron_gate_change *out)
{
	const struct kron_gate_change *c = &ctl->gate_change[(number - 1) % KRON_GATE_CHANGES];
	bool there = __atomic_load_n(&c->number, __ATOMIC_ACQUIRE) == number;

	*out = (struct kron_gate_change){__atomic_load_n(&c->from, __ATOMIC_ACQUIRE),
					 __atomic_load_n(&c->until, __ATOMIC_ACQUIRE),
					 __atomic_load_n(&c->open, __ATOMIC_ACQUIRE), number};
	return there && __atomic_load_n(&c->number, __ATOMIC_RELAXED) == number;
}

/* Each with its time, up to this number.  Anybody may have written there: no time is before the last look, or to come. */
static bool note_changes(struct drain *d, uint32_t last, uint64_t until)
{
	const struct kron_ctl *ctl = d->seg->ctl;
	struct kron_gate_change c;
	struct span when;

	if (last - d->gate_changes > KRON_GATE_CHANGES)
		return false;
	while (d->gate_changes != last) {
		if (!read_change(ctl, d->gate_changes + 1, &c))
			return false;
		when.from = board_clock_ticks(d->tasks->clock, c.from);
		when.until = board_clock_ticks(d->tasks->clock, c.until);
		if (when.from < d->gates_seen || when.until < when.from || when.until > until)
			return false;
		note_gates(d, c.open & 0xffff, when);
		d->gates_seen = when.from;
		d->gate_changes++;
	}
	return true;
}

/* More than are noted with their times: some time since the last look. */
static void note_unseen(struct drain *d, uint32_t were, uint32_t now, uint64_t until)
{
	const struct span when = {d->gates_seen, until};
	const uint32_t opened = were >> 16, closed = were & 0xffff;

	note_gates(d, d->gates | opened, when);
	note_gates(d, d->gates & ~closed, when);
	note_gates(d, now, when);
}

/*
 * Whoever closes a gate, a probe, `kron ctl` or we ourselves: what runs on goes unseen from then on, until it is
 * opened again.  Readers must know when that was.
 */
void drain_notice_gates(struct drain *d, bool last)
{
	const struct kron_ctl *ctl = d->seg->ctl;
	uint64_t from, until;
	uint32_t now, were, changes;

	journal_lock(d->journal);
	if (!d->gates_done) {
		from = board_clock_ticks(d->tasks->clock, clock_tsc());
		changes = __atomic_load_n(&ctl->gate_changes, __ATOMIC_ACQUIRE);
		were = __atomic_exchange_n(&d->seg->ctl->gates_were, 0, __ATOMIC_ACQ_REL);
		now = open_gates(d);
		until = board_clock_ticks(d->tasks->clock, clock_tsc());
		if (!d->gates_seen)
			d->gates = now;
		else if (!note_changes(d, changes, until))
			note_unseen(d, were, now, until);
		/* one that came meanwhile has its own time in the next round */
		else if (now != d->gates &&
			 changes == __atomic_load_n(&ctl->gate_changes, __ATOMIC_ACQUIRE))
			note_gates(d, now, (struct span){d->gates_seen, until});
		d->gates_seen = from;
		d->gate_changes = changes;
		d->gates_done = last; /* no round looks any more once we close them */
	}
	journal_unlock(d->journal);
}

/* Close the gates at the first failed write: from here on samples would only be lost. */
static void notice_disk(struct drain *d)
{
	int code = journal_error(d->journal);

	if (!code || d->disk_failed)
		return;
	d->disk_failed = true;
	segment_set_sampling(d->seg, false);
	__atomic_store_n(&d->seg->ctl->closing, 1, __ATOMIC_RELEASE);
	segment_wake_waiters(d->seg);
	log_error("collect", "cannot write the trace: %s", strerror(-code));
	journal_session(d->journal, "error",
			"recording stopped: the trace could not be written: %s", strerror(-code));
}

/* Likewise where the memory has been taken away: what comes from there from now on are zeros. */
static bool notice_cut(struct drain *d)
{
	if (!segment_is_cut(d->seg) || d->cut)
		return d->cut;
	d->cut = true;
	segment_set_sampling(d->seg, false);
	__atomic_store_n(&d->seg->ctl->closing, 1, __ATOMIC_RELEASE);
	segment_wake_waiters(d->seg);
	log_error("collect", "the board's shared memory was cut off");
	journal_session(d->journal, "error",
			"recording stopped: the board's shared memory was cut off");
	return true;
}

/* Acquire: what they point to is whole; partner: collector_watch_switches(). */
static bool drain_switches(struct drain *d, bool last)
{
	struct switches *s = __atomic_load_n(&d->switches, __ATOMIC_ACQUIRE);

	return s && switches_round(s, d->journal, last);
}

uint32_t drain_round(struct drain *d, bool dead, bool thorough)
{
	uint32_t ready, moved = 0;

	/* A process that claims a slot without pages makes them itself, but on a full /dev/shm
	 * that is a SIGBUS: be ahead of it. */
	if (__atomic_load_n(&d->seg->ctl->next_uid, __ATOMIC_RELAXED) >
	    segment_procs_ready(d->seg) / 4)
		segment_grow_procs(d->seg);
	tasks_look(d->tasks, dead, thorough);
	drain_notice_gates(d, false);
	if (notice_cut(d))
		return 0;
	moved += drain_switches(d, false);
	if (d->fetch)
		moved += fetch_round(d->fetch, dead, thorough) != 0;
	ready = segment_ready(d->seg);
	for (uint32_t i = 0; i < ready; i++) {
		/* Acquire: a FULL chunk's samples are there; partner: the runtime's release. */
		uint64_t word = __atomic_load_n(&d->seg->states[i], __ATOMIC_ACQUIRE);

		if (kron_chunk_word_state(word) == KRON_CHUNK_TAKEN && dead)
			moved += drain_taken(d, i, word, thorough);
		if (!chunk_is_owned(word))
			continue;
		if (!journal_error(d->journal))
			moved += drain_chunk(d, i, word, dead, thorough);
	}
	if (wraps(d))
		moved += drain_wrap(d, dead);
	moved += sink_flush(d->sink);
	notice_disk(d);
	if (dead && !d->disk_failed)
		tasks_release(d->tasks, false);
	return moved;
}

static bool is_due(uint64_t *next, uint64_t now, uint64_t every_ms)
{
	if (now < *next)
		return false;
	*next = now + every_ms * MS;
	return true;
}

/* A ring always is. */
static bool is_short_of_chunks(const struct drain *d)
{
	return !wraps(d) && __atomic_load_n(&d->seg->ctl->free_count, __ATOMIC_ACQUIRE) <
				    (int32_t)(segment_ready(d->seg) / 8);
}

/* For readers of a trace whose collector was killed; the end writes a better figure. */
static void estimate_clock(struct drain *d)
{
	struct time_point now;

	if (!d->start.tsc)
		return;
	if (d->fetch && d->fetch->board)
		board_time_point(d->fetch->board, &now);
	else
		time_point_take(&now);
	journal_session(d->journal, "tsc_hz", "%.0f", tsc_hz(&d->start, &now));
	d->start.tsc = 0;
}

static bool has_free_chunks(const struct drain *d)
{
	uint32_t ready = segment_ready(d->seg);

	for (uint32_t i = 0; i < ready; i++)
		if (__atomic_load_n(&d->seg->states[i], __ATOMIC_RELAXED) == KRON_CHUNK_FREE)
			return true;
	return false;
}

/*
 * Threads wait for a chunk, and none is free, and none could be freed: all belong to threads that
 * sleep, maybe until one of those that wait goes on.  A sleeping thread's chunk cannot be taken from
 * it: it may be between claim and store.  So those that wait get chunks of their own, beyond
 * --buffer: no more than one for each thread, and for each signal handler on top of another.
 *
 * Nobody sleeps on: a thread adds itself to `waiters` before it moves wake_collector.  drain_thread()
 * has read wake_collector before the round (acquire), so what was not counted here yet has moved it
 * since, and our futex wait returns at once.
 */
static bool stands_still(struct drain *d)
{
	struct kron_ctl *ctl = d->seg->ctl;
	uint64_t ns;

	if (d->seg->when_full != KRON_WHEN_FULL_WAIT || d->seg->bus != KRON_BUS_LANE ||
	    !__atomic_load_n(&ctl->waiters, __ATOMIC_ACQUIRE) ||
	    segment_ready(d->seg) < segment_limit(d->seg) || has_free_chunks(d)) {
		d->still_ns = 0;
		return false;
	}
	ns = clock_ns(CLOCK_MONOTONIC);
	if (!d->still_ns || d->freed != d->still_freed) {
		d->still_ns = ns;
		d->still_freed = d->freed;
	}
	return ns - d->still_ns >= STILL_MS * MS;
}

static void give_waiters_chunks(struct drain *d)
{
	uint32_t n = __atomic_load_n(&d->seg->ctl->waiters, __ATOMIC_RELAXED);

	if (segment_raise_limit(d->seg, n < GIVE_MOST ? n : GIVE_MOST))
		segment_wake_collector(d->seg); /* kron-grow gets them */
	d->still_ns = 0;
}

static void *drain_thread(void *arg)
{
	struct drain *d = arg;
	uint32_t ms = WAIT_SHORTEST_MS;

	pthread_setname_np(pthread_self(), "kron-drain");
	while (!__atomic_load_n(&d->stop, __ATOMIC_ACQUIRE)) {
		uint32_t seen = __atomic_load_n(&d->seg->ctl->wake_collector, __ATOMIC_ACQUIRE);
		bool short_of = is_short_of_chunks(d);
		uint64_t now = clock_ns(CLOCK_MONOTONIC_COARSE);
		/* When room is short, whatever a dead thread holds is worth a system call. */
		bool dead =
			is_due(&d->next_dead_ns, now, short_of ? WAIT_SHORTEST_MS : DEAD_EVERY_MS);
		bool thorough = dead && is_due(&d->next_thorough_ns, now,
					       short_of ? DEAD_EVERY_MS : THOROUGH_EVERY_MS);

		bool moved;

		sink_look(d->sink, false);
		moved = drain_round(d, dead, thorough);
		sink_settle(d->sink);
		if (stands_still(d))
			give_waiters_chunks(d);
		if (moved || d->still_ns)
			ms = WAIT_SHORTEST_MS;
		else
			ms = ms * 2 > WAIT_LONGEST_MS ? WAIT_LONGEST_MS : ms * 2;
		if (is_due(&d->next_count_ns, now, COUNT_EVERY_MS))
			set_free_count_right(d);
		if (d->pages && pages_want_look(d->pages))
			look_at_pages(d);
		if (d->pages)
			ms = pages_patience(d->pages, ms);
		if (thorough)
			segment_look_after_keeper(d->seg);
		if (dead) { /* names should outlive us as samples do */
			estimate_clock(d);
			journal_flush(d->journal);
		}
		if (!__atomic_load_n(&d->stop, __ATOMIC_ACQUIRE))
			segment_wait(d->seg, seen, sink_patience(d->sink, ms));
	}
	return NULL;
}

void drain_init(struct drain *d, struct segment *seg, struct journal *j, struct tasks *t)
{
	memset(d, 0, sizeof(*d));
	d->seg = seg;
	d->journal = j;
	d->tasks = t;
	d->trace.ops = &drain_into_trace;
	d->sink = &d->trace;
}

int drain_start(struct drain *d, struct err *err)
{
	int code;

	d->next_dead_ns = clock_ns(CLOCK_MONOTONIC_COARSE) + DEAD_EVERY_MS * MS;
	d->next_thorough_ns = clock_ns(CLOCK_MONOTONIC_COARSE) + THOROUGH_EVERY_MS * MS;
	d->next_count_ns = d->next_thorough_ns;
	drain_notice_gates(d, false);
	code = pthread_create(&d->thread, NULL, drain_thread, d);
	if (code)
		return err_set(err, code, "cannot start a thread: %s", strerror(code));
	d->running = true;
	return 0;
}

void drain_ask_to_stop(struct drain *d)
{
	if (!d->running || __atomic_exchange_n(&d->stop, true, __ATOMIC_ACQ_REL))
		return;
	segment_wake_collector(d->seg);
}

void drain_stop(struct drain *d)
{
	if (!d->running)
		return;
	drain_ask_to_stop(d);
	pthread_join(d->thread, NULL);
	d->running = false;
}

/* In wrap mode the runtime may take a FULL chunk at any time: take it first. */
static bool take_from_wrapping(struct drain *d, uint32_t i, uint64_t *word)
{
	uint64_t mine = (*word & ~(uint64_t)KRON_STATE_MASK) | KRON_CHUNK_OWNED;

	if (!wraps(d) || kron_chunk_word_state(*word) != KRON_CHUNK_FULL)
		return true;
	return __atomic_compare_exchange_n(&d->seg->states[i], word, mine, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

void drain_all(struct drain *d)
{
	uint32_t ready = segment_ready(d->seg);

	d->ending = true;
	tasks_look(d->tasks, true, true);
	drain_switches(d, true);
	if (notice_cut(d))
		ready = 0;
	else if (d->fetch)
		fetch_all(d->fetch);
	for (uint32_t i = 0; i < ready; i++) {
		uint64_t word = __atomic_load_n(&d->seg->states[i], __ATOMIC_ACQUIRE);
		const struct kron_chunk *c = segment_chunk(d->seg, i);
		struct chunk_owner o;
		struct chunk_count n;

		if (kron_chunk_word_state(word) == KRON_CHUNK_TAKEN && is_taker_gone(d, word, true))
			lose_chunk(d, i);
		if (!chunk_is_owned(word) || (pages_are_in(c) && drain_pages(d, i, word, false)) ||
		    !take_from_wrapping(d, i, &word) ||
		    sink_advise(d->sink, i, false, NULL) == SINK_LEAVE)
			continue;
		tasks_of_chunk(d->tasks, word, false, &o);
		tasks_note_thread_end(d->tasks, &o);
		chunk_count(c, &n);
		if (has_news(d, c, &n))
			hand_on(d, i, &o, &n);
		else
			drain_free(d, i, n.nbytes);
	}
	sink_flush(d->sink);
	sink_look(d->sink, true);
	xfree(d->folded);
	d->folded = NULL;
	notice_cut(d);
	notice_disk(d);
	if (!d->disk_failed)
		tasks_release(d->tasks, true);
}

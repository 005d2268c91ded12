/* SPDX-License-Identifier: MIT */
/*
 * watch_lanes.c - the threads that the watch knows, and what of each comes next.
 *
 * A lane is looked at in order, chunk by chunk, up to a moment ago.  What is between one sample
 * that the trigger wants and the next is passed over by a glance at its event number.
 *
 * A place that is empty ends it, mostly: there the thread goes on.  If the thread has stored later
 * samples, more than a moment ago, a signal handler runs on top of that place's probe, maybe for
 * long: it is passed over, and looked at again until its chunk is taken.
 */
#include "collect/watch/watch_impl.h"

#include <string.h>

#include "collect/kernel/process_maps.h"

#define AHEAD 96   /* samples: two kilobytes take as long to come as these to be passed */
#define UNDOING 64 /* so far at most is looked for what undoes a sample: to feed it costs that */
#define RETRY 32   /* where that was in vain, it is tried again after so many */

/* ---- who ---- */

static uint64_t key_of(const struct chunk_owner *o)
{
	return ((uint64_t)o->uid << KRON_SOURCE_TID_BITS | (uint32_t)o->tid) + 1;
}

static uint32_t *bucket(const struct watch *w, uint64_t key)
{
	return &w->by_key[(key * 0x9e3779b97f4a7c15ull >> 50) % WATCH_HASH];
}

static void bind(struct watch *w, uint32_t i)
{
	trigger_bind_lane(w->trigger, i, &w->lanes.v[i].l, &w->lanes.v[i].proc);
}

/*
 * A thread's name is what it is called when its samples are looked at, so it is asked for in each
 * look at which they may matter.  Of one that has ended, the last name stays.
 */
static void ask_name(struct watch *w, uint32_t i)
{
	struct watch_lane *l = &w->lanes.v[i];
	char *name;

	if (!w->by_thread_name || !l->pid || l->named == w->round)
		return;
	l->named = w->round;
	name = process_thread_name(l->pid, (pid_t)l->l.tid);
	if (!name || !strcmp(name, l->l.name)) {
		xfree(name);
		return;
	}
	xfree((char *)(uintptr_t)l->l.name);
	l->l.name = name;
	bind(w, i);
}

static void fill_lane(struct watch *w, uint32_t i, uint64_t key, const struct chunk_owner *o)
{
	struct watch_lane *l = &w->lanes.v[i];
	const struct task *k = o->task;

	*l = (struct watch_lane){
		.key = key,
		.l = {.proc_uid = o->uid, .tid = (uint32_t)o->tid, .name = xstrdup("")},
		.proc = {.uid = o->uid,
			 .pid = k ? k->pid : -1,
			 .exe = xstrdup(k && k->exe ? k->exe : "")},
		.pid = k && !k->foreign ? k->pid : 0,
		.slot = k ? (uint32_t)(k - w->d->tasks->slot) : KRON_PROCS_MAX,
		.same_hash = *bucket(w, key),
		.doubt_at = UINT64_MAX,
		.ahead = UNDOING,
	};
	*bucket(w, key) = i + 1;
	bind(w, i);
	ask_name(w, i);
}

uint32_t watch_lane_of(struct watch *w, const struct chunk_owner *o)
{
	uint64_t key = key_of(o);
	uint32_t i;

	for (i = *bucket(w, key); i; i = w->lanes.v[i - 1].same_hash)
		if (w->lanes.v[i - 1].key == key)
			return i - 1;
	i = w->unused_lanes;
	if (i) {
		w->unused_lanes = w->lanes.v[i - 1].same_hash;
	} else {
		vec_push(&w->lanes);
		i = (uint32_t)w->lanes.n;
	}
	fill_lane(w, i - 1, key, o);
	return i - 1;
}

static void free_names(struct watch_lane *l)
{
	xfree((char *)(uintptr_t)l->l.name);
	xfree(l->proc.exe);
}

void watch_lane_retire(struct watch *w, uint32_t i)
{
	struct watch_lane *l = &w->lanes.v[i];
	uint32_t *p;

	if (!l->dead || l->chunks || l->is_open || !trigger_forget_lane(w->trigger, i))
		return;
	for (p = bucket(w, l->key); *p != i + 1;)
		p = &w->lanes.v[*p - 1].same_hash;
	*p = l->same_hash;
	free_names(l);
	*l = (struct watch_lane){.same_hash = w->unused_lanes};
	w->unused_lanes = i + 1;
}

void watch_lane_opens(struct watch *w, uint32_t i)
{
	if (w->lanes.v[i].is_open)
		return;
	w->lanes.v[i].is_open = true;
	*vec_push(&w->open) = i;
}

void watch_lanes_free(struct watch *w)
{
	vec_for(&w->lanes, l)
		if (l->key)
			free_names(l);
	vec_free(&w->lanes);
	vec_free(&w->open);
	vec_free(&w->heap);
	xfree(w->by_key);
}

/* ---- holes ---- */

static const struct kron_sample *sample_at(const struct watch *w, const struct watch_chunk *c,
					   uint32_t at)
{
	return (const void *)(watch_chunk_bytes(w, c) + at);
}

/* Acquire: the head is stored last; partner: the thunk's store of it. */
static bool is_stored(const struct kron_sample *s)
{
	return __atomic_load_n(&s->head, __ATOMIC_ACQUIRE) != 0;
}

static void remember_hole(struct watch *w, struct watch_chunk *c, uint32_t at)
{
	if (!c->nholes)
		*vec_push(&w->holed) = c;
	if (c->nholes == WATCH_HOLES) { /* the oldest is the least likely to be filled */
		memmove(c->holes, c->holes + 1, (WATCH_HOLES - 1) * sizeof(*c->holes));
		c->nholes--;
	}
	c->holes[c->nholes++] = at;
}

static bool is_stored_before(const struct watch *w, const struct kron_sample *s, uint64_t until)
{
	return is_stored(s) && kron_sample_time_near(s, w->start.tsc) < until;
}

/*
 * The place is empty.  Where the lane goes on: at a later one that was stored before `until`, or
 * after the chunk's end, if the thread has another one by then; 0: it does not yet.  Farther away
 * than holes are remembered it waits until the chunk is taken.
 */
static uint32_t next_stored(const struct watch *w, const struct watch_chunk *c, uint64_t until)
{
	uint32_t end = watch_chunk_end(c), i = c->at + KRON_SAMPLE_SIZE;

	for (; i <= c->at + WATCH_HOLES * KRON_SAMPLE_SIZE && i < end; i += KRON_SAMPLE_SIZE)
		if (is_stored(sample_at(w, c, i)))
			return is_stored_before(w, sample_at(w, c, i), until) ? i : 0;
	return i >= end && c->next && is_stored_before(w, sample_at(w, c->next, 0), until) ? end
											   : 0;
}

bool watch_lane_has_holes(const struct watch *w, uint32_t lane)
{
	for (size_t i = 0; i < w->holed.n; i++)
		if (w->holed.v[i]->lane == lane)
			return true;
	return false;
}

/* To conditions every value from memory that is not a number is the same. */
static const struct trace_memory no_number = {.is_unreadable = true};

/* Is what stands before the sample such a part of it? */
static bool is_part(const struct kron_sample *part, const struct kron_sample *s, uint32_t event)
{
	return part->head && part->event == event && kron_sample_time(part) == kron_sample_time(s);
}

/* One sample is done. */
static void pass(struct watch *w, struct watch_chunk *c, const struct kron_sample *s, uint64_t tsc)
{
	c->counted += s->event < KRON_EVENT_SPECIAL;
	w->after += w->fired.at && s->event < KRON_EVENT_SPECIAL && tsc > w->fired.at;
}

static void fill_holes(struct watch *w, struct watch_chunk *c,
		       void (*feed)(struct watch *w, const struct trace_event *e))
{
	struct trace_event e = {.lane = c->lane, .cpu = w->lanes.v[c->lane].cpu};
	uint32_t kept = 0;

	for (uint32_t i = 0; i < c->nholes; i++) {
		const struct kron_sample *s = sample_at(w, c, c->holes[i]);

		if (!is_stored(s)) {
			if (!c->taken) /* else nobody fills it any more */
				c->holes[kept++] = c->holes[i];
			continue;
		}
		e.s = *s;
		e.jump = 0;
		e.is_wide = c->holes[i] && is_part(s - 1, s, KRON_EVENT_WIDE);
		e.high = e.is_wide ? s[-1].payload : 0;
		e.memory = c->holes[i] && is_part(s - 1, s, KRON_EVENT_MEMORY) ? &no_number : NULL;
		watch_resolve(w, &e);
		e.tsc = kron_sample_time_near(s, w->start.tsc);
		c->first = e.tsc < c->first ? e.tsc : c->first;
		c->last = e.tsc > c->last ? e.tsc : c->last;
		pass(w, c, s, e.tsc);
		if (s->event < KRON_EVENT_SPECIAL)
			feed(w, &e);
	}
	c->nholes = kept;
}

void watch_lanes_fill(struct watch *w, void (*feed)(struct watch *w, const struct trace_event *e))
{
	size_t kept = 0;

	for (size_t i = 0; i < w->holed.n; i++) {
		struct watch_chunk *c = w->holed.v[i];

		fill_holes(w, c, feed);
		if (c->nholes)
			w->holed.v[kept++] = c;
	}
	w->holed.n = kept;
}

/* ---- what comes next ---- */

/*
 * Has it to be fed in its turn?  Then l->e and l->bits are what the trigger gets.  What meets
 * something that is the thread's own business is fed at once.
 */
static bool has_a_turn(struct watch *w, uint32_t i, struct trigger_wants *wants,
		       const struct kron_sample *s, uint64_t tsc)
{
	struct watch_lane *l = &w->lanes.v[i];

	if (w->by_thread_name)
		ask_name(w, i);
	l->e = (struct trace_event){.tsc = tsc, .lane = i, .cpu = l->cpu, .s = *s};
	l->e.is_wide = l->high_tsc == tsc;
	l->e.high = l->e.is_wide ? l->high : 0;
	l->e.memory = l->memory_tsc == tsc ? &no_number : NULL;
	watch_resolve(w, &l->e);
	l->bits = trigger_test(w->trigger, wants, &l->e);
	if (!l->bits || !trigger_is_private(w->trigger, &l->e, l->bits))
		return l->bits;
	trigger_feed(w->trigger, &l->e, l->bits);
	*wants = trigger_wants(w->trigger, i);
	l->bits = 0;
	return false;
}

/* Is this one next?  Of a special record: what it says is noted. */
static bool is_next(struct watch *w, uint32_t i, struct trigger_wants *wants,
		    const struct kron_sample *s, uint64_t tsc)
{
	struct watch_lane *l = &w->lanes.v[i];

	l->is_loss = s->event == KRON_EVENT_LOST;
	if (w->board) {
		l->cpu = s->head >> KRON_HEAD_CPU_SHIFT;
		l->is_loss |= (s->head & KRON_HEAD_FIFO_OVERFLOW) != 0;
	}
	if (s->event == KRON_EVENT_CPU)
		l->cpu = s->payload;
	if (s->event == KRON_EVENT_WIDE) {
		l->high = s->payload;
		l->high_tsc = tsc;
	}
	if (s->event == KRON_EVENT_MEMORY)
		l->memory_tsc = tsc;
	l->bits = 0;
	if ((s->event < KRON_EVENT_SPECIAL || kron_event_is_unwinding(s->event)) &&
	    trigger_may_want(wants, s))
		has_a_turn(w, i, wants, s, tsc);
	else if (l->is_loss)
		l->e = (struct trace_event){.tsc = tsc, .lane = i, .cpu = l->cpu, .s = *s};
	return l->bits || l->is_loss;
}

enum outcome { FOUND, AT_END, WAIT };

/* What the trigger's table is asked with, read once: a program may write there at any time. */
static struct kron_sample read_once(const struct kron_sample *s)
{
	return (struct kron_sample){.event = __atomic_load_n(&s->event, __ATOMIC_RELAXED),
				    .payload = __atomic_load_n(&s->payload, __ATOMIC_RELAXED)};
}

/* Nothing near undid it: look less far, most of the time. */
static void look_less_far(struct watch_lane *l)
{
	l->ahead = ++l->fed % RETRY ? (l->ahead + 1) / 2 : UNDOING;
}

/*
 * A time as samples have it, from the start on: their 56 bits are the upper ones of 64, so one
 * comparison is right however far away it is.
 */
static int64_t packed_time(const struct watch *w, uint64_t tsc)
{
	int64_t t = (int64_t)(tsc - w->start.tsc);

	if (tsc >= w->start.tsc && tsc - w->start.tsc > INT64_MAX >> 8)
		return INT64_MAX;
	return t < INT64_MIN >> 8 ? INT64_MIN : t * 256;
}

static inline int64_t packed_time_of(uint32_t head, uint32_t time_lo, uint64_t start)
{
	return (int64_t)((((uint64_t)head << 32 | time_lo) - start) << 8);
}

static inline uint64_t unpacked_time(int64_t at, uint64_t start)
{
	return start + (uint64_t)(at >> 8);
}

/*
 * Samples of a chunk from s on, and what was seen in them.  A run of them has one head and rises in
 * time, up to the last tick before `until`: so most are compared by their lower halves only.
 */
struct pass {
	const struct kron_sample *s, *end;
	uint64_t start;
	int64_t until, first, last; /* packed */
	uint32_t head, from, to;
	uint32_t ahead;                   /* as the lane's */
	const struct kron_sample *undoes; /* whatever may be undone before it; NULL: not known */
	uint64_t undoes_tsc;
};

enum stop { RUN_ENDS, IS_SPECIAL, MAY_BE_WANTED, STAYS };

static inline void note_time(struct pass *p, int64_t at)
{
	p->first = at < p->first ? at : p->first;
	p->last = at > p->last ? at : p->last;
}

/* Is there a sample to begin one with? */
static bool begin_run(struct pass *p)
{
	uint64_t left;
	int64_t at;

	p->head = p->s < p->end ? __atomic_load_n(&p->s->head, __ATOMIC_ACQUIRE) : 0;
	if (!p->head)
		return false;
	p->from = __atomic_load_n(&p->s->time_lo, __ATOMIC_RELAXED);
	at = packed_time_of(p->head, p->from, p->start);
	if (at >= p->until)
		return false;
	left = ((uint64_t)p->until - 1 - (uint64_t)at) >> 8;
	p->to = left < UINT32_MAX - p->from ? p->from + (uint32_t)left : UINT32_MAX;
	return true;
}

/*
 * What it begins is over within the next samples, or it begins nothing: the trigger need not see it.
 * Calls are short, mostly, and a lane is read faster than it is fed.
 */
static bool is_undone(struct watch_lane *l, struct pass *p, const struct trigger_wants *wants,
		      uint64_t tsc)
{
	const struct kron_sample first = read_once(p->s), *n = p->s + 1, *most = p->s + l->ahead;

	if (first.event >= wants->nevents || !trigger_may_undo(wants, &first, tsc))
		return false;
	if (trigger_is_nothing(wants, &first))
		return true;
	for (; n < p->end && n <= most; n++) {
		struct kron_sample next;
		enum trigger_ahead a;
		uint64_t next_tsc;

		if (!is_stored(n))
			return false;
		next = read_once(n);
		if (next.event >= wants->nevents)
			return false;
		next_tsc = kron_sample_time_near(n, p->start);
		a = trigger_look_ahead(wants, &first, tsc, &next, next_tsc);
		if (a == TRIGGER_GO_ON)
			continue;
		if (a == TRIGGER_UNDONE && trigger_undoes_all(wants)) {
			p->undoes = n;
			p->undoes_tsc = next_tsc;
		}
		return a == TRIGGER_UNDONE;
	}
	if (n > most)
		look_less_far(l);
	return false;
}

/* The same, but no further than the next one, or the one that undoes all before it. */
static inline bool is_undone_at_once(const struct pass *p, const struct trigger_wants *wants,
				     const struct kron_sample *s, uint64_t tsc)
{
	const struct kron_sample first = read_once(s), *n = s + 1;
	struct kron_sample next;

	if (first.event >= wants->nevents || !trigger_may_undo(wants, &first, tsc))
		return false;
	if (trigger_is_nothing(wants, &first) ||
	    (s < p->undoes && (int64_t)(p->undoes_tsc - tsc) <= (int64_t)wants->limit))
		return true;
	if (n >= p->end || !is_stored(n))
		return false;
	next = read_once(n);
	return next.event < wants->nevents &&
	       trigger_look_ahead(wants, &first, tsc, &next, kron_sample_time_near(n, p->start)) ==
		       TRIGGER_UNDONE;
}

/*
 * A call that would be waited for, when nothing is: the sample that ends it, if it is near and in
 * time.  What lies between is of no use either; *lo: the last time there.  NULL: it stays.
 */
static inline const struct kron_sample *pass_call(const struct pass *p,
						  const struct trigger_wants *wants,
						  const struct kron_sample *s, uint32_t *lo)
{
	const struct kron_sample *n = s + 1;
	const struct kron_sample *end = p->end - n > p->ahead ? n + p->ahead : p->end;
	const uint32_t sp = __atomic_load_n(&s->payload, __ATOMIC_RELAXED), since = *lo;
	const uint32_t head = p->head, to = p->to;
	uint32_t last = since;

	for (; n < end; n++) {
		uint32_t now, event;
		enum trigger_ahead a;

		if (__atomic_load_n(&n->head, __ATOMIC_ACQUIRE) != head)
			break;
		__builtin_prefetch(n + AHEAD);
		now = __atomic_load_n(&n->time_lo, __ATOMIC_RELAXED);
		event = __atomic_load_n(&n->event, __ATOMIC_RELAXED);
		if (now < last || now > to || event >= wants->nevents)
			break;
		a = trigger_look_into_call(wants->by_event[event] & (uint8_t)~TRIGGER_WANTS_NEXT,
					   sp, __atomic_load_n(&n->payload, __ATOMIC_RELAXED));
		if (a == TRIGGER_UNDONE && now - since <= wants->limit) {
			*lo = last;
			return n;
		}
		if (a != TRIGGER_GO_ON)
			break;
		last = now;
	}
	return NULL;
}

/*
 * Nearly all samples go by here, so it keeps to registers: of the run, and of no use, mostly by
 * their events.  Lanes only.  Not inline, for the registers' sake.
 */
__attribute__((noinline)) static enum stop pass_run(struct pass *p,
						    const struct trigger_wants *wants)
{
	const struct kron_sample *s = p->s, *end = p->end;
	const uint32_t head = p->head, to = p->to;
	const struct trigger_wants k = *wants;
	const uint8_t call = trigger_waits_for_calls_only(&k) ? k.passing : 0;
	const uint64_t start = p->start;
	uint32_t from = p->from;
	enum stop stop = RUN_ENDS;

	for (; s < end; s++) {
		uint32_t lo, event;
		uint8_t bits;

		/* Acquire: as is_stored(). */
		if (__atomic_load_n(&s->head, __ATOMIC_ACQUIRE) != head)
			break;
		__builtin_prefetch(s + AHEAD); /* out of the other processor's cache */
		lo = __atomic_load_n(&s->time_lo, __ATOMIC_RELAXED);
		if (lo < from || lo > to)
			break;
		event = __atomic_load_n(&s->event, __ATOMIC_RELAXED);
		if (event >= k.nevents) {
			stop = IS_SPECIAL;
			break;
		}
		bits = k.by_event[event] & k.mask;
		if (k.follows && trigger_is_outside(&k, s) && (k.bottom || bits != call || !call)) {
			stop = MAY_BE_WANTED;
			break;
		}
		if (bits && bits == call) {
			const struct kron_sample *left = pass_call(p, &k, s, &lo);

			if (!left) {
				stop = STAYS;
				break;
			}
			s = left - 1;
		} else if (bits && trigger_may_want(&k, s) &&
			   !is_undone_at_once(p, &k, s,
					      unpacked_time(packed_time_of(head, lo, start),
							    start))) {
			stop = MAY_BE_WANTED;
			break;
		}
		from = lo;
	}
	if (s > p->s) {
		note_time(p, packed_time_of(head, p->from, start));
		note_time(p, packed_time_of(head, from, start));
	}
	p->s = s;
	return stop;
}

/* The next may be wanted: is it? */
static bool pass_one(struct watch *w, uint32_t i, struct trigger_wants *wants, struct pass *p,
		     bool stays)
{
	uint64_t tsc = kron_sample_time_near(p->s, p->start);
	struct watch_lane *l = &w->lanes.v[i];

	if (stays)
		look_less_far(l);
	if (stays || !is_undone(l, p, wants, tsc)) {
		if (has_a_turn(w, i, wants, p->s, tsc))
			return false;
		p->undoes = NULL; /* something waits by now, maybe */
	}
	note_time(p, packed_time(w, tsc));
	p->s++;
	return true;
}

static void pass_by(struct watch *w, uint32_t i, struct watch_chunk *c, struct trigger_wants *wants,
		    uint64_t until)
{
	const struct kron_sample *first = sample_at(w, c, c->at);
	struct watch_lane *l = &w->lanes.v[i];
	struct pass p = {
		.s = first,
		.end = sample_at(w, c, watch_chunk_end(c)),
		.start = w->start.tsc,
		.until = packed_time(w, until),
		.first = INT64_MAX,
		.last = INT64_MIN,
	};
	uint64_t lo, hi;

	while (begin_run(&p)) {
		enum stop stop;

		p.ahead = l->ahead;
		stop = pass_run(&p, wants);
		if (stop == IS_SPECIAL ||
		    (stop != RUN_ENDS && !pass_one(w, i, wants, &p, stop == STAYS)))
			break;
	}
	if (p.s == first)
		return;
	lo = unpacked_time(p.first, p.start);
	hi = unpacked_time(p.last, p.start);
	c->first = lo < c->first ? lo : c->first;
	c->last = hi > c->last ? hi : c->last;
	l->seen = hi > l->seen ? hi : l->seen;
	l->sure = hi > l->sure ? hi : l->sure;
	c->counted += (uint32_t)(p.s - first);
	c->at += (uint32_t)((const char *)p.s - (const char *)first);
}

static enum outcome look_at(struct watch *w, uint32_t i, struct watch_chunk *c, uint64_t until)
{
	struct trigger_wants wants = trigger_wants(w->trigger, i);
	struct watch_lane *l = &w->lanes.v[i];
	const uint8_t *bytes = watch_chunk_bytes(w, c);
	uint32_t end = watch_chunk_end(c), size, to;

	for (;; c->at += size) {
		const struct kron_sample *s;
		uint64_t tsc;

		if (!w->board && !w->fired.at)
			pass_by(w, i, c, &wants, until);
		size = watch_size_at(w, bytes, c->at, end);
		if (!size) {
			c->at = end;
			return AT_END;
		}
		s = (const void *)(bytes + c->at);
		if (!is_stored(s)) {
			to = c->taken ? c->at + size : next_stored(w, c, until);
			if (!to)
				return WAIT;
			for (; !c->taken && c->at < to; c->at += size)
				remember_hole(w, c, c->at);
			c->at = to - size; /* the loop goes on at `to` */
			continue;
		}
		tsc = kron_sample_time_near(s, w->start.tsc);
		if (tsc >= until)
			return WAIT;
		c->first = tsc < c->first ? tsc : c->first;
		c->last = tsc > c->last ? tsc : c->last;
		l->seen = tsc > l->seen ? tsc : l->seen;
		l->lost_after = l->sure;
		if (s->event < KRON_EVENT_SPECIAL)
			l->sure = tsc > l->sure ? tsc : l->sure;
		if (!w->fired.at && is_next(w, i, &wants, s, tsc))
			return FOUND;
		pass(w, c, s, tsc);
	}
}

bool watch_lane_advance(struct watch *w, uint32_t i, uint64_t until)
{
	struct watch_lane *l = &w->lanes.v[i];
	enum outcome o = AT_END;

	if (l->has_next)
		return true;
	while (l->here && (o = look_at(w, i, l->here, until)) == AT_END) {
		/* Full, but not taken yet: what follows is in the next one. */
		l->here = l->here->next;
	}
	l->has_next = o == FOUND && l->here;
	if (l->has_next)
		l->order = l->seen; /* with it: look_at() has noted its time */
	return l->has_next;
}

void watch_lane_consume(struct watch *w, uint32_t i)
{
	struct watch_lane *l = &w->lanes.v[i];
	struct watch_chunk *c = l->here;

	l->has_next = false;
	pass(w, c, &l->e.s, l->e.tsc);
	c->at += watch_size_at(w, watch_chunk_bytes(w, c), c->at, watch_chunk_end(c));
}

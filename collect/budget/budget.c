/* SPDX-License-Identifier: MIT */
/*
 * budget.c - see budget.h.
 *
 * Price: a probe costs what it costs in a loop (calibrate.h), and somewhat more in a program whose caches it shares.
 *
 * Of what sleeps nothing is known but what it cost when it was awake last.  So what is seen in a window replaces that, but
 * not at once: a function that rests for a moment would be woken, and put to sleep again, at the price of two stops.
 */
#define _GNU_SOURCE
#include "collect/budget/budget.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/budget/choice.h"
#include "collect/budget/cpu_time.h"

#define MS 1000000ull
#define LOOK_FIRST_MS 40u /* after the first samples */
#define LOOKS_FIRST 25u   /* of these */
#define LOOK_MS 250u      /* then */
#define LEAST_CPU_NS (10 * MS)
#define FIRST_TURNS 4u /* while nothing is known yet: 40, 80, 160 ms apart */
#define WINDOW_MS 12u
#define FIRST_WINDOW_MS 1000u
#define LAG_MS 120u           /* until what a thread has stored has been counted */
#define WINDOW_LEAST_MS 2000u /* between two */
#define WINDOW_MOST_MS 3600000u
#define RETRY_MOST_MS 60000u
#define DOUBLINGS 10u
#define LONG_NS 10000u
#define IN_A_PROGRAM 1.25 /* times the price in a loop */
#define AIM 0.7        /* of the budget: then little that comes does not ask for another change */
#define STOPS 0.5      /* of the budget, in real time, may go to stops */
#define WINDOWS 0.25   /* of the budget, in processor time, may go to windows */
#define FADES 0.25     /* what is left of a cost when a window does not see it */
#define OWN_LEAST 0.05 /* of the processor time is the program's own, whatever the price says */
#define PRICE_NS 10.0  /* where it cannot be measured */
#define FEW 64u        /* events that do not tell how many of their kind were lost */

struct budget {
	struct budget_options o;
	pthread_t thread;
	pthread_mutex_t lock; /* of `stop` */
	pthread_cond_t wake;
	bool stop;

	/* By function number, all of one length. */
	uint32_t n;
	struct meter_count *before, *now;
	struct choice_function *functions;
	uint8_t *held, *next;

	struct cpu_time cpu;
	uint64_t ended_before;
	uint64_t looked; /* CLOCK_MONOTONIC */
	unsigned looks;  /* so far, as far as that matters */
	bool is_suspect; /* the last look was above the budget, and the next one is to say so, too */
	unsigned failures;      /* changes that were not to be had, one after the other */
	uint64_t lost_before;   /* when `before` was taken */
	uint64_t lost, counted; /* since then */
	double price_ns, ticks_per_ns;
	double per_counted; /* events for each that was counted: 1 where none is lost */
	double own_ns;      /* own_time() */
	uint64_t cpu_ns;    /* since `before` was taken */
	unsigned turns;
	unsigned windows;                /* so far, as far as that matters */
	uint64_t stood_ns;               /* at the last change */
	uint64_t next_turn, next_window; /* CLOCK_MONOTONIC */
	double cost, unmovable; /* as the last look has them; its samples may be of a longer time */
	struct budget_end end;
};

/* ---- what there is ---- */

static void grow(struct budget *b, uint32_t n)
{
	if (n <= b->n)
		return;
	b->before = xrealloc(b->before, n * sizeof(*b->before));
	b->now = xrealloc(b->now, n * sizeof(*b->now));
	b->functions = xrealloc(b->functions, n * sizeof(*b->functions));
	b->held = xrealloc(b->held, n);
	b->next = xrealloc(b->next, n);
	memset(b->before + b->n, 0, (n - b->n) * sizeof(*b->before));
	memset(b->functions + b->n, 0, (n - b->n) * sizeof(*b->functions));
	memset(b->held + b->n, 0, n - b->n);
	b->n = n;
}

/* What a module's probes cost counts, whether its functions can sleep and nobody wants them kept, or not. */
static void take_module(void *ctx, struct module *m)
{
	struct budget *b = ctx;
	bool sleeps;

	if (!m->full || !m->settled)
		return;
	sleeps = m->probes.sleepers.functions && !m->patched;
	grow(b, m->event_base + (uint32_t)m->full->nfunctions);
	for (size_t i = 0; i < m->full->nfunctions; i++)
		b->functions[m->event_base + i].may_sleep =
			sleeps && m->selected[i] == 1 && !(m->kept && m->kept[i]);
}

/* ---- what it costs ---- */

static uint64_t clock_now(const struct budget *b)
{
	return b->o.changes->now(b->o.changes->note_ctx);
}

static void know_price(struct budget *b)
{
	struct probe_cost cost = {0};
	struct time_point now;
	double hz;

	time_point_take(&now);
	hz = tsc_hz(b->o.start, &now);
	b->ticks_per_ns = hz / 1e9;
	if (b->o.measure)
		b->o.measure(&cost, hz, 0, false);
	b->price_ns = (cost.on > 0 ? cost.on : PRICE_NS) * IN_A_PROGRAM;
	meter_set_long(b->o.meter, (uint64_t)(LONG_NS * b->ticks_per_ns));
}

/*
 * Processor time since the last call; of processes that have ended, as long as their threads can have run, which is no
 * more than all processors had.
 */
static uint64_t cpu_since(struct budget *b)
{
	const uint64_t ended = meter_ended_ticks(b->o.meter), was = b->ended_before;
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	const uint64_t most = (now - b->looked) * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t ns = cpu_time_look(&b->cpu);

	ns += (uint64_t)((double)(ended - was) / (b->ticks_per_ns > 0 ? b->ticks_per_ns : 1));
	b->ended_before = ended;
	meter_look(b->o.meter, clock_now(b));
	if (b->looked && ns > most)
		ns = most;
	b->looked = now;
	return ns;
}

static uint64_t lost_now(const struct budget *b)
{
	struct task_totals t;

	tasks_totals(b->o.tasks, &t);
	return t.lost;
}

/* From here on anew.  Samples come when their chunks are full: those of before count as well. */
static void begin_look(struct budget *b)
{
	meter_read(b->o.meter, b->before, b->n);
	b->lost_before = lost_now(b);
	b->is_suspect = false;
	b->cpu_ns = 0;
	cpu_since(b);
}

/* Likewise, but others were awake before: what they have stored is not of this look. */
static void begin_after_change(struct budget *b)
{
	meter_begin(b->o.meter, clock_now(b));
	meter_end(b->o.meter, 0);
	begin_look(b);
}

/*
 * With those that were lost.  Of a function that a thread calls once, as it starts, no call is lost: that was before the
 * buffer was full.
 */
static double all_events(const struct budget *b, uint64_t counted)
{
	return (double)counted * (counted > FEW ? b->per_counted : 1);
}

/* Of the processor time that the program would take without probes: what it calls in that, it calls then. */
static double share_of(const struct budget *b, uint64_t events)
{
	return all_events(b, events) * b->price_ns / b->own_ns;
}

/*
 * That time, since `before`, as functions that are held have taken of it, or the others.  By the lower price: where most of it
 * went to probes, little is left.
 */
static double own_time(const struct budget *b, bool held)
{
	const double all = (double)b->cpu_ns;
	double own = all;

	for (uint32_t i = 0; i < b->n; i++)
		if (b->held[i] == held)
			own -= all_events(b, b->now[i].events - b->before[i].events) * b->price_ns /
			       IN_A_PROGRAM;
	return own > OWN_LEAST * all ? own : OWN_LEAST * all;
}

/* What has come since `before`.  Where the buffer is full, most of it may be lost, which has cost as much. */
static void read_now(struct budget *b, uint64_t lost)
{
	meter_read(b->o.meter, b->now, b->n);
	b->counted = 0;
	for (uint32_t i = 0; i < b->n; i++)
		b->counted += b->now[i].events - b->before[i].events;
	b->lost = lost - b->lost_before;
	b->per_counted = 1 + (double)b->lost / (double)(b->counted ? b->counted : 1);
}

/* A function that is awake costs what was seen of it, and one that was awake for a moment at least part of what it did. */
static void know_function(struct budget *b, uint32_t i)
{
	struct choice_function *f = &b->functions[i];
	const uint64_t events = b->now[i].events - b->before[i].events;
	const uint64_t longs = b->now[i].longs - b->before[i].longs;
	const double cost = share_of(b, events), least = b->held[i] ? f->cost * FADES : 0;

	if (cost >= least)
		f->longs = (double)longs * 1e9 / b->own_ns;
	f->cost = cost >= least ? cost : least;
}

/* What is awake costs this, as far as the last look knows. */
static void sum_up(struct budget *b)
{
	b->cost = b->unmovable = 0;
	for (uint32_t i = 0; i < b->n; i++) {
		if (b->held[i])
			continue;
		b->cost += b->functions[i].cost;
		b->unmovable += b->functions[i].may_sleep ? 0 : b->functions[i].cost;
	}
}

/* And that is what is told at the end, until somebody knows better. */
static void believe(struct budget *b)
{
	b->end.cost = b->cost;
	b->end.unmovable = b->unmovable;
	b->end.is_known = true;
}

/* Of what is awake. */
static void know_costs(struct budget *b)
{
	read_now(b, lost_now(b));
	b->own_ns = own_time(b, false);
	for (uint32_t i = 0; i < b->n; i++)
		if (!b->held[i])
			know_function(b, i);
	sum_up(b);
}

/* Of what is held, and was awake for a moment, until `end`.  What that took; 0: nobody knows. */
static double know_held(struct budget *b, uint64_t end, uint64_t lost)
{
	double cost = 0;

	read_now(b, lost);
	if (b->cpu_ns < MS || meter_newest(b->o.meter) < end || (b->lost && b->counted <= FEW))
		return 0;
	b->own_ns = own_time(b, true);
	for (uint32_t i = 0; i < b->n; i++) {
		if (!b->held[i])
			continue;
		cost += share_of(b, b->now[i].events - b->before[i].events);
		know_function(b, i);
	}
	return cost;
}

/* ---- changes ---- */

static uint32_t count_held(const struct budget *b)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->n; i++)
		n += b->held[i];
	return n;
}

/* Those of `next`, and no others. */
static bool turn(struct budget *b, const uint8_t *next)
{
	const uint64_t stood = b->o.changes->all_stood_ns;
	uint64_t turned, gap;
	struct err err = {{0}};
	int code = changes_hold_functions(b->o.changes, next, b->n, &turned, &err);
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);

	b->stood_ns = b->o.changes->all_stood_ns - stood;
	gap = (uint64_t)((double)b->stood_ns / (STOPS * b->o.share));
	if (b->turns < FIRST_TURNS && !code)
		gap = (uint64_t)LOOK_FIRST_MS * MS << b->turns;
	else if (gap < 1000 * MS)
		gap = 1000 * MS;
	b->failures = code ? b->failures + 1 : 0;
	for (unsigned i = 0; i < b->failures && gap < RETRY_MOST_MS * MS; i++)
		gap *= 2;
	b->turns++;
	b->next_turn = now + gap;
	b->end.err = code ? err : (struct err){{0}};
	if (!code && next != b->held)
		memcpy(b->held, next, b->n);
	b->end.asleep = count_held(b);
	return !code;
}

/*
 * The last one has cost so much.  They are further and further apart: a recv(2) with a timeout
 * (SO_RCVTIMEO) begins anew after each stop, and is to come to its end.
 */
static void plan_window(struct budget *b, double cost_ns)
{
	const double stops = 2 * (double)b->stood_ns / STOPS, cost = cost_ns / WINDOWS;
	uint64_t gap = (uint64_t)((stops > cost ? stops : cost) / b->o.share);

	gap = gap < WINDOW_LEAST_MS * MS ? WINDOW_LEAST_MS * MS : gap;
	gap <<= b->windows;
	b->windows += b->windows < DOUBLINGS;
	gap = gap > WINDOW_MOST_MS * MS ? WINDOW_MOST_MS * MS : gap;
	b->next_window = clock_ns(CLOCK_MONOTONIC) + gap;
}

/* By all that is known: what sleeps already costs what it did. */
static void choose(struct budget *b)
{
	choice_make(b->functions, b->n, AIM * b->o.share, b->next);
}

static void hold_more(struct budget *b)
{
	believe(b);
	choose(b);
	for (uint32_t i = 0; i < b->n; i++)
		b->next[i] |= b->held[i];
	if (!memcmp(b->next, b->held, b->n)) {
		begin_look(b);
		return;
	}
	if (turn(b, b->next)) {
		sum_up(b);
		believe(b);
	}
	if (!b->next_window) /* how a program begins says little of how it goes on */
		b->next_window = clock_ns(CLOCK_MONOTONIC) + FIRST_WINDOW_MS * MS;
	begin_after_change(b);
}

/* false: it is to stop. */
static bool rest(struct budget *b, unsigned ms)
{
	struct timespec until;
	bool stop;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)ms * (long)MS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&b->lock);
	while (!b->stop && pthread_cond_timedwait(&b->wake, &b->lock, &until) != ETIMEDOUT)
		;
	stop = b->stop;
	pthread_mutex_unlock(&b->lock);
	return !stop;
}

/*
 * All are awake for a moment.  Then they sleep as before, and what was seen is counted when it has come; if that says so, some
 * others do.
 */
static void look_through_window(struct budget *b)
{
	uint8_t *none = xcalloc(b->n + 1, 1), *was = xmalloc(b->n + 1);
	uint64_t turning_ns, end, lost;
	double cost = 0;

	memcpy(was, b->held, b->n);
	cpu_since(b);
	if (turn(b, none)) {
		turning_ns = cpu_since(b);
		begin_after_change(b);
		rest(b, WINDOW_MS);
		b->cpu_ns = cpu_since(b);
		end = clock_now(b);
		lost = lost_now(b);
		meter_end(b->o.meter, end);
		if (turn(b, was)) {
			turning_ns += cpu_since(b);
			rest(b, LAG_MS);
			cost = know_held(b, end, lost);
			cost = cost / (1 + cost) * (double)(b->cpu_ns + turning_ns);
			choose(b);
			if (memcmp(b->next, b->held, b->n))
				turn(b, b->next);
			sum_up(b);
			believe(b);
		}
		begin_after_change(b);
	}
	plan_window(b, cost);
	xfree(none);
	xfree(was);
}

static void look(struct budget *b)
{
	b->cpu_ns += cpu_since(b);
	if (b->cpu_ns < LEAST_CPU_NS)
		return;
	b->looks += b->looks < LOOKS_FIRST;
	modules_each(b->o.modules, take_module, b);
	if (!b->price_ns)
		know_price(b);
	know_costs(b);
	if (b->cost <= b->o.share)
		believe(b);
	if (b->cost <= b->o.share || clock_ns(CLOCK_MONOTONIC) < b->next_turn)
		begin_look(b);
	else if (b->is_suspect)
		hold_more(b);
	else /* a chunk's samples may be of a longer time */
		b->is_suspect = true;
}

static void *run(void *arg)
{
	struct budget *b = arg;

	cpu_since(b);
	while (rest(b, b->looks < LOOKS_FIRST ? LOOK_FIRST_MS : LOOK_MS)) {
		look(b);
		if (b->next_window && clock_ns(CLOCK_MONOTONIC) >= b->next_window && b->end.asleep)
			look_through_window(b);
	}
	return NULL;
}

struct budget *budget_start(const struct budget_options *o, struct err *err)
{
	struct budget *b = xcalloc(1, sizeof(*b));
	pthread_condattr_t monotonic;
	int code;

	b->o = *o;
	b->cpu.tasks = o->tasks;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&b->wake, &monotonic);
	pthread_mutex_init(&b->lock, NULL);
	code = pthread_create(&b->thread, NULL, run, b);
	if (!code)
		return b;
	err_set(err, code, "cannot begin a thread: %s", strerror(code));
	xfree(b);
	return NULL;
}

void budget_stop(struct budget *b, struct budget_end *out)
{
	pthread_mutex_lock(&b->lock);
	b->stop = true;
	pthread_cond_signal(&b->wake);
	pthread_mutex_unlock(&b->lock);
	pthread_join(b->thread, NULL);
	*out = b->end;
	out->may_be_more = !b->end.is_known && b->cost > b->o.share;
	cpu_time_free(&b->cpu);
	xfree(b->before);
	xfree(b->now);
	xfree(b->functions);
	xfree(b->held);
	xfree(b->next);
	xfree(b);
}

/* SPDX-License-Identifier: MIT */
/*
 * flight.c - see flight.h.
 *
 * One question at a time: the next one waits for the lock.  The drain thread answers, for it alone knows
 * whose chunks are whose; it is woken at once.
 */
#define _GNU_SOURCE
#include "collect/flight/flight.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "base/vec.h"
#include "collect/drain.h"
#include "collect/flight/snapshot.h"
#include "collect/flight/worst.h"
#include "collect/grow.h"
#include "trace/writer_dir.h"

#define NEXT ".snapshot" /* as trace/writer_dir.c knows it */
#define TOO_MANY "%" PRIu64 " snapshots have been taken, and --max-snapshots allows no more"
#define MIB (1ull << 20)
#define BYTES_MIN MIB
#define LOOK_MORE (64 * MIB)
#define BYTES_MAX (1536 * MIB) /* and a third more is all that a pool may have */

struct question {
	const char *why;
	struct flight_taken *out;
	struct err *err;
	int code;
	bool done;
};

struct flight {
	struct sink sink;
	struct drain *drain;
	struct time_point start;
	char *dir, *next;
	uint64_t keep_ns, bytes, most;
	uint32_t taken;            /* atomic: names up to this one are given */
	uint32_t asked;            /* of these, not at the end; atomic */
	uint64_t fired;            /* by the look at hand */
	struct flight_looks looks; /* sink NULL: nobody looks at the samples */
	const char *on;
	struct worst worst;
	uint32_t dropped;      /* atomic: of those taken */
	uint64_t passed;       /* samples, not lost: each once, whatever snapshots have it */
	probe_cost_fn measure; /* NULL: it has been */
	unsigned clock_every;
	struct probe_cost cost;

	pthread_mutex_t turn; /* of whoever asks */
	pthread_mutex_t lock; /* of these four */
	struct err failed;
	pthread_cond_t answered;
	struct question *question; /* NULL: none */
	bool stopped;

	pthread_t thread; /* that waits for SIGUSR2 */
	bool watches;
	bool signal_stops; /* atomic */
};

/* ---- options ---- */

int flight_parse(struct flight_options *o, const char *text, struct err *err)
{
	static const struct {
		const char *unit;
		uint64_t bytes, ns;
	} units[] = {{"K", 1024, 0},
		     {"M", MIB, 0},
		     {"G", 1024 * MIB, 0},
		     {"ms", 0, 1000000},
		     {"s", 0, 1000000000},
		     {"m", 0, 60000000000ull},
		     {"min", 0, 60000000000ull}};
	char *end;
	double n = strtod(text, &end);

	*o = (struct flight_options){.text = text, .most = o->most, .on = o->on, .worst = o->worst};
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit) || !(n > 0) || !(n < 1e9))
			continue;
		o->bytes = (uint64_t)(n * (double)units[i].bytes);
		o->ns = (uint64_t)(n * (double)units[i].ns);
		if (o->bytes && (o->bytes < BYTES_MIN || o->bytes > BYTES_MAX))
			return err_set(err, EINVAL, "--flight: '%s' is not within 1M and 1536M",
				       text);
		if (o->bytes || o->ns)
			return 0;
	}
	return err_set(err, EINVAL, "--flight: '%s' is neither a size like 64M nor a time like 10s",
		       text);
}

char *flight_worst_trigger(const struct flight_options *o)
{
	return o->worst ? xasprintf("%s>1ns", strchr(o->worst, ':') + 1) : NULL;
}

uint64_t flight_buffer(const struct flight_options *o)
{
	uint64_t most = BYTES_MAX + BYTES_MAX / 3, all = o->bytes + o->bytes / 3;

	if ((o->on || o->worst) && o->bytes)
		all = 2 * o->bytes + LOOK_MORE;
	return all > most ? most : all;
}

/* ---- one snapshot ---- */

static void note_failure(struct flight *f, const struct err *err)
{
	pthread_mutex_lock(&f->lock);
	f->failed = *err;
	pthread_mutex_unlock(&f->lock);
}

static void note(struct flight *f, const struct snapshot *s, uint32_t n)
{
	char key[48];

	snprintf(key, sizeof(key), "snapshot_%03u", n);
	journal_session(f->drain->journal, key, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %s", s->tsc,
			s->samples, s->left_out, s->why);
	snprintf(key, sizeof(key), "snapshot_%03u_matches", n);
	if (s->matches)
		journal_session(f->drain->journal, key, "%" PRIu64, s->matches);
	journal_flush(f->drain->journal);
}

static void measure(struct flight *f)
{
	struct time_point now;

	if (!f->measure)
		return;
	time_point_take(&now);
	f->measure(&f->cost, tsc_hz(&f->start, &now), f->clock_every, true);
	f->measure = NULL;
}

/* Why it is taken. */
struct reason {
	const char *why;
	const struct worst_call *call; /* NULL: all up to now */
	uint64_t matches;              /* of --snapshot-on */
	bool is_last;
};

static int take(struct flight *f, const struct reason *r, struct flight_taken *out, struct err *err)
{
	const struct worst_call *call = r->call;
	struct snapshot s = {.drain = f->drain,
			     .start = &f->start,
			     .from = f->dir,
			     .to = f->next,
			     .why = r->why,
			     .matches = r->matches,
			     .is_last = r->is_last,
			     .from_tsc = call ? call->since : 0,
			     .until_tsc = call ? call->at : 0,
			     .gone = f->looks.sink ? f->looks.gone(f->looks.ctx) : 0};
	uint32_t n = f->taken + 1;
	int code;

	measure(f);
	s.cost = f->cost;
	code = snapshot_take(&s, err);
	if (code)
		return code;
	snprintf(out->path, sizeof(out->path), "%s/%03u", f->dir, n);
	if (rename(f->next, out->path))
		return err_set(err, errno, "cannot name the snapshot %s: %s", out->path,
			       strerror(errno));
	out->samples = s.samples;
	out->left_out = s.left_out;
	note(f, &s, n);
	__atomic_store_n(&f->taken, n, __ATOMIC_RELEASE);
	return 0;
}

/* ---- questions ---- */

/* It has the turn. */
static int ask(struct flight *f, struct question *q)
{
	pthread_mutex_lock(&f->lock);
	if (f->stopped) {
		pthread_mutex_unlock(&f->lock);
		return err_set(q->err, ESHUTDOWN, "the recording ends");
	}
	f->question = q;
	pthread_mutex_unlock(&f->lock);
	segment_wake_collector(f->drain->seg);
	pthread_mutex_lock(&f->lock);
	while (!q->done)
		pthread_cond_wait(&f->answered, &f->lock);
	pthread_mutex_unlock(&f->lock);
	return q->code;
}

int flight_snapshot(struct flight *f, const char *why, struct flight_taken *out, struct err *err)
{
	struct question q = {.why = why, .out = out, .err = err};
	int code;

	pthread_mutex_lock(&f->turn);
	if (__atomic_load_n(&f->asked, __ATOMIC_ACQUIRE) >= f->most)
		code = err_set(err, EDQUOT, TOO_MANY, f->most);
	else
		code = ask(f, &q);
	if (!code)
		__atomic_add_fetch(&f->asked, 1, __ATOMIC_ACQ_REL);
	if (code && code != -ESHUTDOWN)
		note_failure(f, err);
	pthread_mutex_unlock(&f->turn);
	return code;
}

static void answer(struct flight *f, struct question *q)
{
	q->code = take(f, &(struct reason){.why = q->why}, q->out, q->err);
	pthread_mutex_lock(&f->lock);
	q->done = true;
	f->question = NULL;
	pthread_cond_broadcast(&f->answered);
	pthread_mutex_unlock(&f->lock);
}

static struct question *next_question(struct flight *f)
{
	struct question *q;

	pthread_mutex_lock(&f->lock);
	q = f->question;
	pthread_mutex_unlock(&f->lock);
	return q;
}

/* ---- the drain's side ---- */

static struct flight *flight_of(const struct sink *s)
{
	return (struct flight *)((uintptr_t)s - offsetof(struct flight, sink));
}

/* Of a ring that nobody looks at, at the end, when the last snapshot is there: nobody wants it any more. */
static uint32_t drop(struct sink *s, const struct sink_chunk *c)
{
	flight_of(s)->passed += c->samples;
	if (flight_of(s)->looks.sink)
		return sink_take(flight_of(s)->looks.sink, c);
	return drain_free(flight_of(s)->drain, c->chunk, c->head.nbytes);
}

static int drop_bytes(struct sink *s, const struct trace_chunk *head, const void *bytes,
		      uint32_t samples, const struct chunk_owner *o)
{
	(void)s, (void)head, (void)bytes, (void)samples, (void)o;
	return 0;
}

/* The clock's rate is known well enough when as much is kept as was asked for. */
static void set_age(struct flight *f)
{
	struct time_point now;

	time_point_take(&now);
	if (f->keep_ns && now.mono_ns - f->start.mono_ns > f->keep_ns)
		f->drain->keep_ticks =
			(uint64_t)(tsc_hz(&f->start, &now) * (double)f->keep_ns / 1e9);
}

/* ---- --worst ---- */

/* What is no longer among the slowest. */
static void drop_snapshots(struct flight *f)
{
	vec_for(&f->worst.dropped, n) {
		char *path = xasprintf("%s/%03" PRIu32, f->dir, *n), key[32];

		writer_remove_dir(path);
		xfree(path);
		snprintf(key, sizeof(key), "snapshot_%03" PRIu32, *n);
		journal_session(f->drain->journal, key, "dropped");
		__atomic_add_fetch(&f->dropped, 1, __ATOMIC_RELEASE);
	}
	if (f->worst.dropped.n)
		journal_flush(f->drain->journal);
	f->worst.dropped.n = 0;
}

/* Those whose samples are about to go.  Most of the first ones are no longer among the slowest then. */
static void keep_worst(struct flight *f, uint64_t before)
{
	struct flight_taken taken;
	struct worst_call *c;
	struct time_point now;
	struct err err;
	char why[512], took[STR_NUMBER];

	time_point_take(&now);
	while ((c = worst_next(&f->worst, before))) {
		const double ns = (double)(c->at - c->since) / tsc_hz(&f->start, &now) * 1e9;

		snprintf(why, sizeof(why), "%s took %s", f->worst.function,
			 str_duration(took, sizeof(took), (uint64_t)ns));
		if (!take(f, &(struct reason){.why = why, .call = c}, &taken, &err)) {
			c->snapshot = f->taken;
			continue;
		}
		note_failure(f, &err);
		worst_forget(&f->worst, c);
	}
	drop_snapshots(f);
}

/* The drain thread itself asks. */
static void keep_what_fired(struct flight *f)
{
	char why[512];
	const struct reason r = {.why = why, .matches = f->fired};
	struct flight_taken taken;
	struct err err;
	int code;

	if (!f->fired)
		return;
	if (f->fired > 1)
		snprintf(why, sizeof(why), "%s (%" PRIu64 " times)", f->on, f->fired);
	else
		snprintf(why, sizeof(why), "%s", f->on);
	f->fired = 0;
	if (__atomic_load_n(&f->asked, __ATOMIC_ACQUIRE) >= f->most)
		code = err_set(&err, EDQUOT, TOO_MANY, f->most);
	else
		code = take(f, &r, &taken, &err);
	if (code)
		note_failure(f, &err);
	else
		__atomic_add_fetch(&f->asked, 1, __ATOMIC_ACQ_REL);
}

static void look(struct sink *s, bool last)
{
	struct flight *f = flight_of(s);
	struct question *q;

	if (last) /* flight_end() has looked */
		return;
	if (f->looks.sink)
		sink_look(f->looks.sink, false);
	set_age(f);
	keep_what_fired(f);
	while ((q = next_question(f)))
		answer(f, q);
}

static uint32_t flush(struct sink *s)
{
	return flight_of(s)->looks.sink ? sink_flush(flight_of(s)->looks.sink) : 0;
}

static enum sink_advice advise(const struct sink *s, uint32_t chunk, bool full, uint32_t *samples)
{
	const struct sink *looks = flight_of(s)->looks.sink;

	return looks ? sink_advise(looks, chunk, full, samples) : SINK_JUDGE;
}

static void lost(struct sink *s)
{
	if (flight_of(s)->looks.sink)
		sink_lost(flight_of(s)->looks.sink);
}

static void settle(struct sink *s)
{
	struct flight *f = flight_of(s);

	if (!f->looks.sink)
		return;
	if (f->worst.most)
		keep_worst(f, f->looks.lets_go_before(f->looks.ctx));
	sink_settle(f->looks.sink);
}

static uint32_t patience(const struct sink *s, uint32_t ms)
{
	const struct sink *looks = flight_of(s)->looks.sink;

	return looks ? sink_patience(looks, ms) : ms;
}

void flight_look_with(struct flight *f, const struct flight_looks *looks)
{
	f->looks = *looks;
	f->drain->keep_chunks = (uint32_t)(f->bytes / KRON_CHUNK_SIZE);
}

void flight_fired(void *flight, uint64_t since, uint64_t tsc)
{
	struct flight *f = flight;

	if (!f->worst.most) {
		f->fired++;
		return;
	}
	worst_offer(&f->worst, since, tsc);
	f->looks.set_limit(f->looks.ctx, worst_limit(&f->worst));
}

struct sink *flight_sink(struct flight *f)
{
	static const struct sink_ops ops = {
		.take = drop,
		.take_bytes = drop_bytes,
		.flush = flush,
		.advise = advise,
		.lost = lost,
		.look = look,
		.settle = settle,
		.patience = patience,
	};

	f->sink.ops = &ops;
	return &f->sink;
}

/* ---- SIGUSR2 ---- */

static void *signal_thread(void *arg)
{
	struct flight *f = arg;
	struct flight_taken taken;
	struct err err;
	sigset_t set;
	int sig;

	pthread_setname_np(pthread_self(), "kron-flight");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	while (!sigwait(&set, &sig) && !__atomic_load_n(&f->signal_stops, __ATOMIC_ACQUIRE)) {
		if (flight_snapshot(f, "SIGUSR2", &taken, &err))
			log_error("flight", "no snapshot: %s", err.msg);
	}
	return NULL;
}

int flight_watch_signal(struct flight *f, struct err *err)
{
	int code = pthread_create(&f->thread, NULL, signal_thread, f);

	f->watches = !code;
	return code ? err_set(err, code, "cannot start a thread: %s", strerror(code)) : 0;
}

/* ---- life ---- */

/* `kron snapshot` may be somewhere else. */
static char *whole_path(const char *dir)
{
	char *path = realpath(dir, NULL), *ours = xstrdup(path ? path : dir);

	free(path);
	return ours;
}

struct flight *flight_open(const struct flight_options *o, struct drain *d, const char *dir,
			   const struct time_point *start)
{
	struct flight *f = xcalloc(1, sizeof(*f));

	f->drain = d;
	f->start = *start;
	f->dir = whole_path(dir);
	f->next = xasprintf("%s/" NEXT, f->dir);
	f->keep_ns = o->ns;
	f->bytes = o->bytes;
	f->on = o->on;
	f->measure = o->measure;
	f->clock_every = o->clock_every;
	if (o->worst)
		worst_parse(&f->worst, o->worst, NULL); /* worst_check() let it pass */
	f->most = o->most ? o->most : FLIGHT_SNAPSHOTS;
	pthread_mutex_init(&f->turn, NULL);
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->answered, NULL);
	return f;
}

/* Who has asked already gets an answer: the drain thread still runs. */
void flight_stop(struct flight *f)
{
	if (!f)
		return;
	if (f->watches) {
		__atomic_store_n(&f->signal_stops, true, __ATOMIC_RELEASE);
		pthread_kill(f->thread, SIGUSR2);
		pthread_join(f->thread, NULL);
		f->watches = false;
	}
	pthread_mutex_lock(&f->turn);
	pthread_mutex_lock(&f->lock);
	f->stopped = true;
	pthread_mutex_unlock(&f->lock);
	pthread_mutex_unlock(&f->turn);
}

void flight_end(struct flight *f, const char *why)
{
	struct flight_taken taken;
	struct err err;

	if (f->looks.sink) { /* what came last has not been looked at */
		sink_look(f->looks.sink, true);
		keep_what_fired(f);
		keep_worst(f, UINT64_MAX);
	}
	if (!take(f, &(struct reason){.why = why, .is_last = true}, &taken, &err))
		return;
	note_failure(f, &err);
	log_error("flight", "no snapshot at the end: %s", err.msg);
}

void flight_close(struct flight *f)
{
	if (!f)
		return;
	xfree(f->dir);
	xfree(f->next);
	worst_free(&f->worst);
	xfree(f);
}

uint32_t flight_count(const struct flight *f)
{
	return flight_last(f) - __atomic_load_n(&f->dropped, __ATOMIC_ACQUIRE);
}

uint32_t flight_last(const struct flight *f)
{
	return __atomic_load_n(&f->taken, __ATOMIC_ACQUIRE);
}

uint64_t flight_passed(const struct flight *f)
{
	return f->passed;
}

const struct err *flight_error(const struct flight *f)
{
	return &f->failed;
}

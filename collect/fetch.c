/* SPDX-License-Identifier: MIT */
/* fetch.c - see fetch.h */
#define _GNU_SOURCE
#include "collect/fetch.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "board/bus/find_sample.h"
#include "collect/grow.h"

#define SAMPLE_WORDS (KRON_SAMPLE_SIZE / 4u)
#define RESOURCE_WORDS (KRON_RESOURCE_SIZE / 4u)
#define BATCH_WORDS (SAMPLE_WORDS * 16384u)
#define BOXES_HASH 4096u
#define CHAIN 32u /* samples in a row that fit together by no accident */
#define DOUBTFUL_WORDS (SAMPLE_CHAIN_MIN * RESOURCE_WORDS)
/* Skip this much more than was overwritten: the board goes on while we read. */
#define HEAD_START (KRON_BOARD_MEMORY_WORDS / 8)
/* A sample's word takes the chip eight clocks, 200 ns; more than that was not counting. */
#define WORDS_PER_US 5u
#define FIFO_WORDS 4096u
#define DRAIN_NS 10000000000ull

/* ---- start and end ---- */

static void fetch_init(struct fetch *f, struct drain *d)
{
	memset(f, 0, sizeof(*f));
	f->drain = d;
	f->seg = d->seg;
	f->words = xcalloc(BATCH_WORDS, sizeof(*f->words));
	f->box_at = xcalloc(BOXES_HASH, sizeof(*f->box_at));
	f->at_end = d->seg->when_full == KRON_WHEN_FULL_WRAP;
	f->passed_ns = clock_ns(CLOCK_MONOTONIC);
	board_remember_threads(NULL); /* for speed: else each cycle asks the kernel */
}

static void fetch_begin(struct fetch *f, const struct board_clock *clock)
{
	sources_init(&f->sources, f->seg, f->drain->tasks,
		     (struct kron_source *)(f->seg->window.base + KRON_SOURCES_OFFSET), clock);
	f->sources.keep = f->at_end;
	f->drain->tasks->clock = clock;
	f->drain->fetch = f;
}

static void use_board(struct fetch *f)
{
	f->board = &f->seg->window.board;
	bus_use_board(&f->bus, f->board);
}

static void fetch_begin_exact(struct fetch *f)
{
	board_clock_read(&f->clock, f->board);
	fetch_begin(f, &f->clock);
}

/* Where they stand now: a board that was there goes on counting. */
static void note_counters(struct fetch *f)
{
	f->overrun_register = bus_read32(&f->bus, KRON_CHIP_BYTE(KRON_WORD_OVERRUN));
	f->wait_register = bus_read32(&f->bus, KRON_CHIP_BYTE(KRON_WORD_WAIT));
}

void fetch_start(struct fetch *f, struct drain *d, const struct board_setup *s)
{
	fetch_init(f, d);
	use_board(f);
	f->stays = d->seg->stays;
	if (f->stays)
		f->config = board_setup_adopt(&f->bus, s);
	else
		board_setup_make(&f->bus, s);
	note_counters(f);
	f->fetched = f->passed = bus_memory_pointer(&f->bus);
	f->seg->ctl->fetched = f->seg->ctl->passed = f->passed;
	fetch_begin_exact(f);
}

void fetch_start_hardware(struct fetch *f, struct drain *d)
{
	fetch_init(f, d);
	f->at_end = false;
	d->tasks->all_threads = true; /* no sample will tell of them */
	fetch_begin(f, NULL);
}

void fetch_resume(struct fetch *f, struct drain *d)
{
	fetch_init(f, d);
	use_board(f);
	f->at_end = false; /* all that is there, now */
	f->fetched = f->seg->ctl->fetched;
	f->passed = f->seg->ctl->passed;
	f->passed_ns = 0; /* who knows how long ago */
	if (f->passed < f->fetched)
		f->passed = f->fetched;
	fetch_begin_exact(f);
}

void fetch_free(struct fetch *f)
{
	if (!f->words)
		return;
	sources_free(&f->sources);
	vec_for(&f->boxes, b)
		vec_free(&b->bytes);
	vec_free(&f->boxes);
	vec_free(&f->already);
	xfree(f->words);
	xfree(f->box_at);
	f->words = NULL;
}

void fetch_restore(struct fetch *f)
{
	if (f->stays)
		board_setup_restore(&f->bus, f->config);
}

/* ---- chunks ---- */

static struct outbox *box_of(struct fetch *f, const struct source *who, uint32_t source,
			     uint64_t position)
{
	uint64_t word = who ? who->word : 0;
	uint32_t *head = &f->box_at[(source ^ (uint32_t)(word >> 42)) * 2654435761u >> 20];
	struct outbox *b;

	for (uint32_t i = *head; i; i = b->next) {
		b = &f->boxes.v[i - 1];
		if (b->word == word && b->source == source)
			return b;
	}
	/* Boxes of the last batch keep their memory. */
	b = f->nboxes < f->boxes.n ? &f->boxes.v[f->nboxes] : vec_push(&f->boxes);
	f->nboxes++;
	b->word = word;
	b->source = source;
	b->next = *head;
	b->first = position;
	*head = f->nboxes;
	return b;
}
_Static_assert(BOXES_HASH == 1u << 12, "box_of()");

/* Samples of a source that nobody entered in the table: of programs that use the board too. */
static void owner_of_box(struct fetch *f, const struct outbox *b, struct chunk_owner *o)
{
	memset(o, 0, sizeof(*o));
	o->tid = (pid_t)(b->source & KRON_SOURCE_TID_MASK);
	if (b->word)
		tasks_of_chunk(f->drain->tasks, b->word, false, o);
}

static int send_box(struct fetch *f, struct outbox *b)
{
	struct chunk_owner o;
	struct trace_chunk head = {
		.magic = TRACE_CHUNK_MAGIC,
		.nbytes = (uint32_t)b->bytes.n,
		.seq = b->first + 1,
		.source = b->source,
	};
	int code;

	if (!b->bytes.n)
		return 0;
	owner_of_box(f, b, &o);
	head.proc_uid = o.uid;
	head.tid = (uint32_t)o.tid;
	code = sink_take_bytes(f->drain->sink, &head, b->bytes.v, b->samples, &o);
	f->handed_on += code ? 0 : b->samples;
	b->bytes.n = 0;
	b->samples = 0;
	return code;
}

static int send_all(struct fetch *f)
{
	int code = 0;

	for (uint32_t i = 0; i < f->nboxes && !code; i++)
		code = send_box(f, &f->boxes.v[i]);
	f->nboxes = 0;
	memset(f->box_at, 0, BOXES_HASH * sizeof(*f->box_at));
	return code;
}

/* recover: the killed collector had written the first chunks of its last batch. */
static bool is_written_already(struct fetch *f, uint32_t source, uint32_t bytes)
{
	vec_for(&f->already, a)
		if (a->source == source && a->bytes >= bytes) {
			a->bytes -= bytes;
			return true;
		}
	return false;
}

void fetch_has_already(struct fetch *f, uint32_t source, uint32_t bytes)
{
	vec_for(&f->already, a)
		if (a->source == source) {
			a->bytes += bytes;
			return;
		}
	*vec_push(&f->already) = (struct fetched_already){.source = source, .bytes = bytes};
}

static int take_sample(struct fetch *f, const uint32_t *w, uint32_t nwords, uint64_t position)
{
	const struct kron_sample *s = (const void *)w;
	uint64_t ticks = kron_sample_time(s);
	const struct source *who = sources_find(&f->sources, s->source, ticks);
	struct outbox *b;
	int code = 0;

	if (ticks > f->last_ticks)
		f->last_ticks = ticks;
	if (f->already.n && is_written_already(f, s->source, 4 * nwords))
		return 0;
	b = box_of(f, who, s->source, position);
	if (b->bytes.n + 4 * nwords > TRACE_CHUNK_MAX)
		code = send_box(f, b);
	if (!b->bytes.n)
		b->first = position;
	vec_reserve(&b->bytes, b->bytes.n + 4 * nwords);
	memcpy(b->bytes.v + b->bytes.n, w, 4 * nwords);
	b->bytes.n += 4 * nwords;
	b->samples += s->event < KRON_EVENT_SPECIAL;
	return code;
}

/* ---- words ---- */

static bool is_chain_to_the_end(const uint8_t *p, size_t n)
{
	size_t end;

	return sample_chain(p, n, n, &end, NULL) && end == n;
}

/*
 * Words up to the next sample, of n that follow damage.  false: none is seen yet, or, when no
 * more words will come (last), none at all.  What may be the beginning of one is not passed by
 * before it can be told.
 */
static bool find_sample(const uint32_t *w, uint32_t n, bool last, uint32_t *skip)
{
	const uint8_t *p = (const uint8_t *)w;

	*skip = (uint32_t)(sample_find(p, 4ul * n, 4ul * n, 4, CHAIN, last) / 4);
	if (*skip < n)
		return true;
	*skip = n > DOUBTFUL_WORDS ? n - DOUBTFUL_WORDS : 0;
	if (!last)
		return false;
	/* One alone, for which nothing speaks but that it fills the end. */
	while (*skip < n && !is_chain_to_the_end((const uint8_t *)(w + *skip), 4ul * (n - *skip)))
		++*skip;
	return *skip < n;
}

/* The sample that begins here follows the one before it, as far as its header says. */
static bool is_in_order(const struct fetch *f, const uint8_t *p, uint32_t words)
{
	if (!sample_size(p))
		return false;
	return words < 2 || !f->has_before || sample_can_follow(f->before, sample_time(p));
}

/*
 * How many words were used up: all but a sample at the end whose rest is not there yet, and a
 * place after damage that cannot be identified yet.  last: there will be no more, so all.
 *
 * Each turn uses words up or ends the loop: a place that begins no sample makes `unsure`, and
 * from there find_sample() leads to one that does, or to the end.
 */
static uint32_t take_words(struct fetch *f, uint32_t n, bool last, int *code)
{
	uint32_t at = 0, len, skip;

	while (at < n && !*code) {
		const uint8_t *p = (const uint8_t *)(f->words + at);

		if (f->unsure || !is_in_order(f, p, n - at)) {
			f->unsure = !find_sample(f->words + at, n - at, last, &skip);
			f->damaged += skip;
			at += skip;
			if (f->unsure)
				break;
			p += 4ul * skip;
		}
		len = (uint32_t)(sample_size(p) / 4);
		if (len > n - at) {
			if (!last)
				break;
			f->damaged++; /* what its header announces is not there: it is none */
			at++;
			f->unsure = true;
			continue;
		}
		f->before = sample_time(p);
		f->has_before = true;
		*code = take_sample(f, f->words + at, len, f->fetched + at);
		at += len;
	}
	return at;
}

/* What came round before it was fetched: go on with a sample that is there. */
static void skip_to(struct fetch *f, uint64_t position)
{
	uint64_t samples = (position - f->fetched + SAMPLE_WORDS - 1) / SAMPLE_WORDS;

	f->overwritten += samples;
	f->fetched += samples * SAMPLE_WORDS;
	f->unsure = true;
	sink_lost(f->drain->sink);
	log_debug("collect", "%llu samples were overwritten", (unsigned long long)samples);
}

/* The pointer now, as a position. */
static uint64_t look_at_pointer(struct fetch *f)
{
	/* From before one look to after the next: a collector that was stopped between its look and the
	 * clock would find that the board had no time for what it stored. */
	uint64_t before = clock_ns(CLOCK_MONOTONIC);
	uint32_t pointer = bus_memory_pointer(&f->bus);
	uint64_t after = clock_ns(CLOCK_MONOTONIC);
	uint32_t words = (pointer - (uint32_t)f->passed) & KRON_MAP_MASK;

	if (f->passed_ns && words > (after - f->passed_ns) / 1000 * WORDS_PER_US + FIFO_WORDS) {
		/* It was set back, by a reset of the board: what is there is from then on. */
		f->passed = (f->passed | KRON_MAP_MASK) + 1 + pointer;
		f->fetched = f->passed - (pointer & KRON_MAP_WORD);
	} else {
		f->passed += words;
	}
	f->passed_ns = before;
	__atomic_store_n(&f->seg->ctl->passed, f->passed, __ATOMIC_RELAXED);
	return f->passed;
}

/* Words [fetched, +n) are in f->words, whole; or the board was faster, and they are skipped. */
static bool read_words(struct fetch *f, uint32_t n)
{
	uint64_t now;

	board_read_memory(f->board, f->fetched & KRON_MAP_WORD, n, f->words);
	now = f->fetched + ((bus_memory_pointer(&f->bus) - (uint32_t)f->fetched) & KRON_MAP_MASK);
	if (now - f->fetched <= KRON_BOARD_MEMORY_WORDS)
		return true;
	skip_to(f, now - KRON_BOARD_MEMORY_WORDS + HEAD_START);
	return false;
}

/* last: the board stores nothing any more. */
static int take_until(struct fetch *f, uint64_t end, bool last)
{
	int code = 0;

	if (end > f->fetched && end - f->fetched > KRON_BOARD_MEMORY_WORDS)
		skip_to(f, end - KRON_BOARD_MEMORY_WORDS);
	while (f->fetched < end && !code) {
		uint64_t left = end - f->fetched;
		uint32_t n = left < BATCH_WORDS ? (uint32_t)left : BATCH_WORDS;
		uint32_t used;

		if (!read_words(f, n))
			continue;
		used = take_words(f, n, last && n == left, &code);
		if (!code)
			code = send_all(f);
		if (code || !used)
			break;
		f->fetched += used;
		__atomic_store_n(&f->seg->ctl->fetched, f->fetched, __ATOMIC_RELEASE);
		segment_wake_waiters(f->seg); /* wait mode: runtime/bus/source.c */
	}
	return code;
}

/* ---- rounds ---- */

static void read_counters(struct fetch *f)
{
	uint32_t overrun = bus_read32(&f->bus, KRON_CHIP_BYTE(KRON_WORD_OVERRUN));
	uint32_t wait = bus_read32(&f->bus, KRON_CHIP_BYTE(KRON_WORD_WAIT));

	/* They go round at 2^32; somebody may have cleared them. */
	f->overruns += overrun >= f->overrun_register ? overrun - f->overrun_register : overrun;
	f->waited += wait >= f->wait_register ? wait - f->wait_register : wait;
	f->overrun_register = overrun;
	f->wait_register = wait;
}

uint64_t fetch_round(struct fetch *f, bool deaths, bool thorough)
{
	struct sink *sink = f->drain->sink;
	uint64_t before = f->handed_on;
	struct time_point asked = {0};
	uint64_t end;

	if (!f->board) {
		sources_look(&f->sources, deaths, thorough);
		return 0;
	}
	if (sink_wants_time(sink))
		board_time_point(f->board, &asked);
	end = look_at_pointer(f);
	sources_look(&f->sources, deaths, thorough);
	if (deaths) {
		read_counters(f);
		if (!__atomic_load_n(&f->seg->ctl->closing, __ATOMIC_ACQUIRE))
			board_repair_gates(f->board);
	}
	if (!f->at_end && !journal_error(f->drain->journal) && !take_until(f, end, false))
		sink_fetched(sink, asked.tsc);
	return f->handed_on - before;
}

/* Until the FIFOs are empty; a board that is stopped in the middle keeps what it has. */
static void let_fifos_drain(struct fetch *f)
{
	struct timespec ts = {.tv_nsec = 200000};
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + DRAIN_NS;
	struct model_state s;

	while (clock_ns(CLOCK_MONOTONIC) < until) {
		board_tick(f->board, 0);
		if (!board_snapshot(f->board, &s) || model_is_idle(&s) ||
		    !(model_config(&s) & KRON_CONFIG_LOCAL) ||
		    model_config(&s) & (KRON_CONFIG_TEST | KRON_CONFIG_DIS_STATE))
			return;
		nanosleep(&ts, NULL);
	}
}

void fetch_all(struct fetch *f)
{
	uint64_t end;

	if (!f->board) {
		sources_look(&f->sources, false, false);
		return;
	}
	let_fifos_drain(f);
	end = look_at_pointer(f);
	sources_look(&f->sources, false, false);
	read_counters(f);
	f->at_end = false;
	if (journal_error(f->drain->journal) || take_until(f, end, true))
		f->drain->totals.stranded += (end - f->fetched) / SAMPLE_WORDS;
}

double fetch_trigger_ns(const struct fetch *f, double tsc_hz)
{
	uint32_t source = board_read32(f->board, KRON_CHIP_BYTE(KRON_WORD_SOURCE));
	double best = 0;

	for (int i = 0; i < 64; i++) {
		uint64_t start = clock_tsc();
		double ns;

		board_trigger(f->board, KRON_WORD_TRACE, 0, source, 0);
		ns = (double)(clock_tsc() - start) / tsc_hz * 1e9;
		if (!i || ns < best)
			best = ns;
	}
	return best;
}

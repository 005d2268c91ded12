/* SPDX-License-Identifier: MIT */
/* counts.c - see counts.h */
#include "collect/counts.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "board/bus/lanes.h"
#include "board/bus/object.h"
#include "trace/format.h"

static struct kron_counts *table_of(const struct segment *seg)
{
	return (struct kron_counts *)(seg->window.base + KRON_COUNTS_OFFSET);
}

void counts_start(struct segment *seg)
{
	struct kron_ctl *ctl = seg->ctl;

	/* a board that stays may have them from its last recorder; the table is wiped with it */
	memset(ctl->counts, 0, sizeof(ctl->counts));
	ctl->counts_used = ctl->counts_ready = 0;
	memset(ctl->calls_shared, 0, sizeof(ctl->calls_shared));
}

void counts_make_room(struct segment *seg)
{
	struct kron_ctl *ctl = seg->ctl;

	if (__atomic_load_n(&ctl->counts_ready, __ATOMIC_ACQUIRE))
		return;
	if (object_get_pages(seg->fd, KRON_COUNTS_OFFSET,
			     KRON_COUNTS_MAX * sizeof(struct kron_counts)))
		return;
	/* Release: who reads it finds pages; partner: runtime/bus/counts.c. */
	__atomic_store_n(&ctl->counts_ready, KRON_COUNTS_MAX, __ATOMIC_RELEASE);
}

/* Four bits a counter (NISTIR 5571, Tables B5 and B7). */
static uint64_t fields(uint16_t counters, unsigned value)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < KRON_COUNTERS; i++)
		if (counters >> i & 1)
			all |= (uint64_t)value << 4 * i;
	return all;
}

void counts_set_up(struct bus *b, uint16_t counters)
{
	if (!counters)
		return;
	bus_write64(b, KRON_CHIP_BYTE(KRON_WORD_MODE), fields(counters, KRON_MODE_SOFTWARE));
	bus_write64(b, KRON_CHIP_BYTE(KRON_WORD_ENABLE), fields(counters, KRON_ENABLE_RESET));
	bus_write64(b, KRON_CHIP_BYTE(KRON_WORD_ENABLE), fields(counters, KRON_ENABLE_ON));
}

void counts_release(struct segment *seg, uint32_t uid)
{
	struct kron_counts *table = table_of(seg);
	uint32_t used = lanes_counts_used(seg->ctl);

	for (uint32_t i = 0; i < used; i++) {
		uint64_t word = __atomic_load_n(&table[i].word, __ATOMIC_RELAXED);

		if (word && kron_chunk_word_uid(word) == (uid & 0x3fffff))
			__atomic_store_n(&table[i].word, 0, __ATOMIC_RELEASE);
	}
}

void counts_read_board(struct bus *b, uint64_t out[KRON_COUNTERS])
{
	/* with copy: as of now */
	for (unsigned k = 0; k < KRON_COUNTERS; k++)
		out[k] = bus_read32(b, KRON_CHIP_BYTE(KRON_WORD_COUNTER + k));
}

void counts_write(struct journal *j, const uint64_t counts[KRON_COUNTERS])
{
	char key[16];

	for (unsigned k = 0; k < KRON_COUNTERS; k++) {
		if (!counts[k])
			continue;
		snprintf(key, sizeof(key), "counter.%u", k);
		journal_session(j, key, "%" PRIu64, counts[k]);
	}
}

/* ---- calls ---- */

/* Of nobody: no process has this number. */
#define SHARED kron_chunk_word(KRON_CHUNK_CALLS, 0, KRON_PROC_NONE, 0)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of those who make room */
/* What moves from a process's chunks to the shared ones is counted once by who reads meanwhile. */
static pthread_mutex_t moving = PTHREAD_MUTEX_INITIALIZER;

static struct kron_calls *calls_at(const struct segment *seg, uint32_t i)
{
	return (struct kron_calls *)segment_chunk(seg, i);
}

/* Index of a chunk that is now nobody's, or -1. */
static int64_t take_shared(struct segment *seg)
{
	uint32_t ready = segment_ready(seg);

	for (uint32_t i = 0; i < ready; i++) {
		uint64_t word = KRON_CHUNK_FREE;

		if (!__atomic_compare_exchange_n(&seg->states[i], &word, SHARED, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		__atomic_fetch_sub(&seg->ctl->free_count, 1, __ATOMIC_RELAXED);
		return i;
	}
	return -1;
}

static int make_shared(struct segment *seg, uint32_t part, struct err *err)
{
	uint32_t *word = &seg->ctl->calls_shared[part];
	int64_t i;

	if (__atomic_load_n(word, __ATOMIC_RELAXED))
		return 0;
	i = take_shared(seg);
	if (i < 0)
		return err_set(
			err, ENOMEM,
			"there is no room for counters in shared memory: calls are not counted");
	calls_at(seg, (uint32_t)i)->part = part + 1;
	/* Release: partner: runtime/bus/calls.c. */
	__atomic_store_n(word, (uint32_t)i + 1, __ATOMIC_RELEASE);
	return 0;
}

int calls_make_room(struct segment *seg, uint32_t end, struct err *err)
{
	int code = 0;

	pthread_mutex_lock(&lock);
	for (uint32_t k = 0; k < KRON_CALLS_PARTS && k * KRON_CALLS_IN_CHUNK < end && !code; k++)
		code = make_shared(seg, k, err);
	pthread_mutex_unlock(&lock);
	return code;
}

/* What says so belongs to all who trace: it may say anything. */
static struct kron_calls *shared_calls(const struct segment *seg, uint64_t part)
{
	uint32_t i = part && part <= KRON_CALLS_PARTS
			     ? __atomic_load_n(&seg->ctl->calls_shared[part - 1], __ATOMIC_ACQUIRE)
			     : 0;

	return i && i <= segment_ready(seg) ? calls_at(seg, i - 1) : NULL;
}

static void add_calls(struct kron_calls *to, const struct kron_calls *c)
{
	for (uint32_t j = 0; j < KRON_CALLS_IN_CHUNK; j++) {
		uint64_t n = __atomic_load_n(&c->n[j], __ATOMIC_RELAXED);

		if (n)
			__atomic_fetch_add(&to->n[j], n, __ATOMIC_RELAXED);
	}
}

void calls_release(struct segment *seg, uint32_t uid)
{
	uint32_t ready = seg->ctl->calls_shared[0] ? segment_ready(seg) : 0;

	pthread_mutex_lock(&moving);
	for (uint32_t i = 0; i < ready; i++) {
		/* Acquire: its owner is gone, and what it did is done. */
		uint64_t word = __atomic_load_n(&seg->states[i], __ATOMIC_ACQUIRE);
		struct kron_calls *to;

		if (kron_chunk_word_state(word) != KRON_CHUNK_CALLS || word == SHARED ||
		    kron_chunk_word_uid(word) != (uid & 0x3fffff))
			continue;
		to = shared_calls(seg, calls_at(seg, i)->part);
		if (to && to != calls_at(seg, i))
			add_calls(to, calls_at(seg, i));
		memset(calls_at(seg, i), 0, KRON_CHUNK_SIZE);
		__atomic_store_n(&seg->states[i], (uint64_t)KRON_CHUNK_FREE, __ATOMIC_RELEASE);
		__atomic_fetch_add(&seg->ctl->free_count, 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&moving);
}

void calls_read(const struct segment *seg, uint64_t *out, uint32_t end)
{
	uint32_t ready = segment_ready(seg);

	pthread_mutex_lock(&moving);
	for (uint32_t i = 0; i < ready; i++) {
		uint64_t word = __atomic_load_n(&seg->states[i], __ATOMIC_ACQUIRE);
		const struct kron_calls *c = calls_at(seg, i);
		uint64_t part, first;

		if (kron_chunk_word_state(word) != KRON_CHUNK_CALLS)
			continue;
		part = __atomic_load_n(&c->part, __ATOMIC_RELAXED);
		if (!part || part > KRON_CALLS_PARTS)
			continue;
		first = (part - 1) * KRON_CALLS_IN_CHUNK;
		for (uint32_t j = 0; j < KRON_CALLS_IN_CHUNK && first + j < end; j++)
			out[first + j] += __atomic_load_n(&c->n[j], __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&moving);
}

/* ---- virtual counters ---- */

#define PAIR 28u /* "8191:18446744073709551615,", and more */

static void write_line(struct journal *j, const uint64_t *counts, unsigned first)
{
	char text[TRACE_COUNTERS_LINE * PAIR] = "", key[24];
	size_t len = 0;

	for (unsigned i = first; i < first + TRACE_COUNTERS_LINE; i++)
		if (counts[i])
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%u:%" PRIu64 ",",
						i, counts[i]);
	snprintf(key, sizeof(key), "counters.%u", first / TRACE_COUNTERS_LINE);
	if (len)
		journal_session(j, key, "%s", text);
}

static bool has_calls(const struct segment *seg)
{
	uint32_t ready = segment_ready(seg);

	for (uint32_t i = 0; i < ready; i++)
		if (kron_chunk_word_state(__atomic_load_n(&seg->states[i], __ATOMIC_ACQUIRE)) ==
		    KRON_CHUNK_CALLS)
			return true;
	return false;
}

void counts_write_virtual(struct journal *j, const struct segment *seg)
{
	uint64_t *counts;

	if (!has_calls(seg))
		return;
	counts = xcalloc(TRACE_COUNTERS, sizeof(*counts));
	calls_read(seg, counts, TRACE_COUNTERS);
	for (unsigned i = 0; i < TRACE_COUNTERS; i += TRACE_COUNTERS_LINE)
		write_line(j, counts, i);
	xfree(counts);
}

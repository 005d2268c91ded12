/* SPDX-License-Identifier: MIT */
/* board_stream.c - see board_stream.h */
#define _GNU_SOURCE
#include "board_stream.h"

#include "base/clock.h"
#include "board/model/access_layout.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

bool stream_fail(struct stream *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (!s->wrong[0])
		vsnprintf(s->wrong, sizeof(s->wrong), format, args);
	va_end(args);
	return false;
}

static uint64_t tsc_hz(void)
{
	struct timespec from, to, nap = {.tv_nsec = 20000000};
	uint64_t tsc = clock_tsc();

	clock_gettime(CLOCK_MONOTONIC, &from);
	nanosleep(&nap, NULL);
	clock_gettime(CLOCK_MONOTONIC, &to);
	tsc = clock_tsc() - tsc;
	return (uint64_t)((double)tsc * 1e9 /
			  ((double)(to.tv_sec - from.tv_sec) * 1e9 +
			   (double)(to.tv_nsec - from.tv_nsec)));
}

bool stream_open(struct stream *s, enum access_clock clock, uint32_t nsources)
{
	const struct model_geometry geometry = MODEL_GEOMETRY_DEFAULT;
	uint8_t *segment = mmap(NULL, KRON_WINDOW_SIZE, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	memset(s, 0, sizeof(*s));
	s->sources = mmap(NULL, nsources * sizeof(struct source), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	s->buffer = malloc(4 * STREAM_BUFFER);
	if (segment == MAP_FAILED || s->sources == MAP_FAILED || !s->buffer)
		return stream_fail(s, "no memory");
	s->nsources = nsources;
	s->board.ctl = (struct kron_ctl *)(segment + KRON_CTL_OFFSET);
	s->board.model = (struct model *)(segment + KRON_MODEL_OFFSET);
	s->board.memory = segment + KRON_MEMORY_OFFSET;
	board_init(&s->board, &geometry, clock, clock == ACCESS_CLOCK_REAL ? tsc_hz() : 0);
	return board_remember_threads(NULL) == 0 && board_is_sane(&s->board);
}

void stream_close(struct stream *s)
{
	munmap(s->board.memory, KRON_WINDOW_SIZE);
	munmap(s->sources, s->nsources * sizeof(struct source));
	free(s->buffer);
}

void stream_start(struct stream *s, uint32_t csr)
{
	const struct board *b = &s->board;

	board_write32(b, KRON_BOARD_RESET, 0);
	board_write32(b, KRON_BOARD_MAP, 0);
	board_write32(b, KRON_BOARD_CONFIG, KRON_CONFIG_DEFAULT | KRON_CONFIG_EXT_CPU);
	board_write32(b, KRON_CHIP_BYTE(KRON_WORD_FILTER), 0xffff);
	board_write32(b, KRON_CHIP_BYTE(KRON_WORD_CSR), KRON_CSR_SAMPLING | csr);
	memset(s->sources, 0, s->nsources * sizeof(struct source));
	s->words = 0;
	s->samples = 0;
	s->time = 0;
	s->map = 0;
}

void stream_leave_slots(struct stream *s, unsigned n)
{
	unsigned i, left = 0;

	for (i = 0; i < ACCESS_SLOTS; i++) {
		if (i != access_slot_number(s->board.model->active))
			access_slot(&s->board, i)->owner = !n || left++ < n ? 0 : ACCESS_OWNED;
	}
}

static uint32_t check(uint32_t source, uint32_t number)
{
	uint32_t x = source * 0x9e3779b1u ^ number * 0x85ebca6bu;

	return x ^ x >> 15;
}

bool stream_trigger(const struct board *b, struct source *sources, uint32_t source)
{
	struct source *s = &sources[source];
	/* Nested calls by handlers of one source are not meant; a siglongjmp is. */
	uint64_t number = __atomic_add_fetch(&s->started, 1, __ATOMIC_RELAXED);
	uint64_t data = (uint64_t)check(source, (uint32_t)number) << 32 | (uint32_t)number;
	bool taken =
		board_trigger(b, KRON_WORD_TRACE + source % KRON_LEVELS, source & 7, source, data);

	if (taken)
		__atomic_add_fetch(&s->taken, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&s->acknowledged, 1, __ATOMIC_RELEASE);
	return taken;
}

/* ---- reading ---- */

static bool check_sample(struct stream *s, const struct kron_sample *sample)
{
	uint64_t time = kron_sample_time(sample);
	struct source *source = &s->sources[sample->source];

	if ((sample->head >> KRON_HEAD_TYPE_SHIFT & KRON_HEAD_TYPE_MASK) != KRON_HEAD_TYPE_TRACE)
		return stream_fail(s, "sample %" PRIu64 ": header %08x", s->samples, sample->head);
	if (sample->source >= s->nsources)
		return stream_fail(s, "sample %" PRIu64 ": source %x", s->samples, sample->source);
	if (sample->payload != check(sample->source, sample->event))
		return stream_fail(s, "sample %" PRIu64 " of source %u: data %08x %08x", s->samples,
				   sample->source, sample->payload, sample->event);
	if (sample->head >> KRON_HEAD_CPU_SHIFT != (sample->source & 7))
		return stream_fail(s, "sample %" PRIu64 " of source %u: CPU %u", s->samples,
				   sample->source, sample->head >> KRON_HEAD_CPU_SHIFT);
	if (time < s->time)
		return stream_fail(s, "sample %" PRIu64 ": time %" PRIu64 " after %" PRIu64,
				   s->samples, time, s->time);
	if (sample->event <= source->last && !(s->repeats && sample->event == source->last))
		return stream_fail(s, "source %u: number %u after %u", sample->source,
				   sample->event, source->last);
	s->time = time;
	source->last = sample->event;
	source->seen++;
	return true;
}

static bool check_words(struct stream *s, uint32_t n)
{
	struct kron_sample sample;
	uint32_t i;

	for (i = 0; i + 5 <= n; i += 5) {
		memcpy(&sample, &s->buffer[i], sizeof(sample));
		if (!check_sample(s, &sample))
			return false;
		s->samples++;
		s->words += 5;
	}
	return true;
}

bool stream_read(struct stream *s)
{
	struct model_state state;
	uint32_t map, n;

	if (!board_snapshot(&s->board, &state))
		return stream_fail(s, "no snapshot");
	/* What the snapshot has in memory is there by now at the latest. */
	map = model_map(&state);
	n = (map - (uint32_t)s->words) & KRON_MAP_MASK;
	if (n > KRON_BOARD_MEMORY_WORDS)
		return stream_fail(s, "the reader was too late: %u words", n);
	n -= n % 5;
	while (n) {
		uint32_t part = n < STREAM_BUFFER / 5 * 5 ? n : STREAM_BUFFER / 5 * 5;

		board_read_memory(&s->board, (uint32_t)s->words & KRON_MAP_WORD, part, s->buffer);
		if (!check_words(s, part))
			return false;
		n -= part;
	}
	return true;
}

bool stream_drain(struct stream *s)
{
	struct timespec nap = {.tv_nsec = 2000000}; /* 55 samples take 55 us */

	nanosleep(&nap, NULL);
	return stream_read(s);
}

bool stream_settle(struct stream *s, uint64_t cuts)
{
	uint64_t taken = 0, acknowledged = 0, in_flight = 0;
	uint32_t overrun = board_read32(&s->board, KRON_CHIP_BYTE(KRON_WORD_OVERRUN));
	uint64_t lost;
	uint32_t i;

	for (i = 0; i < s->nsources && !s->repeats; i++) {
		struct source *source = &s->sources[i];

		/* A cut may also come between the trigger and the counting of it. */
		if (source->seen < source->taken ||
		    source->seen > source->taken + (source->started - source->acknowledged))
			return stream_fail(s,
					   "source %u: %" PRIu64 " samples of %" PRIu64
					   " taken, %" PRIu64 " begun, %" PRIu64 " acknowledged",
					   i, source->seen, source->taken, source->started,
					   source->acknowledged);
		taken += source->taken;
		acknowledged += source->acknowledged;
		in_flight += source->started - source->acknowledged;
	}
	if (s->repeats)
		return true;
	if (in_flight > cuts)
		return stream_fail(s, "%" PRIu64 " in flight, %" PRIu64 " cuts", in_flight, cuts);
	lost = acknowledged - taken;
	if (overrun + s->samples < acknowledged || overrun + s->samples > acknowledged + in_flight)
		return stream_fail(s,
				   "overruns %u, samples %" PRIu64 ", acknowledged %" PRIu64
				   ", lost %" PRIu64 ", in flight %" PRIu64,
				   overrun, s->samples, acknowledged, lost, in_flight);
	return true;
}

/* SPDX-License-Identifier: MIT */
/*
 * export_mkdat.c - mk.dat, the data file of the MultiKron toolkit (mk.dat(5)): what would lie in
 * a board's memory, samples of 20 bytes in order of time, without a header.
 *
 * A trace counts time in the machine's own ticks; here they become those of a board's timestamp
 * clock, counted from where CLOCK_MONOTONIC has its zero, so that files of one machine go
 * together.  Records of the runtime (losses, processors) are left out, for boards have none.
 */
#define _GNU_SOURCE
#include "trace/export/export_mkdat.h"

#include <endian.h>
#include <stdlib.h>

#include "trace/export/export.h"

#define TIMESTAMP_HZ (KRON_OSCILLATOR_HZ / 4)
#define TIMESTAMP_MASK 0x00ffffffffffffffull

struct clock {
	uint64_t start_tsc;
	long double start_ticks, ticks_per_tsc;
	bool as_it_is;
};

/* What went over a board has its timestamps: `kron read --board` would say the same. */
static bool has_timestamps(const struct trace *t)
{
	return trace_session(t, "bus") && !trace_session_is(t, "bus", "lane");
}

static void set_clock(struct clock *c, const struct trace *t, uint64_t hz)
{
	const char *mono = trace_session(t, "start_mono_ns");
	uint64_t want = hz ? hz : TIMESTAMP_HZ;

	c->as_it_is = !hz && has_timestamps(t);
	c->start_tsc = t->start_tsc;
	c->start_ticks =
		(long double)(mono ? strtoull(mono, NULL, 10) : 0) * (long double)want / 1e9L;
	c->ticks_per_tsc = t->tsc_hz > 0 ? (long double)want / (long double)t->tsc_hz : 0;
}

static uint64_t timestamp(const struct clock *c, uint64_t tsc)
{
	long double ticks =
		c->start_ticks + (long double)(int64_t)(tsc - c->start_tsc) * c->ticks_per_tsc;

	if (c->as_it_is)
		return tsc & TIMESTAMP_MASK;
	return ticks > 0 && ticks < 1.8e19L ? (uint64_t)ticks & TIMESTAMP_MASK : 0;
}

static void put_event(FILE *out, const struct clock *c, const struct trace_event *e)
{
	uint64_t time = timestamp(c, e->tsc);
	uint32_t words[] = {
		htole32((e->s.head & ~KRON_HEAD_TIME_MASK) | (uint32_t)(time >> 32)),
		htole32((uint32_t)time),
		htole32(e->s.source),
		htole32(e->s.payload),
		htole32(e->s.event),
	};

	fwrite(words, sizeof(words), 1, out);
	for (unsigned k = 0; e->counters && k < KRON_COUNTERS; k++) {
		uint32_t counter = htole32(e->counters[k]);

		fwrite(&counter, sizeof(counter), 1, out);
	}
}

uint64_t export_mkdat_at(const struct trace *t, FILE *out, uint64_t hz, uint8_t *seen,
			 uint32_t limit)
{
	struct trace_cursor *c = trace_cursor_open(t, -1);
	uint64_t samples = 0;
	struct trace_event e;
	struct clock clock;

	set_clock(&clock, t, hz);
	while (trace_cursor_next(c, &e) && !ferror(out)) {
		if (e.s.event >= KRON_EVENT_SPECIAL)
			continue;
		put_event(out, &clock, &e);
		samples++;
		if (seen && e.s.event / 2 < limit)
			seen[e.s.event / 2] = 1;
	}
	trace_cursor_close(c);
	return samples;
}

void export_mkdat(const struct trace *t, FILE *out)
{
	export_mkdat_at(t, out, 0, NULL, 0);
}

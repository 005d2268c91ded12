/* SPDX-License-Identifier: MIT */
/* save.c - see save.h */
#define _GNU_SOURCE
#include <config.h>

#include "cmd/monitor/save.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "collect/session.h"
#include "trace/writer_dir.h"

#define CALIBRATE_MS 4 /* for a trace that is cut off; at the end it is known better */

/* ---- the clock ---- */

/* The counter when CLOCK_MONOTONIC was ns, not long before or after. */
static uint64_t tsc_at(const struct time_point *near, double hz, uint64_t ns)
{
	const double ticks = (double)(int64_t)(ns - near->mono_ns) * hz / 1e9;

	return near->tsc + (uint64_t)(int64_t)ticks;
}

static void write_start(struct save *s)
{
	trace_writer_session(s->w, "start_tsc", "%" PRIu64, tsc_at(&s->begun, s->hz, s->start_ns));
	trace_writer_session(s->w, "start_mono_ns", "%" PRIu64, s->start_ns);
	trace_writer_session(s->w, "start_real_ns", "%" PRIu64,
			     s->begun.real_ns + s->start_ns - s->begun.mono_ns);
	trace_writer_session(s->w, "tsc_hz", "%.0f", s->hz);
}

/* ---- begin ---- */

static void write_subject(struct save *s, const struct save_subject *what)
{
	struct journal journal;

	journal_init(&journal, s->w);
	trace_writer_session(s->w, "command", "%s", what->command);
	session_write_machine(&journal);
	trace_writer_session(s->w, "kron", "%s", PACKAGE_VERSION);
	trace_writer_session(s->w, "monitor", "%s", what->of);
	trace_writer_session(s->w, "every_ns", "%" PRIu64, what->every_ns);
	if (what->freezes)
		trace_writer_session(s->w, "freezes", "1");
}

static void write_columns(struct save *s)
{
	for (size_t i = 0; i < s->columns->v.n; i++) {
		const struct column *c = &s->columns->v.v[i];
		const struct trace_column_line line = {
			.kind = (uint8_t)c->kind, .type = (uint8_t)c->type, .name = c->name};

		trace_writer_column(s->w, &line);
	}
}

int save_begin(struct save *s, const char *dir, const struct columns *columns,
	       const struct save_subject *what, struct err *err)
{
	int code;

	*s = (struct save){.dir = dir, .columns = columns};
	code = trace_writer_create(&s->w, dir, err);
	if (code)
		return code;
	time_point_take(&s->begun);
	s->start_ns = s->begun.mono_ns;
	s->hz = (double)tsc_hz_since(&s->begun, CALIBRATE_MS);
	write_subject(s, what);
	write_start(s);
	write_columns(s);
	code = trace_writer_flush(s->w);
	if (!code)
		return 0;
	save_drop(s);
	return err_set(err, -code, "cannot write to %s: %s", dir, strerror(-code));
}

void save_start(struct save *s, uint64_t start_ns)
{
	if (!s->w)
		return;
	s->start_ns = start_ns;
	write_start(s);
	trace_writer_flush(s->w);
}

/* ---- rows ---- */

void save_row(struct save *s, const struct monitor_row *row)
{
	struct trace_interval_line line = {.from_ns = row->from_ns,
					   .to_ns = row->to_ns,
					   .stood_ns = row->stood_ns,
					   .skew_ns = row->skew_ns,
					   .threads = row->threads,
					   .was_frozen = row->was_frozen};
	table_text values = {0};
	int code;

	if (!s->w)
		return;
	monitored_put_values(&values, s->columns, row->v);
	table_put_char(&values, 0);
	line.values = values.v;
	trace_writer_interval(s->w, &line);
	vec_free(&values);
	code = trace_writer_flush(s->w);
	/* it stays in memory, and is tried again with the next one */
	if (code && !s->error)
		s->failed_ns = row->to_ns;
	s->error = code;
}

/* ---- end ---- */

static void write_end(struct save *s, const struct monitor_summary *sum, const char *how)
{
	const struct trace_monitored_line line = {.real_ns = sum->real_ns,
						  .virtual_ns = sum->virtual_ns,
						  .stood_ns = sum->stood_ns,
						  .probes_ns = sum->probes_ns,
						  .all_stood_ns = sum->all_stood_ns,
						  .stops = sum->freezes,
						  .failed_stops = sum->failed_freezes};
	const uint64_t end_ns = s->start_ns + sum->real_ns;
	struct time_point end;
	double hz;

	time_point_take(&end);
	hz = tsc_hz(&s->begun, &end);
	trace_writer_monitored(s->w, &line);
	trace_writer_session(s->w, "exit", "%s", how);
	trace_writer_session(s->w, "tsc_hz", "%.0f", hz);
	trace_writer_session(s->w, "end_mono_ns", "%" PRIu64, end_ns);
	/* last: a trace with this line is complete */
	trace_writer_session(s->w, "end_tsc", "%" PRIu64, tsc_at(&end, hz, end_ns));
}

/* In the trace, too, where so short a line may still fit. */
static int fail(struct save *s, int code, struct err *err)
{
	char from[STR_NUMBER];

	err_set(err, -code, "cannot write to %s: %s; the intervals from %s on are lost", s->dir,
		strerror(-code), str_duration(from, sizeof(from), s->failed_ns));
	trace_writer_session(s->w, "error", "%s", err->msg);
	trace_writer_flush(s->w);
	return code;
}

int save_end(struct save *s, const struct monitor_summary *sum, const char *how, struct err *err)
{
	int code;

	if (!s->w)
		return 0;
	if (s->error)
		s->error = trace_writer_flush(s->w);
	code = s->error;
	if (!code) {
		write_end(s, sum, how);
		s->failed_ns = sum->real_ns;
		code = trace_writer_flush(s->w);
	}
	if (code)
		fail(s, code, err);
	/* its first error may be one that was made good */
	trace_writer_close(s->w);
	s->w = NULL;
	return code;
}

void save_drop(struct save *s)
{
	if (!s->w)
		return;
	trace_writer_undo(s->w);
	s->w = NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * export_chrome.c - Chrome's trace event format: a complete event ("X") for each call, names of
 * processes and threads as metadata; asynchronous events ("b", "e") for the times that a thread
 * was off the processors, for they need not nest in its calls.  Times are microseconds from the start of the trace, with
 * three decimals: whole nanoseconds.
 *
 * Complete events of a thread must nest.  Further stacks of it whose calls interleave with others
 * are threads to Chrome, of numbers that no thread has.
 */
#include <inttypes.h>
#include <math.h>

#include "base/json.h"
#include "trace/export/export.h"
#include "trace/export/export_nest.h"
#include "trace/export/export_switches.h"
#include "trace/index.h"
#include "trace/text.h"
#include "trace/value.h"

#define STACKS (1u << 22) /* numbers of tracks that are not threads; pid_max is no more */

struct chrome {
	const struct trace *t;
	FILE *out;
	struct index stacks; /* lane << 32 | track */
	struct export_switches switches;
	uint64_t offs; /* so far: each is an event of its own */
};

static void put_us(struct chrome *c, const char *key, uint64_t ns)
{
	fprintf(c->out, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

/* The pid that people know; traces of boards have none. */
static uint32_t pid_of(const struct trace *t, uint32_t lane)
{
	const struct trace_proc *p = trace_proc_of(t, t->lanes[lane].proc_uid);

	return p ? trace_pid_number(p) : t->lanes[lane].proc_uid;
}

static void put_word(struct chrome *c, const char *s)
{
	struct json j = JSON_INIT(c->out);

	json_str(&j, s);
}

/* What is not as usual: a filter level that is not 0, an end that was not seen. */
static void put_args(struct chrome *c, const struct pair_call *call)
{
	const struct trace_function *f = trace_function_of(c->t, KRON_EVENT_ENTRY(call->function));
	unsigned level = f ? f->level : 0;
	const char *end = call->open         ? "still running at the end"
			  : call->spans_loss ? "samples were lost in between"
			  : call->inferred   ? "inferred"
					     : NULL;

	if (!level && !end)
		return;
	fputs(",\"args\":{", c->out);
	if (level)
		fprintf(c->out, "\"level\":%u%s", level, end ? "," : "");
	if (end)
		fprintf(c->out, "\"end\":\"%s\"", end);
	fputc('}', c->out);
}

static void put_thread_name(struct chrome *c, uint32_t lane, uint32_t tid, uint32_t track)
{
	const struct trace_lane *l = &c->t->lanes[lane];
	char *name = export_track_name(l->name[0] ? l->name : "?", track);

	fprintf(c->out,
		",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
		",\"args\":{\"name\":",
		pid_of(c->t, lane), tid);
	put_word(c, name);
	fputs("}}", c->out);
	xfree(name);
}

/* The number of a track; its name comes with the first event that is on it. */
static uint32_t tid_of(struct chrome *c, uint32_t lane, uint32_t track)
{
	size_t known = c->stacks.n;
	uint32_t tid;

	if (!track)
		return c->t->lanes[lane].tid;
	tid = STACKS + index_of(&c->stacks, (uint64_t)lane << 32 | track);
	if (c->stacks.n > known)
		put_thread_name(c, lane, tid, track);
	return tid;
}

static void on_leave(void *ctx, const struct trace_event *e, const struct pair_call *call,
		     const struct track_call *at)
{
	struct chrome *c = ctx;
	const struct trace *t = c->t;
	uint64_t start = trace_time(t, call->entry_tsc), end = trace_time(t, call->exit_tsc);
	uint32_t tid = tid_of(c, call->lane, at->track);
	char buf[32];

	(void)e;
	fputs(",\n{\"ph\":\"X\",\"name\":", c->out);
	put_word(c, text_function(t, call->function, buf, sizeof(buf)));
	fputs(",\"cat\":", c->out);
	put_word(c, text_base(text_module(t, call->function)));
	fprintf(c->out, ",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, pid_of(t, call->lane), tid);
	put_us(c, "ts", start);
	put_us(c, "dur", end - start);
	put_args(c, call);
	fputc('}', c->out);
}

static void put_double(struct chrome *c, double d)
{
	struct json j = JSON_INIT(c->out);

	json_f64_exact(&j, d);
}

/* Numbers that readers in JavaScript would round, what is not a number to JSON, and a low half are text. */
static void put_value(struct chrome *c, struct value v)
{
	bool is_exact = v.type.form != VALUE_HALF &&
			(v.number <= 1ull << 53 ||
			 (v.type.form == 's' && (int64_t)v.number < 0 && -v.number <= 1ull << 53));
	char text[VALUE_TEXT];

	if (value_is_number(v) && value_is_floating(v) && isfinite(value_double(v)))
		put_double(c, value_double(v));
	else if (value_is_number(v) && value_is_floating(v))
		fprintf(c->out, "\"%s\"", value_text(v, text));
	else if (v.memory && !value_string(v, text))
		fputs("null", c->out);
	else if (v.memory)
		put_word(c, value_string(v, text));
	else if (is_exact && v.type.form == 's')
		fprintf(c->out, "%" PRId64, (int64_t)v.number);
	else if (is_exact)
		fprintf(c->out, "%" PRIu64, v.number);
	else
		fprintf(c->out, "\"%s\"", value_text(v, text));
}

/* An instant of the thread. */
static void on_user_event(void *ctx, const struct trace_event *e, const struct trace_user_event *u,
			  uint32_t track)
{
	struct chrome *c = ctx;
	uint32_t tid = tid_of(c, e->lane, track);

	fputs(",\n{\"ph\":\"i\",\"s\":\"t\",\"name\":", c->out);
	put_word(c, u->name);
	fprintf(c->out, ",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, pid_of(c->t, e->lane), tid);
	put_us(c, "ts", trace_time(c->t, e->tsc));
	fputs(",\"args\":{", c->out);
	put_word(c, u->payload[0] ? u->payload : "payload");
	fputc(':', c->out);
	put_value(c, value_of(u, e));
	if (u->level)
		fprintf(c->out, ",\"%s\":%u", export_level_name(u), u->level);
	fputs("}}", c->out);
}

static void put_off(struct chrome *c, char phase, uint32_t lane, const struct offcpu_stretch *o)
{
	unsigned cpu = phase == 'b' ? o->from_cpu : o->to_cpu;

	fprintf(c->out,
		",\n{\"ph\":\"%c\",\"cat\":\"switch\",\"name\":\"%s\",\"id\":%" PRIu64
		",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32,
		phase, o->preempted ? "preempted" : "waiting", c->offs, pid_of(c->t, lane),
		c->t->lanes[lane].tid);
	put_us(c, "ts", trace_time(c->t, phase == 'b' ? o->out : o->in));
	fprintf(c->out, ",\"args\":{\"cpu\":%u}}", cpu);
}

static void on_off(void *ctx, uint32_t lane, const struct offcpu_stretch *o)
{
	struct chrome *c = ctx;

	c->offs++;
	put_off(c, 'b', lane, o);
	put_off(c, 'e', lane, o);
}

static void put_process_name(struct chrome *c, const struct trace_proc *p)
{
	const char *name = p && p->exe[0] ? text_base(p->exe) : "?";
	char pid[TRACE_PID_TEXT], *whole;

	if (!p || !trace_nodes(c->t)) {
		put_word(c, name);
		return;
	}
	whole = xasprintf("%s %s", trace_pid_text(c->t, p, pid, sizeof(pid)), name);
	put_word(c, whole);
	xfree(whole);
}

static void put_names(struct chrome *c, uint32_t lane)
{
	const struct trace_lane *l = &c->t->lanes[lane];
	const struct trace_proc *p = trace_proc_of(c->t, l->proc_uid);

	fprintf(c->out,
		"%s\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%" PRIu32
		",\"args\":{\"name\":",
		lane ? "," : "", pid_of(c->t, lane));
	put_process_name(c, p);
	fputs("}}", c->out);
	put_thread_name(c, lane, l->tid, 0);
}

static void put_lane(struct chrome *c, struct tracks *tracks, uint32_t lane)
{
	struct trace_cursor *cursor = trace_cursor_open(c->t, (int)lane);
	uint64_t first = UINT64_MAX, last = 0;
	struct trace_event e;

	while (trace_cursor_next(cursor, &e)) {
		first = e.tsc < first ? e.tsc : first;
		last = e.tsc > last ? e.tsc : last;
		tracks_feed(tracks, &e);
	}
	trace_cursor_close(cursor);
	tracks_finish_lane(tracks, lane);
	export_switches_off(&c->switches, lane, first, last, on_off, c);
}

void export_chrome(const struct trace *t, FILE *out)
{
	struct chrome c = {.t = t, .out = out};
	struct track_sink sink = {.ctx = &c, .leave = on_leave, .user_event = on_user_event};
	struct tracks *tracks = tracks_open(t, &sink);

	fputs("{\"displayTimeUnit\":\"ns\",", out);
	if (trace_clock_every(t) > 1)
		fprintf(out, "\"otherData\":{\"clock_every\":%u},", trace_clock_every(t));
	fputs("\"traceEvents\":[", out);
	for (size_t lane = 0; lane < t->nlanes; lane++)
		put_names(&c, (uint32_t)lane);
	export_switches_open(&c.switches, t);
	for (uint32_t lane = 0; lane < t->nlanes; lane++)
		put_lane(&c, tracks, lane);
	export_switches_close(&c.switches);
	fputs("\n]}\n", out);
	tracks_close(tracks);
	index_free(&c.stacks);
}

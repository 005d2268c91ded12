/* SPDX-License-Identifier: MIT */
/*
 * export_chrome.c - Chrome's trace event format: a complete event ("X") for each call, names of
 * processes and threads as metadata.  Times are microseconds from the start of the trace, with
 * three decimals: whole nanoseconds.
 */
#include <inttypes.h>

#include "base/json.h"
#include "trace/export.h"
#include "trace/pairs.h"
#include "trace/text.h"

struct chrome {
	const struct trace *t;
	FILE *out;
	struct json j;
};

static void put_us(struct chrome *c, const char *key, uint64_t ns)
{
	fprintf(c->out, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

/* The pid that people know; traces of boards have none. */
static int32_t pid_of(const struct trace *t, uint32_t lane)
{
	const struct trace_proc *p = trace_proc_of(t, t->lanes[lane].proc_uid);

	return p && p->known ? p->pid : (int32_t)t->lanes[lane].proc_uid;
}

static void put_word(struct chrome *c, const char *s)
{
	struct json j = JSON_INIT(c->out);

	json_str(&j, s);
}

static void on_leave(void *ctx, const struct trace_event *e, const struct pair_call *call)
{
	struct chrome *c = ctx;
	const struct trace *t = c->t;
	uint64_t start = trace_time(t, call->entry_tsc), end = trace_time(t, call->exit_tsc);
	char buf[32];

	(void)e;
	fputs(",\n{\"ph\":\"X\",\"name\":", c->out);
	put_word(c, text_function(t, call->function, buf, sizeof(buf)));
	fputs(",\"cat\":", c->out);
	put_word(c, text_base(text_module(t, call->function)));
	fprintf(c->out, ",\"pid\":%" PRId32 ",\"tid\":%" PRIu32, pid_of(t, call->lane),
		t->lanes[call->lane].tid);
	put_us(c, "ts", start);
	put_us(c, "dur", end - start);
	if (call->inferred || call->open || call->spans_loss)
		fprintf(c->out, ",\"args\":{\"end\":\"%s\"}",
			call->open         ? "still running when the trace ended"
			: call->spans_loss ? "samples were lost in between"
					   : "inferred");
	fputc('}', c->out);
}

/* An instant of the thread. */
static void on_user_event(void *ctx, const struct trace_event *e, const struct trace_user_event *u)
{
	struct chrome *c = ctx;

	fputs(",\n{\"ph\":\"i\",\"s\":\"t\",\"name\":", c->out);
	put_word(c, u->name);
	fprintf(c->out, ",\"pid\":%" PRId32 ",\"tid\":%" PRIu32, pid_of(c->t, e->lane),
		c->t->lanes[e->lane].tid);
	put_us(c, "ts", trace_time(c->t, e->tsc));
	fputs(",\"args\":{", c->out);
	put_word(c, u->payload[0] ? u->payload : "payload");
	fprintf(c->out, ":%" PRIu32 "}}", e->s.payload);
}

static void put_names(struct chrome *c, uint32_t lane)
{
	const struct trace_lane *l = &c->t->lanes[lane];
	const struct trace_proc *p = trace_proc_of(c->t, l->proc_uid);

	fprintf(c->out,
		"%s\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%" PRId32
		",\"args\":{\"name\":",
		lane ? "," : "", pid_of(c->t, lane));
	put_word(c, p && p->exe[0] ? text_base(p->exe) : "?");
	fprintf(c->out,
		"}},\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%" PRId32 ",\"tid\":%" PRIu32
		",\"args\":{\"name\":",
		pid_of(c->t, lane), l->tid);
	put_word(c, l->name[0] ? l->name : "?");
	fputs("}}", c->out);
}

void export_chrome(const struct trace *t, FILE *out)
{
	struct chrome c = {.t = t, .out = out};
	struct pair_sink sink = {.ctx = &c, .leave = on_leave, .user_event = on_user_event};
	struct pairs *pairs = pairs_open(t, &sink);
	struct trace_event e;

	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", out);
	for (size_t lane = 0; lane < t->nlanes; lane++)
		put_names(&c, (uint32_t)lane);
	for (size_t lane = 0; lane < t->nlanes; lane++) {
		struct trace_cursor *cursor = trace_cursor_open(t, (int)lane);

		while (trace_cursor_next(cursor, &e))
			pairs_feed(pairs, &e);
		trace_cursor_close(cursor);
		pairs_finish_lane(pairs, (uint32_t)lane);
	}
	fputs("\n]}\n", out);
	pairs_close(pairs);
}

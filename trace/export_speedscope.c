/* SPDX-License-Identifier: MIT */
/*
 * export_speedscope.c - speedscope's own format: one "evented" profile a thread.
 *
 * Its opens and closes must nest.  A thread's do not always: coroutines and signal stacks run
 * in the middle of other calls.  So a close of what is not on top closes what lies above and
 * opens it again at once.
 */
#include <inttypes.h>

#include "base/json.h"
#include "base/vec.h"
#include "trace/export.h"
#include "trace/pairs.h"
#include "trace/text.h"

struct speedscope {
	const struct trace *t;
	FILE *out;
	uint32_t *frame_of; /* by function number below limit: index of its frame + 1 */
	uint32_t limit, nframes;
	VEC(uint32_t) stack;
	uint64_t last; /* times in a profile never run back */
	bool first;
};

static void put(struct speedscope *s, char type, uint32_t function, uint64_t tsc)
{
	uint64_t at = trace_time(s->t, tsc);

	if (at < s->last)
		at = s->last;
	s->last = at;
	fprintf(s->out, "%s\n{\"type\":\"%c\",\"frame\":%" PRIu32 ",\"at\":%" PRIu64 "}",
		s->first ? "" : ",", type, s->frame_of[function] - 1, at);
	s->first = false;
}

static bool is_known(const struct speedscope *s, uint32_t function)
{
	return function < s->limit && s->frame_of[function];
}

static void on_enter(void *ctx, const struct trace_event *e, uint32_t function, uint32_t depth)
{
	struct speedscope *s = ctx;

	(void)depth;
	if (!is_known(s, function))
		return;
	*vec_push(&s->stack) = function;
	put(s, 'O', function, e->tsc);
}

static void on_leave(void *ctx, const struct trace_event *e, const struct pair_call *call)
{
	struct speedscope *s = ctx;
	size_t i = s->stack.n, at;

	(void)e;
	while (i > 0 && s->stack.v[i - 1] != call->function)
		i--;
	if (!i)
		return;
	at = i - 1;
	for (i = s->stack.n; i > at; i--)
		put(s, 'C', s->stack.v[i - 1], call->exit_tsc);
	for (i = at; i + 1 < s->stack.n; i++) {
		s->stack.v[i] = s->stack.v[i + 1];
		put(s, 'O', s->stack.v[i], call->exit_tsc);
	}
	s->stack.n--;
}

static void put_frames(struct speedscope *s)
{
	struct json j = JSON_INIT(s->out);

	json_open(&j, '[');
	for (size_t i = 0; i < s->t->nfunctions; i++) {
		const struct trace_function *f = &s->t->functions[i];

		if (f->n >= s->limit || s->frame_of[f->n])
			continue;
		s->frame_of[f->n] = ++s->nframes;
		json_open(&j, '{');
		json_kstr(&j, "name", f->name);
		json_kstr(&j, "file", text_module(s->t, f->n));
		json_close(&j, '}');
	}
	json_close(&j, ']');
}

static void put_profile(struct speedscope *s, struct pairs *pairs, uint32_t lane)
{
	const struct trace_lane *l = &s->t->lanes[lane];
	const struct trace_proc *p = trace_proc_of(s->t, l->proc_uid);
	struct trace_cursor *cursor = trace_cursor_open(s->t, (int)lane);
	struct json j = JSON_INIT(s->out);
	struct trace_event e;
	char *name = xasprintf("%s %" PRIu32,
			       l->name[0]       ? l->name
			       : p && p->exe[0] ? text_base(p->exe)
						: "thread",
			       l->tid);

	s->first = true;
	s->last = 0;
	s->stack.n = 0;
	fprintf(s->out,
		"%s\n{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"startValue\":0,\"name\":",
		lane ? "," : "");
	json_str(&j, name);
	fputs(",\"events\":[", s->out);
	while (trace_cursor_next(cursor, &e))
		pairs_feed(pairs, &e);
	pairs_finish_lane(pairs, lane);
	while (s->stack.n) {
		uint32_t function = s->stack.v[--s->stack.n];

		put(s, 'C', function, e.tsc);
	}
	fprintf(s->out, "],\"endValue\":%" PRIu64 "}", s->last);
	trace_cursor_close(cursor);
	xfree(name);
}

void export_speedscope(const struct trace *t, FILE *out)
{
	struct speedscope s = {.t = t, .out = out, .limit = trace_function_limit(t)};
	struct pair_sink sink = {.ctx = &s, .enter = on_enter, .leave = on_leave};
	struct pairs *pairs = pairs_open(t, &sink);

	s.frame_of = xcalloc(s.limit + 1, sizeof(*s.frame_of));
	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
	      "\"exporter\":\"kron\",\"shared\":{\"frames\":",
	      out);
	put_frames(&s);
	fputs("},\"profiles\":[", out);
	for (size_t lane = 0; lane < t->nlanes; lane++)
		put_profile(&s, pairs, (uint32_t)lane);
	fputs("]}\n", out);
	pairs_close(pairs);
	vec_free(&s.stack);
	xfree(s.frame_of);
}

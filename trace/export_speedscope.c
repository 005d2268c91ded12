/* SPDX-License-Identifier: MIT */
/*
 * export_speedscope.c - speedscope's own format: one "evented" profile a thread.  Events of users'
 * probes take no time, so they are a profile of their own, "sampled": how many in which way.
 */
#include <inttypes.h>

#include "base/json.h"
#include "trace/calltree.h"
#include "trace/export.h"
#include "trace/export_nest.h"
#include "trace/text.h"

struct speedscope {
	const struct trace *t;
	FILE *out;
	uint32_t *frame_of; /* by function number below limit: index of its frame + 1 */
	uint32_t limit, nframes;
	uint64_t last;
	bool first;
};

static void put(struct speedscope *s, char type, uint32_t function, uint64_t tsc)
{
	uint64_t at = trace_time(s->t, tsc);

	s->last = at;
	fprintf(s->out, "%s\n{\"type\":\"%c\",\"frame\":%" PRIu32 ",\"at\":%" PRIu64 "}",
		s->first ? "" : ",", type, s->frame_of[function] - 1, at);
	s->first = false;
}

static bool is_known(const struct speedscope *s, uint32_t function)
{
	return function < s->limit && s->frame_of[function];
}

static void on_begin(void *ctx, uint32_t function, uint64_t tsc, bool again)
{
	(void)again;
	if (is_known(ctx, function))
		put(ctx, 'O', function, tsc);
}

static void on_end(void *ctx, uint32_t function, uint64_t tsc, const struct pair_call *call)
{
	(void)call;
	if (is_known(ctx, function))
		put(ctx, 'C', function, tsc);
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
	for (size_t i = 0; i < s->t->nuser_events; i++) {
		char *name = xasprintf("event %s", s->t->user_events[i].name);

		json_open(&j, '{');
		json_kstr(&j, "name", name);
		json_kstr(&j, "file", s->t->modules[s->t->user_events[i].module].path);
		json_close(&j, '}');
		xfree(name);
	}
	json_close(&j, ']');
}

static void put_profile(struct speedscope *s, struct export_nest *nest, uint32_t lane)
{
	const struct trace_lane *l = &s->t->lanes[lane];
	const struct trace_proc *p = trace_proc_of(s->t, l->proc_uid);
	struct json j = JSON_INIT(s->out);
	char *name = xasprintf("%s %" PRIu32,
			       l->name[0]       ? l->name
			       : p && p->exe[0] ? text_base(p->exe)
						: "thread",
			       l->tid);

	s->first = true;
	s->last = 0;
	fprintf(s->out,
		"%s\n{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"startValue\":0,\"name\":",
		lane ? "," : "");
	json_str(&j, name);
	fputs(",\"events\":[", s->out);
	export_nest_lane(nest, lane);
	fprintf(s->out, "],\"endValue\":%" PRIu64 "}", s->last);
	xfree(name);
}

/* The outermost function first. */
static void put_way(struct speedscope *s, const struct calltree *c, uint32_t node)
{
	VEC(uint32_t) way = {0};

	for (; node != CALLTREE_ROOT; node = c->nodes.v[node].parent)
		if (is_known(s, c->nodes.v[node].function))
			*vec_push(&way) = s->frame_of[c->nodes.v[node].function] - 1;
	while (way.n)
		fprintf(s->out, "%" PRIu32 ",", way.v[--way.n]);
	vec_free(&way);
}

static void put_events(struct speedscope *s)
{
	struct calltree c;
	uint64_t sum = 0;

	calltree_build(&c, s->t);
	fprintf(s->out,
		"%s\n{\"type\":\"sampled\",\"unit\":\"none\",\"startValue\":0,"
		"\"name\":\"events of users' probes\",\"samples\":[",
		s->t->nlanes ? "," : "");
	vec_for(&c.events, e) {
		fprintf(s->out, "%s\n[", e == c.events.v ? "" : ",");
		put_way(s, &c, e->node);
		fprintf(s->out, "%" PRIu32 "]", s->nframes + e->event);
		sum += e->count;
	}
	fputs("],\"weights\":[", s->out);
	vec_for(&c.events, e)
		fprintf(s->out, "%s%" PRIu64, e == c.events.v ? "" : ",", e->count);
	fprintf(s->out, "],\"endValue\":%" PRIu64 "}", sum);
	calltree_free(&c);
}

void export_speedscope(const struct trace *t, FILE *out)
{
	struct speedscope s = {.t = t, .out = out, .limit = trace_function_limit(t)};
	struct export_nest nest = {.t = t, .ctx = &s, .begin = on_begin, .end = on_end};

	export_nest_open(&nest);
	s.frame_of = xcalloc(s.limit + 1, sizeof(*s.frame_of));
	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
	      "\"exporter\":\"kron\",\"shared\":{\"frames\":",
	      out);
	put_frames(&s);
	fputs("},\"profiles\":[", out);
	for (size_t lane = 0; lane < t->nlanes; lane++)
		put_profile(&s, &nest, (uint32_t)lane);
	if (t->nuser_events)
		put_events(&s);
	fputs("]}\n", out);
	export_nest_close(&nest);
	xfree(s.frame_of);
}

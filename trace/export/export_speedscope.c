/* SPDX-License-Identifier: MIT */
/*
 * export_speedscope.c - speedscope's own format: one "evented" profile a thread, and one for each
 * further stack of it whose calls interleave with others.  Events of users' probes take no time, so
 * they are a profile of their own, "sampled": how many in which way.
 */
#include <inttypes.h>

#include "base/json.h"
#include "trace/analysis/calltree.h"
#include "trace/export/export.h"
#include "trace/export/export_nest.h"
#include "trace/index.h"
#include "trace/text.h"

struct speedscope {
	const struct trace *t;
	FILE *out;
	struct index frames; /* function numbers; those of the table, and what comes after them */
	uint64_t last;
	uint32_t profiles;
	bool first;
};

static void put(struct speedscope *s, char type, uint32_t function, uint64_t tsc)
{
	uint64_t at = trace_time(s->t, tsc);

	s->last = at;
	fprintf(s->out, "%s\n{\"type\":\"%c\",\"frame\":%" PRIu32 ",\"at\":%" PRIu64 "}",
		s->first ? "" : ",", type, index_of(&s->frames, function), at);
	s->first = false;
}

static void on_begin(void *ctx, uint32_t function, uint64_t tsc)
{
	put(ctx, 'O', function, tsc);
}

static void on_end(void *ctx, uint32_t function, uint64_t tsc, const struct track_call *call)
{
	(void)call;
	put(ctx, 'C', function, tsc);
}

/* A user's event has a number that no function has. */
static void put_frame(struct speedscope *s, struct json *j, uint32_t n)
{
	const struct trace_user_event *u = trace_user_event_of(s->t, KRON_EVENT_ENTRY(n));
	char buf[32], *modules = u ? text_event_modules(s->t, u, false) : NULL,
		      *name = u ? xasprintf("event %s", u->name) : NULL;

	json_open(j, '{');
	json_kstr(j, "name", name ? name : text_function(s->t, n, buf, sizeof(buf)));
	json_kstr(j, "file", u ? modules : text_module(s->t, n));
	json_close(j, '}');
	xfree(modules);
	xfree(name);
}

/* When all have been seen. */
static void put_frames(struct speedscope *s)
{
	struct json j = JSON_INIT(s->out);

	json_open(&j, '[');
	for (size_t i = 0; i < s->frames.n; i++)
		put_frame(s, &j, (uint32_t)s->frames.keys[i]);
	json_close(&j, ']');
}

static void end_profile(struct speedscope *s)
{
	if (s->profiles)
		fprintf(s->out, "],\"endValue\":%" PRIu64 "}", s->last);
}

static void on_track(void *ctx, uint32_t lane, uint32_t track)
{
	struct speedscope *s = ctx;
	const struct trace_lane *l = &s->t->lanes[lane];
	const struct trace_proc *p = trace_proc_of(s->t, l->proc_uid);
	struct json j = JSON_INIT(s->out);
	char *name = xasprintf("%s %" PRIu32,
			       l->name[0]       ? l->name
			       : p && p->exe[0] ? text_base(p->exe)
						: "thread",
			       l->tid);
	char *shown = export_track_name(name, track);

	end_profile(s);
	s->first = true;
	s->last = 0;
	fprintf(s->out,
		"%s\n{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"startValue\":0,\"name\":",
		s->profiles++ ? "," : "");
	json_str(&j, shown);
	fputs(",\"events\":[", s->out);
	xfree(name);
	xfree(shown);
}

/* The outermost function first. */
static void put_way(struct speedscope *s, const struct calltree *c, uint32_t node)
{
	VEC(uint32_t) way = {0};

	for (; node != CALLTREE_ROOT; node = c->nodes.v[node].parent)
		*vec_push(&way) = index_of(&s->frames, c->nodes.v[node].function);
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
		s->profiles ? "," : "");
	vec_for(&c.events, e) {
		fprintf(s->out, "%s\n[", e == c.events.v ? "" : ",");
		put_way(s, &c, e->node);
		fprintf(s->out, "%" PRIu32 "]",
			index_of(&s->frames, s->t->user_events[e->event].n));
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
	struct speedscope s = {.t = t, .out = out};
	struct export_nest nest = {
		.t = t, .ctx = &s, .track = on_track, .begin = on_begin, .end = on_end};

	export_nest_open(&nest);
	for (size_t i = 0; i < t->nfunctions; i++)
		index_of(&s.frames, t->functions[i].n);
	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
	      "\"exporter\":\"kron",
	      out);
	if (trace_clock_every(t) > 1)
		fprintf(out, ", times interpolated: %u samples share a reading of the clock",
			trace_clock_every(t));
	fputs("\",\"profiles\":[", out);
	for (size_t lane = 0; lane < t->nlanes; lane++)
		export_nest_lane(&nest, (uint32_t)lane);
	end_profile(&s);
	if (t->nuser_events)
		put_events(&s);
	fputs("],\"shared\":{\"frames\":", out);
	put_frames(&s);
	fputs("}}\n", out);
	export_nest_close(&nest);
	index_free(&s.frames);
}

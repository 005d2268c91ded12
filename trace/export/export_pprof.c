/* SPDX-License-Identifier: MIT */
/*
 * export_pprof.c - a profile for `go tool pprof`, not compressed: a sample for each way to a
 * function, with its calls and its self time in ns.  Events of users' probes are a third kind of
 * value, in the way to the function that ran and a function "event NAME"; filter levels are labels.
 *
 * Numbers of strings count from 0 in the order of the file; locations and functions have the
 * number of the function + 1, mappings that of the module's row + 1.
 */
#include "trace/analysis/calltree.h"
#include "trace/export/export.h"
#include "trace/export/export_nest.h"
#include "trace/export/export_proto.h"
#include "trace/text.h"

#include <stdlib.h>

/* Field numbers, of pprof's profile.proto */
enum {
	PROFILE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME = 9,
	PROFILE_DURATION = 10,
	PROFILE_DEFAULT = 14
};
enum { TYPE_TYPE = 1, TYPE_UNIT = 2 };
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_NUMBER = 3 };
enum { MAPPING_ID = 1, MAPPING_FILE = 5, MAPPING_BUILD_ID = 6, MAPPING_HAS_FUNCTIONS = 7 };
enum { LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4 };

struct pprof {
	const struct trace *t;
	FILE *out;
	struct proto top, part, inner;
	uint64_t strings;
	uint64_t level; /* number of that word */
	bool has_events;
	uint64_t *files; /* by module: number of the path's string */
	struct export_set functions;
};

static uint64_t put_string(struct pprof *p, const char *s)
{
	/* text straight into the file: the field's head is its own */
	proto_text(&p->top, PROFILE_STRING, s);
	fwrite(p->top.bytes.v, 1, p->top.bytes.n, p->out);
	p->top.bytes.n = 0;
	return p->strings++;
}

static void put_number(struct pprof *p, unsigned field, uint64_t value)
{
	proto_uint(&p->top, field, value);
	fwrite(p->top.bytes.v, 1, p->top.bytes.n, p->out);
	p->top.bytes.n = 0;
}

static void put_type(struct pprof *p, const char *type, const char *unit)
{
	proto_uint(&p->part, TYPE_TYPE, put_string(p, type));
	proto_uint(&p->part, TYPE_UNIT, put_string(p, unit));
	proto_write(&p->part, PROFILE_TYPE, p->out);
}

static void put_modules(struct pprof *p)
{
	const struct trace *t = p->t;

	p->files = xcalloc(t->nmodules + 1, sizeof(*p->files));
	for (size_t i = 0; i < t->nmodules; i++) {
		p->files[i] = put_string(p, t->modules[i].path);
		proto_uint(&p->part, MAPPING_ID, i + 1);
		proto_uint(&p->part, MAPPING_FILE, p->files[i]);
		proto_uint(&p->part, MAPPING_BUILD_ID,
			   t->modules[i].build_id[0] ? put_string(p, t->modules[i].build_id) : 0);
		proto_uint(&p->part, MAPPING_HAS_FUNCTIONS, 1);
		proto_write(&p->part, PROFILE_MAPPING, p->out);
	}
}

static void put_function(struct pprof *p, uint32_t n)
{
	const struct trace_function *f = trace_function_of(p->t, KRON_EVENT_ENTRY(n));
	char buf[32];
	uint64_t name;

	if (!export_set_add(&p->functions, n))
		return;
	name = put_string(p, text_function(p->t, n, buf, sizeof(buf)));
	proto_uint(&p->part, FUNCTION_ID, n + 1ul);
	proto_uint(&p->part, FUNCTION_NAME, name);
	proto_uint(&p->part, FUNCTION_SYSTEM_NAME, name);
	if (f)
		proto_uint(&p->part, FUNCTION_FILE, p->files[f->module]);
	proto_write(&p->part, PROFILE_FUNCTION, p->out);
	proto_uint(&p->part, LOCATION_ID, n + 1ul);
	if (f) {
		proto_uint(&p->part, LOCATION_MAPPING, f->module + 1ul);
		proto_uint(&p->part, LOCATION_ADDRESS, f->vaddr);
	}
	proto_uint(&p->inner, LINE_FUNCTION, n + 1ul);
	proto_message(&p->part, LOCATION_LINE, &p->inner);
	proto_write(&p->part, PROFILE_LOCATION, p->out);
}

/* A user's event as a function, of the number that no function has. */
static void put_event(struct pprof *p, const struct trace_user_event *u)
{
	const struct trace_event_place *at = trace_only_place(u);
	char *name;

	if (!export_set_add(&p->functions, u->n))
		return;
	name = xasprintf("event %s", u->name);
	proto_uint(&p->part, FUNCTION_ID, u->n + 1ul);
	proto_uint(&p->part, FUNCTION_NAME, put_string(p, name));
	if (at)
		proto_uint(&p->part, FUNCTION_FILE, p->files[at->module]);
	proto_write(&p->part, PROFILE_FUNCTION, p->out);
	proto_uint(&p->part, LOCATION_ID, u->n + 1ul);
	if (at) {
		proto_uint(&p->part, LOCATION_MAPPING, at->module + 1ul);
		proto_uint(&p->part, LOCATION_ADDRESS, at->vaddr);
	}
	proto_uint(&p->inner, LINE_FUNCTION, u->n + 1ul);
	proto_message(&p->part, LOCATION_LINE, &p->inner);
	proto_write(&p->part, PROFILE_LOCATION, p->out);
	xfree(name);
}

/* Of the sample in p->part. */
static void put_level(struct pprof *p, unsigned level)
{
	if (!level)
		return;
	if (!p->level)
		p->level = put_string(p, "level");
	proto_uint(&p->inner, LABEL_KEY, p->level);
	proto_uint(&p->inner, LABEL_NUMBER, level);
	proto_message(&p->part, SAMPLE_LABEL, &p->inner);
}

static void put_values(struct pprof *p, uint64_t calls, uint64_t self, uint64_t events)
{
	proto_packed(&p->inner, calls);
	proto_packed(&p->inner, self);
	if (p->has_events)
		proto_packed(&p->inner, events);
	proto_message(&p->part, SAMPLE_VALUES, &p->inner);
}

/* The innermost function first. */
static void put_locations(struct pprof *p, const struct calltree *c, uint32_t node)
{
	for (uint32_t at = node; at != CALLTREE_ROOT; at = c->nodes.v[at].parent)
		proto_packed(&p->inner, c->nodes.v[at].function + 1ul);
	proto_message(&p->part, SAMPLE_LOCATIONS, &p->inner);
}

static void put_way(struct pprof *p, const struct calltree *c, uint32_t node)
{
	const struct calltree_node *n = &c->nodes.v[node];
	const struct trace_function *f = trace_function_of(p->t, KRON_EVENT_ENTRY(n->function));

	put_function(p, n->function);
	put_locations(p, c, node);
	put_values(p, n->calls, trace_ns(p->t, n->self), 0);
	put_level(p, f ? f->level : 0);
	proto_write(&p->part, PROFILE_SAMPLE, p->out);
}

static void put_events(struct pprof *p, const struct calltree *c)
{
	for (size_t i = 0; i < c->events.n; i++) {
		const struct calltree_event *e = &c->events.v[i];
		const struct trace_user_event *u = &p->t->user_events[e->event];

		put_event(p, u);
		proto_packed(&p->inner, u->n + 1ul);
		put_locations(p, c, e->node);
		put_values(p, 0, 0, e->count);
		put_level(p, u->level);
		proto_write(&p->part, PROFILE_SAMPLE, p->out);
	}
}

void export_pprof(const struct trace *t, FILE *out)
{
	struct pprof p = {.t = t, .out = out};
	const char *real = trace_session(t, "start_real_ns");
	struct calltree c;

	calltree_build(&c, t);
	put_string(&p, ""); /* number 0 has to be */
	put_type(&p, "calls", "count");
	put_type(&p, "self", "nanoseconds");
	p.has_events = c.events.n;
	if (p.has_events)
		put_type(&p, "events", "count");
	put_number(&p, PROFILE_DEFAULT, 3); /* "self": the third word */
	put_number(&p, PROFILE_TIME, real ? strtoull(real, NULL, 10) & INT64_MAX : 0);
	if (t->end_tsc > t->start_tsc)
		put_number(&p, PROFILE_DURATION, trace_ns(t, t->end_tsc - t->start_tsc));
	put_modules(&p);
	for (uint32_t i = 0; i < c.nodes.n; i++)
		put_way(&p, &c, i);
	put_events(&p, &c);
	calltree_free(&c);
	export_set_free(&p.functions);
	xfree(p.files);
	proto_free(&p.top);
	proto_free(&p.part);
	proto_free(&p.inner);
}

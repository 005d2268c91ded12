/* SPDX-License-Identifier: MIT */
/*
 * export_callgrind.c - functions with self time, and who called whom how often and for how
 * long, in callgrind's format.  There are no lines, so all positions are 0.
 *
 *   ob=(1) /usr/bin/bash
 *   fn=(7) main
 *   0 1234                    self
 *   cfn=(9) parse
 *   calls=3 0
 *   0 5678                    inclusive, of those three
 *
 * Costs are ns.  A function's inclusive time is that of the calls to it, added up; so a call that is in another one of the same
 * function has none: that one has it, and each moment counts once.  callgrind itself counts it with each.  Where there are events of users' probes, each of them is a function that takes no
 * time, "event NAME", called by the one that ran; its cost is a second number: how many there were.
 *
 * callgrind_annotate knows functions by file and name, whatever their object.  So functions of one name in several
 * objects have files of their own: "???", "???2" and so on.
 *
 * What has no caller is called by "(root)": callgrind_annotate takes for a function's inclusive
 * time that of the calls to it, as soon as there is one.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/analysis/calltree.h"
#include "trace/export/export.h"
#include "trace/text.h"

#define ROOT CALLTREE_ROOT /* no function has this number: events are twice it */

struct edge {
	uint32_t caller, callee; /* caller == callee and calls 0: self time */
	bool is_self;
	uint64_t calls, ticks, events;
};

static int by_caller(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	if (x->is_self != y->is_self)
		return x->is_self ? -1 : 1;
	return x->callee < y->callee ? -1 : x->callee > y->callee;
}

/* The calls, and the self times of a function together, in order. */
static size_t make_edges(const struct trace *t, const struct calltree *c, struct edge *v)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < c->nodes.n; i++) {
		const struct calltree_node *node = &c->nodes.v[i];

		v[n++] = (struct edge){node->function, node->function, true, 0, node->self, 0};
		v[n++] = (struct edge){node->parent, node->function, false,
				       node->calls,  node->total,    node->events};
	}
	for (size_t i = 0; i < c->events.n; i++) {
		const struct calltree_event *e = &c->events.v[i];
		uint32_t number = t->user_events[e->event].n;
		uint32_t caller = e->node == CALLTREE_ROOT ? ROOT : c->nodes.v[e->node].function;

		v[n++] = (struct edge){number, number, true, 0, 0, e->count};
		v[n++] = (struct edge){caller, number, false, e->count, 0, e->count};
	}
	qsort(v, n, sizeof(*v), by_caller);
	for (size_t i = 0; i < n; i++) {
		if (kept && !by_caller(&v[kept - 1], &v[i])) {
			v[kept - 1].calls += v[i].calls;
			v[kept - 1].ticks += v[i].ticks;
			v[kept - 1].events += v[i].events;
		} else {
			v[kept++] = v[i];
		}
	}
	return kept;
}

struct namesake {
	const char *name, *module;
	uint32_t n;
};

struct writer {
	const struct trace *t;
	FILE *out;
	uint8_t *named;  /* by function number: its name has been given */
	uint32_t *files; /* by function number: which of the modules that have its name, from 0 */
	uint32_t file;   /* the one that was written last */
	uint32_t limit;
};

static int by_name(const void *a, const void *b)
{
	const struct namesake *x = a, *y = b;
	const int by = strcmp(x->name, y->name);

	return by ? by : strcmp(x->module, y->module);
}

/* Each function that has a line of its own is among the edges once. */
static void find_files(struct writer *w, const struct edge *edges, size_t nedges)
{
	struct namesake *v = xmalloc((nedges + 1) * sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; i < nedges; i++) {
		const uint32_t number = edges[i].caller;
		const struct trace_function *f = trace_function_of(w->t, KRON_EVENT_ENTRY(number));

		if (edges[i].is_self && f && number < w->limit)
			v[n++] = (struct namesake){f->name, text_module(w->t, number), number};
	}
	if (n)
		qsort(v, n, sizeof(*v), by_name);
	for (size_t i = 1; i < n; i++)
		if (!strcmp(v[i].name, v[i - 1].name))
			w->files[v[i].n] =
				w->files[v[i - 1].n] + !!strcmp(v[i].module, v[i - 1].module);
	xfree(v);
}

static void put_file(struct writer *w, const char *key, uint32_t function)
{
	const uint32_t file = function < w->limit ? w->files[function] : 0;

	if (file == w->file)
		return;
	fprintf(w->out, "%s=???", key);
	if (file)
		fprintf(w->out, "%" PRIu32, file + 1);
	putc('\n', w->out);
	if (*key == 'f')
		w->file = file;
}

static void put_name(struct writer *w, uint32_t function)
{
	const struct trace_user_event *u = trace_user_event_of(w->t, KRON_EVENT_ENTRY(function));

	if (!u) {
		text_put_function(w->out, w->t, function);
		return;
	}
	fputs("event ", w->out);
	text_put(w->out, u->name);
}

/* "(7) main" the first time, "(7)" later. */
static void put_function(struct writer *w, const char *key, uint32_t function)
{
	fprintf(w->out, "%s=(%" PRIu32 ")", key, function + 1);
	if (function == ROOT) {
		fputs(" (root)", w->out);
	} else if (function >= w->limit || !w->named[function]) {
		putc(' ', w->out);
		put_name(w, function);
	}
	if (function < w->limit)
		w->named[function] = 1;
	putc('\n', w->out);
}

static void put_object(struct writer *w, const char *key, uint32_t function)
{
	const struct trace_user_event *u = trace_user_event_of(w->t, KRON_EVENT_ENTRY(function));

	char *modules = u ? text_event_modules(w->t, u, false) : NULL;

	fprintf(w->out, "%s=", key);
	text_put(w->out, modules ? modules : text_module(w->t, function));
	putc('\n', w->out);
	xfree(modules);
}

/* The root comes after all others and has no self time. */
static void start_root(struct writer *w)
{
	put_object(w, "ob", ROOT);
	put_file(w, "fl", ROOT);
	put_function(w, "fn", ROOT);
	fputs("0 0\n", w->out);
}

static void put_edge(struct writer *w, const struct edge *e)
{
	if (e->is_self) {
		put_object(w, "ob", e->caller);
		put_file(w, "fl", e->caller);
		put_function(w, "fn", e->caller);
	} else {
		put_object(w, "cob", e->callee);
		put_file(w, "cfi", e->callee);
		put_function(w, "cfn", e->callee);
		fprintf(w->out, "calls=%" PRIu64 " 0\n", e->calls);
	}
	fprintf(w->out, "0 %" PRIu64, trace_ns(w->t, e->ticks));
	if (e->events)
		fprintf(w->out, " %" PRIu64, e->events);
	putc('\n', w->out);
}

void export_callgrind(const struct trace *t, FILE *out)
{
	struct writer w = {.t = t, .out = out, .limit = trace_function_limit(t)};
	const char *command = trace_session(t, "command");
	struct calltree c;
	struct edge *v;
	size_t n;

	calltree_build_edges(&c, t);
	v = xmalloc((2 * c.nodes.n + 2 * c.events.n + 1) * sizeof(*v));
	n = make_edges(t, &c, v);
	w.named = xcalloc(w.limit + 1, 1);
	w.files = xcalloc(w.limit + 1, sizeof(*w.files));
	find_files(&w, v, n);
	fputs("# callgrind format\nversion: 1\ncreator: kron\ncmd: ", out);
	text_put(out, command ? command : "?");
	if (trace_clock_every(t) > 1)
		fprintf(out, "\ndesc: Clock: interpolated, %u samples share a reading",
			trace_clock_every(t));
	fprintf(out, "\npositions: line\nevents: ns%s\nfl=???\n\n", c.events.n ? " Events" : "");
	for (size_t i = 0; i < n; i++) {
		if (v[i].caller == ROOT && (!i || v[i - 1].caller != ROOT))
			start_root(&w);
		put_edge(&w, &v[i]);
	}
	xfree(w.named);
	xfree(w.files);
	xfree(v);
	calltree_free(&c);
}

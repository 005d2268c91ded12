/* SPDX-License-Identifier: MIT */
/*
 * interval_names.c - see interval_names.h.
 *
 *   functions ─► sorted by name, twice where it has parameters ─► search ─► event
 */
#define _GNU_SOURCE
#include "trace/analysis/interval_names.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "base/search.h"
#include "trace/text.h"

struct name {
	const char *name;
	size_t length; /* of the part that is meant */
	uint32_t n, module;
};

struct names {
	const struct trace *t;
	VEC(struct name) v;
	char why[200];
};

static int by_text(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	int order = memcmp(x->name, y->name, x->length < y->length ? x->length : y->length);

	return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* By its whole name, and without the parameters that a demangled one has. */
static void add_name(struct names *x, const struct trace_function *f, const char *name,
		     size_t length)
{
	size_t open = strcspn(name, "(\n");
	struct name n = {.name = name, .length = length, .n = f->n, .module = f->module};

	*vec_push(&x->v) = n;
	n.length = open;
	if (open && open < length)
		*vec_push(&x->v) = n;
}

static void index_names(struct names *x, const struct trace *t)
{
	x->t = t;
	for (size_t i = 0; i < t->nuser_events; i++) {
		const struct trace_user_event *u = &t->user_events[i];

		for (size_t k = 0; k < u->nplaces; k++)
			*vec_push(&x->v) = (struct name){.name = u->name,
							 .length = strlen(u->name),
							 .n = u->n,
							 .module = u->places[k].module};
	}
	for (size_t i = 0; i < t->nfunctions; i++) {
		const struct trace_function *f = &t->functions[i];
		const char *alias = f->aliases;

		add_name(x, f, f->name, strlen(f->name));
		for (; alias && *alias; alias += strspn(alias, "\n")) {
			size_t length = strcspn(alias, "\n");

			add_name(x, f, alias, length);
			alias += length;
		}
	}
	if (x->v.n)
		qsort(x->v.v, x->v.n, sizeof(*x->v.v), by_text);
}

static size_t first_of(const struct names *x, const struct name *key)
{
	return partition_point(i, x->v.n, by_text(&x->v.v[i], key) < 0);
}

/* How many functions are named so, in modules that the glob matches; *a and *b: two of them. */
static size_t look_up(const struct names *x, const char *name, const char *glob, uint32_t *a,
		      uint32_t *b)
{
	struct name key = {.name = name, .length = strlen(name)};
	size_t found = 0;

	for (size_t i = first_of(x, &key); i < x->v.n && !by_text(&x->v.v[i], &key); i++) {
		const char *module = text_base(x->t->modules[x->v.v[i].module].path);

		if ((glob && fnmatch(glob, module, 0)) || (found && x->v.v[i].n == *a))
			continue;
		*(found ? b : a) = x->v.v[i].n;
		found++;
	}
	return found;
}

/* OBJ:NAME's colon; not one of "::" */
static const char *module_colon(const char *name)
{
	for (const char *p = name; *p; p++) {
		if (*p != ':')
			continue;
		if (p[1] != ':')
			return p > name ? p : NULL;
		p++;
	}
	return NULL;
}

static const char *find_name(void *ctx, const char *name, bool is_exit, uint64_t *event)
{
	struct names *x = ctx;
	uint32_t a = 0, b = 0;
	size_t n = look_up(x, name, NULL, &a, &b);
	const char *colon = module_colon(name);

	if (!n && colon) {
		char *glob = xstrndup(name, (size_t)(colon - name));

		n = look_up(x, colon + 1, glob, &a, &b);
		xfree(glob);
	}
	if (!n)
		return "is not a function of this trace";
	if (n > 1) {
		snprintf(x->why, sizeof(x->why),
			 "is the name of %zu functions: say which by its module, OBJ:NAME, or by "
			 "the number of the event, such as %u or %u",
			 n, is_exit ? KRON_EVENT_EXIT(a) : KRON_EVENT_ENTRY(a),
			 is_exit ? KRON_EVENT_EXIT(b) : KRON_EVENT_ENTRY(b));
		return x->why;
	}
	if (is_exit && trace_user_event_of(x->t, KRON_EVENT_ENTRY(a)))
		return "is an event, not a function: nothing returns from it";
	*event = is_exit ? KRON_EVENT_EXIT(a) : KRON_EVENT_ENTRY(a);
	return NULL;
}

int interval_info_open(struct interval_info *info, const struct trace *t, const char *file,
		       struct err *err)
{
	struct names names = {0};
	struct interval_names find = {.find = find_name, .ctx = &names};
	FILE *f = fopen(file, "re");
	struct err why;
	int code;

	if (!f)
		return err_set(err, errno, "cannot open %s: %s", file, strerror(errno));
	index_names(&names, t);
	code = interval_info_read(info, f, 32, &find, &why);
	fclose(f);
	vec_free(&names.v);
	if (info->nerrors)
		return err_set(err, EINVAL, "%s:%s%s", file, info->errors.v[0],
			       info->nerrors > 1 ? " (and there are more errors)" : "");
	if (code)
		return err_set(err, -code, "%s: %s", file, why.msg);
	if (!info->defs.n)
		return err_set(err, EINVAL, "%s describes no interval", file);
	return 0;
}

static void take_clocks(struct intervals *m, const struct trace *t)
{
	const size_t n = trace_nodes(t);
	int64_t *doubts = xcalloc(n + 1, sizeof(*doubts));

	for (size_t i = 0; i < n; i++) {
		const uint64_t ns = trace_node_at(t, (uint32_t)i)->error_ns;
		const double ticks = (double)ns * t->tsc_hz / 1e9;

		doubts[i] = ns == UINT64_MAX || ticks >= 9e18 ? INT64_MAX : (int64_t)ticks + 1;
	}
	intervals_of_clocks(m, doubts, (uint32_t)n);
	xfree(doubts);
}

struct intervals *interval_matcher(const struct interval_info *info, const struct trace *t,
				   enum intervals_match match, intervals_fn *fn, void *arg)
{
	struct intervals *m = intervals_new(info, match, 32, fn, arg);

	if (trace_nodes(t))
		take_clocks(m, t);
	else
		intervals_in_order(m);
	return m;
}

void interval_feed(struct intervals *m, const struct trace *t, const struct trace_event *e,
		   uint64_t mark)
{
	const struct trace_filter *f = t->filter;
	const struct interval_sample s = {.time = (int64_t)e->tsc,
					  .data = e->s.event,
					  .mark = mark,
					  .in = e->in,
					  .source = e->lane,
					  .cpu = e->cpu,
					  .clock = t->lanes[e->lane].node,
					  .window = f ? f->window_end(f, e->tsc) : 0};

	if (e->s.event < KRON_EVENT_SPECIAL)
		intervals_sample(m, &s);
}

uint64_t intervals_of_trace(const struct interval_info *info, const struct trace *t,
			    intervals_fn *fn, void *arg)
{
	struct intervals *m = interval_matcher(info, t, MATCH_SOURCE, fn, arg);
	struct trace_cursor *c = trace_cursor_open(t, -1);
	struct trace_event e;
	uint64_t alone = 0;

	while (trace_cursor_next(c, &e))
		interval_feed(m, t, &e, 0);
	trace_cursor_close(c);
	intervals_finish(m);
	for (size_t d = 0; d < info->defs.n; d++)
		if (info->defs.v[d].class == 4)
			alone += intervals_left(m, d)->begun + intervals_left(m, d)->ended;
	intervals_free(m);
	return alone;
}

int interval_info_check_messages(const struct interval_info *info, const char *file,
				 struct err *err)
{
	for (size_t d = 0; d < info->defs.n; d++)
		if (info->defs.v[d].class == 4)
			return 0;
	return err_set(err, EINVAL,
		       "%s describes no message: a line of class 4, sent and received, like "
		       "4 send_it receive_it \"message\"",
		       file);
}

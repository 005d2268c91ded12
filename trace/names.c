/* SPDX-License-Identifier: MIT */
/* names.c - see names.h */
#define _GNU_SOURCE
#include "trace/names.h"

#include <string.h>

#include "base/vec.h"
#include "trace/rows.h"
#include "trace/value.h"

#define EVENTS_LIMIT (1u << 26) /* higher numbers of the user's are in no array */

char *trace_name_function(const char *module, uint64_t vaddr, const char *name)
{
	const char *base = strrchr(module, '/');

	if (name && name[0])
		return xstrdup(name);
	return xasprintf("%s+0x%llx", base ? base + 1 : module, (unsigned long long)vaddr);
}

static void count_event(struct trace_names *x, uint32_t n)
{
	if (n >= x->limit && n < EVENTS_LIMIT)
		x->limit = n + 1;
}

/* ---- of a trace ---- */

void trace_names_of(struct trace_names *out, const struct trace *t)
{
	size_t places = 0;

	*out = (struct trace_names){.limit = trace_function_limit(t), .jumps = trace_jumps_of(t)};
	for (size_t i = 0; i < t->nuser_events; i++)
		places += t->user_events[i].nplaces;
	out->v = xcalloc(t->nfunctions + places + 1, sizeof(*out->v));
	for (size_t i = 0; i < t->nfunctions; i++) {
		const struct trace_function *f = &t->functions[i];

		out->v[out->n++] = (struct trace_name){.n = f->n,
						       .ways = f->ways,
						       .name = f->name,
						       .module = t->modules[f->module].path,
						       .aliases = f->aliases};
	}
	for (size_t i = 0; i < t->nuser_events; i++) {
		const struct trace_user_event *u = &t->user_events[i];

		for (size_t k = 0; k < u->nplaces; k++)
			out->v[out->n++] =
				(struct trace_name){.n = u->n,
						    .is_event = true,
						    .name = u->name,
						    .module = t->modules[u->places[k].module].path,
						    .type = u->type};
		count_event(out, u->n);
	}
}

void trace_names_free(struct trace_names *x)
{
	xfree(x->v);
}

/* ---- one by one ---- */

struct kept_module {
	uint32_t id;
	char *path;
};

struct kept_names {
	VEC(struct trace_name) names; /* with strings of their own, but for the modules' */
	VEC(struct trace_jump) jumps; /* by number */
	VEC(struct kept_module) modules;
	struct trace_names settled;
};

struct kept_names *kept_names_new(void)
{
	return xcalloc(1, sizeof(struct kept_names));
}

static void free_name(struct trace_name *x)
{
	xfree((void *)(uintptr_t)x->name);
	xfree((void *)(uintptr_t)x->aliases);
}

void kept_names_free(struct kept_names *k)
{
	if (!k)
		return;
	vec_for(&k->names, x)
		free_name(x);
	vec_for(&k->jumps, j)
		xfree(j->name);
	vec_for(&k->modules, m)
		xfree(m->path);
	vec_free(&k->names);
	vec_free(&k->jumps);
	vec_free(&k->modules);
	xfree(k->settled.jumps.targets);
	xfree(k->settled.jumps.untaken);
	xfree(k);
}

void kept_names_add_module(struct kept_names *k, const void *line)
{
	const struct trace_module_line *m = line;

	*vec_push(&k->modules) = (struct kept_module){m->id, xstrdup(m->path ? m->path : "")};
}

static const char *path_of(const struct kept_names *k, uint32_t id)
{
	for (size_t i = k->modules.n; i > 0; i--) /* mostly the last one */
		if (k->modules.v[i - 1].id == id)
			return k->modules.v[i - 1].path;
	return "?";
}

void kept_names_add_function(struct kept_names *k, const void *line)
{
	const struct trace_function_line *f = line;
	const char *module = path_of(k, f->module_id);

	*vec_push(&k->names) =
		(struct trace_name){.n = f->n,
				    .ways = f->ways,
				    .name = trace_name_function(module, f->vaddr, f->name),
				    .module = module,
				    .aliases = f->aliases ? xstrdup(f->aliases) : NULL};
}

static void rename_event(struct trace_name *x, const char *name, struct trace_value_type type)
{
	free_name(x);
	x->name = xstrdup(name);
	x->type = type;
}

/* Of several lines of one number the last one counts, but in the modules of all, as for readers. */
void kept_names_add_event(struct kept_names *k, const void *line)
{
	const struct trace_event_line *e = line;
	const char *module = path_of(k, e->module_id);
	char *payload = xstrdup(e->payload ? e->payload : "");
	const char *name = e->name ? e->name : "";
	struct trace_value_type type = value_type_take(payload);
	bool is_known = false;

	xfree(payload);
	vec_for(&k->names, x) {
		if (!x->is_event || x->n != e->n)
			continue;
		rename_event(x, name, type);
		is_known |= !strcmp(x->module, module);
	}
	if (!is_known)
		*vec_push(&k->names) = (struct trace_name){.n = e->n,
							   .is_event = true,
							   .name = xstrdup(name),
							   .module = module,
							   .type = type};
}

void kept_names_add_jump(struct kept_names *k, const void *line)
{
	const struct trace_jump_line *j = line;

	while (k->jumps.n <= j->j)
		vec_push(&k->jumps)->function = UINT32_MAX;
	xfree(k->jumps.v[j->j].name);
	k->jumps.v[j->j] =
		(struct trace_jump){.function = j->function,
				    .to = j->to,
				    .target = j->target,
				    .name = j->to == JUMP_TO_NAME ? xstrdup(j->name) : NULL};
}

static void find_limit(struct trace_names *x)
{
	x->limit = 0;
	for (size_t i = 0; i < x->n; i++)
		if (!x->v[i].is_event && x->v[i].n >= x->limit)
			x->limit = x->v[i].n + 1;
	for (size_t i = 0; i < x->n; i++)
		if (x->v[i].is_event)
			count_event(x, x->v[i].n);
}

const struct trace_names *kept_names_settle(struct kept_names *k)
{
	struct trace_names *x = &k->settled;

	x->v = k->names.v;
	x->n = k->names.n;
	find_limit(x);
	x->jumps.v = k->jumps.v;
	x->jumps.n = k->jumps.n;
	xfree(x->jumps.targets);
	xfree(x->jumps.untaken);
	trace_jumps_resolve(&x->jumps, x);
	return x;
}

/* SPDX-License-Identifier: MIT */
/*
 * event_modules.c - in which modules the user's events lie.
 *
 * An event with a name has one number in all modules that its probe was placed in, so its samples do not
 * say which it was.  The process does, where the modules are programs: it executes one of them, and
 * cannot have loaded another one.
 */
#include <string.h>

#include "base/err.h"
#include "trace/reader_impl.h"

void event_add_place(struct trace_user_event *u, struct trace_event_place place)
{
	for (size_t i = 0; i < u->nplaces; i++) {
		if (u->places[i].module != place.module)
			continue;
		if (u->places[i].vaddr != place.vaddr) { /* another probe of this name */
			place.wanted += u->places[i].wanted;
			place.refused += u->places[i].refused;
		}
		u->places[i] = place;
		return;
	}
	u->places = xrealloc(u->places, (u->nplaces + 1) * sizeof(*u->places));
	u->places[u->nplaces++] = place;
}

static bool is_program(const struct trace *t, const char *path)
{
	for (size_t i = 0; i < t->nprocs; i++)
		if (t->procs[i].exe && !strcmp(t->procs[i].exe, path))
			return true;
	return false;
}

void events_settle(struct trace *t)
{
	for (size_t i = 0; i < t->nuser_events; i++) {
		struct trace_user_event *u = &t->user_events[i];

		u->in_programs = u->nplaces > 1;
		for (size_t k = 0; u->in_programs && k < u->nplaces; k++)
			u->in_programs = is_program(t, t->modules[u->places[k].module].path);
	}
}

const struct trace_event_place *trace_event_place(const struct trace *t,
						  const struct trace_user_event *u, uint32_t lane)
{
	const struct trace_proc *p;

	if (!u->in_programs || lane >= t->nlanes)
		return trace_only_place(u);
	p = trace_proc_of(t, t->lanes[lane].proc_uid);
	for (size_t i = 0; p && p->exe && i < u->nplaces; i++)
		if (!strcmp(t->modules[u->places[i].module].path, p->exe))
			return &u->places[i];
	return NULL;
}

static const char *sentence_of(const struct trace *t, uint32_t module, const char *key)
{
	for (size_t i = 0; i < t->nrefusals; i++)
		if (t->refusals[i].place && t->refusals[i].module == module &&
		    t->refusals[i].text[0] && !strcmp(t->refusals[i].key, key))
			return t->refusals[i].text;
	return key;
}

uint64_t trace_event_refused(const struct trace *t, const struct trace_user_event *u,
			     uint64_t *wanted, const char **why)
{
	uint64_t refused = 0;

	*wanted = 0;
	for (size_t i = 0; i < u->nplaces; i++) {
		const struct trace_event_place *p = &u->places[i];

		if (!refused && p->refused)
			*why = sentence_of(t, p->module, p->why);
		refused += p->refused;
		*wanted += p->wanted;
	}
	return refused;
}

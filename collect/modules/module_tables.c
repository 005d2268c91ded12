/* SPDX-License-Identifier: MIT */
/* module_tables.c - see module_tables.h */
#include "collect/modules/module_tables.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <kron/segment.h>

#include "collect/modules/choices.h"
#include "inject/bind/bind.h"
#include "inject/plan/action_pages.h"
#include "trace/jumps.h"
#include "trace/names.h"

#define LAST_FUNCTION (KRON_EVENT_JUMPS / 2)
#define LAST_JUMP ((KRON_EVENT_SPECIAL - KRON_EVENT_JUMPS) / 2)

struct counts { /* by kind: PROBE_ENTRY, PROBE_EXIT */
	uint64_t patched[2], refused[2];
	uint64_t why[2][REFUSAL_COUNT];
};

static void count_probes(const struct module *m, struct counts *c)
{
	memset(c, 0, sizeof(*c));
	for (size_t i = 0; i < m->full->nprobes; i++) {
		const struct plan_probe *p = &m->full->probes[i];

		if (p->kind > PROBE_EXIT || p->function >= m->full->nfunctions ||
		    !m->selected[p->function] || m->selected[p->function] == SELECTED_CALLSITES)
			continue;
		if (p->site != UINT32_MAX) {
			c->patched[p->kind]++;
			continue;
		}
		c->refused[p->kind]++;
		if (p->refusal < REFUSAL_COUNT)
			c->why[p->kind][p->refusal]++;
	}
}

/* Probes that come later find it listed. */
static struct listed_module *find_listed(struct modules *ms, const struct module *m)
{
	vec_for(&ms->listed, l)
		if (!memcmp(&l->file, &m->file, sizeof(l->file)))
			return l;
	return NULL;
}

static struct listed_module *list_module(struct modules *ms, const struct module *m)
{
	struct listed_module *l = vec_push(&ms->listed);

	*l = (struct listed_module){.file = m->file, .id = ms->next_id++};
	ms->totals.modules++;
	return l;
}

static void add_totals(struct modules *ms, const struct counts *c)
{
	ms->totals.probes += c->patched[0] + c->patched[1];
	ms->totals.refused += c->refused[0] + c->refused[1];
}

/* Functions and jumps of the one are those of the other, number by number. */
static bool is_same_list(const struct plan *a, const struct plan *b)
{
	if (a->nfunctions != b->nfunctions || a->njumps != b->njumps)
		return false;
	for (size_t i = 0; i < a->nfunctions; i++)
		if (a->functions[i].vaddr != b->functions[i].vaddr)
			return false;
	for (size_t i = 0; i < a->njumps; i++)
		if (memcmp(&a->jumps[i], &b->jumps[i], sizeof(a->jumps[i])))
			return false;
	return true;
}

static int take_new_numbers(struct modules *ms, struct module *m, struct err *err)
{
	const size_t n = m->full->nfunctions, jumps = m->full->njumps;
	const uint32_t last = ms->selection->calls ? KRON_CALLS_MAX : LAST_FUNCTION;

	ms->next_function =
		module_probes_free_numbers(ms->selection->probes, ms->next_function, (uint32_t)n);
	if (ms->next_function > last || n > last - ms->next_function ||
	    jumps > LAST_JUMP - ms->next_jump)
		return err_set(err, EOVERFLOW,
			       ms->selection->calls
				       ? "%s: no counters are left for its functions: there "
					 "are %u for those of all files"
				       : "%s: no event numbers are left for its functions (of %u)",
			       m->path, last);
	m->event_base = ms->next_function;
	ms->next_function += (uint32_t)n;
	m->jump_base = ms->next_jump;
	ms->next_jump += (uint32_t)jumps;
	return 0;
}

/* What the trace is told of a module now. */
struct listing {
	uint32_t id;
	bool is_new;   /* the module itself */
	uint8_t *rows; /* struct listed_module; NULL: it has no functions */
};

/* A function has one number, whenever it is probed. */
static int take_numbers_of(struct modules *ms, struct module *m, struct listed_module *l,
			   struct err *err)
{
	if (l && l->plan && m->nselected && is_same_list(l->plan, m->full)) {
		m->event_base = l->event_base;
		m->jump_base = l->jump_base;
		return 0;
	}
	return take_new_numbers(ms, m, err);
}

/* Functions that come later have the same numbers. */
static void list_functions(struct listed_module *l, const struct module *m)
{
	if (l->plan || !m->nselected)
		return;
	l->plan = m->full;
	l->event_base = m->event_base;
	l->jump_base = m->jump_base;
	l->rows = xcalloc(m->full->nfunctions + 1, 1);
}

/* Of the whole recording. */
static int take_numbers(struct modules *ms, struct module *m, bool is_later, const struct counts *c,
			struct listing *out, struct err *err)
{
	struct listed_module *l;
	int code;

	pthread_mutex_lock(&ms->lock);
	l = is_later ? find_listed(ms, m) : NULL;
	code = take_numbers_of(ms, m, l, err);
	if (!code) {
		out->is_new = !l;
		l = l ? l : list_module(ms, m);
		if (out->is_new || m->nselected)
			add_totals(ms, c);
		list_functions(l, m);
		out->id = l->id;
		out->rows = l->event_base == m->event_base ? l->rows : NULL;
	}
	pthread_mutex_unlock(&ms->lock);
	return code;
}

static int write_module(struct modules *ms, const struct module *m, uint32_t id,
			const struct counts *c)
{
	char build_id[2 * sizeof(m->full->build_id) + 1] = "";
	const struct trace_module_line line = {.id = id,
					       .event_base = m->event_base,
					       .nfunctions = (uint32_t)m->full->nfunctions,
					       .patched_entries = c->patched[PROBE_ENTRY],
					       .patched_exits = c->patched[PROBE_EXIT],
					       .refused_entries = c->refused[PROBE_ENTRY],
					       .refused_exits = c->refused[PROBE_EXIT],
					       .build_id = build_id,
					       .path = m->path};

	for (uint32_t i = 0; i < m->full->build_id_len && i < sizeof(m->full->build_id); i++)
		snprintf(build_id + 2 * i, 3, "%02x", m->full->build_id[i]);
	return journal_put_locked(ms->journal, trace_writer_module, &line);
}

/* In which ways it is left, as far as anyone knows. */
static uint16_t ways_of(const struct module *m, const struct plan_function *f)
{
	const uint32_t number = (uint32_t)(f - m->full->functions);
	uint16_t ways = 0;

	for (uint32_t i = 0; i < f->nprobes; i++) {
		const struct plan_probe *p = &m->full->probes[f->first_probe + i];

		if (p->kind != PROBE_EXIT)
			continue;
		ways |= p->action ? TRACE_JUMPS : TRACE_RETURNS;
		if (p->site == UINT32_MAX)
			ways |= TRACE_UNSEEN;
	}
	if (f->sources & FUNCTION_CALLS)
		ways |= TRACE_CALLS;
	if (f->sources & FUNCTION_IFUNC)
		ways |= TRACE_RESOLVES;
	if (module_is_resolver(m, number) && !module_is_imported(m, number))
		ways |= TRACE_CHOOSES;
	if (f->sources & FUNCTION_GUESS)
		ways |= TRACE_GUESSED;
	if (f->sources & FUNCTION_UNTAKEN)
		ways |= TRACE_UNTAKEN;
	if (m->timed && m->timed[f - m->full->functions])
		ways |= TRACE_TIMED;
	return ways;
}

static int write_function(struct modules *ms, const struct module *m, uint32_t id, uint32_t i)
{
	const struct plan_function *f = &m->full->functions[i];
	char *others = NULL, *shown = selection_shown_name(ms->selection, m->full, f, &others);
	const char *aliases = shown ? others : m->full->strings + f->aliases;
	const struct trace_function_line line = {.n = m->event_base + i,
						 .module_id = id,
						 .vaddr = f->vaddr,
						 .size = f->size,
						 .name = shown ? shown : m->full->strings + f->name,
						 .level = m->levels ? m->levels[i] : 0,
						 .ways = ways_of(m, f),
						 .aliases = f->aliases ? aliases : NULL};
	int code = journal_put_locked(ms->journal, trace_writer_function, &line);

	xfree(shown);
	xfree(others);
	return code;
}

/* Probes of its that came earlier have had its row, and its jumps, written. */
static bool is_written(const uint8_t *rows, uint32_t function)
{
	return rows && rows[function];
}

static void mark_written(const struct module *m, uint8_t *rows)
{
	for (size_t i = 0; rows && i < m->full->nfunctions; i++)
		rows[i] |= m->selected[i] != 0;
}

/* Its references to pages are known as its own. */
static bool is_counted(const struct plan *plan, const struct plan_function *f)
{
	for (uint32_t i = 0; i < f->nprobes; i++) {
		const struct plan_probe *p = &plan->probes[f->first_probe + i];

		if (p->kind == PROBE_PLACE && plan->actions[p->action].kind == ACTION_PAGES &&
		    plan->actions[p->action].value & PAGES_BY_FUNCTION)
			return true;
	}
	return false;
}

static int write_functions(struct modules *ms, const struct module *m, uint32_t id,
			   const uint8_t *rows)
{
	int code = 0;

	for (uint32_t i = 0; i < m->full->nfunctions && !code; i++)
		if (!is_written(rows, i) &&
		    (m->selected[i] || is_counted(m->full, &m->full->functions[i])))
			code = write_function(ms, m, id, i);
	return code;
}

/* What a jump leads to, where the table of functions does not say it; for xfree(). */
static char *target_name(const struct module *m, const struct plan_jump *j)
{
	const struct plan_function *f;

	if (j->to == PLAN_JUMP_ANYWHERE || j->to == PLAN_JUMP_NAME || m->selected[j->target])
		return NULL;
	f = &m->full->functions[j->target];
	return trace_name_function(m->path, f->vaddr, m->full->strings + f->name);
}

/* Of functions that are not selected nothing is sampled. */
static int write_jumps(struct modules *ms, const struct module *m, const uint8_t *rows)
{
	static const uint8_t to[] = {[PLAN_JUMP_ANYWHERE] = JUMP_TO_ANYTHING,
				     [PLAN_JUMP_FUNCTION] = JUMP_TO_FUNCTION,
				     [PLAN_JUMP_INSIDE] = JUMP_TO_INSIDE,
				     [PLAN_JUMP_NAME] = JUMP_TO_NAME};
	int code = 0;

	for (size_t i = 0; i < m->full->njumps && !code; i++) {
		const struct plan_jump *j = &m->full->jumps[i];
		struct trace_jump_line line = {.j = m->jump_base + (uint32_t)i,
					       .function = m->event_base + j->function,
					       .to = to[j->to]};

		char *name;

		if (!m->selected[j->function] || is_written(rows, j->function))
			continue;
		line.name = name = target_name(m, j);
		if (j->to == PLAN_JUMP_NAME)
			line.name = m->full->strings + j->target;
		else
			line.target = m->event_base + j->target;
		code = journal_put_locked(ms->journal, trace_writer_jump, &line);
		xfree(name);
	}
	return code;
}

int module_tables_refusals(struct journal *j, uint32_t id, enum trace_refused what,
			   const uint64_t why[REFUSAL_COUNT])
{
	int code = 0;

	for (int r = 0; r < REFUSAL_COUNT && !code; r++) {
		const struct trace_refusal_line line = {.module_id = id,
							.what = (uint8_t)what,
							.key = refusal_key(r),
							.count = why[r],
							.text = refusal_text(r)};

		if (why[r])
			code = journal_put_locked(j, trace_writer_refusal, &line);
	}
	return code;
}

static int write_refusals(struct modules *ms, uint32_t id, const struct counts *c)
{
	const int code =
		module_tables_refusals(ms->journal, id, TRACE_REFUSED_ENTRY, c->why[PROBE_ENTRY]);

	return code ? code
		    : module_tables_refusals(ms->journal, id, TRACE_REFUSED_EXIT,
					     c->why[PROBE_EXIT]);
}

int module_tables_write(struct modules *ms, struct module *m, struct err *err)
{
	struct listing l = {0};
	struct counts c;
	int code;

	count_probes(m, &c);
	code = take_numbers(ms->whole, m, ms != ms->whole, &c, &l, err);
	if (code)
		return code;
	journal_lock(ms->journal);
	code = l.is_new ? write_module(ms, m, l.id, &c) : 0;
	if (!code)
		code = write_functions(ms, m, l.id, l.rows);
	if (!code)
		code = write_jumps(ms, m, l.rows);
	if (!code && l.is_new)
		code = write_refusals(ms, l.id, &c);
	if (!code && m->probed)
		code = module_probes_write(ms, m, l.id);
	mark_written(m, l.rows);
	journal_unlock(ms->journal);
	if (!code)
		code = journal_flush(ms->journal);
	if (code)
		return err_set(err, -code, "%s: its function table could not be written: %s",
			       m->path, strerror(-code));
	m->id = l.id;
	m->recorded = true;
	return 0;
}

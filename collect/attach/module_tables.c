/* SPDX-License-Identifier: MIT */
/* module_tables.c - see module_tables.h */
#include "collect/attach/module_tables.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "inject/bind/bind.h"
#include "inject/code/refusal.h"

#define LAST_FUNCTION (KRON_EVENT_JUMPS / 2)
#define LAST_JUMP ((KRON_EVENT_SPECIAL - KRON_EVENT_JUMPS) / 2)
#define NUMBER 24

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
		    !m->selected[p->function] || m->selected[p->function] == SELECTED_CALLERS)
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

static int take_numbers(struct modules *ms, struct module *m, const struct counts *c, uint32_t *id,
			struct err *err)
{
	size_t n = m->full->nfunctions, jumps = m->full->njumps;

	pthread_mutex_lock(&ms->lock);
	ms->next_function =
		module_probes_free_numbers(ms->selection->probes, ms->next_function, (uint32_t)n);
	if (ms->next_function > LAST_FUNCTION || n > LAST_FUNCTION - ms->next_function ||
	    jumps > LAST_JUMP - ms->next_jump) {
		pthread_mutex_unlock(&ms->lock);
		return err_set(err, EOVERFLOW, "%s: no event numbers are left for its functions",
			       m->path);
	}
	m->event_base = ms->next_function;
	ms->next_function += (uint32_t)n;
	m->jump_base = ms->next_jump;
	ms->next_jump += (uint32_t)jumps;
	*id = ms->next_id++;
	ms->totals.modules++;
	ms->totals.probes += c->patched[0] + c->patched[1];
	ms->totals.refused += c->refused[0] + c->refused[1];
	pthread_mutex_unlock(&ms->lock);
	return 0;
}

static int write_module(struct modules *ms, const struct module *m, uint32_t id,
			const struct counts *c)
{
	char text[7][NUMBER], build_id[2 * sizeof(m->full->build_id) + 1] = "";
	const char *fields[] = {text[0], text[1], text[2],  text[3], text[4],
				text[5], text[6], build_id, m->path};

	snprintf(text[0], NUMBER, "%u", id);
	snprintf(text[1], NUMBER, "%u", m->event_base);
	snprintf(text[2], NUMBER, "%zu", m->full->nfunctions);
	snprintf(text[3], NUMBER, "%" PRIu64, c->patched[PROBE_ENTRY]);
	snprintf(text[4], NUMBER, "%" PRIu64, c->patched[PROBE_EXIT]);
	snprintf(text[5], NUMBER, "%" PRIu64, c->refused[PROBE_ENTRY]);
	snprintf(text[6], NUMBER, "%" PRIu64, c->refused[PROBE_EXIT]);
	for (uint32_t i = 0; i < m->full->build_id_len && i < sizeof(m->full->build_id); i++)
		snprintf(build_id + 2 * i, 3, "%02x", m->full->build_id[i]);
	return journal_line_locked(ms->journal, "modules", fields, 9);
}

/* Of one of hundred thousands: snprintf() takes a microsecond. */
static char *put_number(char out[NUMBER], uint64_t value, unsigned base)
{
	char *p = out + NUMBER - 1;

	*p = 0;
	do
		*--p = "0123456789abcdef"[value % base];
	while (value /= base);
	return p;
}

/* In which ways it is left, as far as anyone knows: trace/format.h. */
static void put_ways(const struct module *m, const struct plan_function *f, char out[NUMBER])
{
	bool returns = false, jumps = false, unseen = false;

	for (uint32_t i = 0; i < f->nprobes; i++) {
		const struct plan_probe *p = &m->full->probes[f->first_probe + i];

		returns |= p->kind == PROBE_EXIT && !p->action;
		jumps |= p->kind == PROBE_EXIT && p->action;
		unseen |= p->kind == PROBE_EXIT && p->site == UINT32_MAX;
	}
	if (returns)
		*out++ = 'r';
	if (jumps)
		*out++ = 'j';
	if (f->sources & FUNCTION_CALLS)
		*out++ = 'c';
	if (unseen)
		*out++ = 'u';
	if (f->sources & FUNCTION_IFUNC)
		*out++ = 'i';
	*out = 0;
}

static int write_functions(struct modules *ms, const struct module *m, uint32_t id)
{
	char n[NUMBER], module[NUMBER], addr[NUMBER], size[NUMBER], level[NUMBER], ways[NUMBER];
	const char *fields[8] = {[1] = put_number(module, id, 10), [6] = ways};
	int code = 0;

	for (size_t i = 0; i < m->full->nfunctions && !code; i++) {
		const struct plan_function *f = &m->full->functions[i];

		if (!m->selected[i])
			continue;
		fields[0] = put_number(n, m->event_base + i, 10);
		fields[2] = put_number(addr, f->vaddr, 16);
		fields[3] = put_number(size, f->size, 10);
		fields[4] = m->full->strings + f->name;
		fields[5] = put_number(level, m->levels ? m->levels[i] : 0, 10);
		put_ways(m, f, ways);
		fields[7] = m->full->strings + f->aliases;
		code = journal_line_locked(ms->journal, "functions", fields, f->aliases ? 8 : 7);
	}
	return code;
}

/* Of functions that are not selected nothing is sampled. */
static int write_jumps(struct modules *ms, const struct module *m)
{
	static const char *const words[] = {[PLAN_JUMP_ANYWHERE] = "unknown",
					    [PLAN_JUMP_FUNCTION] = "function",
					    [PLAN_JUMP_INSIDE] = "inside",
					    [PLAN_JUMP_NAME] = "import"};
	char n[NUMBER], function[NUMBER], target[NUMBER];
	const char *fields[4];
	int code = 0;

	for (size_t i = 0; i < m->full->njumps && !code; i++) {
		const struct plan_jump *j = &m->full->jumps[i];

		if (!m->selected[j->function])
			continue;
		fields[0] = put_number(n, m->jump_base + i, 10);
		fields[1] = put_number(function, m->event_base + j->function, 10);
		fields[2] = words[j->to];
		fields[3] = j->to == PLAN_JUMP_NAME ? m->full->strings + j->target
			    : j->to == PLAN_JUMP_ANYWHERE
				    ? ""
				    : put_number(target, m->event_base + j->target, 10);
		code = journal_line_locked(ms->journal, "jumps", fields, 4);
	}
	return code;
}

static int write_refusals(struct modules *ms, uint32_t id, const struct counts *c)
{
	static const char *const kinds[] = {"entry", "exit"};
	char module[NUMBER], count[NUMBER];
	int code = 0;

	snprintf(module, sizeof(module), "%u", id);
	for (int kind = 0; kind < 2; kind++)
		for (int why = 0; why < REFUSAL_COUNT && !code; why++) {
			const char *fields[] = {module, kinds[kind], refusal_key(why), count,
						refusal_text(why)};

			if (!c->why[kind][why])
				continue;
			snprintf(count, sizeof(count), "%" PRIu64, c->why[kind][why]);
			code = journal_line_locked(ms->journal, "refusals", fields, 5);
		}
	return code;
}

int module_tables_write(struct modules *ms, struct module *m, struct err *err)
{
	struct counts c;
	uint32_t id = 0;
	int code;

	count_probes(m, &c);
	code = take_numbers(ms, m, &c, &id, err);
	if (code)
		return code;
	journal_lock(ms->journal);
	code = write_module(ms, m, id, &c);
	if (!code)
		code = write_functions(ms, m, id);
	if (!code)
		code = write_jumps(ms, m);
	if (!code)
		code = write_refusals(ms, id, &c);
	if (!code && m->probed)
		code = module_probes_write(ms, m, id);
	journal_unlock(ms->journal);
	if (!code)
		code = journal_flush(ms->journal);
	if (code)
		return err_set(err, -code, "%s: its function table could not be written: %s",
			       m->path, strerror(-code));
	m->id = id;
	m->recorded = true;
	return 0;
}

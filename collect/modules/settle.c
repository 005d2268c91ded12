/* SPDX-License-Identifier: MIT */
/* settle.c - see settle.h. */
#include "collect/modules/settle.h"

#include "base/log.h"
#include "collect/modules/choices.h"
#include "collect/modules/claims.h"
#include "collect/modules/function_sleep.h"
#include "collect/modules/module_tables.h"
#include "inject/bind/bind.h"

bool settle_wants_functions(const struct selection *s, const struct module *m)
{
	const struct module_name name = module_name_of(m);

	return !s->probes_only && (m->is_exe || selection_has_library(s, &name));
}

/*
 * At an IFUNC's address is the resolver, which chooses the function.  A user who names it means the
 * function that is called in the end, which is probed at its callers.
 */
static void select_callsites(const struct modules *ms, struct module *m)
{
	if (!selection_has_callsites(ms->selection) || m->patched)
		return;
	for (uint32_t i = 0; i < m->full->nfunctions; i++) {
		const struct plan_function *f = &m->full->functions[i];

		if (m->selected[i] && module_is_resolver(m, i) &&
		    selection_names(ms->selection, m->full->strings + f->name,
				    m->full->strings + f->aliases))
			m->selected[i] = SELECTED_CALLSITES;
	}
}

/* By function, 1: a glob means it; NULL: there are no globs. */
static uint8_t *mark_globs(const struct module *m, const struct globs *g)
{
	uint8_t *out;

	if (!g->n)
		return NULL;
	out = xcalloc(m->full->nfunctions + 1, 1);
	selection_mark_globs(g, m->full, m->path, m->selected, out);
	return out;
}

static void select_functions(struct modules *ms, struct module *m)
{
	const bool is_branch = ms != ms->whole;

	m->selected = xcalloc(m->full->nfunctions + 1, 1);
	if (!settle_wants_functions(ms->selection, m) || modules_cannot_count(ms, m) ||
	    (is_branch && m->patched))
		return;
	if (is_branch)
		claims_take(ms, m);
	else
		m->nselected = selection_mark(ms->selection, m->full, m->path, m->selected);
}

static int settle(struct modules *ms, struct module *m)
{
	const struct module_name name = module_name_of(m);
	int code = 0;

	log_info("collect", "%s: %zu functions", m->path, m->full->nfunctions);
	if (m->patched)
		module_probes_refuse(ms, m,
				     "was patched by kron patch, and has the probes that it was "
				     "given there");
	else if (m->probed)
		module_probes_keep_results(ms, m);
	select_functions(ms, m);
	select_callsites(ms, m);
	if (!m->levels || ms->selection->levels.given) {
		xfree(m->levels);
		m->levels = xcalloc(m->full->nfunctions, 1);
		selection_levels(ms->selection, m->full, &name, m->levels);
	}
	m->timed = mark_globs(m, &ms->selection->timed);
	m->kept = mark_globs(m, &ms->selection->keep);
	function_sleep_settle(ms, m);
	if (m->probed)
		code = module_probes_number(ms, m, &m->why);
	if (code || (!m->nselected && !m->probes.patched && !m->probes.refused &&
		     !m->probes.found.callsites.n))
		return code;
	code = module_tables_write(ms, m, &m->why);
	if (!code)
		function_sleep_numbered(ms, m);
	if (!code && ms->numbered)
		ms->numbered(ms->numbered_ctx, m);
	return code;
}

int settle_module(struct modules *ms, struct module *m)
{
	const int code = settle(ms, m);

	if (code && ms != ms->whole)
		claims_drop(ms, m);
	return code;
}

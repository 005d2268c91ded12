/* SPDX-License-Identifier: MIT */
/* choices.c - see choices.h */
#include "collect/modules/choices.h"

#include <string.h>

#include "base/str.h"
#include "collect/modules/callsite_process.h"
#include "inject/bind/bind.h"

struct telling {
	struct modules *ms;
	const struct choice_words *words;
	void (*fn)(void *ctx, const char *sentence);
	void *ctx;
};

bool module_is_resolver(const struct module *m, uint32_t function)
{
	return m->full->functions[function].sources & FUNCTION_IFUNC && m->selected[function] &&
	       m->selected[function] != SELECTED_CALLSITES;
}

bool module_is_imported(const struct module *m, uint32_t function)
{
	const struct plan_function *f = &m->full->functions[function];

	for (uint32_t i = 0; m->selected[function] != SELECTED_CALLSITES && i < f->nprobes; i++)
		if (m->full->probes[f->first_probe + i].kind == PROBE_ENTRY)
			return m->full->probes[f->first_probe + i].site == UINT32_MAX;
	return m->selected[function] == SELECTED_CALLSITES;
}

static const char *name_of(const struct module *m, uint32_t function)
{
	return m->full->strings + m->full->functions[function].name;
}

/* Has the module a function whose name contains this one's, as variants' names do?  selected: one that is. */
static bool has_variant(const struct module *m, uint32_t function, bool selected)
{
	const char *name = name_of(m, function);

	for (uint32_t i = 0; i < m->full->nfunctions; i++)
		if (i != function && !(m->full->functions[i].sources & FUNCTION_IFUNC) &&
		    (!selected || m->selected[i]) && strcmp(name_of(m, i), name) != 0 &&
		    strstr(name_of(m, i), name))
			return true;
	return false;
}

static void tell(const struct telling *t, const struct module *m, uint32_t i, const char *what)
{
	const char *name = name_of(m, i);
	char *text, *other = NULL;

	if (has_variant(m, i, false))
		other = xasprintf("; the function that was chosen has a name of its own: %s%s%s",
				  t->words->before, name, t->words->after);
	text = xasprintf(
		"%s [%s] is chosen among several when the program starts (IFUNC), and %s%s", name,
		str_base_name(m->path), what, other ? other : "");
	t->fn(t->ctx, text);
	xfree(text);
	xfree(other);
}

static void consider(const struct telling *t, const struct module *m, uint32_t i)
{
	const struct plan_function *f = &m->full->functions[i];
	char what[100];

	if (!m->selected[i] || !(f->sources & FUNCTION_IFUNC) ||
	    !selection_names(t->ms->selection, name_of(m, i), m->full->strings + f->aliases) ||
	    has_variant(m, i, true))
		return;
	if (module_is_resolver(m, i)) {
		snprintf(what, sizeof(what), "only its resolver, which chooses, is %s",
			 t->words->done);
		tell(t, m, i, what);
	} else if (!callsite_process_has(t->ms, m, i)) {
		snprintf(what, sizeof(what), "no call of it was found that can be %s",
			 t->words->done);
		tell(t, m, i, what);
	}
}

void choices_each(struct modules *ms, const struct choice_words *words,
		  void (*fn)(void *ctx, const char *sentence), void *ctx)
{
	const struct telling t = {ms, words, fn, ctx};

	vec_for(&ms->all, m)
		for (uint32_t i = 0; (*m)->recorded && (*m)->full && i < (*m)->full->nfunctions;
		     i++)
			consider(&t, *m, i);
}

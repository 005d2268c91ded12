/* SPDX-License-Identifier: MIT */
/* resolve_match.c - does a symbol have the name that a probe gives? */
#include <string.h>

#include "base/name_forms.h"
#include "inject/elf/demangle.h"
#include "inject/resolve/resolve_impl.h"

static bool form_matches(const struct spec_name *n, const char *readable)
{
	struct name_forms forms;

	name_forms_make(&forms, readable);
	for (unsigned i = 0; i < forms.n; i++)
		if (spec_name_matches(n, forms.v[i]))
			return true;
	return false;
}

/* With its arguments, which tell overloaded functions apart: only for who names some. */
static bool whole_matches(const struct spec_name *n, const char *raw)
{
	char *whole = strchr(n->text, '(') ? symbol_demangle_whole(raw) : NULL;
	bool yes = whole && form_matches(n, whole);

	xfree(whole);
	return yes;
}

bool names_match(const struct spec_name *n, const char *raw, const char *readable)
{
	if (spec_name_matches(n, raw))
		return true;
	return readable && (form_matches(n, readable) || whole_matches(n, raw));
}

bool names_match_symbol(const struct spec_name *n, const char *name)
{
	char *readable = symbol_demangle(name);
	bool yes = names_match(n, name, readable);

	xfree(readable);
	return yes;
}

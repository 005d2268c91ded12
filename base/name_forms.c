/* SPDX-License-Identifier: MIT */
/* name_forms.c - see name_forms.h */
#include "base/name_forms.h"

#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

#include "base/vec.h"

/* Where the argument list of a demangled name starts: the parenthesis that closes last, so that
 * "operator()(int)" and "(anonymous namespace)::f(int)" are cut at the right one; n if none. */
static size_t arguments_at(const char *name, size_t n)
{
	size_t i = n;
	int depth = 0;

	while (i > 0 && name[i - 1] != ')')
		i--;
	for (; i > 0; i--) {
		depth += name[i - 1] == ')';
		depth -= name[i - 1] == '(';
		if (depth == 0 && name[i - 1] == '(')
			return i - 1;
	}
	return n;
}

/* After the return type that templates carry: after the last blank outside of <> and (). */
static const char *without_type(const char *name)
{
	const char *start = name;
	int depth = 0;

	for (const char *p = name; *p; p++) {
		if (!strncmp(p, "operator", 8))
			break; /* what follows may be any sign, or a type */
		depth += *p == '<' || *p == '(';
		depth -= *p == '>' || *p == ')';
		if (*p == ' ' && depth == 0)
			start = p + 1;
	}
	return start;
}

void name_forms_make(struct name_forms *out, const char *name)
{
	size_t n = strlen(name), cut = arguments_at(name, n);
	const char *start;

	out->v[0] = name;
	out->n = 1;
	if (cut == n || cut == 0 || cut >= sizeof(out->bare))
		return;
	memcpy(out->bare, name, cut);
	out->bare[cut] = 0;
	start = without_type(out->bare);
	out->v[out->n++] = out->bare;
	if (start != out->bare)
		out->v[out->n++] = start;
}

bool name_forms_match(const char *name, const char *glob)
{
	struct name_forms forms;

	name_forms_make(&forms, name);
	for (unsigned i = 0; i < forms.n; i++)
		if (!strcmp(forms.v[i], glob) || !fnmatch(glob, forms.v[i], 0))
			return true;
	return false;
}

char *name_forms_next(const char **rest)
{
	const char *line = *rest;
	size_t n;

	if (!line || !*line)
		return NULL;
	n = strcspn(line, "\n");
	*rest = line + n + (line[n] == '\n');
	return xstrndup(line, n);
}

bool name_forms_match_any(const char *name, const char *aliases, const char *glob)
{
	bool yes = name_forms_match(name, glob);
	char *alias;

	while (!yes && (alias = name_forms_next(&aliases))) {
		yes = name_forms_match(alias, glob);
		xfree(alias);
	}
	return yes;
}

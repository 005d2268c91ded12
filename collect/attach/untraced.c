/* SPDX-License-Identifier: MIT */
/* untraced.c - see untraced.h. */
#include "collect/attach/untraced.h"

#include <string.h>

#include "base/str.h"

#define NAMES_SHOWN 3
/* A process can say what it likes: not a reason for each nonsense. */
#define REASONS_MAX 200u
#define MODULES_MAX 4096u
#define OTHER_REASONS "and for other reasons"

void untraced_init(struct untraced_list *l)
{
	pthread_mutex_init(&l->lock, NULL);
}

void untraced_free(struct untraced_list *l)
{
	vec_for(&l->v, u) {
		vec_for(&u->modules, name)
			xfree(*name);
		vec_free(&u->modules);
		xfree(u->reason);
	}
	vec_free(&l->v);
}

static struct untraced *find(struct untraced_list *l, const char *reason, bool has_modules)
{
	struct untraced *u;

	vec_for(&l->v, old)
		if (!strcmp(old->reason, reason) && (old->modules.n != 0) == has_modules)
			return old;
	if (l->v.n > REASONS_MAX)
		return &l->v.v[REASONS_MAX];
	u = vec_push(&l->v);
	u->reason = xstrdup(l->v.n > REASONS_MAX ? OTHER_REASONS : reason);
	return u;
}

void untraced_add(struct untraced_list *l, const char *module, const char *text)
{
	untraced_add_times(l, module, text, 1);
}

void untraced_add_times(struct untraced_list *l, const char *module, const char *text,
			uint64_t times)
{
	size_t n = module ? strlen(module) : 0;
	bool begins = n && !strncmp(text, module, n) && strchr(": ", text[n]);
	struct untraced *u;
	bool known = false;

	pthread_mutex_lock(&l->lock);
	u = find(l, begins ? text + n : text, begins);
	u->count += times;
	vec_for(&u->modules, name)
		known = known || !strcmp(*name, module);
	begins = begins && u->modules.n < MODULES_MAX && l->v.n <= REASONS_MAX;
	if (begins && !known)
		*vec_push(&u->modules) = xstrdup(module);
	pthread_mutex_unlock(&l->lock);
}

/* "a.so", "b.so", ... and how many more */
static char *list_names(const struct untraced *u)
{
	size_t shown = u->modules.n <= NAMES_SHOWN + 1 ? u->modules.n : NAMES_SHOWN;
	char *line = xstrdup("");

	for (size_t i = 0; i < shown; i++) {
		bool is_last = i + 1 == u->modules.n;
		char *more = xasprintf("%s%s%s", line,
				       !i        ? ""
				       : is_last ? " and "
						 : ", ",
				       str_base_name(u->modules.v[i]));

		xfree(line);
		line = more;
	}
	if (shown < u->modules.n) {
		char *more = xasprintf("%s and %zu more", line, u->modules.n - shown);

		xfree(line);
		line = more;
	}
	return line;
}

char *untraced_sentence(const struct untraced *u)
{
	char *names, *text;

	if (u->modules.n < 2)
		return xasprintf("%s%s", u->modules.n ? u->modules.v[0] : "", u->reason);
	names = list_names(u);
	text = xasprintf("%s%s%s", names, u->reason[0] == ':' ? "" : ":", u->reason);
	xfree(names);
	return text;
}

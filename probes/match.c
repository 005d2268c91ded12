/* SPDX-License-Identifier: MIT */
/* match.c - which names and modules a probe means. */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/regex.h"
#include "base/str.h"
#include "probes/probe.h"

/* A path may be a link to the module's. */
static bool is_path_to(const struct spec_name *n, const char *path)
{
	char *real = strchr(n->text, '/') ? realpath(n->text, NULL) : NULL;
	bool same = real && !strcmp(real, path);

	free(real);
	return same;
}

bool spec_name_matches(const struct spec_name *n, const char *name)
{
	switch (n->match) {
	case MATCH_REGEX:
		return regex_matches(n->regex, name);
	case MATCH_GLOB:
		return !fnmatch(n->text, name, 0) || !strcmp(n->text, name);
	}
	return !strcmp(n->text, name);
}

const char *probe_payload_type(const char *payload_name)
{
	const char *colon = payload_name ? strrchr(payload_name, ':') : NULL;

	return colon ? colon + 1 : "";
}

bool probe_spec_gave_up(const struct probe_spec *s)
{
	return (s->function.regex && regex_gave_up(s->function.regex)) ||
	       (s->object.regex && regex_gave_up(s->object.regex));
}

bool probe_set_has_virtual(const struct probe_set *set)
{
	for (size_t i = 0; set && i < set->specs.n; i++)
		if (probe_spec_is_virtual(&set->specs.v[i]))
			return true;
	return false;
}

int probe_set_check_board(const struct probe_set *set, struct err *err)
{
	if (!probe_set_has_virtual(set))
		return 0;
	return err_set(err, EINVAL,
		       "a board has counters 0 to 15: those above are on the lane bus only");
}

/* "libc" is libc.so.6 and libc-2.36.so: the name up to ".so" or "-2." */
static bool is_stem(const struct spec_name *n, const char *base)
{
	const char *so = strstr(base, ".so");
	size_t len = strlen(n->text);

	if (n->match != MATCH_NAME || !so || strncmp(base, n->text, len))
		return false;
	return base + len == so ||
	       (base[len] == '-' && base[len + 1] >= '0' && base[len + 1] <= '9');
}

bool probe_spec_wants(const struct probe_spec *s, const struct module_name *m, bool is_exe)
{
	const char *names[MODULE_NAMES];
	unsigned n;

	if (!s->object.text) /* a note says itself whose it is */
		return is_exe || s->place == SPEC_USDT;
	n = module_name_forms(m, names);
	for (unsigned i = 0; i < n; i++)
		if (spec_name_matches(&s->object, names[i]) || (i && is_stem(&s->object, names[i])))
			return true;
	return is_path_to(&s->object, m->path);
}

bool probe_set_names_modules(const struct probe_set *set)
{
	for (size_t i = 0; set && i < set->specs.n; i++)
		if (set->specs.v[i].object.text)
			return true;
	return false;
}

bool probe_set_is_alternative(const struct probe_set *set, size_t spec)
{
	const struct probe_spec *s = &set->specs.v[spec];

	for (size_t i = 0; s->event && i < spec; i++)
		if (set->specs.v[i].event && !strcmp(set->specs.v[i].event, s->event) &&
		    set->specs.v[i].level == s->level)
			return true;
	return false;
}

bool probe_set_wants(const struct probe_set *set, const struct module_name *m, bool is_exe)
{
	for (size_t i = 0; i < set->objects.n; i++)
		if (probe_spec_wants(&set->specs.v[set->objects.v[i]], m, is_exe))
			return true;
	return false;
}

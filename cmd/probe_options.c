/* SPDX-License-Identifier: MIT */
/* probe_options.c - see probe_options.h */
#include "cmd/probe_options.h"

#include "base/vec.h"

int probe_options_read(struct probe_set *set, const struct opt_list *specs,
		       const struct opt_list *files, uint8_t level, struct err *err)
{
	int code = 0;

	set->default_level = level;
	for (size_t i = 0; i < files->n && !code; i++)
		code = probe_set_add_file(set, files->v[i], err);
	for (size_t i = 0; i < specs->n && !code; i++)
		code = probe_set_add(set, specs->v[i], (unsigned)i + 1, err);
	return code;
}

void probe_options_name(struct probe_set *set, const struct opt_list *names)
{
	for (size_t i = 0; i < names->n; i++) {
		struct probe_spec *s = &set->specs.v[set->specs.n - names->n + i];

		xfree(s->where);
		s->where = xstrdup(names->v[i]);
	}
}

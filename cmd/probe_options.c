/* SPDX-License-Identifier: MIT */
/* probe_options.c - see probe_options.h */
#include "cmd/probe_options.h"

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

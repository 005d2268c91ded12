/* SPDX-License-Identifier: MIT */
/* report_imports.c - see report_imports.h. */
#include "trace/report/report_imports.h"

#include <string.h>

#include "base/str.h"
#include "trace/text.h"

/* The lines of one function stand together: where the next one's begin. */
static size_t import_end(const struct trace *t, size_t i)
{
	const struct trace_import *im = &t->imports[i];

	while (i < t->nimports && t->imports[i].module == im->module &&
	       t->imports[i].vaddr == im->vaddr && !strcmp(t->imports[i].name, im->name))
		i++;
	return i;
}

#define CALLERS_SHOWN 4u

void report_imports_put(const struct trace *t, FILE *out)
{
	if (t->nimports)
		fprintf(out, "\n%9s  %s\n", "Callers",
			"Function that is probed where it is called, why, and in which modules");
	for (size_t i = 0, end; i < t->nimports; i = end) {
		const struct trace_import *im = &t->imports[i];

		end = import_end(t, i);
		fprintf(out, "%9zu  ", end - i);
		text_put(out, *im->name ? im->name : "?");
		fputs(" [", out);
		text_put(out, str_base_name(t->modules[im->module].path));
		fputs("] ", out);
		text_put(out, im->why);
		for (size_t k = i; k < end && k < i + CALLERS_SHOWN; k++) {
			fputs(k == i ? ": " : ", ", out);
			text_put(out, str_base_name(t->imports[k].caller));
		}
		fputs(end - i > CALLERS_SHOWN ? ", ...\n" : "\n", out);
	}
}

void report_imports_json(struct json *j, const struct trace *t)
{
	json_key(j, "imports");
	json_open(j, '[');
	for (size_t i = 0, end; i < t->nimports; i = end) {
		const struct trace_import *im = &t->imports[i];

		end = import_end(t, i);
		json_open(j, '{');
		json_kstr(j, "function", im->name);
		json_kstr(j, "module", t->modules[im->module].path);
		json_ku64(j, "address", im->vaddr);
		json_kstr(j, "why", im->why);
		json_key(j, "callers");
		json_open(j, '[');
		for (size_t k = i; k < end; k++)
			json_str(j, t->imports[k].caller);
		json_close(j, ']');
		json_close(j, '}');
	}
	json_close(j, ']');
}

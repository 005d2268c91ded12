/* SPDX-License-Identifier: MIT */
/* lines_impl.h - between lines.c, which asks, and lines_dwarf.c and variables_dwarf.c, which know libdw. */
#ifndef INJECT_LINES_IMPL_H
#define INJECT_LINES_IMPL_H

#include "inject/elf/variables.h"

#define LINES_NO_MEMORY 77 /* the exit status of a reader that got none */

struct dwarf_lines;

/* There is no close, for the process ends. */
struct dwarf_lines *dwarf_lines_open(int fd, struct err *err);
void dwarf_lines_find(struct dwarf_lines *l, const char *file, unsigned line,
		      struct line_places *out);
bool dwarf_variables_find(struct dwarf_lines *l, const struct variable_question *q,
			  struct variable *out, struct err *why);
bool dwarf_lines_function(struct dwarf_lines *l, uint64_t vaddr, const char **file, unsigned *line);

#endif

/* SPDX-License-Identifier: MIT */
/* variable_finder.h - shared by variables_dwarf.c and variable_names.c: what is looked for, and what was found. */
#ifndef INJECT_VARIABLE_FINDER_H
#define INJECT_VARIABLE_FINDER_H

#include <errno.h>
#include <string.h>

#include "inject/elf/dwarf_impl.h"

/* Of dies that are looked at: more are in no program, or lead round in a circle. */
#define FINDER_STEPS (1u << 22)

#define FINDER_AROUND 8u

struct finder {
	struct dwarf_lines *l;
	const struct variable_question *q;
	struct variable *v;
	struct err *why;
	char name[256], source[512];
	const char *way;
	bool is_global; /* @NAME, NAME@SRC */
	Dwarf_Die cu, function;
	bool has_function;
	Dwarf_Die copy; /* the inlined copy that the instruction is in */
	bool is_in_copy;
	/* what is around the function, or that copy */
	Dwarf_Die around[FINDER_AROUND]; /* functions and classes */
	unsigned naround;
	char scope[256]; /* "space::Class::" */
	/* the line of the instruction, where the probe names a line */
	const char *file;
	int line, first_line; /* the function's */
	unsigned steps;
	const char *wanted; /* the scope; NULL: any */
	bool is_declared;   /* in the function's unit, which says that another defines it */
	/* what was found */
	Dwarf_Die die;
	bool is_elsewhere; /* there is a variable of this name, but nowhere in memory */
	unsigned many;     /* globals of this name with different addresses */
};

#define FAIL(f, ...) (err_set((f)->why, ENOENT, __VA_ARGS__), false)

/* A location that differs from instruction to instruction. */
static inline bool is_list(Dwarf_Attribute *attr)
{
	switch (dwarf_whatform(attr)) {
	case DW_FORM_exprloc:
	case DW_FORM_block:
	case DW_FORM_block1:
	case DW_FORM_block2:
	case DW_FORM_block4:
		return false;
	}
	return true;
}

/* ---- variable_names.c ---- */

/* The function that the instruction is in. */
bool finder_function(struct finder *f);
/* A local variable or a parameter; `inlined`: of a copy of another function, too. */
bool finder_local(struct finder *f, bool inlined);
/* False: the line that is probed may be the copy's or its caller's. */
bool finder_is_copy_sure(struct finder *f);
/* The name is one of the function's, but not of what the instruction is in. */
bool finder_elsewhere(struct finder *f);
bool finder_is_static(Dwarf_Die *die);
/* It is one of a function that is around the function. */
bool finder_around(struct finder *f);
/* It is a member of a class that the function is in. */
bool finder_is_member(struct finder *f);
void finder_scopes(struct finder *f);
bool finder_global(struct finder *f);

#endif

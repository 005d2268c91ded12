/* SPDX-License-Identifier: MIT */
/* variable_names.c - which variable a name is: of a function's blocks, of its unit, or of another one. */
#include <stdio.h>
#include <stdlib.h>

#include "config.h"

#ifdef HAVE_DW

#include "inject/elf/variable_finder.h"

#define DEEPEST 64u

static bool is_variable(int tag)
{
	return tag == DW_TAG_variable || tag == DW_TAG_formal_parameter;
}

static bool has_name(Dwarf_Die *die, const char *name)
{
	const char *its = dwarf_diename(die);

	return its && !strcmp(its, name);
}

/* Damaged debug information may lead anywhere, for ever. */
static bool is_too_far(struct finder *f)
{
	return ++f->steps > FINDER_STEPS;
}

/* ---- the function ---- */

static bool has_functions(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_lexical_block ||
	       tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

/* `deep`: in functions that do not hold it, too, as lambdas and nested functions may be there. */
static bool find_function(struct finder *f, Dwarf_Die *in, bool deep, unsigned depth,
			  Dwarf_Die *out)
{
	Dwarf_Die die;

	if (depth > DEEPEST || dwarf_child(in, &die))
		return false;
	do {
		int tag = dwarf_tag(&die);

		if (is_too_far(f))
			return false;
		if (tag == DW_TAG_subprogram && dwarf_haspc(&die, f->q->vaddr) > 0) {
			if (!find_function(f, &die, deep, depth + 1, out))
				*out = die;
			return true;
		}
		if ((has_functions(tag) || (deep && tag == DW_TAG_subprogram)) &&
		    find_function(f, &die, deep, depth + 1, out))
			return true;
	} while (!dwarf_siblingof(&die, &die));
	return false;
}

bool finder_function(struct finder *f)
{
	return find_function(f, &f->cu, false, 0, &f->function) ||
	       find_function(f, &f->cu, true, 0, &f->function);
}

static bool origin_of(Dwarf_Die *die, Dwarf_Die *out)
{
	Dwarf_Attribute attr;

	return (dwarf_attr(die, DW_AT_abstract_origin, &attr) ||
		dwarf_attr(die, DW_AT_specification, &attr)) &&
	       dwarf_formref_die(&attr, out);
}

static bool is_class(int tag)
{
	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

/* What is around this die, into f: its namespaces and classes, and a function around it. */
static void note_scopes(struct finder *f, Dwarf_Die *die)
{
	Dwarf_Die *scopes = NULL;
	size_t at = 0;
	int n = dwarf_getscopes_die(die, &scopes);

	f->scope[0] = '\0';
	for (int i = n - 1; i > 0; i--) { /* the last is the unit, the first the function */
		int tag = dwarf_tag(&scopes[i]);
		const char *name = dwarf_diename(&scopes[i]);

		if ((tag == DW_TAG_subprogram || is_class(tag)) && f->naround < FINDER_AROUND)
			f->around[f->naround++] = scopes[i];
		if ((is_class(tag) || tag == DW_TAG_namespace || tag == DW_TAG_module) && name &&
		    at < sizeof(f->scope))
			at += (size_t)snprintf(f->scope + at, sizeof(f->scope) - at, "%s::", name);
	}
	free(scopes);
}

/* Of the function, or of the copy that the instruction is in. */
void finder_scopes(struct finder *f)
{
	Dwarf_Die die = f->is_in_copy ? f->copy : f->function, next;

	for (unsigned i = 0; i < 8; i++) {
		if (dwarf_tag(&die) == DW_TAG_subprogram)
			note_scopes(f, &die);
		if (!origin_of(&die, &next))
			return;
		die = next;
	}
}

/* ---- names ---- */

static bool holds(Dwarf_Die *die, const struct finder *f)
{
	return dwarf_haspc(die, f->q->vaddr) > 0;
}

bool finder_is_static(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;

	return dwarf_attr(die, DW_AT_location, &attr) && !is_list(&attr) &&
	       !dwarf_getlocation(&attr, &ops, &n) && n &&
	       (ops[0].atom == DW_OP_addr || ops[0].atom == DW_OP_addrx);
}

/* In the same source, further down than the line that is probed: it is not there yet. */
static bool is_below(struct finder *f, Dwarf_Die *die)
{
	const char *file = dwarf_decl_file(die);
	int line = 0;

	if (!f->is_in_copy && f->line < f->first_line)
		return false;
	return f->line && f->file && file && dwarf_tag(die) == DW_TAG_variable &&
	       !dwarf_decl_line(die, &line) && line > f->line && !strcmp(file, f->file);
}

/* The function's own blocks, or those of inlined copies in it. */
static bool find_local(struct finder *f, Dwarf_Die *in, bool inlined, unsigned depth)
{
	Dwarf_Die child, die, found;
	bool has = false;

	if (depth > DEEPEST || dwarf_child(in, &child))
		return false;
	die = child;
	do {
		int tag = dwarf_tag(&die);
		bool is_copy = tag == DW_TAG_inlined_subroutine && inlined;

		if (is_too_far(f))
			return false;
		if ((tag == DW_TAG_lexical_block || is_copy) && holds(&die, f)) {
			if (is_copy) {
				f->copy = die;
				f->is_in_copy = true;
			}
			if (find_local(f, &die, inlined, depth + 1))
				return true;
			if (is_copy || f->is_in_copy) /* the caller's names are none of its */
				return false;
		}
		/* as the one that is declared last: it hides the others */
		if (is_variable(tag) && has_name(&die, f->name) &&
		    !dwarf_hasattr(&die, DW_AT_declaration) && !is_below(f, &die)) {
			found = die;
			has = true;
		}
	} while (!dwarf_siblingof(&die, &die));
	if (has)
		f->die = found;
	return has;
}

bool finder_local(struct finder *f, bool inlined)
{
	f->is_in_copy = false;
	return find_local(f, &f->function, inlined, 0);
}

/* The line's first instruction may be one of a copy that the line calls. */
bool finder_is_copy_sure(struct finder *f)
{
	const char *file;
	Dwarf_Attribute attr;
	Dwarf_Word called = 0;
	int first = 0;

	if (!f->is_in_copy || !(f->q->flags & VARIABLE_AT_LINE))
		return true;
	file = dwarf_decl_file(&f->copy);
	if (!f->file || !file || strcmp(file, f->file) != 0 || dwarf_decl_line(&f->copy, &first) ||
	    f->line < first)
		return false;
	if (f->q->argument && f->line != (int)f->q->argument)
		return false;
	return !dwarf_attr(&f->copy, DW_AT_call_line, &attr) || dwarf_formudata(&attr, &called) ||
	       called != (Dwarf_Word)f->line;
}

/* Anywhere in the function, for the message; of statics, of which there is one whatever the place. */
static bool find_elsewhere(struct finder *f, Dwarf_Die *in, unsigned depth)
{
	Dwarf_Attribute attr;
	Dwarf_Die die, origin;

	if (depth > DEEPEST)
		return false;
	if (!dwarf_child(in, &die))
		do {
			int tag = dwarf_tag(&die);

			if (is_too_far(f))
				return false;
			if (is_variable(tag) && has_name(&die, f->name) &&
			    !dwarf_hasattr(&die, DW_AT_declaration))
				return true;
			if (tag == DW_TAG_lexical_block && find_elsewhere(f, &die, depth + 1))
				return true;
		} while (!dwarf_siblingof(&die, &die));
	return dwarf_attr(in, DW_AT_abstract_origin, &attr) && dwarf_formref_die(&attr, &origin) &&
	       find_elsewhere(f, &origin, depth + 1);
}

bool finder_elsewhere(struct finder *f)
{
	return find_elsewhere(f, f->is_in_copy ? &f->copy : &f->function, 0);
}

bool finder_is_member(struct finder *f)
{
	for (unsigned i = 0; i < f->naround; i++)
		if (is_class(dwarf_tag(&f->around[i])) &&
		    variable_has_member(f->l, &f->around[i], f->name))
			return true;
	return false;
}

bool finder_around(struct finder *f)
{
	for (unsigned i = 0; i < f->naround; i++)
		if (dwarf_tag(&f->around[i]) == DW_TAG_subprogram &&
		    find_elsewhere(f, &f->around[i], 0))
			return true;
	return false;
}

static bool is_of_source(struct finder *f, Dwarf_Die *die)
{
	const char *file = *f->source ? dwarf_decl_file(die) : NULL;

	return !*f->source || (file && lines_is_file(file, f->source));
}

/* The namespaces and classes of a variable that is defined outside of them: "space::Class::" */
static void scope_of_declaration(Dwarf_Die *die, char *out, size_t size)
{
	Dwarf_Die *scopes = NULL, declared;
	Dwarf_Attribute attr;
	size_t at = 0;
	int n;

	*out = '\0';
	if (!dwarf_attr(die, DW_AT_specification, &attr) || !dwarf_formref_die(&attr, &declared))
		return;
	n = dwarf_getscopes_die(&declared, &scopes);
	for (int i = n - 1; i > 0; i--) { /* the last is the unit, the first the variable */
		int tag = dwarf_tag(&scopes[i]);
		const char *name = has_functions(tag) ? dwarf_diename(&scopes[i]) : NULL;

		if (name && at < size)
			at += (size_t)snprintf(out + at, size - at, "%s::", name);
	}
	free(scopes);
}

/* Of this name, and in the scope that is asked for. */
static bool is_one_of(const struct finder *f, Dwarf_Die *die, const char *prefix)
{
	const char *its = dwarf_diename(die), *last = strrchr(f->name, ':');
	char scope[256];

	if (!its || strcmp(its, last ? last + 1 : f->name) != 0)
		return false;
	if (!f->wanted)
		return true;
	if (!dwarf_hasattr(die, DW_AT_specification))
		return !strcmp(prefix, f->wanted);
	scope_of_declaration(die, scope, sizeof(scope));
	return !strcmp(scope, f->wanted);
}

static bool address_of(Dwarf_Die *die, Dwarf_Addr *out)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;

	if (!dwarf_attr(die, DW_AT_location, &attr) || is_list(&attr) ||
	    dwarf_getlocation(&attr, &ops, &n) || !n)
		return false;
	*out = ops[0].number;
	if (ops[0].atom == DW_OP_addr) /* what the linker has thrown out is at 0, or at the end */
		return *out && *out < (Dwarf_Addr)-4096;
	return true;
}

struct global {
	Dwarf_Die die;
	Dwarf_Addr address; /* or its value, of a constant */
	bool is_constant;
	unsigned n;
};

static bool constant_of(Dwarf_Die *die, Dwarf_Addr *out)
{
	Dwarf_Attribute attr;
	Dwarf_Word u;

	if (!dwarf_attr(die, DW_AT_const_value, &attr))
		return false;
	*out = dwarf_formudata(&attr, &u) ? dwarf_dieoffset(die) : u;
	return true;
}

/* One of this name: it counts if it is another than those before. */
static void take_global(struct finder *f, Dwarf_Die *die, int who, struct global *g)
{
	bool is_seen = dwarf_hasattr_integrate(die, DW_AT_external), is_constant = false;
	Dwarf_Addr address = 0;

	if (!address_of(die, &address)) {
		is_constant = constant_of(die, &address);
		if (!is_constant) {
			f->is_elsewhere |= !dwarf_hasattr(die, DW_AT_declaration);
			f->is_declared |= dwarf_hasattr(die, DW_AT_declaration) && !who;
			return;
		}
	}
	if (who && is_seen != (who == 1))
		return;
	if (g->n && g->address == address && g->is_constant == is_constant)
		return;
	g->n++;
	g->die = *die;
	g->address = address;
	g->is_constant = is_constant;
}

/* Those of this scope: all (who: 0), that all units see (1), or that one does (2). */
static void find_globals(struct finder *f, Dwarf_Die *in, const char *prefix, int who,
			 unsigned depth, struct global *g)
{
	Dwarf_Die die;

	if (depth > 8 || dwarf_child(in, &die))
		return;
	do {
		int tag = dwarf_tag(&die);
		char inner[256];

		if (is_too_far(f))
			return;
		if (tag == DW_TAG_namespace || tag == DW_TAG_module) {
			const char *name = dwarf_diename(&die);

			snprintf(inner, sizeof(inner), "%s%s%s", prefix, name ? name : "",
				 name ? "::" : "");
			find_globals(f, &die, inner, who, depth + 1, g);
		} else if (tag == DW_TAG_variable && is_one_of(f, &die, prefix) &&
			   is_of_source(f, &die)) {
			take_global(f, &die, who, g);
		}
	} while (!dwarf_siblingof(&die, &die));
}

static void find_in_units(struct finder *f, int who, struct global *g)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;

	while (!dwarf_get_units(f->l->dw, cu, &cu, NULL, NULL, &unit, NULL))
		find_globals(f, &unit, "", who, 0, g);
}

/* In the function's unit, and of those of others what all see.  False: nobody has one, so look further. */
static bool find_seen(struct finder *f, struct global *g)
{
	if (f->has_function && !*f->source)
		find_globals(f, &f->cu, "", 0, 0, g);
	if (!g->n)
		find_in_units(f, 1, g);
	return g->n || f->is_declared;
}

/* From the function's own scope outwards, as the language looks for it. */
static bool find_in_scopes(struct finder *f, struct global *g)
{
	const char *last = strrchr(f->name, ':');
	int nname = last ? (int)(last + 1 - f->name) : 0;
	char scope[600];
	size_t n = strlen(f->scope);

	for (f->wanted = scope;;) {
		snprintf(scope, sizeof(scope), "%.*s%.*s", (int)n, f->scope, nname, f->name);
		if (find_seen(f, g))
			return true;
		if (!n)
			return false;
		for (n -= 2; n && f->scope[n - 1] != ':';)
			n--;
	}
}

bool finder_global(struct finder *f)
{
	bool is_qualified = strchr(f->name, ':');
	struct global g = {.n = 0};

	if (!find_in_scopes(f, &g)) {
		find_in_units(f, 2, &g);
		f->wanted = NULL;
		if (!g.n && !is_qualified && !find_seen(f, &g))
			find_in_units(f, 2, &g);
	}
	f->die = g.die;
	f->many = g.n;
	return g.n == 1 && f->steps <= FINDER_STEPS;
}

#endif

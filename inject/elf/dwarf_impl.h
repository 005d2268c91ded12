/* SPDX-License-Identifier: MIT */
/* dwarf_impl.h - shared by the files that know libdw: lines_dwarf.c, variables_dwarf.c, variable_types.c. */
#ifndef INJECT_DWARF_IMPL_H
#define INJECT_DWARF_IMPL_H

#include <dwarf.h>
#include <elfutils/libdw.h>

#include "inject/elf/lines_impl.h"

struct unit {
	Dwarf_Addr start, end;
	Dwarf_Off die;
};

struct dwarf_lines {
	Dwarf *dw;
	VEC(struct unit) units; /* by address, once somebody has asked */
	bool listed;
};

/* The unit that vaddr lies in. */
bool dwarf_lines_unit(struct dwarf_lines *l, uint64_t vaddr, Dwarf_Die *out);

/* ---- variable_types.c ---- */

/* The type behind typedefs and qualifiers.  False: it cannot be read. */
bool variable_type_of(Dwarf_Die *die, Dwarf_Die *type);
bool variable_has_member(struct dwarf_lines *l, Dwarf_Die *type, const char *name);
/* From a base of this type by ->MEMBER .MEMBER [INDEX]; sets what the value is.  False: why. */
bool variable_walk(struct dwarf_lines *l, Dwarf_Die *type, const char *way, struct variable *v,
		   struct err *why);

#endif

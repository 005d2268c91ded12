/* SPDX-License-Identifier: MIT */
/*
 * variable_types.c - from a variable to what it leads to, by the types of the debug information; in the
 * reader's process (lines.c), like all that trusts libdw.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

#ifdef HAVE_DW

#include "inject/elf/dwarf_impl.h"

#define DEEPEST 16u /* unnamed members and base classes in each other */
#define DIMENSIONS 8u

struct walk {
	struct dwarf_lines *l;
	struct variable *v;
	struct err *why;
	const char *at;
	Dwarf_Die type;     /* of where it is now */
	unsigned dimension; /* of an array: how many have an index already */
	bool is_bits;       /* a member of so many bits */
};

#define FAIL(w, ...) (err_set((w)->why, ENOENT, __VA_ARGS__), false)

bool variable_type_of(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attr;
	Dwarf_Die raw;

	return dwarf_attr_integrate(die, DW_AT_type, &attr) && dwarf_formref_die(&attr, &raw) &&
	       !dwarf_peel_type(&raw, type);
}

static bool is_pointer(int tag)
{
	return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
	       tag == DW_TAG_rvalue_reference_type;
}

static bool is_struct(int tag)
{
	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

/* ---- sizes ---- */

static bool size_of(Dwarf_Die *type, uint64_t *size)
{
	Dwarf_Word n;

	if (dwarf_aggregate_size(type, &n))
		return false;
	*size = n;
	return true;
}

/* The numbers of elements, from the first dimension on; 0: not known. */
static unsigned dimensions(Dwarf_Die *array, uint64_t counts[DIMENSIONS])
{
	unsigned n = 0;
	Dwarf_Die die;

	if (dwarf_child(array, &die))
		return 0;
	do {
		Dwarf_Attribute attr;
		Dwarf_Word number;

		if (dwarf_tag(&die) != DW_TAG_subrange_type || n == DIMENSIONS)
			continue;
		counts[n] = 0;
		if (dwarf_attr_integrate(&die, DW_AT_count, &attr) &&
		    !dwarf_formudata(&attr, &number))
			counts[n] = number;
		else if (dwarf_attr_integrate(&die, DW_AT_upper_bound, &attr) &&
			 !dwarf_formudata(&attr, &number) && number < UINT32_MAX)
			counts[n] = number + 1;
		n++;
	} while (!dwarf_siblingof(&die, &die));
	return n;
}

/* ---- steps ---- */

static bool add(struct walk *w, uint64_t distance)
{
	struct variable *v = w->v;
	int64_t sum;

	if (!v->nplaces)
		return FAIL(w,
			    v->base == VARIABLE_NUMBER
				    ? "is a constant there, of which no member is in memory"
				    : "is in registers there: its members are in none of memory");
	if (distance > INT32_MAX)
		return FAIL(w, "is farther away than 31 bits tell");
	sum = (int64_t)v->place[v->nplaces - 1] + (int64_t)distance;
	if (sum > INT32_MAX)
		return FAIL(w, "is farther away than 31 bits tell");
	v->place[v->nplaces - 1] = (int32_t)sum;
	return true;
}

/* To what the pointer points to. */
static bool follow(struct walk *w)
{
	Dwarf_Die target;

	if (!variable_type_of(&w->type, &target))
		return FAIL(w, "points to what has no type (void)");
	if (w->v->base == VARIABLE_NUMBER && !w->v->nplaces)
		return FAIL(w, "is a constant there: a program lies elsewhere each time");
	if (w->v->nplaces == VARIABLE_STEPS)
		return FAIL(w, "has too many steps");
	w->v->place[w->v->nplaces++] = 0;
	w->type = target;
	w->dimension = 0;
	return true;
}

/* A reference is what it refers to. */
static bool settle_reference(struct walk *w)
{
	int tag = dwarf_tag(&w->type);

	return (tag != DW_TAG_reference_type && tag != DW_TAG_rvalue_reference_type) || follow(w);
}

/* Where the unit only knows that there is such a type, another one says what is in it. */
static void find_definition(struct walk *w)
{
	const char *name = dwarf_diename(&w->type);
	int tag = dwarf_tag(&w->type);
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit, die;

	if (!name || !dwarf_hasattr(&w->type, DW_AT_declaration))
		return;
	while (!dwarf_get_units(w->l->dw, cu, &cu, NULL, NULL, &unit, NULL)) {
		if (dwarf_child(&unit, &die))
			continue;
		do {
			const char *other = dwarf_tag(&die) == tag ? dwarf_diename(&die) : NULL;

			if (other && !strcmp(other, name) &&
			    !dwarf_hasattr(&die, DW_AT_declaration)) {
				w->type = die;
				return;
			}
		} while (!dwarf_siblingof(&die, &die));
	}
}

/* False: the offset is no constant, as that of a virtual base class. */
static bool member_offset(Dwarf_Die *member, uint64_t *offset)
{
	Dwarf_Attribute attr;
	Dwarf_Word number;
	Dwarf_Op *ops;
	size_t n;

	*offset = 0;
	if (!dwarf_attr(member, DW_AT_data_member_location, &attr))
		return true;
	if (!dwarf_formudata(&attr, &number)) {
		*offset = number;
		return true;
	}
	if (dwarf_getlocation(&attr, &ops, &n) || n != 1 || ops[0].atom != DW_OP_plus_uconst)
		return false;
	*offset = ops[0].number;
	return true;
}

/* In this struct, its unnamed members and base classes.  *sum: where it is. */
static bool find_member(Dwarf_Die *type, const char *name, size_t n, unsigned depth, Dwarf_Die *out,
			uint64_t *sum)
{
	Dwarf_Die die, inner;
	uint64_t offset;

	if (depth > DEEPEST || dwarf_child(type, &die))
		return false;
	do {
		int tag = dwarf_tag(&die);
		const char *its = tag == DW_TAG_member ? dwarf_diename(&die) : NULL;

		if (tag != DW_TAG_member && tag != DW_TAG_inheritance)
			continue;
		if (its && strlen(its) == n && !memcmp(its, name, n)) {
			*out = die;
			if (!member_offset(&die, &offset))
				return false;
			*sum += offset;
			return true;
		}
		if (its || !variable_type_of(&die, &inner) || !is_struct(dwarf_tag(&inner)) ||
		    !member_offset(&die, &offset))
			continue;
		*sum += offset;
		if (find_member(&inner, name, n, depth + 1, out, sum))
			return true;
		*sum -= offset;
	} while (!dwarf_siblingof(&die, &die));
	return false;
}

static bool take_member(struct walk *w, bool is_arrow)
{
	const char *name = w->at;
	uint64_t offset = 0;
	Dwarf_Die member;
	size_t n = 0;

	while (isalnum((unsigned char)name[n]) || name[n] == '_')
		n++;
	w->at += n;
	if (!settle_reference(w))
		return false;
	if (is_arrow && !is_pointer(dwarf_tag(&w->type)))
		return FAIL(w, "is no pointer before ->%.*s: write .%.*s", (int)n, name, (int)n,
			    name);
	if (is_arrow && !follow(w))
		return false;
	if (is_pointer(dwarf_tag(&w->type)))
		return FAIL(w, "is a pointer before .%.*s: write ->%.*s", (int)n, name, (int)n,
			    name);
	if (w->is_bits || !is_struct(dwarf_tag(&w->type)))
		return FAIL(w, "is no struct before %.*s: it has no members", (int)n, name);
	find_definition(w);
	if (!find_member(&w->type, name, n, 0, &member, &offset))
		return FAIL(w, "has no member %.*s%s%s that has a fixed place", (int)n, name,
			    dwarf_diename(&w->type) ? " in struct " : "",
			    dwarf_diename(&w->type) ? dwarf_diename(&w->type) : "");
	if (dwarf_hasattr(&member, DW_AT_declaration) || dwarf_hasattr(&member, DW_AT_external))
		return FAIL(w, "has the static member %.*s, which is a variable: name that", (int)n,
			    name);
	w->is_bits = dwarf_hasattr(&member, DW_AT_bit_size);
	if (!variable_type_of(&member, &w->type))
		return FAIL(w, "has a member %.*s whose type cannot be read", (int)n, name);
	w->dimension = 0;
	return add(w, offset);
}

static bool take_index(struct walk *w)
{
	uint64_t counts[DIMENSIONS], size, index = strtoul(w->at, (char **)&w->at, 0);
	unsigned n = 0;
	Dwarf_Die element;

	w->at++; /* ] */
	if (!settle_reference(w))
		return false;
	if (dwarf_tag(&w->type) == DW_TAG_pointer_type) {
		if (!follow(w) || !size_of(&w->type, &size))
			return FAIL(w, "points to what has no size, so it has no [%llu]",
				    (unsigned long long)index);
		return add(w, index * size);
	}
	if (dwarf_tag(&w->type) == DW_TAG_array_type)
		n = dimensions(&w->type, counts);
	if (w->is_bits || w->dimension >= n)
		return FAIL(w, "is no array before [%llu]", (unsigned long long)index);
	if (counts[w->dimension] && index >= counts[w->dimension])
		return FAIL(w, "has %llu elements: there is no [%llu]",
			    (unsigned long long)counts[w->dimension], (unsigned long long)index);
	if (!variable_type_of(&w->type, &element) || !size_of(&element, &size))
		return FAIL(w, "has elements of which no size is known");
	for (unsigned i = w->dimension + 1; i < n; i++) {
		if (!counts[i] || counts[i] > INT32_MAX || size > INT32_MAX)
			return FAIL(w, "has elements of which no size is known");
		size *= counts[i];
	}
	if (++w->dimension == n) {
		w->type = element;
		w->dimension = 0;
	}
	if (size > INT32_MAX)
		return FAIL(w, "is farther away than 31 bits tell");
	return add(w, index * size);
}

/* ---- what it is ---- */

/* A number's form, as value types have it; 0: it is none that a sample takes. */
static char form_of(Dwarf_Die *type, uint64_t size)
{
	Dwarf_Attribute attr;
	Dwarf_Word encoding;
	Dwarf_Die base;

	if (size != 1 && size != 2 && size != 4 && size != 8)
		return 0;
	if (dwarf_tag(type) == DW_TAG_enumeration_type) {
		if (variable_type_of(type, &base) && dwarf_tag(&base) == DW_TAG_base_type)
			return form_of(&base, size);
		return 's';
	}
	if (is_pointer(dwarf_tag(type)) || dwarf_tag(type) == DW_TAG_ptr_to_member_type)
		return 'x';
	if (dwarf_tag(type) == DW_TAG_unspecified_type) /* nullptr_t */
		return 'x';
	if (dwarf_tag(type) != DW_TAG_base_type || !dwarf_attr(type, DW_AT_encoding, &attr) ||
	    dwarf_formudata(&attr, &encoding))
		return 0;
	switch (encoding) {
	case DW_ATE_signed:
	case DW_ATE_signed_char:
		return 's';
	case DW_ATE_unsigned:
	case DW_ATE_unsigned_char:
	case DW_ATE_boolean:
	case DW_ATE_UTF:
		return 'u';
	case DW_ATE_address:
		return 'x';
	case DW_ATE_float:
		return (char)(size == 8 ? 'd' : size == 4 ? 'f' : 0);
	}
	return 0;
}

static bool is_char(Dwarf_Die *type)
{
	const char *name = dwarf_tag(type) == DW_TAG_base_type ? dwarf_diename(type) : NULL;

	return name && !strcmp(name, "char");
}

static bool settle_array(struct walk *w)
{
	uint64_t counts[DIMENSIONS], size = 0, all = 1;
	unsigned n = dimensions(&w->type, counts);
	struct variable *v = w->v;
	Dwarf_Die element;

	if (dwarf_hasattr(&w->type, DW_AT_GNU_vector))
		return FAIL(w, "is a vector, for which there is no type");
	if (!variable_type_of(&w->type, &element) || !size_of(&element, &size))
		return FAIL(w, "has elements of which no size is known");
	for (unsigned i = w->dimension; i < n; i++)
		all = counts[i] <= UINT32_MAX && all <= UINT32_MAX ? all * counts[i] : 0;
	if (size > UINT32_MAX || all > UINT32_MAX || all * size > UINT32_MAX)
		all = 0;
	v->kind = VARIABLE_ARRAY;
	v->form = form_of(&element, size);
	v->bits = v->form ? (uint32_t)size * 8 : 0;
	v->is_char = is_char(&element);
	v->count = (uint32_t)all;
	v->size = (uint32_t)(all * size);
	return true;
}

static bool settle(struct walk *w)
{
	struct variable *v = w->v;
	uint64_t size = 0;
	int tag;

	if (w->is_bits)
		return FAIL(
			w,
			"is a bit-field: take the number that it is in, by a member beside it or by its "
			"address, and a mask");
	if (!settle_reference(w))
		return false;
	tag = dwarf_tag(&w->type);
	if (tag == DW_TAG_array_type)
		return settle_array(w);
	if (is_struct(tag))
		find_definition(w);
	if (tag == DW_TAG_subroutine_type)
		return FAIL(w, "is a function");
	if (!size_of(&w->type, &size) || size > UINT32_MAX)
		return FAIL(w, "has a type of which no size is known");
	v->size = (uint32_t)size;
	v->kind = is_struct(tag)    ? VARIABLE_STRUCT
		  : is_pointer(tag) ? VARIABLE_POINTER
				    : VARIABLE_SCALAR;
	if (v->kind == VARIABLE_STRUCT)
		return true;
	v->form = form_of(&w->type, size);
	v->bits = v->form ? (uint32_t)size * 8 : 0;
	v->is_char = is_char(&w->type);
	if (v->form || v->nplaces)
		return true;
	return FAIL(w, "is of a type that a sample does not take (%s)",
		    dwarf_diename(&w->type) ? dwarf_diename(&w->type) : "without a name");
}

bool variable_walk(struct dwarf_lines *l, Dwarf_Die *type, const char *way, struct variable *v,
		   struct err *why)
{
	struct walk w = {.l = l, .v = v, .why = why, .at = way, .type = *type};

	while (*w.at) {
		bool is_arrow = w.at[0] == '-';

		w.at += is_arrow ? 2 : 1;
		if (w.at[-1] == '[' ? !take_index(&w) : !take_member(&w, is_arrow))
			return false;
	}
	return settle(&w);
}

#endif

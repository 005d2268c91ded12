/* SPDX-License-Identifier: MIT */
/*
 * variable_types.c - from a variable to what it leads to, by the types of the debug information; in the
 * reader's process (lines.c), like all that trusts libdw.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
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
	unsigned steps;
	bool is_bits; /* a member of so many bits */
};

/* Dies that are looked at: no program has more. */
#define STEPS (1u << 20)

/* The member that is looked for, and where it is. */
struct wanted {
	const char *name;
	size_t n;
	Dwarf_Die die;
	uint64_t sum;
	bool is_virtual; /* in a base class whose place is not a constant */
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

/* False: the offset is not a constant, as that of a virtual base class. */
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

/* ---- a struct that the unit only declares ---- */

static void scope_of(Dwarf_Die *die, char *out, size_t size)
{
	Dwarf_Die *scopes = NULL;
	int n = dwarf_getscopes_die(die, &scopes);
	size_t at = 0;

	*out = '\0';
	for (int i = n - 2; i > 0; i--) { /* the last is the unit, the first the struct */
		const char *name = dwarf_diename(&scopes[i]);

		if (name && at < size)
			at += (size_t)snprintf(out + at, size - at, "%s::", name);
	}
	free(scopes);
}

static bool is_same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool is_same_member(Dwarf_Die *a, Dwarf_Die *b)
{
	uint64_t at_a, at_b, size_a = 0, size_b = 0;
	Dwarf_Die type_a, type_b;

	if (dwarf_tag(a) != dwarf_tag(b) || !is_same_text(dwarf_diename(a), dwarf_diename(b)))
		return false;
	if (dwarf_tag(a) != DW_TAG_member && dwarf_tag(a) != DW_TAG_inheritance)
		return true;
	if (member_offset(a, &at_a) != member_offset(b, &at_b) || at_a != at_b ||
	    !variable_type_of(a, &type_a) || !variable_type_of(b, &type_b) ||
	    size_of(&type_a, &size_a) != size_of(&type_b, &size_b))
		return false;
	return size_a == size_b && dwarf_tag(&type_a) == dwarf_tag(&type_b) &&
	       is_same_text(dwarf_diename(&type_a), dwarf_diename(&type_b));
}

/* The next one in it that takes room, or the first. */
static bool next_member(Dwarf_Die *in, Dwarf_Die *die, bool *is_begun)
{
	bool has = *is_begun ? !dwarf_siblingof(die, die) : !dwarf_child(in, die);

	*is_begun = true;
	while (has && dwarf_tag(die) != DW_TAG_member && dwarf_tag(die) != DW_TAG_inheritance)
		has = !dwarf_siblingof(die, die);
	return has;
}

static bool is_same_struct(struct walk *w, Dwarf_Die *a, Dwarf_Die *b)
{
	bool begun_a = false, begun_b = false;
	uint64_t size_a = 0, size_b = 0;
	Dwarf_Die at_a, at_b;

	if (size_of(a, &size_a) != size_of(b, &size_b) || size_a != size_b)
		return false;
	for (;;) {
		bool has_a = next_member(a, &at_a, &begun_a),
		     has_b = next_member(b, &at_b, &begun_b);

		if (!has_a || !has_b)
			return has_a == has_b;
		if (++w->steps > STEPS || !is_same_member(&at_a, &at_b))
			return false;
	}
}

struct definition {
	const char *name, *scope;
	int tag;
	Dwarf_Die die;
	bool has, has_others;
};

static void find_definitions(struct walk *w, Dwarf_Die *in, const char *prefix, unsigned depth,
			     struct definition *d)
{
	Dwarf_Die die;

	if (depth > 8 || dwarf_child(in, &die))
		return;
	do {
		int tag = dwarf_tag(&die);
		const char *name;
		char inner[256];

		if (++w->steps > STEPS || (tag != DW_TAG_namespace && !is_struct(tag)))
			continue;
		name = dwarf_diename(&die);
		if (is_struct(tag) == is_struct(d->tag) && name && !strcmp(name, d->name) &&
		    !strcmp(prefix, d->scope) && !dwarf_hasattr(&die, DW_AT_declaration) &&
		    !dwarf_hasattr(&die, DW_AT_specification)) {
			d->has_others |= d->has && !is_same_struct(w, &d->die, &die);
			d->die = die;
			d->has = true;
		}
		if (strncmp(prefix, d->scope, strlen(prefix)) != 0 || !*d->scope)
			continue;
		snprintf(inner, sizeof(inner), "%s%s%s", prefix, name ? name : "",
			 name ? "::" : "");
		find_definitions(w, &die, inner, depth + 1, d);
	} while (w->steps <= STEPS && !dwarf_siblingof(&die, &die));
}

/* Where the unit only knows that there is such a type, others say what is in it; and all of them the same. */
static bool find_definition(struct walk *w)
{
	struct definition d = {.name = dwarf_diename(&w->type), .tag = dwarf_tag(&w->type)};
	Dwarf_CU *cu = NULL;
	char scope[256];
	Dwarf_Die unit;

	if (!d.name || !dwarf_hasattr(&w->type, DW_AT_declaration))
		return true;
	scope_of(&w->type, scope, sizeof(scope));
	d.scope = scope;
	while (!dwarf_get_units(w->l->dw, cu, &cu, NULL, NULL, &unit, NULL))
		find_definitions(w, &unit, "", 0, &d);
	if (d.has_others)
		return FAIL(
			w,
			"points to a struct %s of which there are several: give an address, like "
			"*(u32*)($arg1+4)",
			d.name);
	if (d.has)
		w->type = d.die;
	return w->steps <= STEPS || FAIL(w, "is in debug information that makes no sense");
}

/* ---- members ---- */

static bool find_member(struct walk *w, Dwarf_Die *type, struct wanted *m, unsigned depth);

/* By what has no name: a member that is a struct, or a base class. */
static bool find_inside(struct walk *w, Dwarf_Die *die, struct wanted *m, unsigned depth)
{
	bool has_place, was_virtual = m->is_virtual;
	uint64_t offset;
	Dwarf_Die inner;

	if (!variable_type_of(die, &inner) || !is_struct(dwarf_tag(&inner)))
		return false;
	has_place = member_offset(die, &offset);
	m->is_virtual |= !has_place;
	m->sum += offset;
	if (find_member(w, &inner, m, depth + 1))
		return true;
	m->sum -= offset;
	m->is_virtual = was_virtual;
	return false;
}

/* What the struct itself has (by_base: or its base classes). */
static bool find_among(struct walk *w, Dwarf_Die *type, struct wanted *m, int wanted_tag,
		       unsigned depth)
{
	Dwarf_Die die;
	uint64_t offset;

	if (depth > DEEPEST || dwarf_child(type, &die))
		return false;
	do {
		int tag = dwarf_tag(&die);
		const char *its = tag == DW_TAG_inheritance ? NULL : dwarf_diename(&die);

		if (++w->steps > STEPS)
			return false;
		if (tag != wanted_tag)
			continue;
		if (its && strlen(its) == m->n && !memcmp(its, m->name, m->n)) {
			m->die = die;
			m->is_virtual |= !member_offset(&die, &offset);
			m->sum += offset;
			return true;
		}
		if (!its && find_inside(w, &die, m, depth))
			return true;
	} while (!dwarf_siblingof(&die, &die));
	return false;
}

/* In this struct and its unnamed members; only if it is in none of them, in its base classes. */
static bool find_member(struct walk *w, Dwarf_Die *type, struct wanted *m, unsigned depth)
{
	return find_among(w, type, m, DW_TAG_member, depth) ||
	       find_among(w, type, m, DW_TAG_inheritance, depth);
}

bool variable_has_member(struct dwarf_lines *l, Dwarf_Die *type, const char *name)
{
	struct variable v = {.nplaces = 0};
	struct err why = {.msg = ""};
	struct walk w = {.l = l, .v = &v, .why = &why, .type = *type};
	struct wanted m = {.name = name, .n = strlen(name)};

	if (!find_definition(&w))
		return true;
	return find_member(&w, &w.type, &m, 0) && !dwarf_hasattr(&m.die, DW_AT_external) &&
	       !dwarf_hasattr(&m.die, DW_AT_declaration);
}

static bool take_member(struct walk *w, bool is_arrow)
{
	const char *name = w->at;
	struct wanted m = {.name = name};
	size_t n = 0;

	while (isalnum((unsigned char)name[n]) || name[n] == '_')
		n++;
	w->at += n;
	m.n = n;
	if (!settle_reference(w))
		return false;
	if (is_arrow && !is_pointer(dwarf_tag(&w->type)))
		return FAIL(w, "is not a pointer before ->%.*s: write .%.*s", (int)n, name, (int)n,
			    name);
	if (is_arrow && !follow(w))
		return false;
	if (is_pointer(dwarf_tag(&w->type)))
		return FAIL(w, "is a pointer before .%.*s: write ->%.*s", (int)n, name, (int)n,
			    name);
	if (w->is_bits || !is_struct(dwarf_tag(&w->type)))
		return FAIL(w, "is not a struct before %.*s: it has no members", (int)n, name);
	if (!find_definition(w))
		return false;
	if (!find_member(w, &w->type, &m, 0) || m.is_virtual)
		return FAIL(w, "has no member %.*s%s%s that has a fixed place", (int)n, name,
			    dwarf_diename(&w->type) ? " in struct " : "",
			    dwarf_diename(&w->type) ? dwarf_diename(&w->type) : "");
	if (dwarf_hasattr(&m.die, DW_AT_declaration) || dwarf_hasattr(&m.die, DW_AT_external))
		return FAIL(w, "has the static member %.*s, which is a variable: name that", (int)n,
			    name);
	w->is_bits = dwarf_hasattr(&m.die, DW_AT_bit_size);
	if (!variable_type_of(&m.die, &w->type))
		return FAIL(w, "has a member %.*s whose type cannot be read", (int)n, name);
	w->dimension = 0;
	return add(w, m.sum);
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
		return FAIL(w, "is not an array before [%llu]", (unsigned long long)index);
	if (counts[w->dimension] && index >= counts[w->dimension])
		return FAIL(w, "is beyond the array's end: [%llu] of %llu elements",
			    (unsigned long long)index, (unsigned long long)counts[w->dimension]);
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
	if (v->is_char && n > w->dimension + 1)
		return FAIL(w, "is several texts: name one of its rows, [0]");
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
	if (is_struct(tag) && !find_definition(w))
		return false;
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

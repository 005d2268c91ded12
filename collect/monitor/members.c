/* SPDX-License-Identifier: MIT */
/* members.c - see members.h */
#include "collect/monitor/members.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "inject/elf/variables.h"

const char *member_way(const char *name)
{
	const char *way = name + strcspn(name, ".[-");

	/* a symbol may have a dot and a number at its end */
	if (way == name || !*way ||
	    (*way == '.' && !isalpha((unsigned char)way[1]) && way[1] != '_'))
		return NULL;
	return way;
}

static enum value_type type_of(const struct variable *v)
{
	if (v->kind == VARIABLE_POINTER)
		return VALUE_HEX;
	switch (v->form) {
	case 's':
		return VALUE_SIGNED;
	case 'x':
		return VALUE_HEX;
	case 'd':
	case 'f':
		return VALUE_DOUBLE;
	}
	return VALUE_UNSIGNED;
}

static bool take(struct member *out, const struct variable *v, struct err *why)
{
	const unsigned bytes = v->kind == VARIABLE_POINTER ? 8 : v->bits / 8;

	if (v->base != VARIABLE_ADDRESS || !v->nplaces || v->nplaces > MEMBER_STEPS)
		return err_set(why, EINVAL, "it is nowhere in memory"), false;
	if (v->kind == VARIABLE_ARRAY)
		return err_set(why, EINVAL, "it is an array: name one of its elements"), false;
	if (v->kind == VARIABLE_STRUCT)
		return err_set(why, EINVAL, "it is a struct: name one of its members"), false;
	*out = (struct member){.nsteps = v->nplaces, .bytes = bytes, .type = type_of(v)};
	memcpy(out->step, v->place, v->nplaces * sizeof(v->place[0]));
	return true;
}

bool member_find(struct member *out, const struct elf_image *img, const char *name, struct err *why)
{
	const struct variable_question q = {.name = name};
	struct variable v = {0};
	struct lines *l;
	bool found;

	if (lines_open(&l, img, why))
		return false;
	found = variables_find(l, &q, &v, why) && take(out, &v, why);
	lines_close(l);
	return found;
}

/* ---- variables without a way ---- */

static bool is_number_that_fits(const struct variable *v, unsigned size, enum value_type type,
				struct err *why)
{
	const bool is_real = v->form == 'd' || v->form == 'f';

	if (type == VALUE_DOUBLE && (!is_real || size != v->size))
		return err_set(why, EINVAL, "it has %u bytes and is no %s", v->size,
			       size == 8 ? "double" : "float"),
		       false;
	if (type != VALUE_DOUBLE && type != VALUE_HEX && is_real)
		return err_set(why, EINVAL,
			       "it is a floating-point number of %u bytes: say :%s, or :x%u for its bits",
			       v->size, v->form == 'd' ? "double" : "float", v->size * 8),
		       false;
	return true;
}

bool member_fits(const struct elf_image *img, const char *name, uint64_t vaddr, unsigned size,
		 enum value_type type, struct err *why)
{
	const struct variable_question q = {.name = name};
	struct variable v = {0};
	struct err unknown;
	struct lines *l;
	bool found;

	if (lines_open(&l, img, &unknown))
		return true;
	found = variables_find(l, &q, &v, &unknown) && v.base == VARIABLE_ADDRESS &&
		v.value == vaddr;
	lines_close(l);
	if (!found || v.kind == VARIABLE_POINTER)
		return !found || type != VALUE_DOUBLE ||
		       (err_set(why, EINVAL, "it is a pointer, and no floating-point number"),
			false);
	if (v.kind == VARIABLE_SCALAR)
		return is_number_that_fits(&v, size, type, why);
	if (size)
		return true;
	return err_set(why, EINVAL,
		       v.kind == VARIABLE_ARRAY
			       ? "it is an array: name one of its elements"
			       : "it is a struct: name one of its members, or say which type, "
				 "like %s:u32",
		       name),
	       false;
}

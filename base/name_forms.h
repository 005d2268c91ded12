/* SPDX-License-Identifier: MIT */
/*
 * name_forms.h - how people may write a function's name: whole, without the arguments of a C++
 * function, and without the return type that templates carry.
 */
#ifndef BASE_NAME_FORMS_H
#define BASE_NAME_FORMS_H

#include <stdbool.h>

struct name_forms {
	const char *v[3];
	unsigned n;
	char bare[1024];
};

/* "int ns::f<int>(char) const" is also "int ns::f<int>" and "ns::f<int>". */
void name_forms_make(struct name_forms *out, const char *name);
/* Whether one of them is `glob` or matches it: "operator[]" names that operator, too. */
bool name_forms_match(const char *name, const char *glob);

#endif

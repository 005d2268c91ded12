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

/*
 * Other names of the same function stand a line each; NULL and "": there are none.  The next one of
 * *rest, which moves on; for xfree().  NULL: that was the last one.
 */
char *name_forms_next(const char **rest);
/* Whether the function's name or one of its other names is the glob or matches it. */
bool name_forms_match_any(const char *name, const char *aliases, const char *glob);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * unmatched.h - what of -F, -N, -g, -L and -p has matched nothing by the time that the program is about to
 * begin: its libraries are mapped, its plans are made, and none of its code has run.
 *
 * A mistyped name should cost a second and not the hour that the program takes.  Whether it can still
 * match something depends on what may come: other libraries by dlopen(3), other programs by exec.
 */
#ifndef COLLECT_UNMATCHED_H
#define COLLECT_UNMATCHED_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/vec.h"

struct modules;

struct unmatched_item {
	char *sentence;
	bool may_come; /* a library that comes later may match */
};
struct unmatched {
	VEC(struct unmatched_item) v;
	bool is_all; /* nothing of the selection has matched */
};

/* Of the process that asks first.  What other programs may match is the caller's question. */
void unmatched_find(struct unmatched *out, struct modules *ms);
void unmatched_free(struct unmatched *u);

/*
 * Whether the process can execute another program: something it has loaded, other than the C library
 * itself, imports a function for that, or is not linked dynamically.
 */
bool unmatched_may_execute(pid_t pid);

#endif

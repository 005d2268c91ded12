/* SPDX-License-Identifier: MIT */
/*
 * untraced.h - programs and modules that stay untraced, summed up by reason: what `kron record`
 * says at its end.  The trace has each of them (U records), this list only how many there were.
 */
#ifndef COLLECT_UNTRACED_H
#define COLLECT_UNTRACED_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct untraced {
	char *reason;        /* if it began with a module's name, what came after it */
	uint64_t count;      /* how many times */
	VEC(char *) modules; /* paths, each once; none: the reason is the whole sentence */
};

struct untraced_list {
	pthread_mutex_t lock;
	VEC(struct untraced) v;
};

void untraced_init(struct untraced_list *l);
void untraced_free(struct untraced_list *l);
/* text is a sentence; module: the path that it is about, NULL: none. */
void untraced_add(struct untraced_list *l, const char *module, const char *text);
void untraced_add_times(struct untraced_list *l, const char *module, const char *text,
			uint64_t times);
/*
 * The sentence, allocated.  Of several modules with the same reason it has the names of up to
 * three: "a.so, b.so, c.so and 5 more: trampolines could not be mapped: File exists".
 */
char *untraced_sentence(const struct untraced *u);

#endif

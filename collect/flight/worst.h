/* SPDX-License-Identifier: MIT */
/* worst.h - the slowest calls of a function so far, and which snapshot has each. */
#ifndef COLLECT_WORST_H
#define COLLECT_WORST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"

#define WORST_MOST 1000u

struct worst_call {
	uint64_t since, at; /* by the clock of the samples */
	uint32_t snapshot;  /* its number; 0: it has none yet */
};

struct worst {
	uint32_t most; /* 0: nobody asked */
	char *function;
	VEC(struct worst_call) calls; /* the slowest first */
	VEC(uint32_t) dropped;        /* snapshots of calls that are no longer among them */
};

/* "10:FUNC".  0 or -EINVAL with the sentence. */
int worst_parse(struct worst *w, const char *text, struct err *err);
void worst_free(struct worst *w);
/* A call has ended. */
void worst_offer(struct worst *w, uint64_t since, uint64_t at);
/* One that takes no longer than this is not among them. */
uint64_t worst_limit(const struct worst *w);
/* The slowest of those that began before this and have no snapshot; NULL: there is none. */
struct worst_call *worst_next(struct worst *w, uint64_t before);
/* Its samples cannot be had. */
void worst_forget(struct worst *w, struct worst_call *c);

#endif

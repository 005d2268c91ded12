/* SPDX-License-Identifier: MIT */
/*
 * names.h - what the numbers of events mean, as conditions and triggers ask it.
 *
 *   a trace that is read ────────────► trace_names_of() ──────┐
 *                                                             ├─► conditions, triggers
 *   lines, while they are written ───► kept_names_add_...() ──┘
 *                                      kept_names_settle()
 */
#ifndef TRACE_NAMES_H
#define TRACE_NAMES_H

#include "trace/jumps.h"

/* An event that lies in several modules is there with each. */
struct trace_name {
	uint32_t n;    /* events 2n, 2n+1 */
	bool is_event; /* the user's; else a function */
	uint16_t ways; /* of a function: enum trace_way */
	const char *name;
	const char *module;           /* its path */
	const char *aliases;          /* of a function: other names, a line each; NULL: none */
	struct trace_value_type type; /* of an event's payload */
};
struct trace_names {
	struct trace_name *v;
	size_t n;
	uint32_t limit; /* one more than the highest number that is not garbage: for arrays */
	struct trace_jumps jumps;
};

/* For trace_names_free(), before the trace is closed: the strings and the jumps are its. */
void trace_names_of(struct trace_names *out, const struct trace *t);
void trace_names_free(struct trace_names *x);

/* The name of a function that may have none; for xfree(). */
char *trace_name_function(const char *module, uint64_t vaddr, const char *name);

/* ---- names that come one by one ---- */

struct kept_names;
struct kept_names *kept_names_new(void);
void kept_names_free(struct kept_names *k);
/* Each with its struct trace_..._line (trace/rows.h); a module before what is in it. */
typedef void kept_names_add(struct kept_names *k, const void *line);
kept_names_add kept_names_add_module, kept_names_add_function, kept_names_add_jump,
	kept_names_add_event;
/* What they are by now; until the next one is added. */
const struct trace_names *kept_names_settle(struct kept_names *k);

#endif

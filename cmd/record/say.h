/* SPDX-License-Identifier: MIT */
/*
 * say.h - what `kron record` says on stderr: notes of what could not be traced, and the summary.
 */
#ifndef CMD_RECORD_SAY_H
#define CMD_RECORD_SAY_H

#include <stdbool.h>

#include "base/opt.h"
#include "cmd/record/child.h"
#include "collect/attach/program.h"
#include "collect/collector.h"

struct say_options {
	const struct opt_command *command;
	const struct probe_set *probes;
	const char *output, *board;
	bool quiet;
	bool attached; /* to processes that ran already */
	bool counting; /* nothing is recorded */
	int verbose;
};
/* Before anything is said; it stays the caller's. */
void say_begin(const struct say_options *options);

/* A line; nothing with -q. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Before the program starts: a size that was asked for is kept, whatever comes of it. */
void say_buffer(const struct segment *seg);
/* A rank that is none of a node: what is there instead. */
void say_node(const struct collector *c);
/* A name in the trigger that nothing has, so far; watch may be NULL. */
void say_unknown_yet(const struct watch *w);
/* What was not traced, and why. */
void say_untraced(struct collector *c, const struct program *p);
/* That, and whatever else should be known of the recording. */
void say_notes(struct collector *c, const struct collector_summary *s, const struct program *p,
	       const struct child *child);
/* The summary, or why the trace is incomplete, which -q does not silence. */
void say_end(struct collector *c, const struct collector_summary *s);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * report.h - what the reading commands print.  All of it reads the trace only, writes to the
 * FILE it is given, and neither exits nor keeps anything.
 */
#ifndef TRACE_REPORT_H
#define TRACE_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "trace/analysis/profile.h"
#include "trace/reader.h"

/* Is all of it in the trace?  Who knows where the rest would be, says it. */
struct report_state {
	const char *key; /* complete, recording, recoverable, cut off */
	char text[1024]; /* a sentence; "" when it is complete */
};

/* ---- kron report: a profile by function ---- */

struct profile_options {
	int sort;       /* enum profile_key */
	uint64_t limit; /* rows (of each thread, process or CPU); 0 = all */
	enum profile_by by;
	bool json;
	bool percentiles; /* as columns; JSON has them always */
	bool virtual;     /* each time also without the probes in it */
	bool on_cpu;      /* total and self also without what threads were off a processor */
	bool histogram;   /* bars of the lengths of each function's calls */
	bool totals;      /* only what stands below the table */
};
/* Stands after the number of samples lost: that says nothing of those that the trace has not got. */
static inline const char *report_missing(const struct trace *t)
{
	if (!t->complete)
		return " so far, and others may be missing: the trace is not complete";
	return t->cut_short ? ", and others are missing" : "";
}

void report_profile(const struct trace *t, const struct profile_options *o, FILE *out);

/* 0, or: -ENODATA times on a processor are wanted, and the trace has no context switches. */
int report_profile_check(const struct trace *t, const struct profile_options *o, struct err *err);

/* ---- kron report --events: those of probes that users placed ---- */
/* "module", NULL where `at` is, and then "modules": all that it may be. */
struct json;
void json_event_module(struct json *j, const struct trace *t, const struct trace_user_event *u,
		       const struct trace_event_place *at);
void report_events(const struct trace *t, bool json, uint64_t limit, FILE *out);

/* ---- kron report --callers, --callees ---- */
struct edges_options {
	const char *function; /* a name, or a glob */
	bool callers, callees;
	bool json;
};
/* -ENOENT: no function is named so. */
int report_edges(const struct trace *t, const struct edges_options *o, FILE *out, struct err *err);

/* ---- kron report --call-graph ---- */
struct graph_options {
	double threshold; /* percent of all time, what takes less is left out */
	bool json;
};
void report_graph(const struct trace *t, const struct graph_options *o, FILE *out);

/* ---- kron report --intervals ---- */
struct intervals_options {
	const char *file; /* an interval.info */
	enum profile_by by;
	bool json, histogram, virtual;
};
/* The file cannot be read, or is wrong. */
int report_intervals(const struct trace *t, const struct intervals_options *o, FILE *out,
		     struct err *err);

/* Likewise, --messages: who sends to whom, of those of class 4. */
int report_messages(const struct trace *t, const struct intervals_options *o, FILE *out,
		    struct err *err);

/* The same of MPI's messages, which the probe pack mpi records; and which rank the others wait for. -ENODATA: there are none. */
int report_matched(const struct trace *t, bool json, FILE *out, struct err *err);

/* ---- kron diff: two traces by function ---- */
#define DIFF_KEYS "self|total|calls|avg"
enum diff_key { DIFF_SELF, DIFF_TOTAL, DIFF_CALLS, DIFF_AVG };
struct diff_options {
	int sort; /* enum diff_key */
	uint64_t limit;
	bool json;
};
void report_diff(const struct trace *before, const struct trace *after,
		 const struct diff_options *o, FILE *out);

/* ---- kron replay: calls in order, indented ---- */
struct replay_options {
	const uint64_t *tids; /* only these threads; ntids = 0: all */
	size_t ntids;
	const char *const *globs; /* only functions named so, and what they call */
	size_t nglobs;
	uint64_t depth; /* levels shown; 0 = all */
	bool no_merge;  /* leaf calls on two lines, too */
	bool switches;  /* also when threads were off a processor */
	bool color;
};
/* -ENOENT: no thread has one of the ids, or no function is named so. */
int report_replay(const struct trace *t, const struct replay_options *o, FILE *out,
		  struct err *err);

/* ---- kron dump: every sample; switches: and every context switch ---- */
void report_dump(const struct trace *t, bool json, bool switches, FILE *out);

/* ---- kron info ---- */
void report_info(struct trace *t, const struct report_state *state, bool json, FILE *out);

#endif

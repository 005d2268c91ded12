/* SPDX-License-Identifier: MIT */
/* view_impl.h - what the files of kron view share; nobody else includes it. */
#ifndef TRACE_VIEW_IMPL_H
#define TRACE_VIEW_IMPL_H

#include "base/json.h"
#include "base/vec.h"
#include "trace/analysis/calltree.h"
#include "trace/index.h"
#include "trace/analysis/intervals.h"
#include "trace/analysis/pairs.h"
#include "trace/analysis/profile.h"
#include "trace/analysis/tracks.h"
#include "trace/pages.h"
#include "trace/view/view.h"

/* ---- bytes on their way into the page (view_put.c) ---- */

struct view_bytes {
	uint8_t *v;
	size_t n, cap;
};
void view_put_number(struct view_bytes *b, uint64_t v); /* LEB128 */
void view_put_signed(struct view_bytes *b, int64_t v);  /* zigzag */
void view_bytes_free(struct view_bytes *b);
void view_put_base64(FILE *out, const struct view_bytes *b);
/* A base64 string as the next value. */
void view_put_bytes(struct json *j, const struct view_bytes *b);
/* A name from the trace: printable, and shortened if it is very long. */
void view_put_name(struct json *j, const char *s);
void view_put_key_name(struct json *j, const char *key, const char *s);
/*
 * A FILE that writes to out what may stand in an HTML <script> that is not a script: no byte of what
 * goes through it can end the element, or begin another.  Everything that comes from a trace
 * goes through it.
 */
FILE *view_put_open(FILE *out);

/* ---- time in bins, at several levels (view_track.c) ---- */

struct view_tally { /* time by key */
	uint32_t *keys, *slots;
	uint64_t *ticks;
	uint32_t n, cap, last;
};
struct view_level {
	struct view_tally tally;
	uint64_t at;   /* bin that is being filled */
	uint64_t next; /* bin that would be written next */
	uint64_t busy, calls;
	uint32_t depth;
	bool used;
	struct view_bytes out;
};
#define VIEW_LEVELS 8
#define VIEW_LEVEL_FACTOR 4
struct view_track {
	struct view_level levels[VIEW_LEVELS];
	unsigned nlevels;
	uint64_t width;      /* ticks of a bin of level 0 */
	uint64_t begin, end; /* of its bin that is being filled */
};
unsigned view_track_levels(uint64_t nbins);
void view_track_open(struct view_track *k, uint64_t nbins, uint64_t width);
/* [a, b) belongs to key; ticks from the beginning of the view, never before an earlier call's b */
void view_track_add(struct view_track *k, uint64_t a, uint64_t b, uint32_t key);
/* A call began at a. */
void view_track_call(struct view_track *k, uint64_t a, uint32_t depth);
/* As the next value: an array of strings, one a level, finest first.  Frees the track. */
void view_track_put(struct view_track *k, struct json *j);

/* ---- the longest calls (view_spans.c) ---- */

enum { VIEW_INFERRED = 1, VIEW_OPEN = 2, VIEW_LOSS = 4, VIEW_JUMPED = 8 };
struct view_span {
	uint64_t begin, end; /* TSC */
	uint32_t function;
	uint32_t track, depth; /* of the thread's tracks (tracks.h); depth in it */
	uint32_t flags;
};
struct view_spans { /* a heap, the shortest first */
	struct view_span *v;
	size_t n, cap, most;
	uint64_t left_out, longest_left_out; /* ticks */
	uint64_t *by_length;                 /* of those left out, by view_detail_bucket() */
};
/* A total order: shorter, later, deeper ones first. */
bool view_span_is_less(const struct view_span *a, const struct view_span *b);
struct view_span view_span_of(const struct pair_call *call, const struct track_call *c);
void view_spans_reset(struct view_spans *s, size_t most);
void view_spans_add(struct view_spans *s, const struct view_span *span);
struct view;
/* Whether a part of it lies in the view. */
bool view_span_shows(const struct view *v, const struct view_span *s);
/*
 * In a picture of a thread the rows of its tracks lie below each other, with one between two: where
 * those of each begin.
 */
struct view_rows {
	VEC(uint32_t) first; /* by track */
	VEC(uint32_t) depth; /* likewise: how many rows; while they are counted */
};
void view_rows_see(struct view_rows *r, const struct view_span *s);
void view_rows_lay_out(struct view_rows *r);
static inline uint32_t view_row(const struct view_rows *r, const struct view_span *s)
{
	return (s->track < r->first.n ? r->first.v[s->track] : 0) + s->depth;
}
void view_rows_free(struct view_rows *r);
void view_spans_put(struct view_spans *s, const struct view *v, const struct view_rows *rows,
		    struct json *j);

/* ---- the view ---- */

struct view_lane {
	uint64_t samples; /* that lie in the view; special records, too */
	uint64_t first, last;
	uint64_t lost;
	bool shown; /* has a track of its own */
	struct view_rows rows;
	/* calls that are drawn one by one from the beginning, and how many are not */
	bool any_kept;
	struct view_span least_kept;
	uint64_t left_out;
	/* likewise the stretches off the CPUs */
	bool any_off_kept;
	struct view_span least_off_kept; /* function: preempted */
	uint64_t off_left_out;
};
struct view_node { /* of a calltree node with the same index */
	uint64_t calls, self, total;
	uint64_t rest_calls, rest_total; /* of callees that have no node */
};
/*
 * Ways are not sums: a program can have as many of them as calls.  So their number is limited
 * (100 bytes each), and a call without a node has for one the nearest caller's, with a mark.
 */
#define VIEW_NODES_MOST 1000000u
#define VIEW_NODE_NONE 0x80000000u   /* has none; the rest is the caller's */
#define VIEW_NODE_NESTED 0x40000000u /* neither has the function that called it */
#define VIEW_NODE_MASK 0x3fffffffu   /* all ones: no caller */
struct view_budget {
	uint64_t lanes, bins, cpus; /* tracks; bins of one */
	size_t spans, samples, nodes, functions, messages, names, histograms, losses;
	size_t readings; /* of counters */
};
#define VIEW_BUCKETS 976u /* of view_detail_bucket() */
struct view {
	const struct trace *t;
	const struct view_options *o;
	uint64_t from, to;                /* TSC: what is shown */
	uint64_t trace_first, trace_last; /* what there is */
	uint64_t monitored;               /* intervals of counters that the trace has */
	struct trace_pages *memory;       /* references to memory, of each part of the trace */
	bool any_memory;
	uint64_t samples, trace_samples; /* shown, and all; with special records */
	uint64_t records, trace_records; /* of those, the special records */
	uint64_t bin_ticks;
	struct view_budget budget;
	struct view_lane *lanes;
	struct track_plans *plans;
	uint64_t short_calls[VIEW_BUCKETS]; /* not kept by view_spans.c */
	uint32_t *order;                    /* lanes, those with few samples first */
	struct json j;

	/* by function */
	uint32_t *function_at; /* number -> index + 1, below function_limit */
	uint32_t function_limit;
	struct index other_functions; /* their keys are numbers; index into other_at */
	VEC(uint32_t) other_at;
	VEC(struct profile_stat) stats;
	VEC(uint32_t) numbers; /* by index of stats */
	struct calltree tree;
	VEC(struct view_node) nodes;
	struct view_node top; /* its rest: calls that nobody called */
	bool ways_left_out;
	struct pair_counts counts;
};

static inline bool view_holds(const struct view *v, uint64_t tsc)
{
	return tsc >= v->from && tsc <= v->to;
}
/* Nanoseconds from the start of the trace; may be negative in a damaged one. */
int64_t view_ns(const struct view *v, uint64_t tsc);
/* The trace has something from then on, until then. */
void view_widen(struct view *v, uint64_t first, uint64_t last);

/* view_calls.c: the lanes one after another.  Writes "threads"; the rest follows. */
void view_calls(struct view *v);
void view_put_functions(struct view *v);
void view_put_tree(struct view *v);
void view_calls_free(struct view *v);

/* view_detail.c: what view_calls() left out, after the data. */
void view_detail(struct view *v, FILE *out);
unsigned view_detail_bucket(uint64_t ticks);

/* view_monitor.c: intervals of counters. */
/* Their first and last moment widen what the trace has. */
void view_monitor_look(struct view *v);
void view_monitor_put(struct view *v); /* "counters" */

/* view_memory.c: references to memory by address and time; view_memory_look() reads what there is, and widens likewise. */
void view_memory_look(struct view *v);
void view_memory_put(struct view *v); /* "memory" */
void view_memory_free(struct view *v);

/* ---- functions that slept (view_sleeps.c) ---- */

#define VIEW_SPELLS 100u              /* of each */
void view_sleeps_put(struct view *v); /* "sleeps", "all_sleeps" */

/* Things that look at all samples in order of time, in one pass. */
struct view_cpus;
struct view_cpus *view_cpus_open(struct view *v);
void view_cpus_feed(struct view_cpus *c, const struct trace_event *e);
void view_cpus_put(struct view_cpus *c); /* "cpus" */
void view_cpus_free(struct view_cpus *c);

struct offcpu_stretch;
/* As a span, cut to what the view has of the thread; false: nothing. */
bool view_cpus_stretch(const struct view *v, uint32_t lane, const struct offcpu_stretch *o,
		       struct view_span *out);

struct view_samples;
struct view_samples *view_samples_open(struct view *v);
void view_samples_feed(struct view_samples *s, const struct trace_event *e);
void view_samples_put(struct view_samples *s); /* "samples", "losses", "marks" */
void view_samples_free(struct view_samples *s);

struct view_intervals;
int view_intervals_open(struct view_intervals **out, struct view *v, struct err *err);
void view_intervals_feed(struct view_intervals *i, const struct trace_event *e);
void view_intervals_put(struct view_intervals *i); /* "intervals", "messages", "matrix" */
void view_intervals_free(struct view_intervals *i);

#endif

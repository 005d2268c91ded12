/* SPDX-License-Identifier: MIT */
/*
 * reader.h - reads a trace directory.  Trusts nothing in it: garbage and truncation give an
 * error or fewer records and a warning count, never a crash.  Streams: memory grows with the
 * number of chunks, functions and threads, not with the number of samples.
 */
#ifndef TRACE_READER_H
#define TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trace/format.h"

struct trace_module {
	uint32_t id;
	uint32_t event_base, nfunctions;
	uint64_t patched_entries, patched_exits, refused_entries, refused_exits;
	char *build_id, *path;
};
/* In which a function is left. */
enum trace_way {
	TRACE_RETURNS = 1,
	TRACE_JUMPS = 2,    /* into another function */
	TRACE_CALLS = 4,    /* one that does not return */
	TRACE_RESOLVES = 8, /* not a way: its name means what it chooses (IFUNC) */
	TRACE_UNSEEN = 16,  /* at least one of its returns and jumps has no probe */
	TRACE_GUESSED = 32, /* not a way: only the code says that it is a function */
	/* Not a way: it has read the clock each time, where others share a reading. */
	TRACE_TIMED = 64,
	TRACE_CHOOSES = 128, /* likewise: its samples are those of an IFUNC's resolver */
	TRACE_UNTAKEN = 256  /* likewise: no pointer leads to it */
};
struct trace_function {
	uint32_t n;      /* events 2n, 2n+1 */
	uint32_t module; /* index into modules */
	uint64_t vaddr, size;
	uint8_t level; /* filter level, the group that its probes are in */
	uint16_t ways; /* enum trace_way, or-ed; 0: the trace does not say */
	char *name;    /* never NULL: "module+0x1234" when the function has none */
	char *aliases; /* other names by which modules import it, a line each; NULL: none */
};
struct trace_proc {
	uint32_t uid;
	int32_t pid;
	uint32_t node; /* index of its trace, see trace_nodes(); 0 where there is one */
	uint32_t parent_uid;
	bool by_fork;
	uint64_t start_tsc, end_tsc; /* end 0: unknown */
	uint64_t lost, cut_off;
	char *note, *exe, *cmdline;
	bool known; /* false: made up, only its samples are there */
};
struct trace_lane { /* the samples of one thread */
	uint32_t proc_uid, tid;
	uint32_t node; /* as its process' */
	uint32_t source;
	const char *name; /* thread name or "" */
	uint64_t samples; /* Trace samples, special records not counted; see trace_count */
	uint64_t end_tsc; /* when it ended; 0: with its process, or unknown */
};
/* How a payload is meant (trace/value.h): 'u', 's', 'x', 'd' or 'f', 't' for a text; 0, 0: 32 bits. */
struct trace_value_type {
	char form;
	uint8_t bits;
	uint8_t count; /* not 0: an array of so many */
};
#define TRACE_WHY 32
struct trace_event_place {
	uint32_t module; /* index into modules */
	uint64_t vaddr;
	uint64_t wanted,
		refused;     /* places that got no probe, of how many; 0, 0: none, of who knows */
	char why[TRACE_WHY]; /* the key of the first one's refusal */
};
struct trace_user_event { /* of a probe that a user placed; its samples carry 2n */
	uint32_t n;
	uint8_t level;
	bool resource;    /* makes Resource samples */
	bool in_programs; /* each of its modules is what some process executes */
	/* One in each module that it lies in, at least one: trace/event_modules.c. */
	struct trace_event_place *places;
	size_t nplaces;
	char *name;
	char *payload; /* what the payload is called; "" when there is none */
	struct trace_value_type type;
};
struct trace_refusal {
	uint32_t module;
	bool exit, place; /* neither: an entry */
	char *key;
	char *text; /* what the key means; "" when the trace does not say it */
	uint64_t count;
};
struct trace_import {    /* a function that is probed where it is called */
	uint32_t module; /* index into modules, and vaddr: of the function */
	uint64_t vaddr;
	char *name; /* may be "" */
	char *why;  /* a refusal's key, or "ifunc" */
	char *caller;
};
struct trace_change { /* a probe came, or went, while the program ran */
	uint64_t tsc;
	bool comes;
	uint64_t places;
	char *name, *spec;
};
struct trace_sleep {           /* functions went to sleep, or woke; or groups of them */
	uint64_t since, until; /* while it was done, process after process */
	uint32_t node;         /* of several traces: in which; else 0 */
	bool wakes, by_budget;
	bool of_groups; /* the numbers are those of filter groups, whose gates closed, or opened */
	struct trace_range {
		uint32_t first, last;
	} * numbers;  /* of functions; ascending, apart */
	size_t n;     /* of the ranges */
	size_t place; /* in its table */
};
struct trace_jump;
struct trace_untraced {
	int32_t pid;
	char *reason;
};

struct trace_event;

/* What cursors leave out; trace/analysis/filter.h makes one. */
struct trace_filter {
	bool (*passes)(const struct trace_filter *f, const struct trace_event *e);
	/* Of what follows this moment, at which something passes, all of the thread passes up to here. */
	uint64_t (*until)(const struct trace_filter *f, uint64_t tsc);
	/* The end of the window that it is in; UINT64_MAX: there are none; itself: it lies between them. */
	uint64_t (*window_end)(const struct trace_filter *f, uint64_t tsc);
	void (*free)(struct trace_filter *f);
};

struct trace {
	char *dir;
	struct trace_module *modules;
	size_t nmodules;
	struct trace_function *functions;
	size_t nfunctions; /* sorted by n */
	struct trace_user_event *user_events;
	size_t nuser_events; /* sorted by n; no function has such a number */
	struct trace_proc *procs;
	size_t nprocs;
	struct trace_lane *lanes;
	size_t nlanes;
	struct trace_refusal *refusals;
	size_t nrefusals;
	struct trace_import *imports;
	size_t nimports;              /* by module, name, caller */
	struct trace_change *changes; /* as they happened */
	size_t nchanges;
	struct trace_sleep *sleeps; /* by `until` */
	size_t nsleeps;
	struct trace_jump *jumps; /* trace/jumps.h; by number */
	size_t njumps;
	uint32_t *jump_targets; /* numbers of functions */
	uint8_t *untaken;       /* struct trace_jumps */
	uint32_t untaken_limit;
	bool flat_jumps; /* to cursors an exit by a jump is one like others */
	struct trace_untraced *untraced;
	size_t nuntraced;
	uint64_t samples;     /* counted, special records left out; see trace_count */
	uint64_t lost;        /* of all processes */
	uint64_t cut_off;     /* holes */
	uint64_t damaged;     /* bytes of `samples` and lines of tables that made no sense */
	bool lacks_functions; /* its modules have some, but there is no table of them */
	bool cut_short;       /* complete, but `samples` has been cut, or is not there */
	bool pages_damaged;   /* counts of pages are missing, or not what was written */
	bool complete;        /* the collector ended it properly */
	double tsc_hz;
	uint64_t start_tsc;
	uint64_t end_tsc;            /* last calibration point; 0 = not complete */
	struct trace_filter *filter; /* NULL: cursors leave nothing out */
	void *priv;
};

/* -ENOENT no such directory; -ENOTDIR, -EINVAL: not a trace (the sentence says what it is). */
int trace_open(struct trace **out, const char *dir, struct err *err);
/*
 * Several traces, or folders whose directories are traces, as one: trace/join.c.  Each function, event and module
 * that is the same in several of them is there once, and all times are on one line.
 */
int trace_open_all(struct trace **out, const char *const *dirs, size_t n, struct err *err);
/*
 * Likewise, and the times of each node go from the common line on to another: moves[i] is that of trace_node_at(i).
 * -EBUSY: there are no longer as many nodes.
 */
struct timeline;
int trace_open_moved(struct trace **out, const char *const *dirs, size_t n,
		     const struct timeline *moves, size_t nmoves, struct err *err);
void trace_close(struct trace *t);

/* Does the row mean this function, or user's event, of this number? */
bool trace_sleep_has(const struct trace *t, const struct trace_sleep *s, uint32_t function);
/* Did it ever sleep?  Was it taken out, by whom or what ever, and by --budget? */
bool trace_has_slept(const struct trace *t, uint32_t function);
bool trace_was_out(const struct trace *t, uint32_t function);
bool trace_slept_by_budget(const struct trace *t, uint32_t function);
/* The groups that the row means, and those that were off for some of the time, a bit each. */
uint32_t trace_sleep_groups(const struct trace_sleep *s);
uint32_t trace_groups_off(const struct trace *t);

/* The traces that were joined, in order; 0: it is one trace. */
struct trace_node {
	const struct trace *t; /* as it is by itself */
	const char *
		name; /* its node's number, or its directory's name where that is none of its own */
	const char *how;    /* its times came to the common line, in words */
	uint32_t first_cpu; /* of its host's CPUs, which are numbered host after host */
	uint64_t error_ns;  /* by which they may be wrong; UINT64_MAX: nobody knows */
};
size_t trace_nodes(const struct trace *t);
const struct trace_node *trace_node_at(const struct trace *t, uint32_t node);
/* What came over a cable has readings of the collector's clock.  false: it has none. */
struct trace_clock {
	size_t readings;
	uint64_t error_ns; /* UINT64_MAX: there is one alone, and nobody knows */
	bool is_line;      /* straight; else from one to the next */
};
bool trace_clock(const struct trace *t, struct trace_clock *out);
/* The first node of those whose times are of one clock with this one's: its host's. */
uint32_t trace_node_clock(const struct trace *t, uint32_t node);
/* A time of a node by itself on the common line. */
uint64_t trace_node_time(const struct trace *t, uint32_t node, uint64_t tsc);
/* The same of one trace alone, which is its own only part, and its times are on the line. */
static inline uint32_t trace_parts(const struct trace *t)
{
	return trace_nodes(t) ? (uint32_t)trace_nodes(t) : 1;
}
static inline const struct trace *trace_part(const struct trace *t, uint32_t node)
{
	return trace_nodes(t) ? trace_node_at(t, node)->t : t;
}
static inline uint64_t trace_part_time(const struct trace *t, uint32_t node, uint64_t tsc)
{
	return trace_nodes(t) ? trace_node_time(t, node, tsc) : tsc;
}
/* When the part had been recorded for so long, likewise; as late as can be of a damaged one. */
uint64_t trace_part_at(const struct trace *t, uint32_t node, uint64_t ns);
/* What a process of a part is called in the whole; 0: there is none. */
uint32_t trace_part_process(const struct trace *t, uint32_t node, uint32_t uid);
/* The whole's row of a part's function number n; NULL: there is none. */
const struct trace_function *trace_part_function(const struct trace *t, uint32_t node, uint32_t n);
/* A thread's or process' number, unique across the nodes: by itself where there is one. */
#define TRACE_TASK_BITS 22
#define TRACE_TASK_MASK 0x003fffffu
static inline uint32_t trace_task(uint32_t node, uint32_t number)
{
	return node << TRACE_TASK_BITS | number;
}
/* By it records of context switches, which know no process, tell its threads apart. */
/* Those of this trace alone, as they stand in the file, for xfree(); what is left over at its end is none. */
struct trace_switch;
struct trace_switch *trace_switches(const struct trace *t, size_t *n);
static inline uint32_t trace_lane_task(const struct trace_lane *l)
{
	return trace_task(l->node, l->tid);
}
/* A process' number where exports want one that no other has: with its node's place above. */
static inline uint32_t trace_pid_number(const struct trace_proc *p)
{
	return p->known ? trace_task(p->node, (uint32_t)p->pid) : p->uid;
}
/* "12", or "node.12" */
const char *trace_pid_text(const struct trace *t, const struct trace_proc *p, char *buf,
			   size_t size);
#define TRACE_PID_TEXT 64
/*
 * To be told how far the samples have been read, some ten thousand times a GiB: bytes of all
 * passes together, and how many a whole pass is.
 */
typedef void (*trace_progress_fn)(uint64_t done, uint64_t pass);
void trace_set_progress(struct trace *t, trace_progress_fn fn);
const char *trace_session(const struct trace *t, const char *key); /* NULL if absent */
/* Is it there, and this? */
bool trace_session_is(const struct trace *t, const char *key, const char *value);
/* A decimal number; the fallback if it is absent, or none. */
uint64_t trace_session_number(const struct trace *t, const char *key, uint64_t fallback);
/* How many samples of a lane share a reading of the clock: of a node, and the most of all; 1: each has its own. */
unsigned trace_node_clock_every(const struct trace *t, uint32_t node);
unsigned trace_clock_every(const struct trace *t);
/* The function of an entry or exit event, NULL when the table does not have it. */
const struct trace_function *trace_function_of(const struct trace *t, uint32_t event);
/* The user's event that a sample is of, or NULL. */
const struct trace_user_event *trace_user_event_of(const struct trace *t, uint32_t event);
/* Where it lies, if that is one module. */
static inline const struct trace_event_place *trace_only_place(const struct trace_user_event *u)
{
	return u->nplaces == 1 ? u->places : NULL;
}
/*
 * The one that a lane's samples are of, or NULL: an event has one number in all modules.  Where they
 * are programs, it is the one that the process executes.
 */
const struct trace_event_place *trace_event_place(const struct trace *t,
						  const struct trace_user_event *u, uint32_t lane);
/* Places that got no probe, in all modules; of how many, and why (a sentence).  0: all got theirs. */
uint64_t trace_event_refused(const struct trace *t, const struct trace_user_event *u,
			     uint64_t *wanted, const char **why);
const struct trace_proc *trace_proc_of(const struct trace *t, uint32_t uid); /* or NULL */
/*
 * One more than the highest function number, for arrays by number (calloc'ed ones: most of it
 * may stay untouched); 0 when the numbers are so far apart that they must be garbage.
 */
uint32_t trace_function_limit(const struct trace *t);
/* A span of TSC ticks in nanoseconds, exact to 1 ns over days. */
uint64_t trace_ns(const struct trace *t, uint64_t ticks);
/* Nanoseconds from the start of the trace to a point in time; 0 before the start. */
uint64_t trace_time(const struct trace *t, uint64_t tsc);
/*
 * When the calls end that a lane has open after its last event, at `last`: with the thread, the process
 * or the recording.  No later than what is known not to have been lost or left out, so maybe at `last`.
 */
uint64_t trace_lane_end(const struct trace *t, uint32_t lane, uint64_t last);
/* Its recorder has seen the end of the recording: else nobody knows what came after the last sample. */
bool trace_lane_has_end(const struct trace *t, uint32_t lane);
/*
 * Read all samples once to fill in `samples`, of the trace and of its lanes, and `lost` where
 * the session does not say.  Opening a trace does not, for that takes time.
 */
void trace_count(struct trace *t);

/* ---- events in order ---- */
/* Of a sample whose value comes from memory and is not a number. */
struct trace_memory {
	bool is_unreadable; /* there is no value */
	bool is_cut;        /* the text went on */
	uint8_t length;
	char text[KRON_TEXT_MAX + 1]; /* a zero follows it */
};
struct trace_bounds {    /* something was between them, both included */
	uint64_t lo, hi; /* UINT64_MAX: nobody knows until when */
};
struct trace_event {
	uint64_t tsc;           /* full, the 56 bits extended from start_tsc */
	struct trace_bounds in; /* both are tsc where each sample reads the clock */
	uint32_t lane;          /* index into lanes */
	uint32_t cpu;           /* full number (from KRON_EVENT_CPU records), not just three bits */
	struct kron_sample s;
	/* An exit by a jump into another function is event 2n+1, as others are; its number in the
	 * trace's jumps + 1 stands here.  0: it is none, or flat_jumps. */
	uint32_t jump;
	bool is_wide;  /* the payload has 64 bits, and these are the upper half: value_bits() */
	uint32_t high; /* else 0 */
	/* NULL: a number, or nothing; valid until the cursor goes on.  Then the payload means nothing. */
	const struct trace_memory *memory;
	/* The 16 Resource Counters of a Resource sample, else NULL; as long as the trace is open. */
	const uint32_t *counters;
};
/*
 * Walk all samples merged by time (ties: lane order kept, then lane index), special records
 * included (but those that are parts of their samples), and without those that the trace's filter stops.
 * A lane whose clock steps back keeps its own order.  lane = -1: all lanes.
 */
struct trace_cursor;
struct trace_cursor *trace_cursor_open(const struct trace *t, int lane);
/* Only the lanes i with want[i] set (nlanes of them). */
struct trace_cursor *trace_cursor_open_some(const struct trace *t, const bool *want);
bool trace_cursor_next(struct trace_cursor *c, struct trace_event *out);
/*
 * The event that will follow the last one in its own lane, CPU records skipped, without moving
 * on.  false: that lane has no more (in its current chunk: a look-ahead reads no new one).
 */
bool trace_cursor_peek(const struct trace_cursor *c, struct trace_event *out);
/* The lane of the last event has no more. */
bool trace_cursor_is_last(const struct trace_cursor *c);
void trace_cursor_close(struct trace_cursor *c);

#endif

/* SPDX-License-Identifier: MIT */
/* reader_impl.h - what the files of the reader share; nobody else includes it. */
#ifndef TRACE_READER_IMPL_H
#define TRACE_READER_IMPL_H

#include "base/vec.h"
#include "trace/chunks.h"
#include "trace/times/clock_fit.h"
#include "trace/packed.h"
#include "trace/reader.h"
#include "trace/times/timeline.h"

struct session_entry {
	char *key, *value;
};

/* Where the samples of one chunk lie in the file. */
struct chunk_ref {
	uint64_t seq;
	uint64_t off;
	uint32_t nbytes;
	uint32_t proc_uid, tid; /* of its lane */
	uint32_t source;
	uint16_t node; /* whose file */
	bool packed;
};

/* One of several traces that are read as one. */
struct joined {
	struct trace_node node; /* for others */
	struct trace *t;
	struct timeline clock;
	uint32_t first_lane; /* in the whole */
	uint32_t first_jump; /* likewise */
	uint32_t *functions; /* new number, by index */
	uint32_t *events;    /* likewise */
	uint32_t nfree;      /* numbers from here on are nobody's */
	char *name;
};

struct trace_priv {
	struct chunk_map map;
	struct joined *joined; /* NULL: it is one */
	size_t njoined;
	VEC(struct session_entry) session;
	VEC(struct chunk_ref) chunks; /* grouped by lane, by seq within one */
	uint32_t *lane_first;         /* nlanes + 1: first chunk of each lane */
	uint32_t *function_at;        /* n -> index + 1, when numbers are dense */
	uint32_t function_limit;      /* size of function_at */
	char **thread_names;          /* of T lines, the lanes point into it */
	size_t nthread_names;
	uint64_t ns_mult; /* ns = ticks * mult >> shift */
	unsigned ns_shift;
	bool counted;
	uint64_t *told;             /* lane_end.c; by process */
	size_t read_since;          /* bytes of chunks since all pages were given back */
	trace_progress_fn progress; /* may be NULL */
	uint64_t read, pass;        /* its arguments */
	struct lanes_off *off;      /* NULL: nobody has asked */
};

static inline struct trace_priv *priv_of(const struct trace *t)
{
	return t->priv;
}

/* tables.c: read the text files of the directory; missing ones are empty. */
int tables_read_session(struct trace *t, int dirfd, struct err *err);
void tables_read(struct trace *t, int dirfd);
void tables_free(struct trace *t);
/* event_modules.c: another place; one in a module that it lies in already replaces that. */
void event_add_place(struct trace_user_event *u, struct trace_event_place place);
/* Which of the events lie in programs only; when the processes are known. */
void events_settle(struct trace *t);
/* Functions by number. */
void tables_index(struct trace *t);
/* Put in order, and each once; the trace has them then. */
void tables_take_refusals(struct trace *t, struct trace_refusal *v, size_t n);
void tables_take_imports(struct trace *t, struct trace_import *v, size_t n);

/* join.c: an event of the node, as the whole has it; out->tsc is on the common line. */
void join_event(const struct joined *j, struct trace_event *out);
void join_free(struct trace *t);
/* join_session.c: what the whole's session says; and which node is which. */
void join_session(struct trace *t);
/* join_clock.c: everybody's times on the first one's line.  moves: NULL, or where to from there, by node. */
void join_clocks(struct trace *t, const struct timeline *moves);

/* jumps.c: after the functions; their aliases are known. */
void jumps_read(struct trace *t, int dirfd);
void jumps_joined(struct trace *t); /* its functions and jumps are those of several traces */
void jumps_free(struct trace *t);

/* lanes.c: find the chunks, group them into lanes. */
int lanes_read(struct trace *t, int dirfd, struct err *err);
/* Tell the kernel that a chunk's pages will be read, or are no longer needed. */
void lanes_will_read(const struct trace *t, const struct chunk_ref *c);
void lanes_have_read(const struct trace *t, const struct chunk_ref *c);
/* lanes_will_read(), and the walk over its samples. */
void lanes_walk(const struct trace *t, const struct chunk_ref *c, struct sample_walk *w);

/* ---- threads off their processors (lane_off.c) ---- */

struct sparse_off;
/* When the thread of this trace was, by time; the file is read when somebody asks first. */
const struct sparse_off *lane_off(const struct trace *t, uint32_t tid, size_t *n);
void lanes_off_free(struct lanes_off *o);

/* ---- functions that sleep (sleeps.c) ---- */

void sleeps_read(struct trace *t, int dirfd);
void sleeps_free(struct trace *t);
/* Its ranges have got other numbers: ascending again, and apart. */
void sleeps_sort(struct trace_sleep *s);
/* By their ends, whoever was noticed first. */
void sleeps_order(struct trace_sleep *v, size_t n);

#endif

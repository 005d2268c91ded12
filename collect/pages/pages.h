/* SPDX-License-Identifier: MIT */
/*
 * pages.h - page reference counters: what threads have counted in their chunks (kron/segment.h) is added
 * up, by process, page and thread, and what the processes have mapped is noted, so that pages have names.
 *
 *   chunk of a thread that is gone, or of any at the end ──pages_take()──┐
 *   chunk of a thread that lives, at each look ──pages_look_chunk()──────┤ what is new in it
 *   /proc/PID/maps ──────pages_note_maps()───────────────────────────────┴─► trace: the file `pages`
 *
 * The drain thread's, and after it has ended the collector's; pages_note_maps() may come from any thread, and
 * so may sums: librefcnt asks for them.
 */
#ifndef COLLECT_PAGES_H
#define COLLECT_PAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <kron/control.h>
#include <kron/segment.h>

#include "base/err.h"
#include "base/vec.h"
#include "trace/pages.h"

struct pages;

/* Of a rehearsal, too: what is moved when another node has made so many references to a page. */
struct pages_thresholds {
	bool on;
	uint64_t absolute;     /* since the page came to its home */
	uint64_t differential; /* and so many more than the home node */
};

struct pages_setup {
	uint32_t unit;     /* TRACE_PAGE_SIZE or TRACE_LINE_SIZE */
	uint64_t start_ns; /* of the recording, CLOCK_MONOTONIC */
	uint64_t every_ns; /* how long a step is; 0: none are kept */
	struct pages_thresholds migrate;
	/* An access counts where it begins, and not for each line that it touches. */
	bool by_address;
	/* NULL, or: what this process has mapped may be new.  From any thread, before it has its plan. */
	void (*on_maps)(void *ctx, pid_t pid);
	/* NULL, or: records of this process were taken.  Held. */
	void (*on_taken)(void *ctx, pid_t pid, uint32_t uid);
	void *ctx; /* of both */
};

/* With the record of no page in the segment, for the trampolines; -errno when there is no memory for it. */
int pages_open(struct pages **out, const struct pages_setup *setup, uint8_t *window, int fd,
	       struct err *err);
/* Pages, and not lines. */
bool pages_are_counted(const struct pages *p);
/*
 * In the line of this address each address has a record of its own from here on; right for what has counted nothing
 * there yet.  From any thread.
 */
void pages_watch(struct pages *p, uint64_t address);
/* What has them has ended, or has executed another program. */
void pages_watch_none(struct pages *p);
/* Lines were more than there is room for. */
bool pages_watch_is_full(const struct pages *p);
/* Is it a chunk of records of pages?  They are not samples. */
bool pages_are_in(const struct kron_chunk *c);

/* Whose chunk it is, and which of the pool's. */
struct pages_owner {
	uint32_t chunk, uid;
	uint32_t ticket; /* tasks_announce(); 0: it has none */
	pid_t pid, tid;  /* pid: to be asked for; 0: nobody can be */
};
/* Held.  Its thread is gone, or nothing more is counted: the chunk will be another's. */
void pages_take(struct pages *p, const struct kron_chunk *c, const struct pages_owner *o);

/* ---- looks: what has been counted since the last one, and where threads and pages are ---- */

/* Must there be one now?  And how long until the next, if that is less than ms. */
bool pages_want_look(const struct pages *p);
uint32_t pages_patience(const struct pages *p, uint32_t ms);
/* Is it to be known where threads are when they are asked for? */
bool pages_have_nodes(const struct pages *p);
/* Held.  A chunk of a thread that lives. */
void pages_look_chunk(struct pages *p, const struct kron_chunk *c, const struct pages_owner *o);
/* Held.  After all chunks: the step ends, and pages are moved. */
void pages_look_end(struct pages *p);

/* ---- while it runs ---- */

/* Of one process: pages whose first byte lies in [start, end). */
struct pages_range {
	uint32_t uid;
	uint64_t start, end;
	VEC(struct trace_page)
	v; /* by address and node, each once, all threads added up; freed by the caller */
};
/* Between the two no chunk is taken and freed: what is counted stands in one place. */
void pages_hold(struct pages *p);
void pages_let_go(struct pages *p);
/* Held.  What threads that are gone have counted, and a chunk of one that lives. */
void pages_sum_taken(const struct pages *p, struct pages_range *r);
void pages_sum_chunk(const struct pages *p, struct pages_range *r, uint32_t chunk,
		     const struct kron_chunk *c);
/* After the last of them. */
void pages_sum_end(struct pages_range *r);
/* The sums, or why there are none, to who has asked for them: kron/control.h. */
void pages_send(const struct pages *p, const struct pages_range *r, int code, int fd);

/* ---- mappings, and the end ---- */

/* What the process has mapped now.  uid 0: it has none yet, and is known by its ticket. */
void pages_note_maps(struct pages *p, pid_t pid, uint32_t uid, uint32_t ticket);
/* How often there was no room to note one: a process had too many. */
uint64_t pages_unnoted_maps(struct pages *p);
/* 0, or -errno. */
int pages_write(struct pages *p, const char *dir);
void pages_free(struct pages *p);

#endif

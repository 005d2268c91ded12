/* SPDX-License-Identifier: MIT */
/*
 * pages.h - page reference counters: what threads have counted in their chunks (kron/segment.h) is added
 * up, by process, page and thread, and what the processes have mapped is noted, so that pages have names.
 *
 *   chunk of a thread that is gone, or of any at the end ──pages_take()──┐
 *   /proc/PID/maps ──────pages_look()────────────────────────────────────┴─► trace: the file `pages`
 *
 * The drain thread's, and after it has ended the collector's; pages_look() may come from any thread, and
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

/* With the record of no page in the segment, for the trampolines; -errno when there is no memory for it. */
int pages_open(struct pages **out, uint8_t *window, int fd, struct err *err);
/* Is it a chunk of records of pages?  They are no samples. */
bool pages_are_in(const struct kron_chunk *c);
void pages_take(struct pages *p, const struct kron_chunk *c, uint32_t uid, uint32_t tid);

/* ---- while it runs ---- */

/* Of one process: pages whose first byte lies in [start, end). */
struct pages_range {
	uint32_t uid;
	uint64_t start, end;
	VEC(struct trace_page)
	v; /* by address, each once, all threads added up; freed by the caller */
};
/* Between the two no chunk is taken and freed: what is counted stands in one place. */
void pages_hold(struct pages *p);
void pages_let_go(struct pages *p);
/* Held.  What threads that are gone have counted, and a chunk of one that lives. */
void pages_sum_taken(const struct pages *p, struct pages_range *r);
void pages_sum_chunk(struct pages_range *r, const struct kron_chunk *c);
/* After the last of them. */
void pages_sum_end(struct pages_range *r);
/* The sums, or why there are none, to who has asked for them: kron/control.h. */
void pages_send(const struct pages_range *r, int code, int fd);

/* ---- mappings, and the end ---- */

/* What the process has mapped now. */
void pages_look(struct pages *p, pid_t pid);
/* 0, or -errno. */
int pages_write(struct pages *p, const char *dir);
void pages_free(struct pages *p);

#endif

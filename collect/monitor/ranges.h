/* SPDX-License-Identifier: MIT */
/*
 * ranges.h - how often a process has read and written what lies in a range of its addresses, so far: of the loads and
 * stores that page reference counters count (collect/pages/pages.h), those whose effective address is in there.
 *
 *   0xA-0xB[:r|w|rw]    from A on, B is the first address that is outside
 *   SYMBOL[:r|w|rw]     a global variable, as variables.h finds it
 *   MAPPING[:r|w|rw]    [heap], [stack], the path or, if it has a '.', the name of a mapped file
 *
 * Lines of 64 bytes are counted, by the address where an access begins.  The lines in which a range begins or
 * ends inside are watched: there each address has a counter of its own (kron/segment.h: struct kron_watch), before the
 * process executes code that counts.
 */
#ifndef COLLECT_MONITOR_RANGES_H
#define COLLECT_MONITOR_RANGES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "collect/drain.h"
#include "collect/monitor/variables.h"
#include "collect/pages/pages.h"
#include "trace/monitor/reading.h"

#define RANGES_MAX 32u

enum range_kind { RANGE_ADDRESSES, RANGE_SYMBOL, RANGE_MAPPING };

struct range_span {
	uint32_t image; /* of the process */
	uint64_t start, end;
};
struct range {
	char *text; /* as it was asked for */
	char *name;
	enum range_kind kind;
	bool reads, writes;
	uint64_t start, end; /* RANGE_ADDRESSES */
	size_t symbol;       /* among the variables */
	VEC(struct range_span) spans;
	bool has_come;  /* since the last reading: what lay there before may have been counted */
	bool is_gone;   /* a part of it, of the last image: what lies there now is counted */
	uint64_t count; /* at the last reading */
};
struct range_image {    /* a program that the process has executed */
	uint64_t image; /* process_image() */
	uint32_t uid;   /* 0: not known yet */
	bool is_seen;   /* not for the first time: what comes now has come while it ran */
};
struct ranges {
	VEC(struct range) v;
	struct variables symbols;
	struct drain *drain;
	pid_t pid; /* the first process that asked for a plan */
	VEC(struct range_image) images;
	bool is_full;   /* lines that are watched */
	bool is_unsure; /* of an image that was gone before anybody looked nothing is known */
	pthread_mutex_t lock;
};

/* -EINVAL with a sentence. */
int monitor_ranges_add(struct ranges *r, const char *text, struct err *err);
/* Before the recording is open: whom it is to tell of mappings. */
void monitor_ranges_setup(struct ranges *r, struct pages_setup *setup);
/* The recording is open, and nothing runs. */
void monitor_ranges_begin(struct ranges *r, struct drain *d);
/* out: as many as there are ranges. */
void monitor_ranges_read(struct ranges *r, struct reading *out);
/* Why there is nothing of it, text: room for the words; NULL: there is. */
const char *monitor_range_trouble(struct ranges *r, struct range *one, char *text, size_t size);
void monitor_ranges_free(struct ranges *r);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * probed.h - events that probes count, where no calls are: how often some instructions were executed.
 *
 *   addr:main+0x1f  ──►  main+0x1f count:0     a probe of kron-probes(7), each with a Resource Counter of its own
 *   returns:put*    ──►  put*%return count:1
 *                                     └─ lane bus ─► probed_read() while the program runs
 */
#ifndef COLLECT_MONITOR_PROBED_H
#define COLLECT_MONITOR_PROBED_H

#include "base/err.h"
#include "base/opt.h"
#include "collect/segment.h"
#include "trace/monitor/reading.h"

struct probed_event {
	char *name;     /* as the user wrote it, and the column is called */
	char *place;    /* of the probe */
	bool is_single; /* no two of its instructions share what counts them */
};
struct probed {
	VEC(struct probed_event) v;
	const struct segment *seg;
};

/* 1: it is none of these; -EINVAL with a sentence. */
int probed_add(struct probed *p, const char *name, struct err *err);
/* calls:GLOB of the program, beside other probes. */
int probed_add_calls(struct probed *p, const char *glob, struct err *err);
/* The probes, and of each the event that messages name. */
void probed_specs(const struct probed *p, struct opt_list *specs, struct opt_list *names);
/* True: one does not know what these probes cost by how often they counted. */
bool probed_share(const struct probed *p);
/* out: as many as there are events; *all: what they counted together. */
void probed_read(const struct probed *p, struct reading *out, uint64_t *all);
void probed_free(struct probed *p);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * counters.h - the kernel's counters of a program: page faults, context switches, migrations, processor
 * time, signals and traps, and those of the processor itself where it has them (perf_event_open(2)).
 *
 * All are 64 bits wide: none can overrun.  They are inherited: threads and processes that are started
 * later count in them, also when they have ended.
 */
#ifndef COLLECT_MONITOR_COUNTERS_H
#define COLLECT_MONITOR_COUNTERS_H

#include "base/err.h"
#include "trace/monitor/reading.h"

#include <sys/types.h>

struct counter {
	const char *name;
	enum reading_kind kind;
	uint32_t type;
	uint64_t config;
	bool of_user_only; /* may be counted without the right to look into the kernel */
	const char *tracepoint,
		*filter; /* PERF_TYPE_TRACEPOINT: which, and which of what passes it */
};
/* NULL: there is none of this name. */
const struct counter *counter_find(const char *name);
/* All names, by commas. */
char *counter_names(void);

struct open_counter {
	const struct counter *what;
	VEC(int) fds;
};
struct counters {
	VEC(struct open_counter) v;
};

/*
 * Of the program that this thread will execute or start by vfork, from its exec on (tid 0); or of a thread
 * that stands, from now on.  -errno with a sentence: no processor counts that here, or it is not allowed.
 */
int counters_open(struct counters *c, const struct counter *what, pid_t tid, struct err *err);
void counters_read(const struct open_counter *c, struct reading *out);
void counters_close(struct counters *c);

#endif

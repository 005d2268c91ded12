/* SPDX-License-Identifier: MIT */
/*
 * monitor.h - counters of a program, read at the end of each interval (SPRA308, Method of Measurement).
 *
 *   monitor_add_*  ─► monitor_prepare ─► (the program starts) ─► monitor_start ─► rows ─► monitor_stop
 *
 * One row an interval goes to on_row(), from a thread of the monitor's; the last one from whoever stops it.
 */
#ifndef COLLECT_MONITOR_H
#define COLLECT_MONITOR_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "collect/monitor/board.h"
#include "collect/monitor/calls.h"
#include "collect/monitor/counters.h"
#include "collect/monitor/freezer.h"
#include "collect/monitor/locks.h"
#include "collect/monitor/probed.h"
#include "collect/monitor/ranges.h"
#include "collect/monitor/system.h"
#include "collect/monitor/tree.h"
#include "collect/monitor/variables.h"
#include "trace/monitor/monitored.h"

/* What is the program's time, and what is kron's: a program that gets probes waits for them at its start. */
enum monitor_plan_state {
	MONITOR_NO_PLAN,   /* it has not asked */
	MONITOR_PLAN_MADE, /* it waits */
	MONITOR_BEGUN      /* what it does now is its own */
};
struct monitor_plan {
	pthread_mutex_t lock;
	enum monitor_plan_state state;
	pid_t pid;       /* who has asked first */
	int fd;          /* readable: it has begun */
	bool is_awaited; /* the program gets probes */
};

struct monitor {
	struct columns columns;
	struct reading *totals; /* a column each */
	/* private */
	VEC(const struct counter *) wanted;
	const struct counter *clock; /* task-clock, for the summary alone */
	struct counters counters;
	bool idle, io, net;
	struct variables variables;
	struct calls calls;
	struct probed probed;
	struct ranges ranges;
	struct locks locks;
	struct tree tree;
	struct system_io io_state;
	FILE *net_file;
	struct freezer *freezer;     /* NULL: nobody is stopped */
	struct monitor_board *board; /* NULL: a program is watched; else this and nothing else */
	uint64_t every_ns, for_ns;
	void (*on_row)(void *ctx, const struct monitor_row *row);
	void *ctx;
	struct reading *before, *now, *row;
	uint64_t start_ns, last_ns;
	uint64_t cpu_ns, ncalls;               /* so far */
	uint64_t cpu_before_ns, ncalls_before; /* when it began */
	double call_ns;
	struct monitor_summary sum;
	pid_t pid;
	struct monitor_plan plan;
	pthread_t thread;
	int wake;
	bool is_running, is_over;
};

/*
 * A name of --event: a counter's (counters.h), idle, block, net, calls or calls:GLOB, or one of probed.h.  -EINVAL
 * with a sentence.
 */
int monitor_add_event(struct monitor *m, const char *name, struct err *err);
int monitor_add_lock(struct monitor *m, const char *text, struct err *err);
int monitor_add_range(struct monitor *m, const char *text, struct err *err);
int monitor_add_variable(struct monitor *m, const char *text, struct err *err);
/* Before anything runs.  -errno with a sentence: one of them cannot be counted here. */
int monitor_check(const struct monitor *m, struct err *err);
/* The name of a counter of signals; NULL: none is wanted. */
const char *monitor_wants_signals(const struct monitor *m);
bool monitor_wants_calls(const struct monitor *m);
bool monitor_wants_probes(const struct monitor *m);
/* All is added.  Beside other probes calls are counted by such: the program carries one of the two kinds. */
int monitor_settle_calls(struct monitor *m, struct err *err);
/* Columns, and room for their readings; nothing is added after it. */
void monitor_prepare(struct monitor *m);
/*
 * By the thread that starts a program, right before; seg and modules NULL: it gets no probes, and begins at once.
 */
int monitor_open_program(struct monitor *m, const struct segment *seg, struct modules *modules,
			 struct err *err);
/* The program asks for its first plan, or goes on: rows begin then.  From any thread, after monitor_open_program(). */
void monitor_plan_tell(void *ctx, pid_t pid, bool goes_on);
/* Of processes that run already, which stand still; seg, modules: of those that have probes, else NULL. */
int monitor_open_processes(struct monitor *m, const pid_t *pids, size_t n,
			   const struct segment *seg, struct modules *modules, struct err *err);
/* The board, which is set and open.  Right before monitor_start(). */
void monitor_begin_board(struct monitor *m);
/* pid 0: of a board. */
int monitor_start(struct monitor *m, pid_t pid, struct err *err);
/* The last reading; any number of times. */
void monitor_stop(struct monitor *m);
void monitor_summary(const struct monitor *m, struct monitor_summary *out);
void monitor_free(struct monitor *m);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * collector.h - one recording: trace directory, board segment, drain, server, put together.
 *
 *   collector_open ─► collector_environment ─► (the program runs) ─► collector_finish
 *
 * cmd/record/record.c starts and watches the program; everything that does not need to know how a
 * command line looks or how a program ends is here.
 */
#ifndef COLLECT_COLLECTOR_H
#define COLLECT_COLLECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "collect/calibrate.h"
#include "collect/hardware.h"
#include "collect/drain.h"
#include "collect/fetch.h"
#include "collect/grow.h"
#include "collect/modules/modules.h"
#include "collect/attach/serve.h"
#include "collect/flight/flight.h"
#include "collect/pages/pages.h"
#include "collect/watch/meter.h"
#include "collect/watch/watch.h"
#include "trace/analysis/cost.h"

struct collector_options {
	const char *dir;
	const char *command; /* shell-quoted, for the session file */
	const char *version; /* of kron */
	struct selection selection;
	uint64_t buffer; /* 0: default */
	enum kron_when_full when_full;
	uint32_t filter;
	bool keep_filter;  /* of a board that is there already: leave it as it is */
	const char *board; /* record on the board with this name; NULL: on one of our own */
	const char *kron;  /* this program, for when it is killed: keeper.h */
	int node;          /* NODE_DEFAULT: the board's, or node_default()'s (board/bus/node.h) */
	bool is_scratch;   /* dir goes at the end: nothing is kept for `kron recover` */
	bool no_children;
	bool constant_time;
	uint16_t clock_every; /* bus lane: so many samples share a reading; a power of two */
	enum kron_bus bus;
	const char *hardware; /* bus device: its path */
	struct watch_options watch;
	const char *
		budget; /* bus lane: "1%": events are counted by function, too (struct collector.meter) */
	struct flight_options flight;
	int (*gate)(void *ctx); /* trace_writer_set_gate(); NULL: there is always room */
	void *gate_ctx;
	struct pages_setup pages; /* unit 0: pages */
	probe_cost_fn measure;    /* NULL: the cost of a probe is not known */
	void (*on_first)(void *ctx, const struct peer *p, bool is_program); /* serve.h */
	void *on_first_ctx;
	uint32_t (*on_exec)(void *ctx, const struct peer *p,
			    const struct kron_hello *h); /* likewise */
	void *on_exec_ctx;
};

/* Whether the kernel's context switches are recorded, too. */
enum collector_switches { SWITCHES_AUTO, SWITCHES_YES, SWITCHES_NO };

struct collector_summary {
	uint64_t samples, lost, cut_off;
	uint64_t stranded; /* samples that are in the segment only: the disk is full */
	uint64_t
		unnoted_maps; /* of processes whose pages are counted: there was no room to note their names */
	uint64_t probes, refused, modules, processes, threads;
	uint32_t living;       /* traced processes that still run */
	uint64_t overruns;     /* of lost: the chip's FIFO was full */
	uint64_t overwritten;  /* of lost: went round in memory before they were fetched */
	uint64_t waited;       /* NODECLKs that the board made its users wait */
	bool hardware_answers; /* bus device: it is a board */
	struct hardware_end hardware;
	uint64_t fired_ns;      /* --trigger: when, from the start; 0: never */
	char fired_by[64];      /* --trigger-group: whose it was; empty: our own */
	uint64_t outside;       /* samples that were discarded, not near it */
	uint64_t unsure;        /* what it waited for in vain, because samples were lost */
	uint64_t ring_samples;  /* --flight: in the ring at the end, or let go once looked at */
	uint32_t snapshots;     /* likewise: how many there are */
	uint32_t last_snapshot; /* and the number of the last one */
	struct err unkept;      /* likewise: why the last one that failed did; empty: none has */
	char unknown[128];      /* a name in the trigger that nothing with a probe has */
	uint64_t counts[KRON_COUNTERS]; /* what probes have counted */
	uint64_t starts;                /* processes that were traced from their start */
	uint64_t left_out;              /* lines about processes that the trace has no room for */
	struct probe_cost cost;
	struct cost probes_cost;   /* of all probes together */
	double seconds;            /* from open to finish */
	bool cut;                  /* its board was cut off: the recording ended then */
	char segment[OBJECT_NAME]; /* its name, when it was kept for `kron recover` */
	struct err error;          /* why the trace is incomplete; empty message: it is complete */
};

struct collector {
	struct collector_options opt;
	struct segment seg;
	struct journal journal;
	struct tasks tasks;
	struct modules modules;
	struct answerer answerer;
	struct server server;
	struct drain drain;
	struct watch *watch;            /* --trigger, --snapshot-on, --worst; else NULL */
	struct meter *meter;            /* NULL: not metered */
	char *worst_trigger;            /* its words */
	struct flight *flight;          /* --flight; else NULL */
	struct fetch fetch;             /* buses exact and device */
	struct hardware_board hardware; /* bus device */
	struct grow grow;
	struct time_point start;
	struct time_point clock_start; /* on the clock of the samples */
	bool all_ended;                /* no thread of the server is left */
};

/* -EBUSY: another kron records there; -ENOSPC: no room in /dev/shm; others as they come. */
int collector_open(struct collector *c, const struct collector_options *opt, struct err *err);

/*
 * By the thread that will start the program, right before it does.  Where they are not allowed,
 * `auto` notes why in the trace and goes on.
 */
int collector_watch_switches(struct collector *c, enum collector_switches want, struct err *err);
/*
 * Of processes that run already, before they are attached to; `auto`: where samples share readings of the clock, whose
 * bounds are wide without.  *out: to be told of each; NULL: none are recorded, and it is noted why.
 */
int collector_watch_running(struct collector *c, enum collector_switches want,
			    struct switches **out, struct err *err);
/* They are attached to.  why_not NULL: all are recorded. */
void collector_note_running(struct collector *c, const char *why_not);

/* While the program starts: what has time until it runs. */
void collector_program_starts(struct collector *c);

/* Give up before the program was started: nothing is recorded, and the trace that was there stands there again. */
void collector_abandon(struct collector *c);

/* On the clock of the samples. */
uint64_t collector_now(struct collector *c);

/* Value of KRON_RT for the program; allocated. */
char *collector_environment(const struct collector *c, const char *runtime_path);

/*
 * Close the gates, take what is left, write the totals.  Always ends the recording; out->error
 * says whether something is missing.
 */
struct collector_end {
	const char *
		how; /* value of the session's `exit`, and why a flight recorder's last snapshot is */
	uint64_t cpu_ns; /* the program's processor time (trace/analysis/cost.h); 0: not known */
	pid_t program;   /* that should have been traced from its start; 0: none was started */
	bool undo;       /* it was not run: as collector_abandon() */
};
void collector_finish(struct collector *c, const struct collector_end *end,
		      struct collector_summary *out);

/* After collector_finish(), when c->server.untraced is not needed any more. */
void collector_free(struct collector *c);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * operation.h - a process gets the runtime and its patches, or loses them; its threads stand still.
 *
 * Runs in the surgeon (surgeon.h), which knows the command files and says, half-way, whether what was done
 * is to stay.
 */
#ifndef COLLECT_LIVE_OPERATION_H
#define COLLECT_LIVE_OPERATION_H

#include "collect/live/implant.h"
#include "collect/live/undo.h"

struct operation {
	pid_t pid;
	uint64_t started; /* of process_stat */
	uint64_t session; /* of the blocks' names */
	struct implant implant;
	uint64_t go_lo, go_hi; /* runtime.asyncPreempt; 0: it is not a Go program */
	struct live_files *files;
	bool starts;       /* it stands in front of its first instruction */
	bool children;     /* what it executes is recorded, too */
	bool leaves;       /* what it has executed is to be left like itself */
	bool stays;        /* nobody finds its goroutines */
	bool remains;      /* of an ended recording, which may have begun to leave */
	uint64_t deadline; /* operation_detach(): CLOCK_MONOTONIC, ms */
	/* While a moment is waited for to stop the process: is it to be left alone after all?  NULL: it is not. */
	bool (*unwanted)(void *ctx);
	void *ctx;
	uint64_t stood;    /* of kron_live_call, 0: none */
	uint64_t stood_ns; /* its longest stop so far */
};

/* The collector's part, while the process is stopped.  An error of either one undoes everything. */
struct operation_steps {
	void *ctx;
	/* Sends the answer through this socket. */
	int (*answer)(void *ctx, int sock, struct err *err);
	/* Takes the runtime's result. */
	int (*settle)(void *ctx, struct err *err);
};

/* entry: "KRON_RT=..." of kron/wire.h. */
int operation_attach(struct operation *o, const char *entry, const struct operation_steps *steps,
		     struct err *err);
/* The same with a program that stands in front of its first instruction (threads_await_exec). */
int operation_begin(struct operation *o, struct live_threads *stopped, const char *entry,
		    const struct operation_steps *steps, struct err *err);
/*
 * Other probes, in a process that the runtime is in; entry: where it is called.  What was applied stays,
 * whatever is returned.
 */
int operation_change(struct operation *o, uint64_t entry, const struct operation_steps *steps,
		     struct err *err);
/* The process, what it has forked meanwhile and, if it leaves, executed.  0 also when it has ended; -ESTALE: it has executed
 * another program, and nothing was left to be done. */
int operation_detach(struct operation *o, struct err *err);

#endif

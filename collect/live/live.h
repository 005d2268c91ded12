/* SPDX-License-Identifier: MIT */
/*
 * live.h - a process that runs is recorded from now on, and runs on afterwards as if it never had been.
 *
 *   attach   plan and bind while it runs ─► stop ─► runtime in, text patched, threads moved ─► go
 *   detach   stop ─► text back, threads out of stubs ─► runtime out ─► go
 */
#ifndef COLLECT_LIVE_H
#define COLLECT_LIVE_H

#include "collect/attach/serve.h"
#include "collect/live/surgeon.h"
#include "collect/switches.h"

struct live_process {
	pid_t pid;
	int pidfd; /* readable when it has ended; -1: not opened yet */
	struct implant implant;
	bool attached, detached;
	bool starts; /* it stands in front of its first instruction: surgeon_await_exec() */
	bool is_child; /* likewise, executed by a recorded process: not this surgeon's to detach from */
	bool children;  /* what it executes is recorded, too */
	bool leaves;    /* likewise, and detached from with it */
	unsigned place; /* among several processes: each runtime has an address of its own */
	uint64_t sites;
	uint64_t stood_ns; /* its longest stop */
	struct switches
		*switches; /* told of its threads; NULL: nobody wants to know when they run */
	bool is_watched;
	struct err unwatched; /* why not; empty: they are */
};

/* 0, or why the process cannot be attached to, and what to do about that.  Changes nothing. */
int live_process_check(pid_t pid, struct err *err);
/* Who is refused. */
enum live_who {
	LIVE_USER,
	LIVE_ROOT,
	LIVE_BARE_ROOT /* without CAP_SYS_PTRACE */
};
/* -EPERM: why the kernel says no, and what to do.  scope: kernel.yama.ptrace_scope, 0 without Yama. */
int live_explain_denied(pid_t pid, bool is_others, enum live_who who, int scope, struct err *err);
/* 0, or why a recorded process cannot be stopped; -EAGAIN: one of our own surgeons traces it just now. */
int live_process_check_stop(pid_t pid, struct err *err);
/* entry: "KRON_RT=..." of kron/wire.h. */
int live_process_attach(struct live_process *l, struct surgeon *surgeon, struct server *s,
			const char *entry, struct err *err);
/* Detaches from the process and from what it has forked meanwhile.  Does nothing if it has ended. */
int live_process_detach(struct live_process *l, struct surgeon *surgeon, struct err *err);
void live_process_close(struct live_process *l);

#endif

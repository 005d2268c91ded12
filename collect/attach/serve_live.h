/* SPDX-License-Identifier: MIT */
/*
 * serve_live.h - a process that runs and has asked for nothing gets an answer as if it started.
 *
 *   serve_live_prepare ─► (it is stopped) ─► serve_live_reply ─► serve_live_settle
 */
#ifndef COLLECT_SERVE_LIVE_H
#define COLLECT_SERVE_LIVE_H

#include "collect/attach/serve.h"

struct live_answer;

/* Plans and binds the modules of the process, which runs meanwhile, for a runtime with these thunks. */
int serve_live_prepare(struct live_answer **out, struct server *s, pid_t pid,
		       const struct kron_hello *hello, struct err *err);
/* Its command file, which stays the answer's. */
int serve_live_file(const struct live_answer *l, uint64_t *number);
/* The number of probes in the answer. */
uint64_t serve_live_probes(const struct live_answer *l);
/*
 * Go's programs: where the function is that a stopped goroutine seems to have called.  True also if it is no
 * Go program; then both are 0.
 */
bool serve_live_go(const struct live_answer *l, uint64_t *lo, uint64_t *hi);
/* False: what is loaded there has changed since. */
bool serve_live_is_current(const struct live_answer *l);
/* Through its socket, which stays the caller's. */
int serve_live_reply(struct live_answer *l, int fd);
/* Takes the runtime's result; -EAGAIN: memory was mapped where a block was to go.  err: nothing was applied. */
int serve_live_settle(struct live_answer *l, struct err *err);
void serve_live_free(struct live_answer *l);

#endif

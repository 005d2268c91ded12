/* SPDX-License-Identifier: MIT */
/*
 * serve_change.h - a process that runs, and has asked for nothing, gets other probes than it has.
 *
 *   serve_change_make, or retire.h ─► (it is stopped) ─► serve_change_reply ─► serve_change_settle
 */
#ifndef COLLECT_SERVE_CHANGE_H
#define COLLECT_SERVE_CHANGE_H

#include "collect/attach/serve.h"

/*
 * What `of` has for it, planned and bound while it runs; as: what it once asked (answer_find_question).
 * again: it is the n-th try, because memory was mapped meanwhile.
 */
int serve_change_make(struct answer *out, struct server *s, struct answerer *of, pid_t pid,
		      const struct question *as, uint32_t again, struct err *err);
/* Through its socket, which stays the caller's. */
int serve_change_reply(const struct answer *a, int sock, struct err *err);
/* 0; -EAGAIN: not now; or an error: both with a sentence.  Where one of the modules was refused, *applied others
 * were not. */
int serve_change_settle(const struct answer *a, int sock, uint32_t *applied, struct err *err);

#endif

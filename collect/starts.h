/* SPDX-License-Identifier: MIT */
/*
 * starts.h - programs that were started and did not come through to us: the collector's side of
 * struct kron_starts (kron/segment.h).
 *
 *   traced process: execve ──► entry ──► program says HELLO ──► starts_arrived(): entry gone
 *                                   └──► never does         ──► starts_finish(): a note
 */
#ifndef COLLECT_STARTS_H
#define COLLECT_STARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/segment.h"

/* All free, for a new recording. */
void starts_clear(struct segment *seg);

/* A program said HELLO; its_pid is what it calls itself. */
void starts_arrived(struct segment *seg, pid_t its_pid);

/* A process of the recording said that it would start a program as this user in this process. */
bool starts_vouches(const struct segment *seg, pid_t its_pid, uid_t uid);

/*
 * At the end, when nobody is answered any more: note(ctx, pid, sentence, n) for each reason why
 * programs stayed untraced without our knowing.  pid 0: of several.
 */
void starts_finish(const struct segment *seg,
		   void (*note)(void *ctx, pid_t pid, const char *reason, uint64_t n), void *ctx);

#endif

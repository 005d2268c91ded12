/* SPDX-License-Identifier: MIT */
/*
 * pidns.h - processes of pid namespaces below ours, which call themselves otherwise than we do.
 *
 *   their pid namespace, their pid there  ──/proc/N/status: NSpid──►  N, their pid here
 *
 * Who forks in such a namespace (a container) tells us no more than its own number.  Whether it
 * still lives can be asked only by ours.
 */
#ifndef COLLECT_PIDNS_H
#define COLLECT_PIDNS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

/* Number of the pid namespace that a process is in, or that its next child will be in; 0 when
 * it is gone, or we may not know. */
uint64_t pidns_of(pid_t pid);
uint64_t pidns_for_children(pid_t pid);

struct pidns_process {
	uint64_t ns; /* 0: we may not know */
	pid_t inner; /* its pid there */
	pid_t here;
};
struct pidns_list {
	VEC(struct pidns_process) v;
	bool complete; /* /proc hides nothing: who is not in it does not live */
};

/* What the process calls itself, if it is in a namespace below ours; else 0. */
pid_t pidns_inner_of(pid_t pid);

/* All processes that are in namespaces below ours; who lives during all of the call is in it. */
void pidns_list_read(struct pidns_list *l);
void pidns_list_free(struct pidns_list *l);

enum pidns_answer { PIDNS_GONE, PIDNS_FOUND, PIDNS_UNKNOWN };
/* The process that is `inner` in the namespace ns; *here is set when it was found. */
enum pidns_answer pidns_find(const struct pidns_list *l, uint64_t ns, pid_t inner, pid_t *here);

/* For tests: the last number of an NSpid line, 0 when it has one number only. */
pid_t pidns_inner(const char *status);
/* Does the mount table (text of /proc/self/mountinfo) have a /proc that hides processes? */
bool pidns_is_hiding(const char *mountinfo);

#endif

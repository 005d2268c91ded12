/* SPDX-License-Identifier: MIT */
/*
 * nodes.h - the machine's memory nodes: which processors belong to which, where threads run and pages lie.
 *
 * KRON_TEST_NODES=0/1 is for tests: a list of processors for each node, between slashes.  It says nothing of
 * where pages lie; that is the kernel's word, always.
 */
#ifndef COLLECT_NODES_H
#define COLLECT_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define NODES_CPUS 4096u
#define NODES_MAX 64u
#define NODES_TEST "KRON_TEST_NODES"

struct nodes {
	uint32_t n;   /* highest number of a node with processors, and one */
	bool is_test; /* the machine's are others */
	int8_t of_cpu[NODES_CPUS];
};

/* -EINVAL: KRON_TEST_NODES makes no sense, or the machine has more than NODES_MAX. */
int nodes_read(struct nodes *out, struct err *err);
/* -1: it has none. */
int nodes_of_cpu(const struct nodes *nodes, uint32_t cpu);
/* Where the thread is now, or was last; -1: it is gone. */
int nodes_of_thread(const struct nodes *nodes, pid_t pid, pid_t tid);

/*
 * Of n pages of a process: where each lies, -errno if it is in no memory or must not be asked for.  With `to`
 * they are moved there first.  -errno: none of them can be told.
 */
int nodes_of_pages(pid_t pid, const uint64_t *pages, size_t n, const int *to, int *out);

#endif

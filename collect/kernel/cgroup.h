/* SPDX-License-Identifier: MIT */
/*
 * cgroup.h - how much memory the memory cgroups of this process leave, v1 and v2.
 *
 * /proc/self/cgroup says which group, /proc/self/mountinfo where it is shown; every group from there up
 * to the root of what is shown may have a limit (memory.max, memory.high; memory.limit_in_bytes).  In a
 * container only its own part may be shown, as the root.  Reads files only.
 */
#ifndef COLLECT_CGROUP_H
#define COLLECT_CGROUP_H

#include <stdint.h>

#include "base/vec.h"

#define CGROUP_NO_LIMIT UINT64_MAX

struct cgroup_dir {
	char *path;
	const struct cgroup_dialect *dialect;
};

struct cgroups {
	VEC(struct cgroup_dir) dirs; /* those that have a limit */
};

/* root: in front of all paths; "" but in tests.  What cannot be read limits nothing. */
void cgroups_find(struct cgroups *c, const char *root);
void cgroups_free(struct cgroups *c);
/* Bytes up to the next limit; file pages that the kernel would give up count as free.
 * CGROUP_NO_LIMIT: there is none. */
uint64_t cgroups_memory_left(const struct cgroups *c);

#endif

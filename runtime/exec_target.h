/* SPDX-License-Identifier: MIT */
/*
 * exec_target.h - may this file get kron's environment?  Signals are blocked by the caller.
 */
#ifndef RUNTIME_EXEC_TARGET_H
#define RUNTIME_EXEC_TARGET_H

#include <stdbool.h>

/* Arguments as execveat's.  "No" whenever unsure. */
bool rt_exec_target_traceable(int dirfd, const char *path, int flags)
	__attribute__((visibility("hidden")));

#endif

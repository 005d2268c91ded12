/* SPDX-License-Identifier: MIT */
/*
 * exec_target.h - may this file get kron's environment?  Signals are blocked by the caller.
 */
#ifndef RUNTIME_EXEC_TARGET_H
#define RUNTIME_EXEC_TARGET_H

#include <kron/segment.h>

/*
 * Arguments as execveat's.  KRON_UNTRACED_NOT: it may; else why not, and a reason is returned
 * whenever unsure.  KRON_UNTRACED_STATIC: it is for exec_static.c.  KRON_UNTRACED_REASONS: there is no
 * program there that the kernel would execute.
 */
enum kron_untraced rt_exec_target(int dirfd, const char *path, int flags)
	__attribute__((visibility("hidden")));

#endif

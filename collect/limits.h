/* SPDX-License-Identifier: MIT */
/*
 * limits.h - what the limits of resources (ulimit) leave for a recording.  The buffer is shared
 * memory: its size is limited as that of a file, and each process that is traced maps it.
 */
#ifndef COLLECT_LIMITS_H
#define COLLECT_LIMITS_H

#include <stdint.h>

#include "base/err.h"

/* For the threads that this process makes from now on. */
void limits_set_stacks(void);
/* How large the buffer may be where the user has not said it. */
uint64_t limits_default_buffer(void);
/* Can a recording begin, with a buffer of this size (0: the default)?  0, or -errno and the
 * sentence. */
int limits_check(uint64_t buffer, struct err *err);

#endif

/* SPDX-License-Identifier: MIT */
/* memory.h - how much memory the machine has left. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stdint.h>

/* Bytes that may be had without swapping, by the kernel's estimate; close to UINT64_MAX where it gives none. */
uint64_t memory_available(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * peek.h - memory of the program that may not be there, read without a fault.
 *
 * Nobody can know that an address may be read: another thread may take the page away before the next
 * instruction.  A fault cannot be caught either: where the program blocks SIGSEGV the kernel kills it.  So
 * there are two ways that never fault, and no other:
 *
 *   a transaction   where the processor has them (RTM): a page that is not there aborts it, and nobody
 *                   hears of that.  Some 15 ns; what it reads it reads at one moment.
 *   the kernel      process_vm_readv on ourselves: EFAULT instead of a signal.  Also for what the
 *                   transaction could not read, for that may only want to be brought in.
 *
 * Under a seccomp filter there are no system calls (hook_seccomp.c): what needs the kernel is not read then.
 */
#ifndef RUNTIME_PEEK_H
#define RUNTIME_PEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All of n bytes from `from` on. */
bool rt_peek(void *to, uint64_t from, size_t n) __attribute__((visibility("hidden")));
/* How many of them can be read, counted from the first one in whole pages. */
size_t rt_peek_some(void *to, uint64_t from, size_t n) __attribute__((visibility("hidden")));

#endif

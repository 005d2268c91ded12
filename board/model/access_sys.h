/* SPDX-License-Identifier: MIT */
/*
 * access_sys.h - the few system calls of board/access*.c, without libc and without errno.
 *
 * All on slow paths, none when struct board says `quiet`.  They return what the kernel returned.
 */
#ifndef BOARD_ACCESS_SYS_H
#define BOARD_ACCESS_SYS_H

#include <stddef.h>
#include <stdint.h>
#include <asm/unistd.h>
#include <kron/sys6.h>

static inline uint32_t access_sys_tid(void)
{
	return (uint32_t)sys6(__NR_gettid, 0, 0, 0, 0, 0, 0);
}

static inline void access_sys_sleep(uint64_t ns)
{
	int64_t left[2] = {(int64_t)(ns / 1000000000u), (int64_t)(ns % 1000000000u)};

	sys6(__NR_nanosleep, (long)left, 0, 0, 0, 0, 0);
}

/*
 * Read a word of a thread's memory.  8, or -errno: -ESRCH also for a zombie (kill() says that
 * those live), -EFAULT: no memory there, -EPERM, -ENOSYS: not allowed.
 */
static inline long access_sys_peek(uint32_t tid, uint64_t addr, uint64_t *out)
{
	uint64_t local[2] = {(uint64_t)(uintptr_t)out, 8};
	uint64_t remote[2] = {addr, 8};

	return sys6(__NR_process_vm_readv, tid, (long)local, 1, (long)remote, 1, 0);
}

/* Only whether the thread is there: -ESRCH, or anything else. */
static inline long access_sys_exists(uint32_t tid)
{
	return sys6(__NR_tkill, tid, 0, 0, 0, 0, 0);
}

#endif

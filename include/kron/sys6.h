/* SPDX-License-Identifier: MIT */
/*
 * sys6.h - a raw system call, without libc and without errno: for the runtime, the board's model
 * and libmk, which each name the calls that they make (runtime/sys/sys.h, board/model/access_sys.h,
 * board/libmk/sys.h).
 */
#ifndef KRON_SYS6_H
#define KRON_SYS6_H

/* Returns what the kernel returned: >= 0, or -errno. */
static inline long sys6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

#endif

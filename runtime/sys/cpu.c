/* SPDX-License-Identifier: MIT */
/*
 * cpu.c - the number of the CPU that we are on, without a system call.
 *
 *   rseq's cpu_id       one load; where glibc registers the area
 *   the processor       its GDT; once for each new chunk, where there is no rseq area, and each
 *                       time in a static program
 */
#include "runtime/core/rt.h"

/* The kernel keeps the CPU number in the limit of a GDT segment, for the vDSO's getcpu(). */
uint32_t rt_cpu(void)
{
	uint32_t limit = 0;

	__asm__("lsl %1, %0" : "+r"(limit) : "r"(0x7bu) : "cc");
	return limit & 0xfff;
}

#ifdef RT_STATIC
bool rt_has_rseq(void)
{
	return false;
}

void kron_rt_find_cpu(void)
{
}

void rt_cpu_note(void)
{
}

uint32_t rt_cpu_read(void)
{
	return rt_cpu();
}
#else
/* Stands in for rseq's cpu_id where rseq is not registered: set at each new chunk. */
static __thread uint32_t no_rseq_cpu __attribute__((tls_model("initial-exec")));
long kron_rt_cpu_offset;

/* From ld.so (glibc 2.35 and later). */
extern const ptrdiff_t __rseq_offset __attribute__((weak, visibility("default")));
extern const unsigned int __rseq_size __attribute__((weak, visibility("default")));
#define RSEQ_CPU_ID 4 /* struct rseq: cpu_id_start, cpu_id */

bool rt_has_rseq(void)
{
	return &__rseq_offset && &__rseq_size && __rseq_size != 0;
}

void kron_rt_find_cpu(void)
{
	if (rt_has_rseq())
		kron_rt_cpu_offset = __rseq_offset + RSEQ_CPU_ID;
	else
		kron_rt_cpu_offset = (char *)&no_rseq_cpu - (char *)__builtin_thread_pointer();
}

void rt_cpu_note(void)
{
	if (!rt_has_rseq() && !rt_is_strange())
		no_rseq_cpu = rt_cpu();
}

uint32_t rt_cpu_read(void)
{
	uint32_t cpu;

	if (rt_is_strange())
		return rt_cpu();
	__asm__ volatile("movl %%fs:(%1), %0" : "=r"(cpu) : "r"(kron_rt_cpu_offset));
	return cpu;
}
#endif

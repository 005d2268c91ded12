/* SPDX-License-Identifier: MIT */
/*
 * live.h - the runtime as it is put into a process that runs already, and how it is called there.
 *
 * It is the runtime of static programs (kron/start.h): no thread data of ours, not a single
 * relocation.  collect/live/ maps it with all threads stopped, lets one of them call it on a stack of
 * our own, and gives that thread its registers back afterwards:
 *
 *   +0          struct kron_live, code, constants     read and execute
 *   +data_off   data_len bytes of zeros               read and write
 *   then        struct kron_live_call                 likewise
 *   then        the stack                             likewise
 */
#ifndef KRON_LIVE_H
#define KRON_LIVE_H

#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>
#include <kron/wire.h>

#define KRON_LIVE_MAGIC 0x4556494c4e4f524bull  /* "KRONLIVE" read as bytes */
#define KRON_LIVE_COOKIE 0x6b726f6e66617531ull /* in a signal frame that was changed: faults.c */
#define KRON_LIVE_CALL 196608u                 /* bytes of struct kron_live_call */
#define KRON_LIVE_STACK 65536u

/* Offsets from here. */
struct kron_live {
	uint64_t magic;
	uint32_t entry;              /* void (struct kron_live_call *), never returns */
	uint32_t data_off, data_len; /* multiples of the page size */
	uint32_t hook, probe, payload, counters, action, exact, payload_exact, constant,
		payload_constant, wide, memory, sparse, timed;
};
_Static_assert(sizeof(struct kron_live) == 72, "live.ld");

enum kron_live_op {
	KRON_LIVE_ATTACH =
		1,          /* take the answer that lies in the socket; then move pc[] into stubs */
	KRON_LIVE_HOME = 2, /* move pc[] out of stubs: 0 where that is not possible now */
	KRON_LIVE_LEAVE = 3, /* handlers back, and the segment is not mapped any more */
	/* Take the answer that lies in the socket, which maps blocks or retires them; then move pc[]
	 * into stubs, but for goroutines.  With SWEEP retired blocks that nobody is in are unmapped. */
	KRON_LIVE_CHANGE = 4
};

#define KRON_CPUID_RDPID (1u << 22) /* leaf 7, %ecx */

/* The processor has rdpid. */
static inline bool kron_live_has_rdpid(void)
{
	unsigned a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && c & KRON_CPUID_RDPID;
}

#define KRON_LIVE_FSGSBASE 1u /* the kernel lets programs use rdfsbase */
#define KRON_LIVE_CHILDREN 2u /* what it executes is recorded, too, if the session says so */
#define KRON_LIVE_STARTS 4u   /* the program begins */
#define KRON_LIVE_RDPID 8u    /* the processor has rdpid */
#define KRON_LIVE_SWEEP 16u   /* CHANGE: pc[] has every place that a thread can come back to */
#define KRON_LIVE_LEAVES 32u  /* what it executes is attached to, so that it can be left, too */
#define KRON_LIVE_QUIET 128u  /* under a seccomp filter: no system call afterwards */
#define KRON_LIVE_STAYS 64u /* for the surgeon: it cannot be left, as nobody finds its goroutines */

/* Where a thread's number is looked for: from %fs. */
#define KRON_LIVE_DATA_FROM (-256)
#define KRON_LIVE_DATA_END 2048

#define KRON_LIVE_THREADS 8000u /* whose places have room in it */
#define KRON_LIVE_PCS (2u * KRON_LIVE_THREADS + 4000u)

#define KRON_LIVE_SIGNALS 32u

struct kron_live_call {
	uint32_t op;   /* enum kron_live_op */
	uint32_t done; /* set when all is done; the thread sleeps then */
	int32_t sock;
	uint32_t flags;        /* ATTACH: KRON_LIVE_* */
	int32_t collector_pid; /* ATTACH: in the process's pid namespace, 0 = it is in another one */
	uint32_t npcs;
	/* CHANGE, in a Go program: from this one on pc[] says where goroutines and handlers go on,
	 * which are not moved: no window may have one inside.  0: it is none. */
	uint32_t goroutines;
	/* ATTACH: of those bytes what can be read at each thread's %fs.  None: two threads have one %fs. */
	int32_t data_from, data_end;
	char entry[4608];   /* ATTACH: "KRON_RT=..." of kron/wire.h */
	int64_t tid_offset; /* ATTACH, quiet: of its number from %fs in every thread */
	/* ATTACH: of rseq_cs from %fs in every thread; 0: one has none.  LEAVE, an answer: not 0: it may lead to us. */
	int64_t rseq_offset;
	/* ATTACH, CHANGE, an answer: of the word that is not 0 until those who slept have gone on with
	 * that; 0: none.  The surgeon clears it. */
	uint64_t stood;
	uint64_t go_lo,
		go_hi; /* for the surgeon: runtime.asyncPreempt; 0: it is not a Go program */
	uint64_t tsc;  /* LEAVE: now; the process may not be allowed to read it */
	uint64_t restorer[KRON_LIVE_SIGNALS]; /* HOME: the program's own, by signal; 0: none */
	uint64_t pc[KRON_LIVE_PCS];
};
_Static_assert(sizeof(struct kron_live_call) <= KRON_LIVE_CALL, "its room");

#endif

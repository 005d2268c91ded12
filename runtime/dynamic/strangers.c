/* SPDX-License-Identifier: MIT */
/*
 * strangers.c - threads whose thread data is not what libc made for them.
 *
 * A probe finds its lane by way of %fs.  A program may point that elsewhere: at nothing, before it
 * runs code that needs no thread data; at memory of its own; or it makes threads that share their
 * maker's.  Then what lies there is nobody's lane, and what we wrote there we would write to the
 * program's data.
 *
 *   clone(), arch_prctl(ARCH_SET_FS), wrfsbase ── a hook in front of it ──┐
 *   a thread registers, or takes a chunk: its data, or number, is wrong ──┴─► rt_strangers_come()
 *
 * From then on, and for the rest of the process and its children, thread data is not touched any more,
 * and a thread's lane is found by its number, which costs a system call.  Its triggers are samples as
 * before.  Lost, and counted, is what has no number: threads under a seccomp filter, and processes
 * that have their parent's memory and run beside it.
 *
 * Counts stand in the stubs and go by %fs, too.  There each one is turned into a jump to its
 * cold part, which comes here.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include "runtime/core/rt.h"
#include "runtime/core/thread.h"
#include "runtime/dynamic/dynamic.h"
#include "runtime/faults/unwind.h"
#include "runtime/sys/signals.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

uint32_t kron_rt_strange;

struct rt_lane *rt_strange_lane(void)
{
	struct rt_lane *lane = NULL;

	if (!kron_rt.live)
		return NULL;
	rt_busy_begin();
	if (!kron_rt.quiet)
		lane = rt_lane_of((uint32_t)sys_gettid());
	rt_busy_end();
	return lane;
}

/* ---- counts ---- */

/*
 * Other threads may be at it.  So only single bytes change, in an order in which every state between
 * means something; the kernel makes the pages private and writes them, executable as they are.
 *
 *   64 48 8b 04 25 counts   mov %fs:counts,%rax      3.  lea: no access
 *   48 8b 00                mov (%rax),%rax          2.  lea
 *   48 85 c0                test %rax,%rax               leaves OF clear, whatever it tests
 *   0f 84 cold              jz  cold                 1.  jno: always
 */
#define MOV 0x8b
#define LEA 0x8d
#define ADD 0x03
#define XOR 0x33
#define JA 0x87
#define JZ 0x84
#define JNO 0x81

#define STEPS 4u
struct count {
	uint64_t at[STEPS]; /* the bytes to change, by step; 0: none */
};
static const uint8_t becomes[STEPS] = {JNO, LEA, LEA, LEA};

static bool is_rex(uint8_t byte)
{
	return (byte & 0xf8) == 0x48;
}

/* Finds the instructions of a count, also if the first steps have changed them already. */
static bool count_at(const uint8_t *p, const uint8_t *end, int32_t counts, struct count *out)
{
	const uint8_t *follow = p + 9, *test;
	int32_t disp;

	if (end - p < 9 + 4 + 3 + 6 || p[0] != 0x64 || !is_rex(p[1]) || p[2] != MOV ||
	    (p[3] & 0xc7) != 0x04 || p[4] != 0x25)
		return false;
	mini_copy(&disp, p + 5, sizeof(disp));
	test = follow + ((follow[2] & 0xc0) == 0x40 ? 4 : 3);
	if (disp != counts || !is_rex(follow[0]) || (follow[1] != MOV && follow[1] != LEA) ||
	    !is_rex(test[0]) || test[1] != 0x85 || test[3] != 0x0f ||
	    (test[4] != JZ && test[4] != JNO))
		return false;
	*out = (struct count){{(uint64_t)(test + 4), (uint64_t)(follow + 1), (uint64_t)(p + 2)}};
	return true;
}

/*
 * Likewise a reference to memory (inject/plan/action_pages.h), whose table is the word after that:
 * %fs is read by the first of four instructions, and each of the next two by what came before.
 */
static bool pages_at(const uint8_t *p, const uint8_t *end, int32_t counts, struct count *out)
{
	int32_t disp;

	if (end - p < 32 || p[0] != 0x64 || !is_rex(p[1]) || (p[2] != ADD && p[2] != LEA) ||
	    (p[3] & 0xc7) != 0x04 || p[4] != 0x25)
		return false;
	mini_copy(&disp, p + 5, sizeof(disp));
	if (disp != counts + 8 || !is_rex(p[9]) || (p[10] != MOV && p[10] != LEA) ||
	    !is_rex(p[12]) || (p[13] != XOR && p[13] != LEA) || !is_rex(p[19]) || p[20] != 0x81 ||
	    p[26] != 0x0f || (p[27] != JA && p[27] != JNO))
		return false;
	*out = (struct count){
		{(uint64_t)(p + 27), (uint64_t)(p + 13), (uint64_t)(p + 10), (uint64_t)(p + 2)}};
	return true;
}

static void change_block(int mem, const struct kron_tables *t, int32_t counts, unsigned step)
{
	const uint8_t *block = (const uint8_t *)t - t->offset;
	const uint8_t *p = block + t->stubs_at, *end = (const uint8_t *)t;
	struct count c;

	for (; p < end; p++)
		if (*p == 0x64 && (count_at(p, end, counts, &c) || pages_at(p, end, counts, &c)) &&
		    c.at[step])
			sys4(__NR_pwrite64, mem, (long)&becomes[step], 1, (long)c.at[step]);
}

static void change_counts(void)
{
	const int32_t counts = (int32_t)rt_counts_offset();
	long mem = sys4(__NR_openat, AT_FDCWD, (long)"/proc/self/mem", O_RDWR | O_CLOEXEC, 0);
	const struct kron_tables *t;

	if (mem < 0) {
		rt_log("counts stay by %fs, errno", (uint64_t)-mem);
		return;
	}
	sys3(__NR_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
	for (unsigned step = 0; step < STEPS; step++) {
		for (uint32_t i = 0; i < rt_blocks_max(); i++) {
			t = rt_block(i);
			if (t)
				change_block((int)mem, t, counts, step);
		}
		sys3(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
	}
	sys_close((int)mem);
}

/* ---- they come ---- */

static int32_t at_work; /* pid of the process in which a thread is about to change counts; atomic */
static bool done;

static void set_strange(void)
{
	__atomic_store_n(&kron_rt.board.strange, true, __ATOMIC_SEQ_CST);
	__atomic_store_n(&kron_rt_strange, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&kron_rt_lane_at, 0, __ATOMIC_SEQ_CST);
}

/*
 * Done once in a process.  A second thread waits until the first is done, because it may be about to point its
 * %fs elsewhere.  (at_work holds a pid: in a forked child the first thread may not exist.)
 */
void rt_strangers_come(void)
{
	uint64_t mask;
	int32_t pid;

	if (kron_rt.quiet) { /* nothing can be changed any more */
		set_strange();
		return;
	}
	mask = rt_signals_block();
	pid = sys_getpid();
	for (;;) {
		int32_t owner = __atomic_load_n(&at_work, __ATOMIC_ACQUIRE);

		if (__atomic_load_n(&done, __ATOMIC_ACQUIRE))
			break;
		if (owner == pid) {
			sys0(__NR_sched_yield);
			continue;
		}
		if (!__atomic_compare_exchange_n(&at_work, &owner, pid, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		rt_log("thread data is not to be trusted", 0);
		if (kron_rt.one_mute) /* only its thread data says which thread that is: so all are */
			kron_rt.mute = true;
		change_counts();
		set_strange();
		__atomic_store_n(&done, true, __ATOMIC_RELEASE);
	}
	rt_signals_restore(mask);
}

/* ---- who is at home? ---- */

static uint64_t home; /* the %fs of the first thread at START */
static int32_t home_pid;

static uint64_t fs_base(void)
{
	uint64_t base = 0;

	sys2(__NR_arch_prctl, ARCH_GET_FS, (long)&base);
	return base;
}

void rt_home_find(void)
{
	home = fs_base();
	home_pid = sys_getpid();
}

/*
 * The first thread is where it was; in a forked child that is where the thread was that forked.  Of
 * others libc has told the kernel where their number is.
 */
bool rt_is_at_home(uint32_t tid)
{
	uint64_t at = 0;

	if (rt_is_strange())
		return true;
	if ((int32_t)tid == kron_rt.proc->pid)
		return (int32_t)tid != home_pid || fs_base() == home;
	if (!rt_tid_offset() || sys2(__NR_prctl, PR_GET_TID_ADDRESS, (long)&at))
		return true;
	return at - fs_base() == (uint64_t)rt_tid_offset();
}

/* ---- hooks ---- */

/* glibc's tcbhead_t, as every thread of libc's has it before it begins. */
struct head {
	uint64_t tcb, dtv, self;
	uint32_t multiple_threads, gscope;
	uint64_t sysinfo, stack_guard, pointer_guard;
};

/* Two words of it are random numbers that all threads share, so nobody else's data looks like it. */
static bool is_thread_data(uint64_t tls)
{
	const struct head *theirs = (const struct head *)tls;
	const struct head *ours = (const struct head *)home;

	if (kron_rt.quiet)
		return true; /* the kernel cannot be asked, and nearly always it is */
	return sys_is_readable((void *)tls) && sys_is_readable(&theirs->pointer_guard) &&
	       theirs->tcb == tls && theirs->self == tls &&
	       theirs->stack_guard == ours->stack_guard &&
	       theirs->pointer_guard == ours->pointer_guard;
}

/* A child that shares memory has thread data of its own, or is waited for. */
void rt_hook_clone(uint64_t flags, uint64_t tls)
{
	if (rt_is_strange())
		return;
	if (flags & CLONE_SETTLS ? !is_thread_data(tls)
				 : flags & CLONE_VM && !(flags & CLONE_VFORK))
		rt_strangers_come();
}

void rt_hook_arch_prctl(uint64_t code, uint64_t addr)
{
	if ((int)code == ARCH_SET_FS && !rt_is_strange() && (kron_rt.quiet || addr != fs_base()))
		rt_strangers_come();
}

void rt_hook_fs(void)
{
	rt_strangers_come();
}

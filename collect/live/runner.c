/* SPDX-License-Identifier: MIT */
/*
 * runner.c - the thread of the program that runs code for us (threads_call(), threads_run()), and what of its own must
 * not come in between:
 *
 *   signals                 all blocked, so that no handler of the program's runs
 *   a restartable sequence  aborted
 *   dispatch                off: the kernel would give a system call of ours to the program (SIGSYS)
 *
 * What is given back is as it was.
 */
#define _GNU_SOURCE
#include "collect/live/threads.h"

#include <sys/ptrace.h>

#define RSEQ_CS 8u /* in struct rseq */
#define RSEQ_SIGNATURE 0x53053053u
#ifndef PTRACE_GET_RSEQ_CONFIGURATION
#define PTRACE_GET_RSEQ_CONFIGURATION 0x420f
#endif

/* Address of rseq_cs; 0: it has none. */
static uint64_t sequence_at(const struct live_thread *k, uint32_t *signature)
{
	struct {
		uint64_t area;
		uint32_t size, signature, flags, pad;
	} conf;

	if (!k->stopped ||
	    ptrace(PTRACE_GET_RSEQ_CONFIGURATION, k->tid, sizeof(conf), &conf) !=
		    (long)sizeof(conf) ||
	    !conf.area)
		return 0;
	*signature = conf.signature;
	return conf.area + RSEQ_CS;
}

int64_t threads_rseq_offset(const struct live_threads *t)
{
	int64_t offset = 0;

	for (size_t i = 0; i < t->v.n; i++) {
		const struct live_thread *k = &t->v.v[i];
		uint32_t signature = 0;
		const uint64_t at = sequence_at(k, &signature);

		if (!k->stopped)
			continue;
		if (!at || signature != RSEQ_SIGNATURE || !k->regs.fs_base ||
		    (offset && offset != (int64_t)(at - k->regs.fs_base)))
			return 0;
		offset = (int64_t)(at - k->regs.fs_base);
	}
	return offset;
}

void threads_drop_sequences(const struct live_threads *t, uint64_t from, uint64_t end)
{
	const uint64_t none = 0;

	for (size_t i = 0; i < t->v.n; i++) {
		uint32_t signature;
		const uint64_t at = sequence_at(&t->v.v[i], &signature);
		uint64_t to;

		if (at && threads_read(t, &to, at, sizeof(to)) == sizeof(to) && to >= from &&
		    to < end)
			threads_write(t, at, &none, sizeof(none));
	}
}

/*
 * The kernel aborts a restartable sequence of a thread that was off its processor.  It finds none when the thread
 * goes on somewhere else for us, and so would let it go on in the middle of one: what it would have done is done here.
 */
static void abort_sequence(const struct live_threads *t, struct live_thread *k)
{
	struct {
		uint32_t version, flags;
		uint64_t start, len, abort;
	} cs;
	uint32_t signature;
	const uint64_t to = sequence_at(k, &signature), none = 0;
	uint64_t at;

	if (!to || threads_read(t, &at, to, sizeof(at)) != sizeof(at) || !at ||
	    threads_read(t, &cs, at, sizeof(cs)) != sizeof(cs) || k->regs.rip - cs.start >= cs.len)
		return;
	if (threads_write(t, to, &none, sizeof(none)) == sizeof(none))
		k->regs.rip = cs.abort;
}

/* ---- dispatch ---- */

#ifndef PTRACE_SET_SYSCALL_USER_DISPATCH_CONFIG /* Linux 6.4 */
#define PTRACE_SET_SYSCALL_USER_DISPATCH_CONFIG 0x4210
#define PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG 0x4211
#endif

static bool read_dispatch(pid_t tid, struct live_dispatch *d)
{
	return !ptrace(PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG, tid, sizeof(*d), d) && d->mode;
}

static void write_dispatch(pid_t tid, const struct live_dispatch *d)
{
	ptrace(PTRACE_SET_SYSCALL_USER_DISPATCH_CONFIG, tid, sizeof(*d), d);
}

bool threads_dispatch_calls(const struct live_threads *t)
{
	struct live_dispatch d;

	for (size_t i = 0; i < t->v.n; i++)
		if (t->v.v[i].stopped && read_dispatch(t->v.v[i].tid, &d))
			return true;
	return false;
}

/* ---- both ways ---- */

void runner_take(struct live_threads *t, struct live_thread *k)
{
	const struct live_dispatch off = {0};
	const uint64_t all = ~0ull;

	ptrace(PTRACE_GETSIGMASK, k->tid, sizeof(t->mask), &t->mask);
	ptrace(PTRACE_SETSIGMASK, k->tid, sizeof(all), &all);
	abort_sequence(t, k);
	if (read_dispatch(k->tid, &t->dispatch))
		write_dispatch(k->tid, &off);
	k->changed = true;
	t->runner = k->tid;
}

void runner_give_back(const struct live_threads *t)
{
	if (t->dispatch.mode)
		write_dispatch(t->runner, &t->dispatch);
	ptrace(PTRACE_SETSIGMASK, t->runner, sizeof(t->mask), &t->mask);
}

/* SPDX-License-Identifier: MIT */
/*
 * thread_data.c - see thread_data.h.
 *
 * A probe in a process that was attached to reads a word near its thread's %fs and takes it for that
 * thread's own (runtime/static/static.h).  So the word must be readable in each thread, and no two may share it.
 */
#include "collect/live/thread_data.h"

#include <errno.h>
#include <linux/prctl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "base/vec.h"
#include "collect/kernel/pidns.h"
#include "collect/kernel/process_maps.h"

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool have_one_in_common(uint64_t *base, size_t n)
{
	qsort(base, n, sizeof(*base), by_value);
	for (size_t i = 1; i < n; i++)
		if (base[i] == base[i - 1])
			return true;
	return false;
}

/* A copy of another's data, whose first word leads to that one still (runtime/static/static.h). */
static bool has_others_word(const struct live_threads *t, uint64_t base, const uint64_t *sorted,
			    size_t n)
{
	uint64_t word;

	return threads_read(t, &word, base, sizeof(word)) == sizeof(word) && word != base &&
	       bsearch(&word, sorted, n, sizeof(word), by_value);
}

static bool is_readable(const struct process_maps *maps, uint64_t addr)
{
	const struct process_mapping *m = process_maps_at(maps, addr);

	return m && m->perms[0] == 'r';
}

/* Narrows the range to what can be read around this base without a gap. */
static void narrow(struct kron_live_call *call, const struct process_maps *maps, uint64_t base)
{
	const uint64_t from = base + (uint64_t)(int64_t)call->data_from;
	const uint64_t end = base + (uint64_t)(int64_t)call->data_end;
	uint64_t at = base;

	if (!is_readable(maps, base)) {
		call->data_from = call->data_end = 0;
		return;
	}
	while (at > from && is_readable(maps, at - 1))
		at = process_maps_at(maps, at - 1)->start;
	if (at > from)
		call->data_from = (int32_t)(at - base);
	for (at = base; at < end && is_readable(maps, at);)
		at = process_maps_at(maps, at)->end;
	if (at < end)
		call->data_end = (int32_t)(at - base);
}

void thread_data_find(struct kron_live_call *call, struct live_threads *t,
		      const struct process_maps *maps)
{
	uint64_t *base = xcalloc(t->v.n + 1, sizeof(*base));
	size_t n = 0;

	call->data_from = KRON_LIVE_DATA_FROM;
	call->data_end = KRON_LIVE_DATA_END;
	vec_for(&t->v, k) {
		if (k->stopped)
			base[n++] = k->regs.fs_base;
	}
	/* A single thread's range is left as it is: it may have no data yet, and looks for itself. */
	if (n > 1 && have_one_in_common(base, n))
		call->data_from = call->data_end = 0;
	for (size_t i = 0; n > 1 && i < n; i++) {
		narrow(call, maps, base[i]);
		if (has_others_word(t, base[i], base, n))
			call->data_from = call->data_end = 0;
	}
	xfree(base);
}

/* ---- the number ---- */

static uint32_t number_of(const struct live_thread *k)
{
	const pid_t inner = pidns_inner_of(k->tid);

	return (uint32_t)(inner ? inner : k->tid);
}

static bool has_number(const struct live_threads *t, const struct live_thread *k, int64_t offset)
{
	uint32_t word;

	return threads_read(t, &word, k->regs.fs_base + (uint64_t)offset, sizeof(word)) ==
		       sizeof(word) &&
	       word == number_of(k);
}

static bool all_have_number(const struct live_threads *t, int64_t offset)
{
	for (size_t i = 0; i < t->v.n; i++)
		if (t->v.v[i].stopped && !has_number(t, &t->v.v[i], offset))
			return false;
	return offset % 4 == 0 && offset >= KRON_LIVE_DATA_FROM && offset + 4 <= KRON_LIVE_DATA_END;
}

/* glibc tells the kernel where a thread's number is, and the kernel one that asks for itself. */
static bool find_by_kernel(struct kron_live_call *call, struct live_threads *t, uint64_t room)
{
	const uint64_t arg[] = {PR_GET_TID_ADDRESS, room};
	uint64_t at = 0;

	if (threads_call(t, SYS_prctl, arg, 2) ||
	    threads_read(t, &at, room, sizeof(at)) != sizeof(at))
		return false;
	vec_for(&t->v, k)
		if (k->tid == t->runner)
			call->tid_offset = (int64_t)(at - k->regs.fs_base);
	return all_have_number(t, call->tid_offset);
}

/* Of one thread any word may have its number by chance, of several hardly the same word. */
static bool find_by_search(struct kron_live_call *call, const struct live_threads *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->v.n; i++)
		n += t->v.v[i].stopped;
	for (call->tid_offset = call->data_from; n > 1 && call->tid_offset < call->data_end;
	     call->tid_offset += 4)
		if (all_have_number(t, call->tid_offset))
			return true;
	return false;
}

int thread_data_find_number(struct kron_live_call *call, struct live_threads *t, uint64_t room,
			    struct err *err)
{
	if (find_by_kernel(call, t, room) || find_by_search(call, t))
		return 0;
	return err_set(err, ENOTSUP,
		       "process %d is under a seccomp filter, and its threads' data do not say "
		       "their numbers: start it with `kron record -- CMD`",
		       t->pid);
}

/* SPDX-License-Identifier: MIT */
/*
 * thread_data.c - see thread_data.h.
 *
 * A probe in a process that was attached to reads a word near its thread's %fs and takes it for that
 * thread's own (runtime/static/static.h).  So the word must be readable in each thread, and no two may share it.
 */
#include "collect/live/thread_data.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/vec.h"
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
	for (size_t i = 0; n > 1 && i < n; i++)
		narrow(call, maps, base[i]);
	xfree(base);
}

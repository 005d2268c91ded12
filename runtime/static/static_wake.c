/* SPDX-License-Identifier: MIT */
/*
 * static_wake.c - wakes the probes of a static program by itself, as kron/start.h says.
 *
 *   1. check   the bytes that are to be changed are those that kron patch saw
 *   2. write   a range after the other, the block first: it is writable, changed, executable again,
 *              and never writable and executable at once; nobody executes there yet
 *   on a failure in 2: all that was changed is changed back
 */
#include <sys/mman.h>
#include "runtime/static/static.h"
#include "runtime/sys/memory.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

struct edits {
	const uint8_t *next, *end;
	uint8_t *first; /* of the range: the block, where there are probes */
	uint8_t *at;    /* where the last one ended */
	uint8_t probe[KRON_WAKE_PROBE];
};

static const struct kron_wake *wake_of(const struct kron_start *s)
{
	return (const struct kron_wake *)((const uint8_t *)s + s->wake);
}

static uint8_t *pages_of(const struct kron_start *s, const struct kron_wake_range *r)
{
	return (uint8_t *)(uintptr_t)s + r->at;
}

static struct edits edits_of(const struct kron_start *s, const struct kron_wake_range *r)
{
	const uint8_t *first = (const uint8_t *)wake_of(s) + r->edits;

	return (struct edits){.next = first,
			      .end = first + r->edits_len,
			      .first = pages_of(s, r),
			      .at = pages_of(s, r)};
}

/* The next edit: where, how many bytes, and with what; false: there is none. */
static bool next_edit(struct edits *e, uint8_t **at, uint32_t *len, const uint8_t **with)
{
	uint32_t gap;

	if (e->next == e->end)
		return false;
	gap = e->next[0] | (uint32_t)e->next[1] << 8;
	*at = e->at + gap;
	*len = e->next[2];
	*with = e->next + KRON_WAKE_EDIT;
	e->next = *with + *len;
	if (!*len && gap != KRON_WAKE_GAP_MAX) {
		kron_wake_probe(e->probe, *with, (uint32_t)(e->first - *at) - KRON_WAKE_PROBE_CALL);
		*len = KRON_WAKE_PROBE;
		e->next = *with + KRON_WAKE_PROBE_INFO;
		*with = e->probe;
	}
	e->at = *at + *len;
	return true;
}

static bool is_as_patched(const struct kron_start *s, const struct kron_wake_range *r)
{
	struct edits e = edits_of(s, r);
	uint64_t sum = KRON_WAKE_SUM;
	const uint8_t *with;
	uint32_t len, i;
	uint8_t *at;

	while (next_edit(&e, &at, &len, &with)) {
		for (i = 0; i < len; i++)
			sum = kron_wake_sum(sum, at[i]);
	}
	return sum == r->sum;
}

static void put_thunks(uint8_t *block)
{
	const uint64_t thunk = (uint64_t)kron_rt_probe_exact;
	const uint64_t hook = (uint64_t)kron_rt_hook_thunk;
	const uint64_t payload = (uint64_t)kron_rt_payload_exact;
	const uint64_t action = (uint64_t)kron_rt_action_thunk;
	const uint64_t memory = (uint64_t)kron_rt_memory;

	mini_copy(block + KRON_BLOCK_THUNK + 16, &thunk, sizeof(thunk));
	mini_copy(block + KRON_BLOCK_HOOK + 16, &hook, sizeof(hook));
	mini_copy(block + KRON_BLOCK_PAYLOAD + 16, &payload, sizeof(payload));
	mini_copy(block + KRON_BLOCK_ACTION + 16, &action, sizeof(action));
	mini_copy(block + KRON_BLOCK_WIDE + 16, &payload, sizeof(payload));
	mini_copy(block + KRON_BLOCK_MEMORY + 16, &memory, sizeof(memory));
}

static bool change(const struct kron_start *s, const struct kron_wake_range *r, bool is_block)
{
	uint8_t *pages = pages_of(s, r);
	struct edits e = edits_of(s, r);
	const uint8_t *with;
	uint32_t len, i;
	uint8_t *at;
	bool open = sys_mprotect(pages, r->len, PROT_READ | PROT_WRITE) == 0;

	while (open && next_edit(&e, &at, &len, &with)) {
		for (i = 0; i < len; i++)
			at[i] ^= with[i];
	}
	if (open && is_block)
		put_thunks(pages);
	/* Also when it failed half-way through the pages. */
	return sys_mprotect(pages, r->len, PROT_READ | PROT_EXEC) == 0 && open;
}

bool kron_rt_wake(const struct kron_start *s)
{
	const struct kron_wake *w = wake_of(s);
	uint32_t i;

	if (!s->wake || rt_text_trial())
		return false;
	for (i = 0; i < w->nranges; i++) {
		if (!is_as_patched(s, &w->range[i]))
			return false;
	}
	for (i = 0; i < w->nranges; i++) {
		if (change(s, &w->range[i], i == 0))
			continue;
		while (i-- > 0)
			change(s, &w->range[i], i == 0);
		return false;
	}
	return true;
}

/* SPDX-License-Identifier: MIT */
/*
 * landings.c - see landings.h.
 *
 *   eb ─► eb ─► e9 ─► block         a short jump, a relay, a landing
 *
 * No code of a program jumps into a block, so one that does is ours, or leads to one of ours.
 */
#include "collect/live/landings.h"

#include <string.h>

#define HOPS_MAX 16u /* relays are few */
#define NEAR 0xe9
#define SHORT 0xeb

/* A prefix that means nothing to a jump (tactic_pun.c in inject/plan). */
static bool is_prefix(uint8_t byte)
{
	return (byte & 0xf0) == 0x40 || byte == 0x26 || byte == 0x2e || byte == 0x36 ||
	       byte == 0x3e || (byte >= 0x64 && byte <= 0x67 && byte != 0x66);
}

/* Where the jump at pc leads; 0: there is none. */
static uint64_t target(const struct live_threads *t, uint64_t pc)
{
	uint8_t code[6] = {0};
	const ssize_t n = threads_read(t, code, pc, sizeof(code));
	const unsigned at = is_prefix(code[0]);
	int32_t far;

	if (n >= (ssize_t)at + 5 && code[at] == NEAR) {
		memcpy(&far, code + at + 1, sizeof(far));
		return pc + at + 5 + (uint64_t)(int64_t)far;
	}
	if (n >= (ssize_t)at + 2 && code[at] == SHORT)
		return pc + at + 2 + (uint64_t)(int64_t)(int8_t)code[at + 1];
	return 0;
}

uint64_t landings_follow(const struct live_threads *t, const struct process_maps *maps,
			 uint64_t session, uint64_t pc)
{
	uint64_t to = target(t, pc), number;

	for (unsigned hop = 0; to && hop < HOPS_MAX; hop++) {
		const struct process_mapping *m = process_maps_at(maps, to);

		if (m && process_mapping_is_block(m, session, &number))
			return to;
		to = target(t, to);
	}
	return pc;
}

void landings_leave(struct live_threads *t, struct signal_frames *f,
		    const struct process_maps *maps, uint64_t session)
{
	vec_for(&t->v, k) {
		uint64_t to;

		if (!k->stopped || thread_restarts(k)) /* it will be in front of a system call */
			continue;
		to = landings_follow(t, maps, session, k->regs.rip);
		k->changed |= to != k->regs.rip;
		k->regs.rip = to;
	}
	if (!f)
		return;
	vec_for(&f->v, frame) {
		const uint64_t to =
			frame->sp ? landings_follow(t, maps, session, frame->pc) : frame->pc;

		if (to != frame->pc &&
		    threads_write(t, frame->at, &to, sizeof(to)) == (ssize_t)sizeof(to))
			frame->pc = to;
	}
	vec_for(&f->wrapped, frame)
		frame->pc = landings_follow(t, maps, session, frame->pc);
}

void landings_keep(struct signal_frames *now, const struct signal_frames *before)
{
	vec_for(&now->wrapped, n)
		for (size_t i = 0; i < before->wrapped.n; i++)
			if (before->wrapped.v[i].at == n->at)
				n->pc = before->wrapped.v[i].pc;
}

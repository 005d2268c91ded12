/* SPDX-License-Identifier: MIT */
/*
 * gate.c - makes the gates equal to what the registers say.  See gate.h.
 */
#include "board/model/gate.h"

#include <stdbool.h>

#define GATES_A_STORE 8u

static uint8_t gate_of(const struct kron_ctl *ctl, uint32_t csr, uint32_t filter, uint32_t config,
		       unsigned level)
{
	if (kron_gate_is_open(csr, filter, config, level))
		return KRON_GATE(KRON_GATE_TAKE, level);
	if (!ctl->constant_time)
		return KRON_GATE_CLOSED;
	/* Hardware decides after the store; a lane has to decide before it. */
	return KRON_GATE(ctl->bus == KRON_BUS_LANE ? KRON_GATE_DROP : KRON_GATE_TAKE, level);
}

static void note_change(struct kron_ctl *ctl, uint64_t from, uint32_t open)
{
	const uint32_t number = __atomic_add_fetch(&ctl->gate_changes, 1, __ATOMIC_ACQ_REL);
	struct kron_gate_change *c = &ctl->gate_change[(number - 1) % KRON_GATE_CHANGES];

	__atomic_exchange_n(&c->number, 0, __ATOMIC_ACQ_REL); /* before the rest is written */
	__atomic_store_n(&c->from, from, __ATOMIC_RELAXED);
	__atomic_store_n(&c->until, __builtin_ia32_rdtsc(), __ATOMIC_RELAXED);
	__atomic_store_n(&c->open, open, __ATOMIC_RELAXED);
	__atomic_store_n(&c->number, number, __ATOMIC_RELEASE);
}

void kron_gate_set(struct kron_ctl *ctl, uint32_t csr, uint32_t filter, uint32_t config)
{
	uint64_t *word = (uint64_t *)ctl->gate;
	const uint64_t from = __builtin_ia32_rdtsc();
	const uint32_t open = kron_gates_open(csr, filter, config);
	bool changed = false;
	unsigned first, i;

	for (first = 0; first < KRON_LEVELS; first += GATES_A_STORE) {
		uint64_t gates = 0;

		for (i = 0; i < GATES_A_STORE; i++)
			gates |= (uint64_t)gate_of(ctl, csr, filter, config, first + i) << 8 * i;
		changed |= __atomic_exchange_n(&word[first / GATES_A_STORE], gates,
					       __ATOMIC_ACQ_REL) != gates;
	}
	if (!changed)
		return;
	__atomic_fetch_or(&ctl->gates_were, open << 16 | (~open & 0xffffu), __ATOMIC_RELAXED);
	note_change(ctl, from, open);
}

void kron_gate_recompute(struct kron_ctl *ctl)
{
	kron_gate_set(ctl, __atomic_load_n(&ctl->csr, __ATOMIC_ACQUIRE),
		      __atomic_load_n(&ctl->filter, __ATOMIC_ACQUIRE),
		      __atomic_load_n(&ctl->config, __ATOMIC_ACQUIRE));
}

/* SPDX-License-Identifier: MIT */
/*
 * gate.c - makes the gates equal to what the registers say.  See gate.h.
 */
#include "board/model/gate.h"

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

void kron_gate_set(struct kron_ctl *ctl, uint32_t csr, uint32_t filter, uint32_t config)
{
	uint64_t *word = (uint64_t *)ctl->gate;
	unsigned first, i;

	for (first = 0; first < KRON_LEVELS; first += GATES_A_STORE) {
		uint64_t gates = 0;

		for (i = 0; i < GATES_A_STORE; i++)
			gates |= (uint64_t)gate_of(ctl, csr, filter, config, first + i) << 8 * i;
		__atomic_store_n(&word[first / GATES_A_STORE], gates, __ATOMIC_RELEASE);
	}
}

void kron_gate_recompute(struct kron_ctl *ctl)
{
	kron_gate_set(ctl, __atomic_load_n(&ctl->csr, __ATOMIC_ACQUIRE),
		      __atomic_load_n(&ctl->filter, __ATOMIC_ACQUIRE),
		      __atomic_load_n(&ctl->config, __ATOMIC_ACQUIRE));
}

/* SPDX-License-Identifier: MIT */
/*
 * gate.c - keeps the gates equal to what the registers say.  See gate.h.
 */
#include "board/gate.h"

void kron_gate_recompute(struct kron_ctl *ctl)
{
	uint32_t csr = __atomic_load_n(&ctl->csr, __ATOMIC_ACQUIRE);
	uint32_t filter = __atomic_load_n(&ctl->filter, __ATOMIC_ACQUIRE);
	uint32_t config = __atomic_load_n(&ctl->config, __ATOMIC_ACQUIRE);
	uint8_t closed = KRON_GATE_CLOSED;
	unsigned level;

	for (level = 0; level < KRON_LEVELS; level++) {
		uint8_t gate = KRON_GATE(KRON_GATE_TAKE, level);

		/* Hardware decides behind the store; a lane has to decide before it. */
		if (ctl->constant_time && ctl->bus == KRON_BUS_LANE)
			closed = KRON_GATE(KRON_GATE_DROP, level);
		else if (ctl->constant_time)
			closed = gate;
		if (!kron_gate_is_open(csr, filter, config, level))
			gate = closed;
		__atomic_store_n(&ctl->gate[level], gate, __ATOMIC_RELEASE);
	}
}

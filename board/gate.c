/* SPDX-License-Identifier: MIT */
/*
 * gate.c - keeps the gates equal to what the registers say.  See gate.h.
 */
#include "board/gate.h"

void kron_gate_recompute(struct kron_ctl *ctl)
{
	uint32_t csr = __atomic_load_n(&ctl->csr, __ATOMIC_ACQUIRE);
	uint32_t filter = __atomic_load_n(&ctl->filter, __ATOMIC_ACQUIRE);
	unsigned level;

	for (level = 0; level < KRON_LEVELS; level++)
		__atomic_store_n(&ctl->gate[level], (uint8_t)kron_gate_is_open(csr, filter, level),
				 __ATOMIC_RELEASE);
}

/* SPDX-License-Identifier: MIT */
/*
 * gate.h - from Control and Status Register and Filter Register to the gates.
 *
 * Freestanding: the tools and the traced process may both compile it.
 */
#ifndef BOARD_GATE_H
#define BOARD_GATE_H

#include <kron/segment.h>

/* Does a trigger of this level take a sample?  Bit n of the Filter Register is level n. */
static inline int kron_gate_is_open(uint32_t csr, uint32_t filter, uint32_t config, unsigned level)
{
	return (csr & KRON_CSR_SAMPLING) != 0 && (config & KRON_CONFIG_MK_OE) != 0 &&
	       (filter >> level & 1) != 0;
}

/* Those that are open, a bit each. */
static inline uint32_t kron_gates_open(uint32_t csr, uint32_t filter, uint32_t config)
{
	return kron_gate_is_open(csr, 0xffff, config, 0) ? filter & 0xffff : 0;
}

/*
 * Make the gates say what these registers say.  Two stores of eight gates each: probes that run
 * meanwhile see the old ones or the new ones.  Who may do this when: board_repair_gates().
 * A change is noted for the recorder.  Reads the TSC.
 */
void kron_gate_set(struct kron_ctl *ctl, uint32_t csr, uint32_t filter, uint32_t config)
	__attribute__((visibility("hidden")));

/* Likewise from the copies in the control block: for segments without a model (tests). */
void kron_gate_recompute(struct kron_ctl *ctl) __attribute__((visibility("hidden")));

#endif

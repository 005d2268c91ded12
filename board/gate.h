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

/*
 * Make the gates say what csr, filter and config say.  To be called after one was written.  Each
 * gate is one byte store: probes that run meanwhile see the old one or the new one.  Of two
 * callers at once the last to read the registers must be the last to write the gates, which is
 * their business to arrange (one writer: the collector, or kron ctl with its lock).
 */
void kron_gate_recompute(struct kron_ctl *ctl) __attribute__((visibility("hidden")));

#endif

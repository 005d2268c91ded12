/* SPDX-License-Identifier: MIT */
/* probe_cost.h - what a probe costs on this machine, measured with the runtime's own thunk. */
#ifndef CMD_PROBE_COST_H
#define CMD_PROBE_COST_H

#include "collect/calibrate.h"

/* For collector_options.measure; hz as tsc_hz() says it.  Takes some 0.05 milliseconds, twice
 * that with_static.  All zero
 * when the thunk did not take the samples that it was asked for. */
void probe_cost_measure(struct probe_cost *c, double hz, unsigned every, bool with_static);
/* Likewise, in processes that were attached to, which stand as static ones. */
void probe_cost_measure_attached(struct probe_cost *c, double hz, unsigned every, bool with_static);

#endif

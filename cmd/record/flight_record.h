/* SPDX-License-Identifier: MIT */
/* flight_record.h - `kron record --flight`: what goes with it, and the signal that asks for a snapshot. */
#ifndef CMD_FLIGHT_RECORD_H
#define CMD_FLIGHT_RECORD_H

#include "collect/collector.h"

/* What is wrong with it; NULL: nothing, and the options that it brings with it are set. */
const char *flight_record_check(struct collector_options *o, bool wants_switches, struct err *err);
/* After child_prepare(), before there are threads: no program that we start has SIGUSR2 blocked. */
void flight_record_prepare(const struct collector_options *o);

#endif

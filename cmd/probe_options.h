/* SPDX-License-Identifier: MIT */
/* probe_options.h - -p and -P: what the commands that take probes have in common. */
#ifndef CMD_PROBE_OPTIONS_H
#define CMD_PROBE_OPTIONS_H

#include "base/opt.h"
#include "probes/probe.h"

/* Files first: the levels that they name may be used by -p, wherever that stands. */
int probe_options_read(struct probe_set *set, const struct opt_list *specs,
		       const struct opt_list *files, uint8_t level, struct err *err);
/* The last ones are called so in messages. */
void probe_options_name(struct probe_set *set, const struct opt_list *names);

#endif

/* SPDX-License-Identifier: MIT */
/* ctl_probe.h - kron ctl probe add|rm|list: asks the recorder of the board (collect/changes/control.h). */
#ifndef CMD_CTL_PROBE_H
#define CMD_CTL_PROBE_H

#include <stdbool.h>

#include "base/opt.h"
#include "board/bus/bus.h"

struct ctl_probe_options {
	bool json;
	const char *functions; /* -F; NULL: it was not given */
	struct opt_list libraries;
};

/*
 * argv[0] is the word after `probe`, n arguments follow it.  check() comes before the board is looked for:
 * CMD_OK, or there is no such question.
 */
int ctl_probe_check(const struct opt_command *command, const struct ctl_probe_options *o, int n,
		    char **argv);
int ctl_probe(const struct opt_command *command, struct bus *b, const struct ctl_probe_options *o,
	      int n, char **argv);

#endif

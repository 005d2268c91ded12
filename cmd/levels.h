/* SPDX-License-Identifier: MIT */
/* levels.h - the option -g LEVEL[=GLOB] of the commands that choose probes. */
#ifndef CMD_LEVELS_H
#define CMD_LEVELS_H

#include "base/opt.h"
#include "collect/modules/selection.h"

/* What -g was given, in order; out->globs and out->level live as long as the program.  -EINVAL with
 * a sentence. */
int levels_take(struct level_globs *out, const struct opt_list *given, struct err *err);

#endif

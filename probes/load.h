/* SPDX-License-Identifier: MIT */
/* load.h - probe files and packs.  Private to probes/. */
#ifndef PROBES_LOAD_H
#define PROBES_LOAD_H

#include "probes/lex.h"

/* `include NAME` at `at`: a pack, or a file beside the one that includes it. */
int load_include(struct probe_set *set, const struct lex *lx, const char *at, const char *name);

#endif

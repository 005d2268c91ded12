/* SPDX-License-Identifier: MIT */
/*
 * settle.h - what of a module's plan is wanted:
 *
 *   plan + selection ──► functions, levels, marks ──► numbers ──► the trace's tables
 *
 * Once a module; its lock is held.
 */
#ifndef COLLECT_SETTLE_H
#define COLLECT_SETTLE_H

#include "collect/modules/modules.h"

/* Are its functions wanted, or only the places of the user's probes? */
bool settle_wants_functions(const struct selection *s, const struct module *m);
/* 0, or -errno: m->why says why. */
int settle_module(struct modules *ms, struct module *m);

#endif

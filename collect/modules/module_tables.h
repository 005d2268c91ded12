/* SPDX-License-Identifier: MIT */
/* module_tables.h - a module's part of the trace's tables: modules, functions, jumps, refusals. */
#ifndef COLLECT_MODULE_TABLES_H
#define COLLECT_MODULE_TABLES_H

#include "collect/modules/modules.h"
#include "inject/code/refusal.h"

/*
 * Number the functions of m (plan and selection are there), write the lines of those that are
 * selected and get them to the kernel: no process may store an event whose name a crash of the
 * collector could take away.  Called once, with m's lock held.
 */
int module_tables_write(struct modules *ms, struct module *m, struct err *err);

/* A line for each reason, with how often it was one.  The journal is locked. */
int module_tables_refusals(struct journal *j, uint32_t id, enum trace_refused what,
			   const uint64_t why[REFUSAL_COUNT]);

#endif

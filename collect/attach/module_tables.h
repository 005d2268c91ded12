/* SPDX-License-Identifier: MIT */
/* module_tables.h - a module's part of the trace's tables: modules, functions, refusals. */
#ifndef COLLECT_MODULE_TABLES_H
#define COLLECT_MODULE_TABLES_H

#include "collect/attach/modules.h"

/*
 * Number the functions of m (plan and selection are there), write the lines of those that are
 * selected and get them to the kernel: no process may store an event whose name a crash of the
 * collector could take away.  Called once, with m's lock held.
 */
int module_tables_write(struct modules *ms, struct module *m, struct err *err);

#endif

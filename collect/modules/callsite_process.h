/* SPDX-License-Identifier: MIT */
/*
 * callsite_process.h - for one process: which functions cannot carry their probes in their own code,
 * and which stubs of which modules lead to them (inject/plan/callsite.h).
 *
 *   callees ─► needs: function, action, event ─┐
 *   all modules: what they offer, whom they call ─► a plan of stubs for each caller
 *
 * A stub is probed if only one module defines what it calls: then the dynamic linker has no choice.
 * Where several do, the first one in the linker's list is meant (link_order.h).  The order of modules that
 * were loaded after the program's start is not known.  Then nothing is probed, and a note says so.
 *
 * Calls that go through a module's table and by no stub (-fno-plt, Rust) are taken where they
 * stand.  What other probes of the module have displaced stays as it is, and a note says so.
 *
 * Plans of stubs belong to their module and live as long; the same question gets the same plan.
 */
#ifndef COLLECT_CALLSITE_PROCESS_H
#define COLLECT_CALLSITE_PROCESS_H

#include "collect/modules/modules.h"
#include "inject/elf/callsite_links.h"

struct callsite_plan {
	uint64_t hash; /* of the question */
	struct plan *plan;
	uint32_t *events; /* numbers in the trace */
	size_t nevents;
};

/* A probe that stands where its function is called. */
struct callsite_need {
	const struct module *callee;
	const struct callsite_export *export; /* NULL: by its vaddr, within the callee */
	const char *name;                     /* of the export, or "" */
	const char *shown;                    /* a name of the function, or "" */
	uint64_t vaddr;
	struct place_action action;
	uint8_t where;
	uint32_t event;  /* number in the trace, BIND_EXIT: its exit; RESOLVE_NO_EVENT: it makes no
			  * sample */
	const char *why; /* refusal_key(), or "ifunc" */
};

struct callsite_process {
	struct modules *modules;
	VEC(struct module *) all; /* of the process; in the linker's order if `ordered` */
	bool ordered;
	VEC(struct callsite_need) needs; /* by name, once callsite_process_is_needed() was asked */
	VEC(struct err) notes;
};

void callsite_process_init(struct callsite_process *in, struct modules *ms);
void callsite_process_free(struct callsite_process *in);
/* A module whose full plan is made. */
void callsite_process_add_callee(struct callsite_process *in, struct module *m);
bool callsite_process_is_needed(struct callsite_process *in);
/* Reads the tables of modules that will be added, side by side. */
void callsite_process_read(struct module **v, size_t n);
/* Any module of the process.  False: its tables cannot be read. */
bool callsite_process_add_module(struct callsite_process *in, struct module *m);
/* All modules of the process pid, which is about to start, are known: where they lie, by the order
 * in which they were added. */
void callsite_process_order(struct callsite_process *in, pid_t pid, const uint64_t *bias, size_t n);
/* The plan for its stubs and calls; NULL: it calls nothing that is needed.  own: what else of it is
 * bound in the process, or NULL. */
struct binding;
int callsite_process_plan(struct callsite_process *in, struct module *m, const struct binding *own,
			  const struct callsite_plan **out, struct err *err);
/* Has a stub or call of any module a probe for this function of the callee's plan? */
bool callsite_process_has(struct modules *ms, const struct module *callee, uint32_t function);
/* Forgets a module that is going away. */
void callsite_process_forget(struct module *m);

#endif

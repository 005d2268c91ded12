/* SPDX-License-Identifier: MIT */
/*
 * interposing.h - for one process: which functions cannot carry their probes in their own code,
 * and which stubs of which modules lead to them (inject/plan/interpose.h).
 *
 *   callees ─► needs: function, action, event ─┐
 *   all modules: what they offer, whom they call ─► a plan of stubs for each caller
 *
 * A stub is taken if one module alone offers what it calls: then the dynamic linker has no choice.
 * Where there are several, the first one in the order of its list has it (link_order.h); but of modules that
 * came later than the program's start nobody can tell the order.  There nothing is
 * probed, and a note says so.
 *
 * Calls that go through a module's table and by no stub (-fno-plt, Rust) are taken where they
 * stand.  What other probes of the module have displaced stays as it is, and a note says so.
 *
 * Plans of stubs belong to their module and live as long; the same question gets the same plan.
 */
#ifndef COLLECT_INTERPOSING_H
#define COLLECT_INTERPOSING_H

#include "collect/attach/modules.h"
#include "inject/elf/links.h"

struct stub_plan {
	uint64_t hash; /* of the question */
	struct plan *plan;
	uint32_t *events; /* numbers in the trace */
	size_t nevents;
};

/* A probe that stands where its function is called. */
struct need {
	const struct module *callee;
	const struct link_export *export; /* NULL: by its vaddr, within the callee */
	const char *name;                 /* of the export, or "" */
	const char *shown;                /* a name of the function, or "" */
	uint64_t vaddr;
	struct place_action action;
	uint8_t where;
	uint32_t event;  /* number in the trace, BIND_EXIT: its exit; RESOLVE_NO_EVENT: it makes no
			  * sample */
	const char *why; /* refusal_key(), or "ifunc" */
};

struct interposing {
	struct modules *modules;
	VEC(struct module *) all; /* of the process; in the linker's order if `ordered` */
	bool ordered;
	VEC(struct need) needs; /* by name, once interposing_is_needed() was asked */
	VEC(struct err) notes;
};

void interposing_init(struct interposing *in, struct modules *ms);
void interposing_free(struct interposing *in);
/* A module whose full plan is made. */
void interposing_add_callee(struct interposing *in, struct module *m);
bool interposing_is_needed(struct interposing *in);
/* Reads the tables of modules that will be added, side by side. */
void interposing_read(struct module **v, size_t n);
/* Any module of the process.  False: its tables cannot be read. */
bool interposing_add_module(struct interposing *in, struct module *m);
/* All modules of the process pid, which is about to start, are known: where they lie, by the order
 * in which they were added. */
void interposing_order(struct interposing *in, pid_t pid, const uint64_t *bias, size_t n);
/* The plan for its stubs and calls; NULL: it calls nothing that is needed.  own: what else of it is
 * bound in the process, or NULL. */
struct binding;
int interposing_plan(struct interposing *in, struct module *m, const struct binding *own,
		     const struct stub_plan **out, struct err *err);
/* Forgets a module that is going away. */
void interposing_forget(struct module *m);

#endif

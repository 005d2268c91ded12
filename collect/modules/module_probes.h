/* SPDX-License-Identifier: MIT */
/*
 * module_probes.h - the user's probes (-p, -P) in the modules of a recording.
 *
 *   set + code map --resolve--> places, events --plan--> the module's full plan
 *                                        \--> numbers, table `events` of the trace
 *
 * A probe with an event of its own has one number in all modules; the others have a number for
 * each place.  Numbers that users chose are kept free by what is numbered by itself.
 */
#ifndef COLLECT_MODULE_PROBES_H
#define COLLECT_MODULE_PROBES_H

#include "inject/plan/plan.h"
#include "inject/resolve/resolve.h"
#include "probes/probe.h"

struct modules;
struct module;

/* What became of the probes so far, for the end of the recording. */
struct probe_result {
	uint32_t spec;
	uint64_t places; /* in all modules */
	VEC(char *) notes;
};
struct probe_results {
	struct probe_result *v; /* by number in the set */
	size_t n;
};

/* Which of a module's probes sleep (`kron ctl probe rm`).  WOKEN: they did. */
enum { PLACES_AWAKE, PLACES_ASLEEP, PLACES_WOKEN };
struct place_owner;
struct sleepers {
	const struct resolution *found;
	struct place_owner *owners; /* atomic: places by what they are; NULL: nobody has asked */
	const uint8_t *asleep;      /* by spec of the set: PLACES_*, atomic; NULL: none does */
	uint8_t *functions;         /* by function of the plan: likewise */
	uint8_t *ruled, *held;      /* likewise: 1: why it sleeps (function_sleep.h) */
	bool has_slept;             /* atomic: one of its functions has */
	uint64_t spared;            /* rules up to this number say nothing of it */
};

struct module_probes {
	struct resolution found;
	struct sleepers sleepers;
	uint32_t *events; /* by index in found.events: number in the trace */
	/* counts of the plan's PROBE_PLACE probes */
	uint64_t patched, refused;
	struct probe_set brought; /* by a patched file: the set that its events are of */
};

/* For struct binding: ctx is a struct sleepers. */
bool module_probes_sleep(void *ctx, const struct plan_probe *p);

void probe_results_init(struct probe_results *r, const struct probe_set *set);
void probe_results_free(struct probe_results *r);

/* Has the set a probe for this module?  img: to look for USDT notes, else NULL. */
bool module_probes_want(const struct probe_set *set, const struct module_name *name, bool is_exe,
			const struct elf_image *img);
/* Plans the module with the probes' places, and its functions if they are wanted, too. */
int module_probes_plan(struct modules *ms, struct module *m, bool functions, struct err *err);
/* What was found for each probe is added to the results of all. */
void module_probes_keep_results(struct modules *ms, const struct module *m);
/* The places that a patched file brought along, instead of a plan. */
struct patch_info;
void module_probes_take(struct module *m, const struct patch_info *info);
/* Why the probes that mean this module are not placed in it. */
void module_probes_refuse(struct modules *ms, const struct module *m, const char *why);
/* Numbers its events; called when its functions have theirs. */
int module_probes_number(struct modules *ms, struct module *m, struct err *err);
/* Its lines in the table `events`, and its refusals.  The journal is locked. */
int module_probes_write(struct modules *ms, const struct module *m, uint32_t id);
void module_probes_free(struct module_probes *p);
/* Where a row of n numbers begins that has none of those that users chose; at or after `from`. */
uint32_t module_probes_free_numbers(const struct probe_set *set, uint32_t from, uint32_t n);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * resolve.h - from what a user wrote to addresses of one module: probe_set + code map -> a
 * request for the planner, the events that its samples are, and a sentence for each probe that
 * found nothing.
 *
 *   probe_set --resolve_make--> places, actions --plan_make--> plan
 *                          \--> events (place_request.event is an index into them)
 *                          \--> notes: "no function is called mian; is it main?"
 *
 * A probe with an event of its own (NAME= or NUMBER=) is one event, wherever its places are.
 * One without is one event for each place, named after it: "main", "main%return", "main+0x1f".
 */
#ifndef INJECT_RESOLVE_H
#define INJECT_RESOLVE_H

#include "base/vec.h"
#include "inject/code/code_map.h"
#include "inject/plan/request.h"
#include "probes/probe.h"

#define RESOLVE_NO_EVENT UINT32_MAX /* of a place that makes no sample */

struct resolved_event {
	uint32_t spec;  /* index in the set */
	uint64_t vaddr; /* of the first place */
	char *name;
	char *payload; /* NAME:TYPE, where the debug information says which; NULL: as the spec has it */
};

/* Something that a user must hear. */
struct resolve_note {
	uint32_t spec;
	bool nothing; /* the probe found no place here at all */
	char *text;
};

/*
 * A function whose probe stands where it is called (callsite.h): one that is chosen among
 * several when the program starts (IFUNC), for at its address is the code that chooses; or one
 * whose return value is wanted, and which leaves by jumps into others.
 */
struct resolved_callsite {
	uint64_t vaddr; /* of the symbol */
	uint32_t spec, action, event;
	uint8_t where; /* PLACE_AFTER: when it has returned */
	bool is_ifunc;
};

struct resolution {
	VEC(struct place_request) places;
	VEC(size_t) ends; /* by spec of the set: where its places end */
	VEC(struct place_action) actions;
	VEC(struct resolved_event) events;
	VEC(struct resolve_note) notes;
	VEC(struct resolved_callsite) callsites;
	VEC(uint32_t) calls;      /* places that are where this file calls functions of others */
	VEC(uint64_t) semaphores; /* of USDT probes: vaddrs, each once */
};

/*
 * Only the probes that want this module; path as their OBJ: knows it.  Never fails: what cannot
 * be found becomes a note.
 */
void resolve_make(struct resolution *out, const struct probe_set *set, const struct code_map *map,
		  const char *path, bool is_exe);
/*
 * For a file that is alone (kron patch): functions of other files are probed where this one calls
 * them.  The map's functions have its stubs (callsite_add_stubs()).
 */
struct callsite_links;
struct plan;
void resolve_make_alone(struct resolution *out, const struct probe_set *set,
			const struct code_map *map, const char *path, struct callsite_links *links);
/* What the plan refused at a function of the file's own goes to where the file calls it by stubs.
 * True: some did, so plan anew. */
bool resolve_refused(struct resolution *r, const struct plan *plan,
		     const struct callsite_links *links);
/* The probes of a plan that stand there have TACTIC_CALLSITE. */
void resolve_mark_calls(const struct resolution *r, struct plan *plan);
void resolve_free(struct resolution *r);
/* What the event's value is called: NAME or NAME:TYPE; NULL: it has none. */
static inline const char *resolve_payload(const struct resolved_event *e,
					  const struct probe_spec *s)
{
	return e->payload ? e->payload : s->payload_name;
}
/* The spec that a place is for. */
uint32_t resolve_spec_of(const struct resolution *r, size_t place);
/* The places and actions as the planner takes them; points into r. */
struct plan_request resolve_request(const struct resolution *r, bool functions);
/* Has the module a note of a probe in the set?  Quick: reads the notes and nothing else. */
bool resolve_has_marker(const struct probe_set *set, const struct elf_image *img);

#endif

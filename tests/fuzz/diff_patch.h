/* SPDX-License-Identifier: MIT */
/* diff_patch.h - an image, planned, bound and patched; and which probes it must pass. */
#ifndef TESTS_FUZZ_DIFF_PATCH_H
#define TESTS_FUZZ_DIFF_PATCH_H

#include "inject/bind/bind.h"
#include "inject/plan/plan.h"
#include "tests/fuzz/diff.h"

enum where_probes { PROBES_FUNCTIONS, PROBES_SOME, PROBES_ALL, PROBES_KINDS };

/* What the places of a batch do. */
enum what_probes { ACTS_TRACE, ACTS_COUNT, ACTS_ANY, ACTS_KINDS };
#define ACTIONS 24u
#define LEVELS_ON 10u /* levels below it are on */

struct patched {
	struct plan *plan;
	enum what_probes what; /* with counts, what is dead may be lost */
	struct bound bound;
	uint64_t block;
	uint32_t *function_of; /* by plan function: number in the image */
	uint8_t *selected;
	VEC(struct place_request) places;
	struct place_action actions[ACTIONS];
	enum kron_thunk way;
	struct site_span { /* a site's stub */
		uint64_t start, end;
		const struct plan_site *site;
	} * spans;
};

_Noreturn void bail(const char *what, const char *why);
void prepare(struct patched *p, const struct image *im, enum where_probes kind, uint64_t seed);
void release(struct patched *p);
void patch_image(struct patched *p, const struct image *im, bool on);
/* The address in the original of one in a stub; others are their own. */
uint64_t original(const struct patched *p, const struct image *im, uint64_t rip);
/* Number of the function, or UINT32_MAX. */
unsigned function_at(const struct image *im, uint64_t rip);

struct expected {
	const struct patched *p;
	const struct image *im;
	const struct trail *t;
	VEC(struct event) v;
	uint64_t counts[16];
	bool is_ambiguous; /* a jump to the instruction after it: taken or not? */
};
/*
 * Does control come, by a ret or an indirect jump, where nobody can see that it may: into an
 * instruction, or to one that no call, table or function start names?
 */
bool goes_astray(const struct image *im, const struct trail *t);
#define PAYLOAD_ANY UINT64_MAX
/* The events that the steps of the trail must have made. */
void expect_all(struct expected *e);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * planner.h - the planner at work, shared by plan.c and the tactics.  Private to inject/.
 *
 * The planner takes one function after the other.  For each place that wants a probe it goes
 * up the ladder of tactics until one takes it:
 *
 *   place --ladder--> tactic_NAME() --> draft (a window and its probes) --> stub
 *                       \-- refusal: the next tactic, at last the place is refused
 *
 * State of a byte of code (enum planner_byte): free, or taken by exactly one draft.  A draft
 * owns every byte of its window, the padding too; those after its jump may be lent.  Whatever
 * takes bytes can be undone (planner_release) until the function's stubs are emitted; nothing is
 * written anywhere before.
 *
 * doc/HOWTO_ADD_TACTIC.md says how to add one.
 */
#ifndef INJECT_PLANNER_H
#define INJECT_PLANNER_H

#include <pthread.h>

#include "base/vec.h"
#include "inject/code/copied.h"
#include "inject/plan/plan.h"
#include "inject/plan/tactics.h"
#include "inject/plan/window.h"

/* Entry, hook and one exit an instruction fit; in long windows two at each instruction, and
 * what several probes at one place need. */
#define DRAFT_PROBES (WINDOW_INSNS + 8u)
#define DRAFT_LONG_PROBES 400u

/* Where a probe stands: at an instruction of a window. */
enum draft_where {
	DRAFT_BEFORE,  /* in front of it; an exit at a conditional jump: only when it is taken */
	DRAFT_AFTER,   /* where it falls through */
	DRAFT_TAKEN,   /* where a conditional jump leads to, when it does */
	DRAFT_RETURNED /* in front of it, but only when the call before it has returned: other ways
			* there lead into the stub after the probe */
};
struct draft_probe {
	uint32_t probe; /* number in the plan */
	uint8_t where;  /* enum draft_where */
	uint8_t tactic; /* what it counts as, if not as the draft's */
	uint64_t vaddr;
};

/* Probes of a draft: a list in planner.draft_probes. */
struct draft_link {
	struct draft_probe p;
	uint32_t next;
};
#define DRAFT_END UINT32_MAX

/* A site that is not final yet: the window, and its probes in order. */
struct draft {
	struct window w;
	uint32_t first, last; /* of its probes, DRAFT_END: none */
	uint16_t nprobes;
	uint8_t tactic;   /* what its first probe counts as; the others share */
	uint8_t jump;     /* WINDOW_JUMP or WINDOW_FAR, where it is not a short one */
	bool live;        /* false: released */
	uint64_t landing; /* 0, or the five bytes that the window's short jump goes to */
	uint8_t nrelays;  /* by way of this many short jumps, from this one of pl->relays on */
	uint32_t relays;
	uint8_t prefix; /* 0, or what stands before the jump: the place before it wants it so */
	bool is_guest;  /* they lie in the window of another draft, which holds them */
	bool is_detour; /* nothing is patched or displaced: all ways there lead into the stub */
	bool is_host;   /* bytes 5 to 9 of the window are another draft's landing */
};

/* What a place is and where a window for it may lie. */
struct place {
	uint64_t vaddr;
	uint32_t probe;   /* number of the probe that it is for, PLACE_NO_PROBE: only to displace */
	bool may_go_back; /* instructions before it may be displaced with it: exits and loops */
	uint8_t where;    /* enum draft_where */
};
#define PLACE_NO_PROBE UINT32_MAX

/* The function whose places are being taken. */
struct planner_function {
	uint64_t start;
	const uint32_t *ranges; /* numbers of the function and its parts, in map->functions */
	uint32_t nranges;
	/* Loops back to the first instruction must pass the entry probe by: every jump that
	 * closes one is displaced and leads into the entry's stub (draft 0). */
	bool has_loops;
	bool has_hooks; /* some of its sites may be patched without the others */
	/* All functions have been planned once: code of any of them may be evicted. */
	bool second_round;
	bool is_last; /* once more: now for what is slow, or takes much room from others */
};

/* A direct jump, conditional or not. */
struct planner_jump {
	uint64_t target, from;
	bool is_loop; /* loop, jrcxz: one byte of distance */
};

struct site_key {
	uint64_t vaddr;
	uint32_t number;
};
int planner_compare_sites(const void *a, const void *b);

/* What is made once, when somebody asks, for all that plan the same image side by side. */
struct planner_shared {
	pthread_mutex_t lock;
	struct frame_info *frames; /* where exceptions land */
	struct liveness *liveness;
};

struct planner {
	const struct code_map *map;
	uint8_t *bytes;            /* enum planner_byte, one a byte of code, from map->lo */
	bool position_independent; /* as in struct plan_options */
	uint8_t jump; /* of the function at work: WINDOW_JUMP, or WINDOW_FAR if it is copied */
	struct copied_code copied;
	uint64_t open_lo, open_hi; /* what of it is not locked */
	bool results; /* after "jmp *slot" means: when what it leads to has returned (callsite.h) */
	VEC(struct plan_probe) probes;
	VEC(struct draft) drafts; /* of the function at work */
	VEC(struct draft_link) draft_probes;
	VEC(uint64_t) relays;
	VEC(uint64_t) arrivals; /* where jumps out of other functions lead, sorted */
	bool is_long; /* windows are straight runs, not few instructions: for a request's places,
			    * and for functions that move out as a whole */
	uint8_t *one_only; /* by function: an indirect jump, in it or its parts, is unresolved */
	struct planner_function fn;
	VEC(struct planner_jump) jumps;     /* of the function at work, by target; see jumps_of */
	uint64_t jumps_of;                  /* its start */
	VEC(struct place) places;           /* of a request, in the function at work, by vaddr */
	const struct place_action *actions; /* of the request, NULL: there are none */
	bool is_counting;  /* some are counts or stores: what is dead may be lost */
	bool counts_calls; /* entries count, by actions[0] */
	bool counts_pages;
	bool keeps_calls; /* of the function at work: calls at which nothing is wanted (places.c) */
	uint16_t shown;   /* registers that some sample shows as its payload: bits */
	struct planner_shared *shared;
	uint32_t use;                    /* enum tactic_switch */
	VEC(struct site_key) site_index; /* of the first round's sites, by vaddr */
	/* finished stubs */
	VEC(struct plan_site) sites;
	VEC(uint16_t) entrances; /* by site: where in its stub who did not return comes in */
	VEC(struct plan_fixup) fixups;
	VEC(struct plan_map) maps;
	VEC(uint8_t) code;
};

/*
 * A tactic takes a place: adds a draft, or finds the place in one that is there or can grow, and
 * puts the probe there (planner_put).  Or a refusal, and the probe is nowhere.
 */
typedef enum refusal tactic_take(struct planner *pl, const struct place *place);

tactic_take tactic_jump, tactic_short, tactic_arrivals, tactic_detour, tactic_pun, tactic_relay,
	tactic_int3;
/* As what a window with a 5-byte jump counts. */
enum tactic tactic_jump_kind(const struct window *w);
/* Where the landing of a pun at vaddr may lie, as far as another function may hold it. */
#define TACTIC_PUN_REACHES 7u
void tactic_pun_reaches(uint64_t vaddr, uint64_t out[TACTIC_PUN_REACHES]);

/* ladder.c.  The lowest rung's reason is the refusal; int3 is not a rung. */
enum planner_rungs { PLANNER_LOWEST, PLANNER_ALL };
enum refusal planner_climb(struct planner *pl, const struct place *place, enum planner_rungs rungs);

/* int3 for an entry or an exit. */
enum refusal planner_trap(struct planner *pl, uint32_t probe);

/* The place's probe in front of its instruction, in this draft. */
enum refusal planner_put(struct planner *pl, uint32_t draft, const struct place *place);
/*
 * For many jumps near to each other that look for a landing: where there is none, from `lo` on.  Bytes may
 * only be taken meanwhile, and jumps stand at least 256 bytes inside.  Begins as zeros.
 */
#define LANDINGS_SPAN 2600u
struct landings {
	uint64_t lo;
	uint8_t no_padding[LANDINGS_SPAN]; /* not free, or no padding */
	uint8_t stays[LANDINGS_SPAN];      /* code that cannot move out */
};
/* Where a short jump at vaddr may lead: dead bytes, padding, or code that moves out; or 0. */
uint64_t tactic_short_landing(struct planner *pl, uint64_t vaddr, struct landings *known);
/* Code at vaddr moves out for what is to stand after its jump; the draft, or UINT32_MAX. */
uint32_t tactic_short_evict(struct planner *pl, uint64_t vaddr, unsigned len);
bool tactic_short_is_padding(const struct planner *pl, uint64_t vaddr);
/* A short jump for this window, and its landing, or a refusal. */
enum refusal tactic_short_hold(struct planner *pl, const struct window *w, uint32_t *draft);
/* The instruction is displaced, by a jump, a short one, at last by relays: it may stand in a window
 * already. */
enum refusal tactic_displace(struct planner *pl, uint64_t vaddr);

/*
 * The ways that lead to a place: direct jumps of the function, wherever its parts lie, and the
 * instruction before.  A refusal when there may be others.
 */
#define WAYS_MAX 256u
struct ways {
	struct draft_probe v[WAYS_MAX]; /* DRAFT_BEFORE: a jump; DRAFT_AFTER: falls through */
	unsigned n;
};
enum refusal tactic_find_ways(struct planner *pl, const struct place *place, struct ways *w);
/*
 * Every other way to where a call returns is displaced: then control that comes by the code
 * itself has returned.
 */
enum refusal tactic_part_ways(struct planner *pl, const struct place *place);

/* Adds another probe to the draft. */
enum refusal planner_put_at(struct planner *pl, uint32_t draft, const struct draft_probe *p);
/* How many more probes the draft may hold. */
unsigned planner_room(const struct planner *pl, uint32_t draft);

/* Scope of windows around vaddr, for a jump of this many bytes. */
struct window_scope planner_scope(const struct planner *pl, uint64_t vaddr, unsigned jump);
/*
 * Where the smallest window that goes back from the instruction at vaddr begins.  Only bytes
 * are counted here; window_make() judges the instructions.
 */
enum refusal planner_go_back(const struct planner *pl, const struct window_scope *scope,
			     uint64_t vaddr, uint64_t *start);
/* The draft whose window has an instruction at vaddr. */
enum refusal planner_share(const struct planner *pl, uint64_t vaddr, uint32_t *draft);
/* The bytes that the draft writes at its window's start, without a prefix. */
unsigned draft_head(const struct draft *d);
/* The finished site that begins at vaddr, or NULL.  In the second round only. */
struct plan_site *planner_site_at(struct planner *pl, uint64_t vaddr);
/* The one whose window holds vaddr, likewise. */
struct plan_site *planner_site_over(struct planner *pl, uint64_t vaddr);
/* The draft's window becomes one that also reaches over `through`, for a jump of this many bytes. */
enum refusal planner_grow(struct planner *pl, uint32_t draft, uint64_t through, unsigned jump);
/* A draft for this window: marks its bytes. */
uint32_t planner_hold(struct planner *pl, const struct window *w, enum tactic tactic);
/* The draft also holds a landing: padding, whose bytes it marks, or bytes of a host's window. */
void planner_land(struct planner *pl, uint32_t draft, uint64_t landing, struct draft *host);
/* A landing on dead bytes, of whichever window: is_long only. */
void planner_land_in(struct planner *pl, uint32_t draft, uint64_t landing);
/* tactic_relay.c: how a short jump comes to a landing. */
struct relay_way {
	uint64_t landing;
	unsigned n;
	uint64_t relay[KRON_RELAYS_MAX]; /* their bytes are held */
};
/* By way of this relay, if one may stand there. */
bool relay_find_from(struct planner *pl, uint64_t jump, uint64_t first, struct relay_way *way);
/* The draft's jump goes this way. */
void relay_take(struct planner *pl, uint32_t draft, const struct relay_way *way);
/* Marks the bytes of a draft that was released and may have another window now. */
void planner_hold_again(struct planner *pl, uint32_t draft);
/* Gives the bytes back.  The draft's probes are the caller's business. */
void planner_release(struct planner *pl, uint32_t draft);
/* The live draft of the function at work that holds vaddr, or UINT32_MAX. */
uint32_t planner_draft_at(const struct planner *pl, uint64_t vaddr);

/*
 * places.c: the ladder for n probes from number `first` on, places of a request in the function
 * at work, by vaddr.  Those that got nothing keep a refusal.
 */
void planner_take_places(struct planner *pl, uint32_t first, size_t n);
/* Those that are left over, when every function has had its turn. */
void planner_retry_places(struct planner *pl, uint32_t first, size_t n);

/* Every run of the function at work is displaced, without a probe. */
void planner_move_all(struct planner *pl);

static inline bool planner_is_free(const struct planner *pl, uint64_t vaddr)
{
	return pl->bytes[vaddr - pl->map->lo] == BYTE_FREE;
}

const struct liveness *planner_liveness(struct planner *pl);
/* What the unwinder enters with an exception in its registers. */
bool planner_is_landing_pad(struct planner *pl, uint64_t vaddr);

/* planner_copied.c: no byte of the n from map->lo + off on is taken; function i comes to work; and none
 * is at work any more. */
void planner_free_bytes(const struct planner *pl, uint64_t off, uint64_t n);
void planner_open_copied(struct planner *pl, uint32_t i);
void planner_close_copied(struct planner *pl);

/* plan_finish.c: sites by vaddr.  chained: control goes from stub to stub. */
void planner_sort_sites(struct planner *pl, bool chained);
void plan_mark_places(struct plan *p);
void plan_measure_span(struct plan *p);

/* emit.c: turn the drafts of the function at work into sites and stubs. */
void planner_emit(struct planner *pl, uint32_t plan_function);

#endif

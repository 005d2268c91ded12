/* SPDX-License-Identifier: MIT */
/*
 * strands.h - the open frames of a thread, kept in strands: runs of frames on one stretch of
 * stack memory.  Used by pairs.c only, which decides which strand a sample belongs to.
 *
 *      high addresses                                   stack pointers are 32 bits that wrap:
 *      ┌── bottom: frames[0]     ┐                      all comparisons are differences from
 *      │   frames[1]             │ strand A             the strand's bottom, below 2^31
 *      └── top:    frames[n-1]   ┘
 *               ...                                     the ranges of a set are disjoint, so
 *      ┌── bottom                ┐ strand B             one search by bottom finds the strand
 *      └── top                   ┘                      that holds an address, or the nearest
 *      low addresses                                    above it
 */
#ifndef TRACE_STRANDS_H
#define TRACE_STRANDS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/reader.h"

struct frame {
	uint32_t sp; /* low 32 bits of where the return address lies */
	uint32_t function;
	uint64_t entry, children; /* TSC */
	struct trace_bounds in;   /* of the entry */
	uint32_t node;            /* pair_sink.node's answer */
	uint32_t jump;            /* it has left by a jump: trace/jumps.h; 0: not */
	uint64_t sample;          /* as in struct moment, of its entry */
	bool paused;              /* other stacks ran meanwhile: children has that */
	bool asleep;              /* its function went to sleep since: its exit will not be seen */
};

/* When something of a lane was. */
struct moment {
	uint64_t tsc;
	struct trace_bounds in;
	uint64_t event;  /* how many events the lane had had, this one included */
	uint64_t sample; /* likewise, records of the runtime left out */
};

/* A frame of a strand; either may be gone by the time it is looked at. */
struct frame_ref {
	struct strand *strand;
	uint32_t serial;
	uint32_t index;
	uint64_t entry;
};

struct strand {
	struct frame *frames;
	uint32_t n, cap;
	uint32_t serial; /* changes when it is given back */
	uint32_t root;   /* the same in strands that were split from one */
	uint32_t base_depth;
	bool linked;   /* frames[0] was called by below; else below was only interrupted */
	bool aside;    /* cut off from another strand: waits there, or is dead */
	bool plain;    /* its samples have no stack pointers */
	bool was_left; /* it stood still once, and was not waited for */
	bool is_left;  /* so it is now, since: */
	struct moment left;
	bool pauses;          /* another strand runs, since: */
	struct moment paused; /* or up to then its top frame is charged; empty: when it was left */
	/* Of that time it ran, nobody else being known to: if it goes on, for else it has ended before. */
	struct {
		uint64_t tsc, samples;
	} ran;
	uint32_t waited; /* pairs.c: at which of the lane's switches it ran, or was waiting */
	struct frame_ref below;
	struct strand *begun_on; /* what ran then, as far as anyone can know; may be gone: */
	uint32_t begun_serial;
	uint32_t cut_function, cut_gap; /* aside: the frame that it was cut from, how far away */
	struct strand *next_free;
};

struct strand_set {
	struct strand **v; /* by bottom */
	uint32_t n, cap;
};

struct strand_pool {
	struct strand *free;
	uint32_t serial;
};

struct strand *strand_new(struct strand_pool *pool);
void strand_release(struct strand_pool *pool, struct strand *s);
void strand_pool_free(struct strand_pool *pool); /* those that were released */
void strand_grow(struct strand *s);

static inline uint32_t strand_bottom(const struct strand *s)
{
	return s->frames[0].sp;
}

static inline uint32_t strand_top(const struct strand *s)
{
	return s->frames[s->n - 1].sp;
}

static inline void strand_push(struct strand *s, const struct trace_event *e, uint32_t function,
			       uint64_t sample)
{
	struct frame *f;

	if (s->n == s->cap)
		strand_grow(s);
	f = &s->frames[s->n++];
	f->sp = e->s.payload;
	f->function = function;
	f->entry = e->tsc;
	f->in = e->in;
	f->children = 0;
	f->node = 0;
	f->jump = 0;
	f->sample = sample;
	f->paused = false;
	f->asleep = false;
}

/* How many frames, from the bottom, lie above sp; sp is within 2^31 below the bottom. */
uint32_t strand_above(const struct strand *s, uint32_t sp);
/* Whether sp lies between bottom and top, both included. */
static inline bool strand_holds(const struct strand *s, uint32_t sp)
{
	return strand_bottom(s) - sp <= strand_bottom(s) - strand_top(s);
}

struct frame_ref frame_ref_to(struct strand *s, uint32_t index);
/* The frame, or NULL when it is gone. */
struct frame *frame_ref_get(const struct frame_ref *r);

void strand_set_add(struct strand_set *set, struct strand *s); /* by its bottom */
void strand_set_remove(struct strand_set *set, struct strand *s);
/* The strand that holds sp, or the next one above it; NULL when there is none at all. */
struct strand *strand_set_find(const struct strand_set *set, uint32_t sp);
/* The strand whose bottom is the next one below sp. */
struct strand *strand_set_below(const struct strand_set *set, uint32_t sp);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * sink.h - where samples go that leave the pool, or a board's memory.
 *
 *   drain.c: chunks of the pool ────┐        ┌─► the trace (drain_write.c)
 *                                   ├─► sink ┤
 *   fetch.c: samples of a board ────┘        └─► a watch (collect/watch/), and what it wants of
 *                                                them on to the trace
 *
 * Belongs to the drain thread, and after its end to collector_finish().
 */
#ifndef COLLECT_SINK_H
#define COLLECT_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "collect/tasks.h"
#include "trace/format.h"

/* A chunk of the pool that nobody stores into any more. */
struct sink_chunk {
	uint32_t chunk;    /* its number there */
	uint32_t samples;  /* special records left out */
	bool has_counters; /* of Resource samples */
	struct trace_chunk head;
	struct chunk_owner owner;
};

/* LEAVE: it has the chunk, or wants to look at it first.  TAKE: it holds *samples samples, whole.
 * JUDGE: nothing is known of it. */
enum sink_advice { SINK_LEAVE, SINK_TAKE, SINK_JUDGE };

struct sink;
/* NULL: nothing to do, or SINK_JUDGE. */
struct sink_ops {
	/* It stays in the pool until the sink frees it.  How many chunks are done with: of the pool,
	 * this one or those before. */
	uint32_t (*take)(struct sink *s, const struct sink_chunk *c);
	/* Samples that are not in the pool: copied, or written.  0 or -errno. */
	int (*take_bytes)(struct sink *s, const struct trace_chunk *head, const void *bytes,
			  uint32_t samples, const struct chunk_owner *o);
	/* What was taken and waits; as take(). */
	uint32_t (*flush)(struct sink *s);
	/* What of this chunk of the pool, full or in use, is to be done before take()? */
	enum sink_advice (*advise)(const struct sink *s, uint32_t chunk, bool full,
				   uint32_t *samples);
	/* Samples of some thread were lost, and no record says where. */
	void (*lost)(struct sink *s);
	/* Of a board: it has handed on all that it had at this time, by the clock of its samples. */
	void (*fetched)(struct sink *s, uint64_t tsc);
	/* Before a round, and after it; last: nothing more will come. */
	void (*look)(struct sink *s, bool last);
	void (*settle)(struct sink *s);
	/* How long the next round may wait, of `ms` milliseconds. */
	uint32_t (*patience)(const struct sink *s, uint32_t ms);
};
struct sink {
	const struct sink_ops *ops;
};

static inline uint32_t sink_take(struct sink *s, const struct sink_chunk *c)
{
	return s->ops->take(s, c);
}

static inline int sink_take_bytes(struct sink *s, const struct trace_chunk *head, const void *bytes,
				  uint32_t samples, const struct chunk_owner *o)
{
	return s->ops->take_bytes(s, head, bytes, samples, o);
}

static inline uint32_t sink_flush(struct sink *s)
{
	return s->ops->flush ? s->ops->flush(s) : 0;
}

static inline enum sink_advice sink_advise(const struct sink *s, uint32_t chunk, bool full,
					   uint32_t *samples)
{
	return s->ops->advise ? s->ops->advise(s, chunk, full, samples) : SINK_JUDGE;
}

static inline void sink_lost(struct sink *s)
{
	if (s->ops->lost)
		s->ops->lost(s);
}

static inline bool sink_wants_time(const struct sink *s)
{
	return s->ops->fetched != NULL;
}

static inline void sink_fetched(struct sink *s, uint64_t tsc)
{
	if (s->ops->fetched)
		s->ops->fetched(s, tsc);
}

static inline void sink_look(struct sink *s, bool last)
{
	if (s->ops->look)
		s->ops->look(s, last);
}

static inline void sink_settle(struct sink *s)
{
	if (s->ops->settle)
		s->ops->settle(s);
}

static inline uint32_t sink_patience(const struct sink *s, uint32_t ms)
{
	return s->ops->patience ? s->ops->patience(s, ms) : ms;
}

#endif

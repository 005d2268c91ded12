/* SPDX-License-Identifier: MIT */
/*
 * sources.h - whose samples are they that came through a board?  The collector's side of the
 * segment's source table (kron/segment.h).
 *
 *   entry FULL ──sources_look()──► known: who, since when ──► sources_find(source, time)
 *   thread gone, and its samples fetched since ──sources_look()──► entry free, forgotten
 *
 * One thread id may have had several threads; a sample belongs to the last one that began
 * before it.
 */
#ifndef COLLECT_SOURCES_H
#define COLLECT_SOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "collect/board_setup.h"
#include "collect/tasks.h"

struct source {
	uint64_t word;   /* as in the table; 0: this place is unused */
	uint64_t since;  /* board time */
	uint32_t source; /* source address */
	uint32_t next;   /* index + 1 of the next one with the same hash */
	uint32_t entry;  /* in the table */
	uint32_t gone;   /* rounds since it was seen that the thread is gone */
};

#define SOURCES_HASH 4096u

struct sources {
	struct segment *seg;
	struct tasks *tasks;
	const struct board_clock *clock;
	struct kron_source *table;
	bool keep; /* leave the entries of threads that are gone in the table while it has room */
	VEC(struct source) all;
	uint32_t unused; /* index + 1 of a place in `all` that may be used again */
	uint32_t hash[SOURCES_HASH];
	uint32_t used; /* entries from here on were never seen in use */
	uint32_t *at;  /* by entry: index + 1 in `all` */
};

void sources_init(struct sources *s, struct segment *seg, struct tasks *t,
		  struct kron_source *table, const struct board_clock *clock);
void sources_free(struct sources *s);

/*
 * Look for new entries; deaths: and for threads that are gone.  Between two calls with deaths
 * all samples must be fetched.  Returns how many are new.
 */
uint32_t sources_look(struct sources *s, bool deaths, bool thorough);

/* NULL: nobody that we know. */
const struct source *sources_find(const struct sources *s, uint32_t source, uint64_t ticks);

#endif

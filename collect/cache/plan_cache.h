/* SPDX-License-Identifier: MIT */
/*
 * plan_cache.h - plans on disk, in $XDG_CACHE_HOME/kron or ~/.cache/kron.
 *
 *   <sum of the bytes, hex>-v<PLAN_VERSION>-<full|hooks>.plan
 *   ...-<hash of the request>.plan      with the places of probes
 *   ...-t<set of tactics>.plan          with other tactics than usual
 *   known-<identities of files>         their sum, so that they need not be read (plan_source.h)
 *
 * A plan is found by what it was made from and by nothing else: two files that differ in one byte
 * have two plans, whatever they say about themselves.
 *
 * There are never more than max_bytes of plans: those used longest ago go when one is written.
 * After a recording, once a day, those go that were not used for CACHE_DAYS (cache_room.c).
 *
 * A cache is a convenience: whatever is wrong with it (missing home, read-only, full, damaged files,
 * somebody else's files) costs time and nothing else.
 */
#ifndef COLLECT_PLAN_CACHE_H
#define COLLECT_PLAN_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "collect/cache/plan_source.h"
#include "inject/code/code_map.h"
#include "inject/plan/plan.h"

#define PLAN_CACHE_BYTES (512ull << 20)

struct plan_cache {
	char *path;         /* where it is to be; NULL: there is no place */
	int dir;            /* -1: there is no cache */
	uint64_t max_bytes; /* PLAN_CACHE_BYTES after plan_cache_open() */
	uint32_t tactics;   /* enum tactic_switch, for plans of probes; 0: the default */
};

/* Values of XDG_CACHE_HOME and HOME; NULL or relative ones are not places. */
void plan_cache_open(struct plan_cache *c, const char *xdg_cache_home, const char *home);
void plan_cache_close(struct plan_cache *c);

/* Remove what was not used for long, if that was not done since yesterday. */
void plan_cache_trim(const struct plan_cache *c);

/*
 * The plan from the cache, else made and put there.  As plan_make(); -ESTALE, with a sentence: the
 * file was changed while it was planned.
 */
int plan_cache_get(const struct plan_cache *c, struct plan **out, const struct elf_image *img,
		   bool hooks_only, struct err *err);
/* Likewise, but the entries of functions count, and exits have no probes. */
int plan_cache_get_counting(const struct plan_cache *c, struct plan **out,
			    const struct elf_image *img, struct err *err);

/* Would that be had without making it? */
bool plan_cache_has(const struct plan_cache *c, const struct elf_image *img);

/*
 * The same for a plan with the places of a request, of the image that the map is of.  The source is
 * found before anything of the image is read.
 */
void plan_cache_source(const struct plan_cache *c, struct plan_source *s,
		       const struct elf_image *img);
int plan_cache_get_request(const struct plan_cache *c, struct plan **out, struct plan_source *s,
			   const struct code_map *map, const struct plan_request *request,
			   struct err *err);

#endif

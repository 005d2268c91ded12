/* SPDX-License-Identifier: MIT */
/*
 * plan_cache.h - plans on disk, in $XDG_CACHE_HOME/kron or ~/.cache/kron.
 *
 *   <build-id hex>-<file size hex>-<debug file's mtime hex>-v<PLAN_VERSION>-<full|hooks>.plan
 *   ...-<hash of the request>.plan      with the places of probes
 *   ...-t<set of tactics>.plan          with other tactics than usual
 *   f<dev>.<ino>.<mtime>-...      when the file has no build-id
 *
 * Once a day, after a recording, the plans go that were not used for PLAN_CACHE_DAYS, and those
 * used longest ago until the rest is small enough (plan_trim.c).
 *
 * A cache is a convenience: whatever is wrong with it (missing home, read-only, damaged files,
 * somebody else's files) costs time and nothing else.
 */
#ifndef COLLECT_PLAN_CACHE_H
#define COLLECT_PLAN_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "inject/code_map.h"
#include "inject/plan.h"

#define PLAN_CACHE_BYTES (512ull << 20)
#define PLAN_CACHE_DAYS 90

struct plan_cache {
	char *dir;          /* NULL: there is no cache */
	uint64_t max_bytes; /* PLAN_CACHE_BYTES after plan_cache_open() */
	uint32_t tactics;   /* enum tactic_switch, for plans of probes; 0: the default */
};

/* Values of XDG_CACHE_HOME and HOME; NULL or relative ones are no place. */
void plan_cache_open(struct plan_cache *c, const char *xdg_cache_home, const char *home);
void plan_cache_close(struct plan_cache *c);

/* Remove what was not used for long, if that was not done since yesterday. */
void plan_cache_trim(const struct plan_cache *c);

/* The plan from the cache, else made and put there.  As plan_make(). */
int plan_cache_get(const struct plan_cache *c, struct plan **out, const struct elf_image *img,
		   bool hooks_only, struct err *err);

/* The same for a plan with the places of a request, of the image that the map is of. */
int plan_cache_get_request(const struct plan_cache *c, struct plan **out,
			   const struct code_map *map, const struct plan_request *request,
			   struct err *err);

/* The file that would hold the plan, allocated; for tests and for `kron list -v`. */
char *plan_cache_path(const struct plan_cache *c, const struct elf_image *img, bool hooks_only);

#endif

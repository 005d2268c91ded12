/* SPDX-License-Identifier: MIT */
/*
 * plan_cache.c - see plan_cache.h.
 *
 *   image ─► source ─► key ─► load ─────────────────────────────────────► plan
 *                              └ none ─► sum, if it was only known ─► make ─► unchanged? ─► store
 */
#define _GNU_SOURCE
#include "collect/cache/plan_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/vec.h"
#include "collect/cache/cache_dir.h"

#define USE_GRAIN 300 /* seconds: how well the cache knows when a plan was used */

_Static_assert(PLAN_SOURCE_LEN == CONTENT_LEN, "plan_key.source");

void plan_cache_open(struct plan_cache *c, const char *xdg_cache_home, const char *home)
{
	struct err err;

	*c = (struct plan_cache){.dir = -1, .max_bytes = PLAN_CACHE_BYTES};
	if (xdg_cache_home && xdg_cache_home[0] == '/')
		c->path = xasprintf("%s/kron", xdg_cache_home);
	else if (home && home[0] == '/')
		c->path = xasprintf("%s/.cache/kron", home);
	if (c->path)
		c->dir = cache_dir_open(c->path, &err);
	if (c->path && c->dir < 0) {
		c->dir = -1;
		log_warn("cache", "plans are not kept: %s", err.msg);
	}
}

void plan_cache_close(struct plan_cache *c)
{
	if (c->dir >= 0)
		close(c->dir);
	c->dir = -1;
	xfree(c->path);
	c->path = NULL;
}

void plan_cache_trim(const struct plan_cache *c)
{
	if (c->dir >= 0)
		cache_room_trim(c->dir, c->max_bytes);
}

/* ---- names and keys ---- */

#define NAME_MAX_LEN (CONTENT_TEXT + 80)

static struct plan_key key_of(const struct plan_source *s, const struct plan_options *opt)
{
	struct plan_key key = {
		.tactics = opt->tactics,
		.request = opt->request ? plan_request_hash(opt->request) : 0,
		.hooks_only = opt->hooks_only,
	};

	memcpy(key.source, s->content.v, CONTENT_LEN);
	return key;
}

static void name_plan(char name[NAME_MAX_LEN], const struct plan_source *s,
		      const struct plan_key *key, bool has_request)
{
	char source[CONTENT_TEXT], kind[20], tactics[16] = "";

	content_write(source, &s->content);
	snprintf(kind, sizeof(kind), "%s", key->hooks_only ? "hooks" : "full");
	if (has_request)
		snprintf(kind, sizeof(kind), "%016" PRIx64, key->request);
	if (key->tactics)
		snprintf(tactics, sizeof(tactics), "-t%" PRIx32, key->tactics);
	snprintf(name, NAME_MAX_LEN, "%s-v%u-%s%s" CACHE_ENTRY, source, PLAN_VERSION, kind,
		 tactics);
}

/* ---- load and store ---- */

/* Its mtime says when a plan was last used; that it cannot be set is no harm. */
static void note_use(int fd, const struct stat *st)
{
	if (time(NULL) - st->st_mtime > USE_GRAIN)
		futimens(fd, NULL);
}

static int load_plan(const struct plan_cache *c, const char *name, const struct plan_key *key,
		     struct plan **out)
{
	struct err err;
	struct stat st;
	int fd = cache_dir_get(c->dir, name, &st), code = fd;

	if (fd >= 0) {
		code = plan_load(out, key, fd, &err);
		if (!code)
			note_use(fd, &st);
		close(fd);
	}
	if (code && code != -ENOENT)
		log_info("cache", "%s/%s is of no use: %s", c->path, name,
			 fd >= 0 ? err.msg : "it may be somebody else's");
	return code;
}

struct storing {
	const struct plan *plan;
	const struct plan_key *key;
};

static int fill(int fd, void *ctx, struct err *err)
{
	const struct storing *s = ctx;

	return plan_save(s->plan, s->key, fd, err);
}

static void store_plan(const struct plan_cache *c, const char *name, const struct plan_key *key,
		       const struct plan *p)
{
	struct storing s = {p, key};
	struct err err = {{0}};

	if (cache_dir_put(c->dir, name, plan_file_size(p), c->max_bytes, fill, &s, &err))
		log_info("cache", "cannot keep %s/%s: %s", c->path, name, err.msg);
}

/* ---- the whole ---- */

static int has_changed(const struct elf_image *img, struct plan **plan, struct err *err)
{
	plan_free(*plan);
	*plan = NULL;
	return err_set(err, ESTALE, "%s was changed while it was planned", img->path);
}

/* The map, if there is one, was made since the source was found. */
static int make_and_store(const struct plan_cache *c, const struct plan_source *s,
			  const struct code_map *map, const struct plan_options *opt,
			  const char *name, const struct plan_key *key, struct plan **out,
			  struct err *err)
{
	int code = map ? plan_make_from(out, map, opt, err) : plan_make(out, s->img, opt, err);

	if (code)
		return code;
	if (!plan_source_stayed(s))
		return has_changed(s->img, out, err);
	store_plan(c, name, key, *out);
	return 0;
}

static int get(const struct plan_cache *c, struct plan_source *s, const struct code_map *map,
	       const struct plan_options *opt, struct plan **out, struct err *err)
{
	char name[NAME_MAX_LEN];
	struct plan_key key;

	for (;; plan_source_sum(s, c->dir)) {
		key = key_of(s, opt);
		name_plan(name, s, &key, opt->request);
		if (!load_plan(c, name, &key, out))
			return map && !plan_source_stayed(s) ? has_changed(s->img, out, err) : 0;
		if (!s->is_known) /* what is about to be written must be right */
			return make_and_store(c, s, map, opt, name, &key, out, err);
	}
}

static int get_of(const struct plan_cache *c, struct plan **out, const struct elf_image *img,
		  const struct plan_options *opt, struct err *err)
{
	struct plan_source s;

	if (c->dir < 0)
		return plan_make(out, img, opt, err);
	plan_cache_source(c, &s, img);
	return get(c, &s, NULL, opt, out, err);
}

int plan_cache_get(const struct plan_cache *c, struct plan **out, const struct elf_image *img,
		   bool hooks_only, struct err *err)
{
	struct plan_options opt = {.hooks_only = hooks_only,
				   .tactics = hooks_only ? 0 : c->tactics};

	return get_of(c, out, img, &opt, err);
}

int plan_cache_get_counting(const struct plan_cache *c, struct plan **out,
			    const struct elf_image *img, struct err *err)
{
	static const struct place_action call = {.kind = ACTION_CALLS, .ungated = 1};
	static const struct plan_request request = {
		.actions = &call, .nactions = 1, .functions = true, .calls = true};
	struct plan_options opt = {.request = &request, .tactics = c->tactics};

	return get_of(c, out, img, &opt, err);
}

bool plan_cache_has(const struct plan_cache *c, const struct elf_image *img)
{
	struct plan_options opt = {.tactics = c->tactics};
	char name[NAME_MAX_LEN];
	struct plan_source s;
	struct plan_key key;
	struct plan *p;

	if (c->dir < 0)
		return false;
	plan_cache_source(c, &s, img);
	for (;; plan_source_sum(&s, c->dir)) {
		key = key_of(&s, &opt);
		name_plan(name, &s, &key, NULL);
		if (!load_plan(c, name, &key, &p)) {
			plan_free(p);
			return true;
		}
		if (!s.is_known)
			return false;
	}
}

void plan_cache_source(const struct plan_cache *c, struct plan_source *s,
		       const struct elf_image *img)
{
	if (c->dir >= 0)
		plan_source_find(s, img, c->dir);
}

int plan_cache_get_request(const struct plan_cache *c, struct plan **out, struct plan_source *s,
			   const struct code_map *map, const struct plan_request *request,
			   struct err *err)
{
	struct plan_options opt = {.request = request, .tactics = c->tactics};

	if (c->dir < 0)
		return plan_make_from(out, map, &opt, err);
	return get(c, s, map, &opt, out, err);
}

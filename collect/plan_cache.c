/* SPDX-License-Identifier: MIT */
/*
 * plan_cache.c - see plan_cache.h.
 *
 * A plan file is written under another name and renamed: who opens one finds a whole one.
 * Nothing is fsynced; what a power failure damages, plan_load() refuses.
 */
#define _GNU_SOURCE
#include "collect/plan_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/vec.h"

void plan_cache_open(struct plan_cache *c, const char *xdg_cache_home, const char *home)
{
	c->dir = NULL;
	c->max_bytes = PLAN_CACHE_BYTES;
	if (xdg_cache_home && xdg_cache_home[0] == '/')
		c->dir = xasprintf("%s/kron", xdg_cache_home);
	else if (home && home[0] == '/')
		c->dir = xasprintf("%s/.cache/kron", home);
}

void plan_cache_close(struct plan_cache *c)
{
	xfree(c->dir);
	c->dir = NULL;
}

static void hex_of(char *out, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sprintf(out + 2 * i, "%02x", bytes[i]);
}

/* A debug file that is installed later gives better names: its age is part of the key. */
static uint64_t debug_file_mtime(const char *build_id)
{
	struct stat st;
	char path[160];

	if (strlen(build_id) < 3)
		return 0;
	snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", build_id,
		 build_id + 2);
	return stat(path, &st) ? 0 : (uint64_t)st.st_mtime;
}

static char *path_of(const struct plan_cache *c, const struct elf_image *img, const char *kind)
{
	char id[2 * sizeof(img->build_id) + 1] = "";
	char *key, *path, tactics[16] = "";

	if (!c->dir)
		return NULL;
	if (img->build_id_len) {
		hex_of(id, img->build_id, img->build_id_len);
		key = xstrdup(id);
	} else if (img->ino) {
		key = xasprintf("f%" PRIx64 ".%" PRIx64 ".%" PRIx64, img->dev, img->ino,
				img->mtime_ns);
	} else {
		return NULL;
	}
	if (c->tactics)
		snprintf(tactics, sizeof(tactics), "-t%" PRIx32, c->tactics);
	path = xasprintf("%s/%s-%zx-%" PRIx64 "-v%u-%s%s.plan", c->dir, key, img->size,
			 debug_file_mtime(id), PLAN_VERSION, kind, tactics);
	xfree(key);
	return path;
}

char *plan_cache_path(const struct plan_cache *c, const struct elf_image *img, bool hooks_only)
{
	return path_of(c, img, hooks_only ? "hooks" : "full");
}

/* Plans become code in traced processes: take none that another user could have written. */
static bool is_own_file(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid() &&
	       !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* Its mtime says when a plan was last used, right to an hour; that it cannot be set is no harm. */
static void note_use(int fd, const struct stat *st)
{
	if (time(NULL) - st->st_mtime > 3600)
		futimens(fd, NULL);
}

static int load_plan(const char *path, const struct elf_image *img, struct plan **out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct err err;
	struct stat st;
	int code;

	if (fd < 0)
		return -errno;
	code = !fstat(fd, &st) && is_own_file(&st) ? plan_load(out, fd, &err) : -EPERM;
	if (!code)
		note_use(fd, &st);
	close(fd);
	if (!code && ((*out)->build_id_len != img->build_id_len ||
		      memcmp((*out)->build_id, img->build_id, img->build_id_len))) {
		plan_free(*out);
		*out = NULL;
		code = -EINVAL;
	}
	if (code)
		log_info("cache", "%s is of no use: %s", path,
			 code == -EPERM ? "it may be somebody else's" : "it is damaged");
	return code;
}

static void make_dir(const char *dir)
{
	char *parent = xstrdup(dir), *slash = strrchr(parent, '/');

	if (mkdir(dir, 0700) && errno == ENOENT && slash && slash != parent) {
		*slash = 0;
		mkdir(parent, 0700);
		mkdir(dir, 0700);
	}
	xfree(parent);
}

static int open_temp(const struct plan_cache *c, char **temp)
{
	int fd;

	*temp = xasprintf("%s/.new-XXXXXX", c->dir);
	fd = mkostemp(*temp, O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		make_dir(c->dir);
		xfree(*temp);
		*temp = xasprintf("%s/.new-XXXXXX", c->dir);
		fd = mkostemp(*temp, O_CLOEXEC);
	}
	return fd;
}

static void store_plan(const struct plan_cache *c, const char *path, const struct plan *p)
{
	struct err err = {{0}};
	char *temp;
	int fd = open_temp(c, &temp);
	int code;

	if (fd < 0) {
		log_info("cache", "cannot write to %s: %s", c->dir, strerror(errno));
		xfree(temp);
		return;
	}
	code = plan_save(p, fd, &err);
	if (close(fd) && !code)
		code = err_set(&err, errno, "%s", strerror(errno));
	if (!code && rename(temp, path))
		code = err_set(&err, errno, "%s", strerror(errno));
	if (code) {
		unlink(temp);
		log_info("cache", "cannot write %s: %s", path, err.msg);
	}
	xfree(temp);
}

int plan_cache_get(const struct plan_cache *c, struct plan **out, const struct elf_image *img,
		   bool hooks_only, struct err *err)
{
	struct plan_options opt = {.hooks_only = hooks_only,
				   .tactics = hooks_only ? 0 : c->tactics};
	char *path = plan_cache_path(c, img, hooks_only);
	int code = path ? load_plan(path, img, out) : -ENOENT;

	if (code) {
		code = plan_make(out, img, &opt, err);
		if (!code && path)
			store_plan(c, path, *out);
	}
	xfree(path);
	return code;
}

int plan_cache_get_request(const struct plan_cache *c, struct plan **out,
			   const struct code_map *map, const struct plan_request *request,
			   struct err *err)
{
	struct plan_options opt = {.request = request, .tactics = c->tactics};
	char kind[32], *path;
	int code;

	snprintf(kind, sizeof(kind), "%016" PRIx64, plan_request_hash(request));
	path = path_of(c, map->img, kind);
	code = path ? load_plan(path, map->img, out) : -ENOENT;
	if (code) {
		code = plan_make_from(out, map, &opt, err);
		if (!code && path)
			store_plan(c, path, *out);
	}
	xfree(path);
	return code;
}

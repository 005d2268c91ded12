/* SPDX-License-Identifier: MIT */
/*
 * plan_trim.c - keeps the plan cache from growing for ever.
 *
 *   .trimmed    empty; its mtime is when we were last here, its lock is whoever is at it
 *   *.plan      mtime: last use, right to an hour (plan_cache.c)
 *
 * A plan that goes while another kron reads it is whole for that one, which has it open; one
 * that goes before is made again.  So nothing here has to be right about who uses what, only
 * about what is ours: plan files, by their names, of this user.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/vec.h"
#include "collect/plan_cache.h"

#define MARK ".trimmed"
#define DAY (24 * 60 * 60)

struct cached {
	char *name;
	int64_t used; /* mtime, seconds */
	uint64_t size;
};
struct cached_files { /* as VEC() has it */
	struct cached *v;
	size_t n, cap;
};

static bool has_suffix(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n > m && !strcmp(s + n - m, suffix);
}

static bool is_left_over(const char *name) /* of a kron that was killed while it wrote */
{
	return !strncmp(name, ".new-", 5) && strlen(name) == 11;
}

/* The mark, locked; -1: it is not time yet, another kron is at it, or there is no cache.  A mark
 * of the far future is a clock that was set back. */
static int take_mark(int dir, int64_t now)
{
	struct stat st;
	int fd = openat(dir, MARK, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	bool is_new = fd < 0 && errno == ENOENT;

	if (is_new)
		fd = openat(dir, MARK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) &&
	    (is_new || st.st_mtime > now + DAY || now - st.st_mtime >= DAY) &&
	    !flock(fd, LOCK_EX | LOCK_NB) && !futimens(fd, NULL))
		return fd;
	close(fd);
	return -1;
}

/* A day old, so that nobody writes there any more. */
static void remove_left_over(int dir, const char *name, int64_t now)
{
	struct stat st;

	if (!fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
	    st.st_uid == geteuid() && now - st.st_mtime > DAY)
		unlinkat(dir, name, 0);
}

static void list_plans(DIR *d, struct cached_files *out, int64_t now)
{
	struct dirent *e;
	struct stat st;

	while ((e = readdir(d))) {
		if (is_left_over(e->d_name))
			remove_left_over(dirfd(d), e->d_name, now);
		if (e->d_name[0] != '.' && has_suffix(e->d_name, ".plan") &&
		    !fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    S_ISREG(st.st_mode) && st.st_uid == geteuid())
			*vec_push(out) = (struct cached){.name = xstrdup(e->d_name),
							 .used = st.st_mtime,
							 .size = (uint64_t)st.st_blocks * 512};
	}
}

static int latest_first(const void *a, const void *b)
{
	const struct cached *x = a, *y = b;

	return x->used > y->used ? -1 : x->used < y->used;
}

/* Those used longest ago go, until what stays is young and small enough. */
static void remove_plans(int dir, struct cached_files *files, uint64_t max, int64_t now)
{
	uint64_t kept = 0, removed = 0;

	if (files->n)
		qsort(files->v, files->n, sizeof(*files->v), latest_first);
	vec_for(files, f) {
		bool fits = f->size <= max - kept;

		if (fits && now - f->used <= (int64_t)PLAN_CACHE_DAYS * DAY)
			kept += f->size;
		else
			removed += !unlinkat(dir, f->name, 0);
		if (!fits) /* nor does anything older stay: its use was longer ago */
			max = kept;
	}
	log_info("cache", "%" PRIu64 " plans removed, %" PRIu64 " KiB stay", removed, kept / 1024);
}

void plan_cache_trim(const struct plan_cache *c)
{
	DIR *d = c->dir ? opendir(c->dir) : NULL;
	struct cached_files files = {0};
	int64_t now = time(NULL);
	int mark;

	if (!d)
		return;
	mark = take_mark(dirfd(d), now);
	if (mark >= 0) {
		list_plans(d, &files, now);
		remove_plans(dirfd(d), &files, c->max_bytes, now);
		vec_for(&files, f)
			xfree(f->name);
		vec_free(&files);
		close(mark);
	}
	closedir(d);
}

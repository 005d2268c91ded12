/* SPDX-License-Identifier: MIT */
/*
 * cache_dir.c - see cache_dir.h.
 *
 * What is read here goes into the code of running programs, root's too.  So nothing on the way to
 * it is believed by its name: each step is opened, looked at, and only then gone through.
 *
 * Nothing is fsynced: what a power failure leaves half written, its checksum gives away.
 */
#define _GNU_SOURCE
#include "collect/cache/cache_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/vec.h"

#define LINKS_MAX 40

/* ---- the way to the folder ---- */

struct way {
	int at;         /* the folder that was reached */
	char *rest;     /* from there on; no slash in front */
	unsigned links; /* gone through */
	bool is_closed; /* below a folder of ours that nobody else can enter */
	const char *path;
	struct err *err;
};

static bool is_trusted_owner(const struct stat *st)
{
	return !st->st_uid || st->st_uid == geteuid();
}

static bool keeps_others_out(const struct way *w, const struct stat *st)
{
	return w->is_closed || !(st->st_mode & (S_IWGRP | S_IWOTH)) || st->st_mode & S_ISVTX;
}

static int refuse(const struct way *w, const char *why)
{
	return err_set(w->err, EPERM, "%s cannot be trusted: %s", w->path, why);
}

static int start_over(struct way *w)
{
	if (w->at >= 0)
		close(w->at);
	w->is_closed = false;
	w->at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return w->at < 0 ? err_set(w->err, errno, "/: %s", strerror(errno)) : 0;
}

/* The target goes in front of the rest. */
static int follow_link(struct way *w, int link)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(link, "", target, sizeof(target) - 1);
	char *rest;

	if (n <= 0 || ++w->links > LINKS_MAX)
		return err_set(w->err, n < 0 ? errno : ELOOP, "%s: %s", w->path,
			       strerror(n < 0 ? errno : ELOOP));
	target[n] = 0;
	rest = xasprintf("%s/%s", target, w->rest);
	xfree(w->rest);
	w->rest = rest;
	return *target == '/' ? start_over(w) : 0;
}

static int enter_dir(struct way *w, int next, const struct stat *st)
{
	if (!keeps_others_out(w, st))
		return refuse(w, "others may write to a folder on the way to it");
	w->is_closed |= st->st_uid == geteuid() && !(st->st_mode & (S_IXGRP | S_IXOTH));
	close(w->at);
	w->at = next;
	return 0;
}

/* One name of the way.  Folders are made where there is nothing, if that was asked for. */
static int go_through(struct way *w, const char *name, bool make)
{
	int next = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int code = 0;

	if (next < 0 && errno == ENOENT && make && !mkdirat(w->at, name, 0700))
		next = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (next < 0 || fstat(next, &st))
		code = err_set(w->err, errno, "%s: %s", w->path, strerror(errno));
	else if (!is_trusted_owner(&st))
		code = refuse(w, "a part of the way to it is another user's");
	else if (S_ISLNK(st.st_mode))
		code = follow_link(w, next);
	else if (!S_ISDIR(st.st_mode))
		code = err_set(w->err, ENOTDIR, "%s: %s", w->path, strerror(ENOTDIR));
	else if (!(code = enter_dir(w, next, &st)))
		return 0;
	if (next >= 0)
		close(next);
	return code;
}

/* The next name, cut off; NULL: there is none. */
static char *take_name(struct way *w)
{
	char *name, *slash, *rest = w->rest + strspn(w->rest, "/");

	if (!*rest)
		return NULL;
	slash = strchrnul(rest, '/');
	name = xstrndup(rest, (size_t)(slash - rest));
	rest = xstrdup(slash);
	xfree(w->rest);
	w->rest = rest;
	return name;
}

/* How many names are left. */
static unsigned count_names(const char *rest)
{
	unsigned n = 0;

	while (*(rest += strspn(rest, "/"))) {
		rest = strchrnul(rest, '/');
		n++;
	}
	return n;
}

/* The folder itself: not only its way is to be ours. */
static int open_last(const struct way *w)
{
	struct stat st;
	int dir;

	if (fstat(w->at, &st))
		return err_set(w->err, errno, "%s: %s", w->path, strerror(errno));
	if (st.st_uid != geteuid())
		return refuse(w, "it is another user's");
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return refuse(w, "others may write to it");
	dir = openat(w->at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? err_set(w->err, errno, "%s: %s", w->path, strerror(errno)) : dir;
}

int cache_dir_open(const char *path, struct err *err)
{
	struct way w = {.at = -1, .rest = xstrdup(path), .path = path, .err = err};
	int code = start_over(&w);
	char *name;

	while (!code && (name = take_name(&w))) {
		/* "..", too, is a folder like others, and its owner is looked at */
		code = go_through(&w, name, count_names(w.rest) < 2);
		xfree(name);
	}
	if (!code)
		code = open_last(&w);
	if (w.at >= 0)
		close(w.at);
	xfree(w.rest);
	return code;
}

/* ---- entries ---- */

static bool is_ours_alone(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid() &&
	       !(st->st_mode & (S_IWGRP | S_IWOTH));
}

int cache_dir_get(int dir, const char *name, struct stat *st)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return errno == ELOOP ? -EPERM : -errno;
	if (!fstat(fd, st) && is_ours_alone(st))
		return fd;
	close(fd);
	return -EPERM;
}

#define TEMP_LEN 12
/* A name that nobody has: not to be guessed, only not to be the same as another's. */
static void draw_name(char out[TEMP_LEN])
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+_";
	uint8_t r[6] = {0};

	while (getrandom(r, sizeof(r), 0) < 0 && errno == EINTR)
		;
	memcpy(out, ".new-", 5);
	for (unsigned i = 0; i < sizeof(r); i++)
		out[5 + i] = letters[r[i] & 63];
	out[11] = 0;
}

static int open_temp(int dir, char name[TEMP_LEN])
{
	for (int tries = 0; tries < 100; tries++) {
		int fd;

		draw_name(name);
		fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd >= 0) /* says until the end, however that comes, that it is being written */
			flock(fd, LOCK_EX | LOCK_NB);
		return fd < 0 ? -errno : fd;
	}
	return -EEXIST;
}

static int put_entry(int dir, const char *name, int (*fill)(int fd, void *ctx, struct err *err),
		     void *ctx, struct err *err)
{
	char temp[TEMP_LEN];
	int fd = open_temp(dir, temp), code;

	if (fd < 0)
		return err_set(err, -fd, "%s", strerror(-fd));
	code = fill(fd, ctx, err);
	if (close(fd) && !code)
		code = err_set(err, errno, "%s", strerror(errno));
	if (!code && renameat(dir, temp, dir, name))
		code = err_set(err, errno, "%s", strerror(errno));
	if (code)
		unlinkat(dir, temp, 0);
	return code;
}

int cache_dir_put(int dir, const char *name, uint64_t size, uint64_t max,
		  int (*fill)(int fd, void *ctx, struct err *err), void *ctx, struct err *err)
{
	int code = cache_room_take(dir, size, max);

	if (code)
		return err_set(err, -code, "%s",
			       code == -EFBIG   ? "it is larger than all of the cache may be"
			       : code == -EBUSY ? "another kron is at it"
						: strerror(-code));
	code = put_entry(dir, name, fill, ctx, err);
	if (code)
		cache_room_give(dir, size);
	return code;
}

/* ---- texts ---- */

bool cache_dir_get_text(int dir, const char *name, char *text, size_t size)
{
	ssize_t n = readlinkat(dir, name, text, size);
	struct stat st;

	if (n <= 0 || (size_t)n >= size || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    st.st_uid != geteuid())
		return false;
	text[n] = 0;
	return true;
}

int cache_dir_put_text(int dir, const char *name, const char *text)
{
	char temp[TEMP_LEN];
	int code;

	draw_name(temp);
	if (symlinkat(text, dir, temp))
		return -errno;
	code = renameat(dir, temp, dir, name) ? -errno : 0;
	if (code)
		unlinkat(dir, temp, 0);
	return code;
}

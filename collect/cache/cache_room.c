/* SPDX-License-Identifier: MIT */
/*
 * cache_room.c - keeps the plan cache within its limit at every write.
 *
 *   .room   magic, sum of all entries, when it was counted; who changes it holds its lock
 *   *.plan  mtime: last use (plan_cache.c)
 *
 * Who wants to write an entry adds its size to the sum before; only if that would be more than the
 * limit, or nobody knows the sum, are the entries counted, and those used longest ago go.  An eighth more goes
 * than has to, so that not every write counts.  The sum may be too large (of a kron that
 * was killed while it wrote, of entries that took another's place), and counting makes it right.
 * It may be too small by what others are about to write while it is counted.
 *
 * An entry that goes while another kron reads it is whole for that one, which has it open; one that
 * goes before is made again.  So nothing here has to be right about who uses what, only about what
 * is ours: entries and texts, by their names, of this user.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/vec.h"
#include "collect/cache/cache_dir.h"

#define ROOM ".room"
#define ROOM_MAGIC 0x4d4f4f524e4f524bull /* "KRONROOM" */
#define DAY (24 * 60 * 60)
#define BLOCK 4096ull

/* A kron that is stopped must not stop others. */
#define LOCK_TRIES 100
#define LOCK_WAIT_NS 2000000

struct room {
	uint64_t magic;
	uint64_t used;   /* bytes; UINT64_MAX: nobody knows */
	int64_t counted; /* seconds */
};

struct entry {
	char *name;
	struct timespec used;
	uint64_t size;
};
struct entries { /* as VEC() has it */
	struct entry *v;
	size_t n, cap;
};

static uint64_t on_disk(uint64_t size)
{
	return (size + BLOCK - 1) & -BLOCK;
}

/* ---- the sum ---- */

static int lock_room(int dir, struct room *r)
{
	struct timespec pause = {.tv_nsec = LOCK_WAIT_NS};
	int fd = openat(dir, ROOM, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	struct stat st;

	if (fd < 0)
		return -errno;
	for (int i = 0; flock(fd, LOCK_EX | LOCK_NB); i++) {
		if (errno != EWOULDBLOCK || i == LOCK_TRIES) {
			close(fd);
			return -EBUSY;
		}
		nanosleep(&pause, NULL);
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_mode & (S_IWGRP | S_IWOTH)) {
		close(fd);
		return -EPERM;
	}
	if (pread(fd, r, sizeof(*r), 0) != sizeof(*r) || r->magic != ROOM_MAGIC)
		*r = (struct room){.magic = ROOM_MAGIC, .used = UINT64_MAX};
	return fd;
}

/* -errno: then nobody may write, for nobody would know of it. */
static int unlock_room(int fd, const struct room *r)
{
	int code = pwrite(fd, r, sizeof(*r), 0) == sizeof(*r) ? 0 : errno ? -errno : -EIO;

	close(fd);
	return code;
}

/* ---- counting ---- */

static bool has_suffix(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n > m && !strcmp(s + n - m, suffix);
}

static bool is_temp(const char *name)
{
	return !strncmp(name, ".new-", 5) && strlen(name) == 11;
}

static bool is_text(const char *name)
{
	return !strncmp(name, CACHE_TEXT, strlen(CACHE_TEXT));
}

/* The kron that wrote there was killed. */
static bool is_left_over(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool left = fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB);

	if (fd >= 0)
		close(fd);
	return left;
}

/* An entry, or what is being written: bytes that are there. */
static void consider(int dir, const char *name, struct entries *out, uint64_t *writing, int64_t now)
{
	bool is_entry = name[0] != '.' && has_suffix(name, CACHE_ENTRY);
	struct stat st;

	if ((!is_entry && !is_temp(name) && !is_text(name)) ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || st.st_uid != geteuid())
		return;
	if (S_ISLNK(st.st_mode)) {
		if (!is_entry && now - st.st_mtim.tv_sec > (int64_t)CACHE_DAYS * DAY)
			unlinkat(dir, name, 0);
		return;
	}
	if (!S_ISREG(st.st_mode) || is_text(name))
		return;
	if (is_entry)
		*vec_push(out) =
			(struct entry){xstrdup(name), st.st_mtim, on_disk((uint64_t)st.st_size)};
	else if (!is_left_over(dir, name) || unlinkat(dir, name, 0))
		*writing += on_disk((uint64_t)st.st_size);
}

static int latest_first(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec > y->used.tv_sec ? -1 : 1;
	if (x->used.tv_nsec != y->used.tv_nsec)
		return x->used.tv_nsec > y->used.tv_nsec ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* The latest stay, as far as they have room and are young; what they take. */
static uint64_t keep_latest(int dir, const struct entries *e, uint64_t room, int64_t now)
{
	uint64_t kept = 0, removed = 0;

	for (size_t i = 0; i < e->n; i++) {
		const struct entry *p = &e->v[i];
		bool fits = kept <= room && p->size <= room - kept;

		if (!fits) /* nor does anything that was used longer ago */
			room = 0;
		if (fits && now - p->used.tv_sec <= (int64_t)CACHE_DAYS * DAY)
			kept += p->size;
		else if (unlinkat(dir, p->name, 0) && errno != ENOENT)
			kept += p->size;
		else
			removed++;
	}
	log_info("cache", "%" PRIu64 " plans removed, %" PRIu64 " KiB stay", removed, kept / 1024);
	return kept;
}

/* The entries that stay take no more than max bytes. */
static void count(int dir, struct room *r, uint64_t max)
{
	int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = again < 0 ? NULL : fdopendir(again);
	struct entries entries = {0};
	int64_t now = time(NULL);
	uint64_t writing = 0;
	struct dirent *e;

	if (!d) {
		if (again >= 0)
			close(again);
		r->used = UINT64_MAX;
		return;
	}
	while ((e = readdir(d)))
		consider(dir, e->d_name, &entries, &writing, now);
	if (entries.n)
		qsort(entries.v, entries.n, sizeof(*entries.v), latest_first);
	r->used = writing + keep_latest(dir, &entries, max > writing ? max - writing : 0, now);
	r->counted = now;
	vec_for(&entries, p)
		xfree(p->name);
	vec_free(&entries);
	closedir(d);
}

/* ---- for those who write ---- */

int cache_room_take(int dir, uint64_t size, uint64_t max)
{
	uint64_t need = on_disk(size);
	struct room r;
	int fd;

	if (need > max)
		return -EFBIG;
	fd = lock_room(dir, &r);
	if (fd < 0)
		return fd;
	if (r.used > max - need)
		count(dir, &r, max - need > max / 8 ? max - need - max / 8 : 0);
	if (r.used > max - need) { /* it cannot be read, or is full of what others write */
		close(fd);
		return -ENOSPC;
	}
	r.used += need;
	return unlock_room(fd, &r);
}

void cache_room_give(int dir, uint64_t size)
{
	struct room r;
	int fd = lock_room(dir, &r);

	if (fd < 0)
		return;
	if (r.used != UINT64_MAX)
		r.used -= r.used > on_disk(size) ? on_disk(size) : r.used;
	unlock_room(fd, &r);
}

void cache_room_trim(int dir, uint64_t max)
{
	int64_t now = time(NULL);
	struct room r;
	int fd = lock_room(dir, &r);

	if (fd < 0)
		return;
	/* one of the far future is of a clock that was set back */
	if (r.used == UINT64_MAX || r.used > max || now - r.counted >= DAY || r.counted > now + DAY)
		count(dir, &r, max);
	unlock_room(fd, &r);
}

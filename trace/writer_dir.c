/* SPDX-License-Identifier: MIT */
/*
 * writer_dir.c - see writer_dir.h.
 *
 * It never removes a file that is not a trace's: a directory with anything else in it is
 * refused, not cleaned.
 */
#define _GNU_SOURCE
#include "trace/writer_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/vec.h"

#define LARGE ((off_t)16 << 20)

const char *const writer_files[WRITER_TEXTS] = {"session", "modules", "functions", "refusals",
						"tasks",   "events",  "imports",   "jumps",
						"changes", "sleeps",  "monitor"};

static bool is_trace_file(const char *name)
{
	static const char *const others[] = {"lock",  "samples", "switches",     "pages",
					     "clock", "cable",   "cable-session"};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(name, others[i]))
			return true;
	for (size_t i = 0; i < WRITER_TEXTS; i++)
		if (!strcmp(name, writer_files[i]))
			return true;
	return false;
}

#define SNAPSHOT_DIGITS 3u
#define SNAPSHOT_NEXT ".snapshot" /* before it has its name; a killed recorder leaves it */

bool writer_is_snapshot(const char *name)
{
	size_t n = strspn(name, "0123456789");

	return n >= SNAPSHOT_DIGITS && !name[n];
}

/* In the directory of a flight recorder. */
static bool is_snapshot_dir(int dir, const char *name)
{
	struct stat st;

	return (writer_is_snapshot(name) || !strcmp(name, SNAPSHOT_NEXT)) &&
	       !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode);
}

enum dir_kind { DIR_ABSENT, DIR_EMPTY, DIR_TRACE, DIR_FOREIGN, DIR_ERROR };

static bool is_dot(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* A trace's session starts with its version; one killed at birth has nothing but empty files. */
static bool is_session_or_empty(int dir, const char *name)
{
	char text[8] = "";
	struct stat st;
	ssize_t n = 0;
	int fd;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return false;
	if (!st.st_size)
		return true;
	if (strcmp(name, "session"))
		return false;
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text));
		close(fd);
	}
	return n == sizeof(text) && !memcmp(text, "version=", sizeof(text));
}

/* What stands at path?  foreign gets the name of the first file that is not a trace file. */
static enum dir_kind look_at(const char *path, char *foreign, size_t size)
{
	enum dir_kind kind = DIR_EMPTY;
	bool session = false, lock = false, all_empty = true;
	struct dirent *de;
	DIR *d = opendir(path);

	if (size)
		foreign[0] = 0;
	if (!d) {
		struct stat st;

		if (errno == ENOTDIR)
			return DIR_FOREIGN;
		return errno == ENOENT && lstat(path, &st) ? DIR_ABSENT : DIR_ERROR;
	}
	while ((de = readdir(d))) {
		if (is_dot(de->d_name) || is_snapshot_dir(dirfd(d), de->d_name))
			continue;
		if (!is_trace_file(de->d_name)) {
			snprintf(foreign, size, "%s", de->d_name);
			kind = DIR_FOREIGN;
			break;
		}
		kind = DIR_TRACE;
		if (!is_session_or_empty(dirfd(d), de->d_name))
			all_empty = false;
		else if (!strcmp(de->d_name, "session"))
			session = true;
		else if (!strcmp(de->d_name, "lock"))
			lock = true;
		snprintf(foreign, size, "%s", de->d_name);
	}
	closedir(d);
	/* what remove_trace() was killed in still has the lock */
	if (kind == DIR_TRACE && !session && !lock && !all_empty)
		kind = DIR_FOREIGN;
	return kind;
}

static int refuse_foreign(struct err *err, const char *path, const char *foreign)
{
	if (foreign[0])
		return err_set(
			err, EEXIST,
			"%s is not a trace directory (it holds %s); name another one with -o", path,
			foreign);
	return err_set(err, EEXIST,
		       "%s is there and is not a trace directory; name another one with -o", path);
}

int writer_lock_dir(const char *path, int *out, struct err *err)
{
	char *name = xasprintf("%s/lock", path);
	int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int ret = 0;

	if (fd < 0) {
		ret = err_set(err, errno, "cannot open %s: %s", name, strerror(errno));
	} else if (flock(fd, LOCK_EX | LOCK_NB)) {
		ret = errno == EWOULDBLOCK
			      ? err_set(err, EBUSY, "another kron is recording to %s", path)
			      : err_set(err, errno, "cannot lock %s: %s", name, strerror(errno));
		close(fd);
	}
	if (!ret)
		*out = fd;
	xfree(name);
	return ret;
}

static void *close_file(void *arg)
{
	close((int)(intptr_t)arg);
	return NULL;
}

/* Of a file without a name: its blocks are freed by the close, which may take a second. */
static void close_beside(int fd)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int code;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	code = pthread_create(&thread, &attr, close_file, (void *)(intptr_t)fd);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (code)
		close(fd);
}

/* A large file goes while the next recording begins, if there is room for that one meanwhile. */
static void remove_samples(int dir)
{
	int fd = openat(dir, "samples", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct statvfs disk;
	struct stat st;

	unlinkat(dir, "samples", 0);
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && st.st_size >= LARGE && !fstatvfs(fd, &disk) &&
	    disk.f_bavail >= 2 * (uint64_t)st.st_size / disk.f_frsize)
		close_beside(fd);
	else
		close(fd);
}

static int remove_trace(const char *path, struct err *err);

/* Those that are traces; the others keep their directory from going. */
static void remove_snapshots(const char *path)
{
	struct dirent *de;
	DIR *d = opendir(path);

	while (d && (de = readdir(d))) {
		char *name;
		struct err err;

		if (!is_snapshot_dir(dirfd(d), de->d_name))
			continue;
		name = xasprintf("%s/%s", path, de->d_name);
		remove_trace(name, &err);
		xfree(name);
	}
	if (d)
		closedir(d);
}

/* The session first, for without one nobody takes the rest for a trace; the lock last, which says
 * that it was one. */
static int remove_trace(const char *path, struct err *err)
{
	char foreign[256];
	enum dir_kind kind = look_at(path, foreign, sizeof(foreign));
	int fd, dir, lock, ret;

	if (kind == DIR_ABSENT)
		return 0;
	if (kind == DIR_FOREIGN)
		return refuse_foreign(err, path, foreign);
	if (kind == DIR_TRACE) {
		ret = writer_lock_dir(path, &lock, err);
		if (ret)
			return ret;
		dir = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
		for (size_t i = 0; dir >= 0 && i < WRITER_TEXTS; i++)
			unlinkat(dir, writer_files[i], 0);
		if (dir >= 0) {
			remove_samples(dir);
			unlinkat(dir, "switches", 0);
			unlinkat(dir, "pages", 0);
			unlinkat(dir, "clock", 0);
			unlinkat(dir, "cable", 0);
			unlinkat(dir, "cable-session", 0);
			unlinkat(dir, "lock", 0);
			close(dir);
		}
		remove_snapshots(path);
		close(lock);
	}
	fd = rmdir(path);
	if (fd && errno == ENOTDIR) /* a symbolic link to where the trace stood */
		fd = unlink(path);
	if (fd)
		return err_set(err, errno, "cannot remove the older trace %s: %s", path,
			       strerror(errno));
	return 0;
}

/* A trace that nobody writes to gets another name.  1: there is none. */
static int rename_trace(const char *path, const char *to, struct err *err)
{
	char foreign[256];
	enum dir_kind kind = look_at(path, foreign, sizeof(foreign));
	int lock, ret;

	if (kind == DIR_ABSENT)
		return 1;
	if (kind == DIR_FOREIGN)
		return refuse_foreign(err, path, foreign);
	ret = kind == DIR_TRACE ? writer_lock_dir(path, &lock, err) : 0;
	if (ret)
		return ret;
	if (rename(path, to))
		ret = err_set(err, errno, "cannot rename %s to %s: %s", path, to, strerror(errno));
	if (kind == DIR_TRACE)
		close(lock);
	return ret;
}

static char *older_of(const char *path)
{
	return xasprintf("%s.old.aside", path);
}

/* Move the trace at path to path.old, so that recording never destroys the last result. */
static int set_aside(const char *path, struct writer_aside *aside, struct err *err)
{
	char *old = xasprintf("%s.old", path), *older = older_of(path);
	struct err unused;
	int ret;

	if (remove_trace(older, &unused)) { /* else a recorder was killed there */
		ret = remove_trace(old, err);
	} else {
		ret = rename_trace(old, older, err);
		aside->has_older |= !ret;
	}
	if (ret >= 0) {
		ret = rename_trace(path, old, err);
		aside->has_old |= !ret;
	}
	xfree(old);
	xfree(older);
	return ret < 0 ? ret : 0;
}

static void aside_free(struct writer_aside *aside)
{
	xfree(aside->path);
	*aside = (struct writer_aside){0};
}

void writer_settle_dir(struct writer_aside *aside)
{
	char *older;

	if (!aside->path)
		return;
	/* perhaps of one that was killed before it had a directory */
	older = older_of(aside->path);
	writer_remove_dir(older);
	xfree(older);
	aside->has_older = false;
}

void writer_keep_dir(struct writer_aside *aside)
{
	writer_settle_dir(aside);
	aside_free(aside);
}

/* What cannot go back stays where it is. */
static void take_back(struct writer_aside *aside)
{
	char *old = xasprintf("%s.old", aside->path), *older = older_of(aside->path);

	if ((!aside->has_old || !rename(old, aside->path)) && aside->has_older)
		(void)!rename(older, old);
	xfree(old);
	xfree(older);
	aside_free(aside);
}

void writer_restore_dir(struct writer_aside *aside)
{
	if (!aside->path)
		return;
	writer_remove_dir(aside->path);
	if (aside->was_there)
		(void)!mkdir(aside->path, 0700);
	take_back(aside);
}

static int prepare(const char *path, struct writer_aside *aside, struct err *err)
{
	char foreign[256];

	/* Twice: another kron may have made it between look and mkdir. */
	for (int round = 0; round < 3; round++) {
		int ret;

		switch (look_at(path, foreign, sizeof(foreign))) {
		case DIR_EMPTY:
			aside->was_there = !round;
			return 0;
		case DIR_FOREIGN:
			return refuse_foreign(err, path, foreign);
		case DIR_ERROR:
			return err_set(err, errno ? errno : EIO, "cannot use %s: %s", path,
				       strerror(errno));
		case DIR_TRACE:
			ret = set_aside(path, aside, err);
			if (ret)
				return ret;
			break;
		case DIR_ABSENT:
			break;
		}
		/* its owner's alone: it holds payloads, paths and names of other users' processes */
		if (!mkdir(path, 0700))
			return 0;
		if (errno != EEXIST)
			break;
	}
	return err_set(err, errno, "cannot make the trace directory %s: %s", path, strerror(errno));
}

int writer_prepare_dir(const char *path, struct writer_aside *aside, struct err *err)
{
	int ret;

	*aside = (struct writer_aside){.path = xstrdup(path)};
	ret = prepare(path, aside, err);
	if (ret)
		take_back(aside);
	return ret;
}

void writer_remove_dir(const char *path)
{
	struct err err;

	remove_trace(path, &err);
}

/* As far as it goes: it may grow meanwhile. */
static int copy_file(int from, int to, const char *name)
{
	int in = openat(from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), out, code = 0;
	ssize_t n;

	if (in < 0)
		return errno == ENOENT ? 0 : -errno;
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (out < 0)
		code = -errno;
	while (!code && (n = sendfile(out, in, NULL, 1 << 20)))
		code = n < 0 ? -errno : 0;
	close(in);
	if (out >= 0)
		close(out);
	return code;
}

int writer_copy_tables(const char *from, const char *to, struct err *err)
{
	int in, out = -1, code = 0;

	if (mkdir(to, 0700))
		return err_set(err, errno, "cannot make %s: %s", to, strerror(errno));
	if ((in = open(from, O_DIRECTORY | O_RDONLY | O_CLOEXEC)) < 0 ||
	    (out = open(to, O_DIRECTORY | O_RDONLY | O_CLOEXEC)) < 0)
		code = -errno;
	for (size_t i = 0; !code && i < WRITER_TEXTS; i++)
		code = copy_file(in, out, writer_files[i]);
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	if (!code)
		return 0;
	writer_remove_dir(to);
	return err_set(err, -code, "cannot copy the names in %s to %s: %s", from, to,
		       strerror(-code));
}

int writer_check_dir(const char *path, struct err *err)
{
	char foreign[256];

	switch (look_at(path, foreign, sizeof(foreign))) {
	case DIR_TRACE:
		return 0;
	case DIR_ABSENT:
		return err_set(err, ENOENT, "there is no trace directory %s", path);
	default:
		return err_set(err, EINVAL, "%s is not a trace directory", path);
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * temp.c - see temp.h.
 *
 * Between the moment when a name is there and that in which it stands in `named`, signals are
 * blocked.  Their handler makes system calls only, on paths and descriptors that it is given.
 */
#define _GNU_SOURCE
#include "base/temp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/vec.h"

#define TAG ".kron-"
#define LETTERS 6u
#define DEPTH 8u  /* of folders that a writer makes in a folder; OTF2's has one */
#define TRIES 100 /* 32^6 names: more than one is an accident */

/* ---- taking away: also in a handler of signals ---- */

struct entry { /* of getdents64(2) */
	uint64_t inode, next;
	uint16_t size;
	uint8_t type;
	char name[];
};

static bool empty_folder(int fd, unsigned depth);

static bool remove_entry(int dir, const char *name, unsigned depth)
{
	int fd;

	if (!unlinkat(dir, name, 0))
		return true;
	if (errno != EISDIR || !depth)
		return false;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return false;
	empty_folder(fd, depth - 1);
	close(fd);
	return !unlinkat(dir, name, AT_REMOVEDIR);
}

/* Again and again, for some file systems pass entries by while others go. */
static bool empty_folder(int fd, unsigned depth)
{
	_Alignas(struct entry) char buf[2048];
	bool removed;
	long n;

	do {
		removed = false;
		lseek(fd, 0, SEEK_SET);
		while ((n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
			for (long at = 0; at < n;) {
				const struct entry *e = (const void *)(buf + at);

				at += e->size;
				if (strcmp(e->name, ".") && strcmp(e->name, ".."))
					removed |= remove_entry(fd, e->name, depth);
			}
		}
	} while (removed);
	return n == 0;
}

static void remove_named(const char *path, int fd, bool is_folder)
{
	if (is_folder) {
		empty_folder(fd, DEPTH);
		rmdir(path);
	} else {
		unlink(path);
	}
}

/* ---- signals ---- */

#define NAMED_MAX 8
static struct temp named[NAMED_MAX]; /* path NULL: free */
static pid_t maker;                  /* whose they are: not a child's */

static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU};
#define NENDS (sizeof(ends) / sizeof(ends[0]))

static void on_end(int sig)
{
	for (size_t i = 0; i < NAMED_MAX && maker == getpid(); i++)
		if (named[i].path)
			remove_named(named[i].path, named[i].fd, named[i].is_folder);
	signal(sig, SIG_DFL);
	raise(sig); /* is blocked here, and comes when this returns */
}

/* Who ignores a signal (nohup), or has a handler, knows why. */
static void watch_signals(void)
{
	struct sigaction act = {.sa_handler = on_end}, before;
	static bool done;

	sigfillset(&act.sa_mask);
	for (size_t i = 0; i < NENDS && !done; i++)
		if (!sigaction(ends[i], NULL, &before) && before.sa_handler == SIG_DFL)
			sigaction(ends[i], &act, NULL);
	done = true;
}

static void block_signals(sigset_t *before)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < NENDS; i++)
		sigaddset(&set, ends[i]);
	sigprocmask(SIG_BLOCK, &set, before);
}

static void unblock_signals(const sigset_t *before)
{
	sigprocmask(SIG_SETMASK, before, NULL);
}

static void remember(const struct temp *t)
{
	watch_signals();
	maker = getpid();
	for (size_t i = 0; i < NAMED_MAX; i++) {
		if (named[i].path)
			continue;
		named[i] = *t;
		return;
	}
}

static void forget(const struct temp *t)
{
	for (size_t i = 0; i < NAMED_MAX; i++)
		if (named[i].path == t->path)
			named[i].path = NULL;
}

/* ---- names ---- */

/* The part of a temporary name that all of this file's have: ".NAME.kron-", of a long one the
 * beginning. */
static int name_start(char *out, size_t size, const char *name)
{
	return snprintf(out, size, ".%.*s" TAG, (int)(NAME_MAX - strlen("." TAG) - LETTERS), name);
}

static char *random_path(const char *folder, const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
	char start[NAME_MAX + 1], tail[LETTERS + 1] = "";
	uint8_t random[LETTERS];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		memset(random, getpid() & 31, sizeof(random)); /* taken: another try fails, too */
	for (unsigned i = 0; i < LETTERS; i++)
		tail[i] = letters[random[i] & 31];
	name_start(start, sizeof(start), name);
	return xasprintf("%s%s%s", folder, start, tail);
}

/* false: somebody has taken it away before we had the lock.  Where the file system has no locks,
 * nobody can take it for stale, either. */
static bool lock_own(int fd)
{
	struct stat st;

	while (flock(fd, LOCK_EX) && errno == EINTR)
		;
	return !fstat(fd, &st) && st.st_nlink > 0;
}

/* ---- making ---- */

static int open_new(const char *path, bool is_folder, mode_t mode)
{
	int fd;

	if (!is_folder)
		return open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (mkdir(path, mode))
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) /* temp_clean() of another run was faster: another name */
		errno = EEXIST;
	return fd;
}

static int make_named(struct temp *t, const char *folder, const char *name, mode_t mode)
{
	int code = -EEXIST;

	for (int i = 0; i < TRIES && code == -EEXIST; i++) {
		t->path = random_path(folder, name);
		t->fd = open_new(t->path, t->is_folder, mode);
		code = t->fd < 0 ? -errno : 0;
		if (!code && lock_own(t->fd)) {
			remember(t);
			return 0;
		}
		if (!code) { /* temp_clean() of another run was faster than our lock */
			close(t->fd);
			t->fd = -1;
			code = -EEXIST;
		}
		xfree(t->path);
		t->path = NULL;
	}
	return code;
}

static const char *path_of_descriptor(char *out, size_t size, int fd)
{
	snprintf(out, size, "/proc/self/fd/%d", fd);
	return out;
}

/* Without /proc it could never get a name. */
static bool make_nameless(struct temp *t, const char *folder, mode_t mode)
{
	char path[64];

	t->fd = open(*folder ? folder : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	if (t->fd < 0)
		return false;
	if (!access(path_of_descriptor(path, sizeof(path), t->fd), F_OK))
		return true;
	close(t->fd);
	t->fd = -1;
	return false;
}

int temp_make(struct temp *t, const char *folder, const char *name, enum temp_kind kind,
	      mode_t mode)
{
	sigset_t before;
	int code;

	*t = (struct temp){.fd = -1, .is_folder = kind == TEMP_FOLDER};
	if (kind == TEMP_FILE && make_nameless(t, folder, mode))
		return 0;
	block_signals(&before);
	code = make_named(t, folder, name, mode);
	unblock_signals(&before);
	return code;
}

/* ---- moving ---- */

/* linkat(2) replaces nothing: the file gets a name to be renamed from. */
static int give_name(struct temp *t, const char *folder, const char *name)
{
	char from[64];
	int code = -EEXIST;

	lock_own(t->fd); /* the lock before the name */
	path_of_descriptor(from, sizeof(from), t->fd);
	for (int i = 0; i < TRIES && code == -EEXIST; i++) {
		t->path = random_path(folder, name);
		code = linkat(AT_FDCWD, from, AT_FDCWD, t->path, AT_SYMLINK_FOLLOW) ? -errno : 0;
		if (!code) {
			remember(t);
			return 0;
		}
		xfree(t->path);
		t->path = NULL;
	}
	return code;
}

int temp_move(struct temp *t, const char *folder, const char *name)
{
	char *to = xasprintf("%s%s", folder, name);
	sigset_t before;
	int code = 0;

	block_signals(&before);
	if (!t->path)
		code = give_name(t, folder, name);
	if (!code && rename(t->path, to))
		code = -errno;
	if (!code) {
		forget(t);
		xfree(t->path);
		t->path = NULL;
	}
	unblock_signals(&before);
	xfree(to);
	return code;
}

void temp_close(struct temp *t)
{
	sigset_t before;

	block_signals(&before);
	if (t->path) {
		remove_named(t->path, t->fd, t->is_folder);
		forget(t);
	}
	xfree(t->path);
	t->path = NULL;
	unblock_signals(&before);
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}

/* ---- what killed ones have left ---- */

/*
 * Who may rename things there could give any folder of ours, with all that is in it, such a name.  A
 * file he could remove himself.
 */
static bool may_be_renamed_by_others(int dir)
{
	struct stat st;

	return fstat(dir, &st) || (st.st_uid && st.st_uid != geteuid()) ||
	       (st.st_mode & (S_IWGRP | S_IWOTH) && !(st.st_mode & S_ISVTX));
}

static void remove_if_left(int dir, const char *name, const char *path)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && st.st_uid == geteuid() &&
	    (S_ISREG(st.st_mode) || (S_ISDIR(st.st_mode) && !may_be_renamed_by_others(dir))) &&
	    !flock(fd, LOCK_EX | LOCK_NB))
		remove_named(path, fd, S_ISDIR(st.st_mode));
	close(fd);
}

void temp_clean(const char *folder, const char *name)
{
	DIR *d = opendir(*folder ? folder : ".");
	char start[NAME_MAX + 1];
	struct dirent *e;
	size_t n;

	if (!d)
		return;
	name_start(start, sizeof(start), name);
	n = strlen(start);
	while ((e = readdir(d))) {
		char *path;

		if (strncmp(e->d_name, start, n) || strlen(e->d_name) != n + LETTERS)
			continue;
		path = xasprintf("%s%s", folder, e->d_name);
		remove_if_left(dirfd(d), e->d_name, path);
		xfree(path);
	}
	closedir(d);
}

bool temp_clean_path(const char *path)
{
	const size_t end = LETTERS + strlen(TAG);
	const char *slash = strrchr(path, '/');
	char *folder;
	int dir;

	if (!slash || slash[1] != '.' || strlen(slash) <= 2 + end ||
	    strncmp(slash + strlen(slash) - end, TAG, strlen(TAG)))
		return false;
	folder = xstrndup(path, (size_t)(slash + 1 - path));
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0) {
		remove_if_left(dir, slash + 1, path);
		close(dir);
	}
	xfree(folder);
	return access(path, F_OK) && errno == ENOENT;
}

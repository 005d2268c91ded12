/* SPDX-License-Identifier: MIT */
/*
 * output.c - see output.h.
 *
 * The file is on the disk before it has its name (fsync), and its name is before we say that all
 * is well; so after a loss of power, too, the old one is there or the new one.
 */
#define _GNU_SOURCE
#include "base/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/stream.h"
#include "base/vec.h"

#define SYNC_EACH 64 /* files and folders in a folder */
#define LINKS 8      /* from one to the next, to a descriptor: /dev/stdout is two */

static int cannot(const struct output *o, int code, struct err *err)
{
	return err_set(err, code, "cannot write %s: %s", o->path, strerror(code));
}

static void release(struct output *o)
{
	temp_close(&o->temp);
	if (o->direct && o->fd >= 0)
		close(o->fd);
	o->fd = -1;
	xfree(o->folder);
	xfree(o->name);
	o->folder = o->name = NULL;
}

/* ---- which file is meant ---- */

static void drop_slashes(char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		path[--n] = 0;
}

static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? xstrndup(path, (size_t)(slash - path) + 1) : xstrdup("");
}

static int split(struct output *o, const char *path, struct err *err)
{
	o->folder = folder_of(path);
	o->name = xstrdup(path + strlen(o->folder));
	if (*o->name)
		return 0;
	return cannot(o, *path ? EISDIR : ENOENT, err);
}

/* `path` without links in its last part; NULL: nobody can tell. */
static char *real_path(const char *path, int fd)
{
	char link[64], real[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (lstat(path, &st) || !S_ISLNK(st.st_mode))
		return xstrdup(path);
	/* the kernel has followed it, by its own rules for links of others; we take its word */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, real, sizeof(real));
	return n > 0 && n < (ssize_t)sizeof(real) ? xstrndup(real, (size_t)n) : NULL;
}

/* Of /dev/stdout, /dev/fd/N, /proc/self/fd/N and links to them; -1: no descriptor is named. */
static int descriptor_number(const char *path)
{
	char *at = xstrdup(path), link[PATH_MAX];
	int number = -1;

	for (int i = 0; i < LINKS; i++) {
		char *folder = folder_of(at), *next;
		const char *name = at + strlen(folder);
		struct statfs fs;
		ssize_t n = readlink(at, link, sizeof(link));

		if (n > 0 && !statfs(*folder ? folder : ".", &fs) &&
		    fs.f_type == PROC_SUPER_MAGIC && strspn(name, "0123456789") == strlen(name))
			number = atoi(name);
		next = n <= 0 || number >= 0
			       ? NULL
			       : xasprintf("%s%.*s", *link == '/' ? "" : folder, (int)n, link);
		xfree(folder);
		xfree(at);
		at = next;
		if (!at)
			break;
	}
	xfree(at);
	return number;
}

static int check_empty(const struct output *o, struct err *err)
{
	struct dirent *e;
	DIR *d = opendir(o->path);
	bool empty = true;

	if (!d)
		return cannot(o, errno, err);
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			empty = false;
	closedir(d);
	return empty ? 0 : err_set(err, EEXIST, "%s is there already and not empty", o->path);
}

static bool can_write_to(int fd, const struct stat *st)
{
	struct stat have;
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_PATH) && (flags & O_ACCMODE) != O_RDONLY &&
	       !fstat(fd, &have) && have.st_dev == st->st_dev && have.st_ino == st->st_ino;
}

/* What is not a regular file, and what the shell has opened for us, which is its own affair and may
 * be somewhere in the middle. */
static int open_direct(struct output *o, int number, struct err *err)
{
	if (o->kind != OUTPUT_STREAM)
		return err_set(err, EINVAL, "cannot write %s: it is not a regular file", o->path);
	o->direct = true;
	if (number >= 0 && can_write_to(number, &o->old))
		o->fd = fcntl(number, F_DUPFD_CLOEXEC, 0);
	else
		o->fd = open(o->path, O_WRONLY | O_CLOEXEC);
	return o->fd < 0 ? cannot(o, errno, err) : 0;
}

/* Who may not write to it may not replace it, though the folder would let him.  O_CREAT has the
 * kernel look at whose file it is in folders for all (fs.protected_regular). */
static int may_write(const struct output *o, struct err *err)
{
	int fd = open(o->path, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0600);

	if (fd < 0)
		return cannot(o, errno, err);
	close(fd);
	return 0;
}

static int look_at_file(struct output *o, struct err *err)
{
	int number = descriptor_number(o->path);

	if (S_ISDIR(o->old.st_mode))
		return cannot(o, EISDIR, err);
	if (!S_ISREG(o->old.st_mode) || number >= 0)
		return open_direct(o, number, err);
	/* programs often may not be written, and are replaced all the same, as by a compiler */
	return o->kind == OUTPUT_REGULAR ? 0 : may_write(o, err);
}

static int look_at_old(struct output *o, const char *path, int fd, struct err *err)
{
	char *real;
	int code;

	if (fstat(fd, &o->old))
		return cannot(o, errno, err);
	if (o->kind == OUTPUT_FOLDER && !S_ISDIR(o->old.st_mode))
		return err_set(err, EEXIST, "cannot make the directory %s: a file is there",
			       o->path);
	code = o->kind == OUTPUT_FOLDER ? check_empty(o, err) : look_at_file(o, err);
	if (code || o->direct)
		return code;
	real = real_path(path, fd);
	code = real ? split(o, real, err) : cannot(o, ELOOP, err);
	xfree(real);
	return code;
}

static int find_place(struct output *o, const char *path, struct err *err)
{
	int fd = open(path, O_PATH | O_CLOEXEC), code = errno;
	struct stat st;

	if (fd >= 0) {
		code = look_at_old(o, path, fd, err);
		close(fd);
		return code;
	}
	if (code != ENOENT)
		return cannot(o, code, err);
	if (!lstat(path, &st) && S_ISLNK(st.st_mode))
		return err_set(err, ENOENT, "cannot write %s: it is a link to nothing", o->path);
	return split(o, path, err);
}

/* ---- begin ---- */

static bool is_there(const struct output *o)
{
	return o->old.st_nlink > 0;
}

static int make_temp(struct output *o, struct err *err)
{
	static const enum temp_kind kinds[] = {
		[OUTPUT_STREAM] = TEMP_FILE,
		[OUTPUT_REGULAR] = TEMP_FILE,
		[OUTPUT_NAMED] = TEMP_NAMED_FILE,
		[OUTPUT_FOLDER] = TEMP_FOLDER,
	};
	mode_t mode = o->kind == OUTPUT_FOLDER ? 0777 : 0666;
	int code;

	/* nobody reads in it who might not read the old one */
	if (is_there(o))
		mode &= 0700;
	temp_clean(o->folder, o->name);
	code = temp_make(&o->temp, o->folder, o->name, kinds[o->kind], mode);
	o->fd = o->temp.fd;
	if (!code)
		return 0;
	if (is_there(o) && (code == -EACCES || code == -EPERM || code == -EROFS))
		return err_set(err, -code,
			       "cannot write %s: %s in its folder, where the new file is made "
			       "before it takes the old one's place",
			       o->path, strerror(-code));
	return cannot(o, -code, err);
}

/* A limit of the file's size is an error like that of a full disk. */
static void survive_limits(void)
{
	struct sigaction before;

	if (!sigaction(SIGXFSZ, NULL, &before) && before.sa_handler == SIG_DFL)
		signal(SIGXFSZ, SIG_IGN);
}

int output_begin(struct output *o, const char *path, enum output_kind kind, struct err *err)
{
	char *at = xstrdup(path);
	int code;

	*o = (struct output){.path = path, .kind = kind, .fd = -1, .temp = {.fd = -1}};
	survive_limits();
	if (kind == OUTPUT_FOLDER)
		drop_slashes(at);
	code = find_place(o, at, err);
	if (!code && !o->direct)
		code = make_temp(o, err);
	if (code)
		release(o);
	xfree(at);
	return code;
}

FILE *output_stream(struct output *o)
{
	if (!o->stream)
		o->stream = stream_open(o->fd, false, &o->error);
	return o->stream;
}

static void close_stream(struct output *o)
{
	if (o->stream && fclose(o->stream) && !o->error)
		o->error = errno;
	o->stream = NULL;
}

/* ---- end ---- */

/* What knows no fsync has nothing to be kept. */
static int sync_descriptor(int fd)
{
	return fsync(fd) && errno != EINVAL && errno != ENOTSUP ? errno : 0;
}

static int sync_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	int code = 0, fd;

	(void)st;
	(void)ftw;
	if (type != FTW_F && type != FTW_DP)
		return 0;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno;
	code = sync_descriptor(fd);
	close(fd);
	return code;
}

static unsigned entries; /* nftw() has no place for it */

/* Stops where there are many. */
static int count_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)path;
	(void)st;
	(void)type;
	(void)ftw;
	return ++entries > SYNC_EACH;
}

/* Each fsync() has the disk empty its cache.  To wait for all that others have written there, too,
 * is less from some number of files on.  The descriptor is from before the first of them: it knows
 * of all failures since. */
static bool has_many_entries(const struct output *o)
{
	entries = 0;
	return nftw(o->temp.path, count_entry, 8, FTW_PHYS) > 0;
}

static int sync_all(const struct output *o)
{
	int code;

	if (o->kind != OUTPUT_FOLDER)
		return sync_descriptor(o->fd);
	if (has_many_entries(o))
		return syncfs(o->fd) ? errno : 0;
	code = nftw(o->temp.path, sync_entry, 8, FTW_PHYS | FTW_DEPTH);
	return code < 0 ? errno : code;
}

/* The name is on the disk, too; that it cannot be made sure is not a failure. */
static void sync_folder(const struct output *o)
{
	int fd = open(*o->folder ? o->folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
}

/* Only root gives files away; others keep the group if it is one of theirs. */
static int take_rights(const struct output *o)
{
	struct stat st;

	if (o->mode)
		return fchmod(o->fd, o->mode) ? errno : 0;
	if (!is_there(o))
		return 0;
	if (fstat(o->fd, &st))
		return errno;
	if ((st.st_uid != o->old.st_uid || st.st_gid != o->old.st_gid) &&
	    fchown(o->fd, o->old.st_uid, o->old.st_gid) && fchown(o->fd, (uid_t)-1, o->old.st_gid))
		return fchmod(o->fd, o->old.st_mode & 0707) ? errno : 0;
	return fchmod(o->fd, o->old.st_mode & 0777) ? errno : 0;
}

static int commit(struct output *o)
{
	int code;

	if (o->direct)
		return 0;
	code = take_rights(o);
	if (!code)
		code = sync_all(o);
	if (!code)
		code = -temp_move(&o->temp, o->folder, o->name);
	if (!code)
		sync_folder(o);
	return code;
}

int output_end(struct output *o, struct err *err)
{
	int code;

	close_stream(o);
	if (!o->error)
		o->error = commit(o);
	code = o->error ? cannot(o, o->error, err) : 0;
	release(o);
	return code;
}

void output_drop(struct output *o)
{
	o->error = ECANCELED; /* what is in the buffer is not wanted */
	close_stream(o);
	release(o);
}

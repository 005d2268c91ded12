/* SPDX-License-Identifier: MIT */
/* export_dir.c - see export_dir.h. */
#define _GNU_SOURCE
#include "trace/export_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"

/* 0: PATH may become our directory, which rename(2) allows where there is an empty one. */
static int check_free(const char *path, struct err *err)
{
	struct dirent *e;
	DIR *d = opendir(path);
	bool empty = true;

	if (!d && errno == ENOENT)
		return 0;
	if (!d && errno == ENOTDIR)
		return err_set(err, EEXIST, "cannot make the directory %s: a file is there", path);
	if (!d)
		return err_set(err, errno, "cannot write %s: %s", path, strerror(errno));
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			empty = false;
	closedir(d);
	return empty ? 0 : err_set(err, EEXIST, "%s is there already and not empty", path);
}

int export_dir_begin(struct export_dir *d, const char *path, struct err *err)
{
	size_t n = strlen(path);
	int ret = check_free(path, err);

	*d = (struct export_dir){.path = path};
	if (ret)
		return ret;
	while (n > 1 && path[n - 1] == '/')
		n--;
	d->temp = xasprintf("%.*s.new-XXXXXX", (int)n, path);
	if (mkdtemp(d->temp))
		return 0;
	ret = err_set(err, errno, "cannot write %s: %s", path, strerror(errno));
	xfree(d->temp);
	return ret;
}

FILE *export_dir_open(struct export_dir *d, const char *name)
{
	char *path = xasprintf("%s/%s", d->temp, name);
	FILE *f = fopen(path, "wxe");

	if (!f && !d->error)
		d->error = errno;
	xfree(path);
	if (!f)
		f = fopen("/dev/null", "we");
	if (!f)
		abort(); /* no descriptor left in a tool that holds a handful */
	return f;
}

void export_dir_close(struct export_dir *d, FILE *f)
{
	bool failed = ferror(f);

	errno = 0;
	if ((fclose(f) || failed) && !d->error)
		d->error = errno ? errno : ENOSPC;
}

/* Our own directory, with its folders. */
static void remove_all(const char *path)
{
	struct dirent *e;
	DIR *d = opendir(path);

	while (d && (e = readdir(d))) {
		char *below = xasprintf("%s/%s", path, e->d_name);

		if (e->d_name[0] != '.' && unlinkat(dirfd(d), e->d_name, 0) && errno == EISDIR)
			remove_all(below);
		xfree(below);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

int export_dir_end(struct export_dir *d, struct err *err)
{
	mode_t mask = umask(0);
	int ret = 0;

	umask(mask);
	if (!d->error && (chmod(d->temp, 0777 & ~mask) || rename(d->temp, d->path)))
		d->error = errno;
	if (d->error) {
		remove_all(d->temp);
		ret = err_set(err, d->error, "cannot write %s: %s", d->path, strerror(d->error));
	}
	xfree(d->temp);
	return ret;
}

/* SPDX-License-Identifier: MIT */
/*
 * load.c - reads probe files.  A name without a slash is a pack if there is one, NAME.probe in
 * $KRON_PACKS, beside kron in the build tree, or where `make install` put it; else a file.
 */
#define _GNU_SOURCE
#include "probes/load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/paths.h"

#define FILE_MAX (16u << 20)
#define INCLUDES_MAX 8u

static int read_all(const char *path, char **text, size_t *n, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t cap = 4096;
	ssize_t got = -1;
	int code = 0;

	*text = NULL;
	*n = 0;
	if (fd < 0)
		return err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
	do { /* pipes have no size */
		if (!*text || *n == cap)
			*text = xrealloc(*text, *text ? (cap *= 2) : cap);
		got = read(fd, *text + *n, cap - *n);
		*n += got > 0 ? (size_t)got : 0;
	} while (got > 0 && *n <= FILE_MAX);
	if (got < 0)
		code = err_set(err, errno, "cannot read %s: %s", path, strerror(errno));
	else if (*n > FILE_MAX)
		code = err_set(err, EFBIG, "%s has more than %u MiB: it is not a probe file", path,
			       FILE_MAX >> 20);
	close(fd);
	if (code)
		xfree(*text);
	return code;
}

static int load_path(struct probe_set *set, const char *path, struct err *err)
{
	char *text;
	size_t n;
	int code = read_all(path, &text, &n, err);

	if (code)
		return code;
	code = probe_set_add_text(set, path, text, n, err);
	xfree(text);
	return code;
}

static bool is_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISDIR(st.st_mode);
}

/* A pack first: a program called io may stand here. */
int probe_set_add_file(struct probe_set *set, const char *name, struct err *err)
{
	char path[4096];

	if (!strchr(name, '/') && !paths_pack(path, sizeof(path), name))
		return load_path(set, path, err);
	if (is_file(name) || strchr(name, '/'))
		return load_path(set, name, err);
	return err_set(err, ENOENT,
		       "there is no probe file %s here, and no pack of this name in %s", name,
		       paths_packs());
}

/* Beside the file that includes it, else a pack. */
static char *included_path(const struct lex *lx, const char *name)
{
	const char *slash = strrchr(lx->file, '/');
	char *path;

	if (name[0] == '/' || !slash)
		return xstrdup(name);
	path = xasprintf("%.*s/%s", (int)(slash - lx->file), lx->file, name);
	if (is_file(path) || strchr(name, '/'))
		return path;
	xfree(path);
	return xstrdup(name);
}

int load_include(struct probe_set *set, const struct lex *lx, const char *at, const char *name)
{
	struct err why;
	char *path;
	int code;

	if (set->depth >= INCLUDES_MAX)
		return lex_error(lx, at, "files include each other more than %u deep",
				 INCLUDES_MAX);
	path = included_path(lx, name);
	set->depth++;
	code = probe_set_add_file(set, path, &why);
	set->depth--;
	xfree(path);
	if (code == -EINVAL && lx->err)
		*lx->err = why; /* has its own place */
	else if (code)
		return lex_error(lx, at, "%s", why.msg);
	return code;
}

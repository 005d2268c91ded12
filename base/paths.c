/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/paths.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUNTIME "libkron-rt.so"

/* Directory of this executable, without the last slash. */
static int own_directory(char *out, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", out, size - 1);
	char *slash;

	if (n < 0)
		return -errno;
	out[n] = 0;
	slash = strrchr(out, '/');
	if (!slash)
		return -ENOENT;
	*slash = 0;
	return 0;
}

/* Make candidate absolute; true if it can be read. */
static bool try_path(const char *candidate, char *out, size_t size)
{
	char full[PATH_MAX];

	if (!realpath(candidate, full) || access(full, R_OK))
		return false;
	return (size_t)snprintf(out, size, "%s", full) < size;
}

static bool find_runtime(char *out, size_t size)
{
	/* installed below prefix, whatever the prefix: a DESTDIR tree works where it lies */
	static const char *const places[] = {"runtime", "../lib/kron", "../lib64/kron"};
	char dir[PATH_MAX], path[PATH_MAX + 64];

	if (!own_directory(dir, sizeof(dir))) {
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
			snprintf(path, sizeof(path), "%s/%s/" RUNTIME, dir, places[i]);
			if (try_path(path, out, size))
				return true;
		}
	}
	return try_path(KRON_PKGLIBDIR "/" RUNTIME, out, size);
}

int paths_runtime(char *out, size_t size, struct err *err)
{
	const char *given = getenv("KRON_RUNTIME");

	if (given && *given) {
		if (!try_path(given, out, size))
			return err_set(err, ENOENT, "cannot read KRON_RUNTIME=%s: %s", given,
				       strerror(errno));
	} else if (!find_runtime(out, size)) {
		return err_set(err, ENOENT,
			       "cannot find " RUNTIME " beside kron nor in " KRON_PKGLIBDIR
			       "; set KRON_RUNTIME to its path");
	}
	if (strpbrk(out, " :"))
		return err_set(err, EINVAL,
			       "the dynamic linker cannot preload %s: its path has a blank or a "
			       "colon; move it or set KRON_RUNTIME",
			       out);
	return 0;
}

/* ---- packs ---- */

int paths_pack(char *out, size_t size, const char *name)
{
	static const char *const places[] = {"probes/packs", "../share/kron/packs"};
	const char *given = getenv("KRON_PACKS");
	char dir[PATH_MAX], path[2 * PATH_MAX];

	if (strlen(name) > NAME_MAX || strchr(name, '/'))
		return -ENOENT;
	if (given && *given) {
		snprintf(path, sizeof(path), "%.*s/%s.probe", PATH_MAX, given, name);
		return try_path(path, out, size) ? 0 : -ENOENT;
	}
	if (!own_directory(dir, sizeof(dir))) {
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
			snprintf(path, sizeof(path), "%s/%s/%s.probe", dir, places[i], name);
			if (try_path(path, out, size))
				return 0;
		}
	}
	snprintf(path, sizeof(path), KRON_PKGDATADIR "/packs/%s.probe", name);
	return try_path(path, out, size) ? 0 : -ENOENT;
}

const char *paths_packs(void)
{
	const char *given = getenv("KRON_PACKS");

	return given && *given ? given : KRON_PKGDATADIR "/packs";
}

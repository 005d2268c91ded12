/* SPDX-License-Identifier: MIT */
/*
 * plan_cache_rig.h - a cache in a folder of its own for each case, and what is in it.
 *
 * Cases that play another user, or need a mount of their own, do so as root, and are left out
 * otherwise.
 */
#ifndef TESTS_PLAN_CACHE_RIG_H
#define TESTS_PLAN_CACHE_RIG_H

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/vec.h"
#include "collect/cache/plan_cache.h"
#include "collect/cache/plan_source.h"

#define STRANGER 65534
#define DAY 86400

/* ---- a folder of our own for each case, where files are settled if anywhere ---- */

static char *dir;

static inline int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static inline int make_dir(void **state)
{
	char name[PATH_MAX];

	(void)state;
	assert_non_null(getcwd(name, sizeof(name) - 20));
	strcat(name, "/cache-XXXXXX");
	if (!mkdtemp(name)) {
		strcpy(name, "/tmp/cache-XXXXXX");
		assert_non_null(mkdtemp(name));
	}
	dir = xstrdup(name);
	return 0;
}

static inline int remove_dir(void **state)
{
	int code;

	(void)state;
	plan_source_set_age(0);
	code = nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	xfree(dir);
	return code;
}

/* Good for the next some calls. */
static inline char *in_dir(const char *name)
{
	static char *path[16];
	static unsigned i;
	char **p = &path[i++ % 16];

	xfree(*p);
	*p = xasprintf("%s/%s", dir, name);
	return *p;
}

static inline void put_file(const char *path, const void *bytes, size_t n, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static inline uint8_t *get_file(const char *path, size_t *n)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	uint8_t *bytes;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	*n = (size_t)st.st_size;
	bytes = xmalloc(*n + 1);
	assert_int_equal(read(fd, bytes, *n), *n);
	close(fd);
	return bytes;
}

/* ---- the cache and what is in it ---- */

static inline struct plan_cache open_cache(void)
{
	struct plan_cache c;

	plan_cache_open(&c, dir, NULL);
	assert_true(c.dir >= 0);
	return c;
}

static inline bool is_named(const char *name, const char *pattern)
{
	size_t n = strlen(pattern);

	if (pattern[n - 1] == '*')
		return !strncmp(name, pattern, n - 1);
	return strlen(name) > n - 1 && !strcmp(name + strlen(name) - (n - 1), pattern + 1);
}

/* How many entries have names like "known-*" or "*.plan"; the path of the last one. */
static inline unsigned find_entries(const char *pattern, char **last)
{
	DIR *d = opendir(in_dir("kron"));
	struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d))) {
		if (!is_named(e->d_name, pattern))
			continue;
		if (last)
			*last = in_dir(xasprintf("kron/%s", e->d_name));
		n++;
	}
	if (d)
		closedir(d);
	return n;
}

static inline unsigned count_entries(const char *pattern)
{
	return find_entries(pattern, NULL);
}

static inline char *the_entry(const char *pattern)
{
	char *path = NULL;

	assert_int_equal(find_entries(pattern, &path), 1);
	return path;
}

static inline uint64_t bytes_in_cache(void)
{
	DIR *d = opendir(in_dir("kron"));
	struct dirent *e;
	struct stat st;
	uint64_t n = 0;

	while (d && (e = readdir(d)))
		if (!fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    S_ISREG(st.st_mode) && strcmp(e->d_name, ".room"))
			n += (uint64_t)st.st_size;
	if (d)
		closedir(d);
	return n;
}

static inline struct elf_image *open_image(const char *path)
{
	struct elf_image *img;
	struct err err = {{0}};

	if (elf_image_open(&img, path, &err))
		fail_msg("%s", err.msg);
	return img;
}

/* The plan as a file; *was_there: it came from the cache. */
static inline uint8_t *plan_bytes(const struct plan_cache *c, const char *path, bool hooks_only,
				  size_t *n, bool *was_there)
{
	static const struct plan_key none;
	struct elf_image *img = open_image(path);
	struct plan *p = NULL;
	struct err err = {{0}};
	uint8_t *bytes;
	int fd = memfd_create("plan", 0);

	if (plan_cache_get(c, &p, img, hooks_only, &err))
		fail_msg("%s", err.msg);
	*was_there = p->mapping;
	*n = plan_file_size(p);
	assert_int_equal(plan_save(p, &none, fd, NULL), 0);
	bytes = xmalloc(*n);
	assert_int_equal(pread(fd, bytes, *n, 0), *n);
	close(fd);
	plan_free(p);
	elf_image_close(img);
	return bytes;
}

enum from { PLANNED, FROM_CACHE };

/* It is the plan that there is without any cache, and comes from there. */
static inline void assert_plan(const struct plan_cache *c, const char *path, enum from from)
{
	const struct plan_cache none = {.dir = -1};
	bool was_there;
	size_t n, want_n;
	uint8_t *want = plan_bytes(&none, path, false, &want_n, &was_there);
	uint8_t *got = plan_bytes(c, path, false, &n, &was_there);

	assert_int_equal(was_there, from == FROM_CACHE);
	assert_int_equal(n, want_n);
	assert_memory_equal(got, want, n);
	xfree(got);
	xfree(want);
}

/* A program of ours: /bin/true and some bytes more. */
static inline char *make_program(const char *name, const char *more)
{
	char *path = in_dir(name);
	size_t n;
	uint8_t *bytes = get_file("/bin/true", &n);

	bytes = xrealloc(bytes, n + strlen(more) + 1);
	memcpy(bytes + n, more, strlen(more));
	put_file(path, bytes, n + strlen(more), 0755);
	xfree(bytes);
	return path;
}

/* Runs the case in a process of its own, for it changes who or where we are. */
static inline void in_child(void (*fn)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define CHECK(condition)                                                          \
	do {                                                                      \
		if (!(condition)) {                                               \
			fprintf(stderr, "# line %d: %s\n", __LINE__, #condition); \
			_exit(1);                                                 \
		}                                                                 \
	} while (0)

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, make_dir, remove_dir)

#endif

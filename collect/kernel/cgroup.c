/* SPDX-License-Identifier: MIT */
/* cgroup.c - see cgroup.h. */
#define _GNU_SOURCE
#include "collect/kernel/cgroup.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* v1 says "none" by the largest multiple of a page in a signed word. */
#define LEAST_NO_LIMIT (1ull << 62)

/* What one version calls things. */
struct cgroup_dialect {
	const char *type; /* of the file system */
	const char *limits[2], *usage;
	const char *reclaimable; /* in memory.stat: the group's and its descendants' */
};
static const struct cgroup_dialect v1 = {
	"cgroup", {"memory.limit_in_bytes", NULL}, "memory.usage_in_bytes", "total_inactive_file "};
static const struct cgroup_dialect v2 = {
	"cgroup2", {"memory.max", "memory.high"}, "memory.current", "inactive_file "};

static bool read_text(char *out, size_t size, const char *dir, const char *name)
{
	char *path = xasprintf("%s/%s", dir, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t r = 0;

	xfree(path);
	if (fd < 0)
		return false;
	while (n < size - 1 && (r = read(fd, out + n, size - 1 - n)) > 0)
		n += (size_t)r;
	close(fd);
	out[n] = 0;
	return r >= 0;
}

/* A number; "max", or what is not a number, is not a limit. */
static uint64_t read_number(const char *dir, const char *name)
{
	char text[64];
	uint64_t v;
	char *end;

	if (!read_text(text, sizeof(text), dir, name) || text[0] < '0' || text[0] > '9')
		return CGROUP_NO_LIMIT;
	v = strtoull(text, &end, 10);
	return v >= LEAST_NO_LIMIT ? CGROUP_NO_LIMIT : v;
}

/* "name 123" on a line of its own; 0 when there is no such line. */
static uint64_t read_stat(const char *dir, const char *name)
{
	char text[8192];
	const char *line;

	if (!read_text(text, sizeof(text), dir, "memory.stat"))
		return 0;
	for (line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, strlen(name)))
			return strtoull(line + strlen(name), NULL, 10);
	}
	return 0;
}

static uint64_t limit_of(const char *dir, const struct cgroup_dialect *d)
{
	uint64_t least = CGROUP_NO_LIMIT;

	for (size_t i = 0; i < 2 && d->limits[i]; i++) {
		uint64_t limit = read_number(dir, d->limits[i]);

		least = limit < least ? limit : least;
	}
	return least;
}

static uint64_t left_in(const char *dir, const struct cgroup_dialect *d)
{
	uint64_t limit = limit_of(dir, d), used, reclaimable;

	if (limit == CGROUP_NO_LIMIT)
		return CGROUP_NO_LIMIT;
	used = read_number(dir, d->usage);
	if (used == CGROUP_NO_LIMIT)
		return limit;
	reclaimable = read_stat(dir, d->reclaimable);
	used -= reclaimable < used ? reclaimable : used;
	return used < limit ? limit - used : 0;
}

uint64_t cgroups_memory_left(const struct cgroups *c)
{
	uint64_t least = CGROUP_NO_LIMIT;

	for (size_t i = 0; i < c->dirs.n; i++) {
		uint64_t left = left_in(c->dirs.v[i].path, c->dirs.v[i].dialect);

		least = left < least ? left : least;
	}
	return least;
}

/* ---- where they are ---- */

/* The group and all above it, up to where the file system is mounted. */
static void add_dirs(struct cgroups *c, const char *mount, const char *below,
		     const struct cgroup_dialect *d)
{
	char *dir = xasprintf("%s%s", mount, below);
	size_t top = strlen(mount);

	for (;;) {
		size_t n = strlen(dir);

		while (n > top && dir[n - 1] == '/')
			dir[--n] = 0;
		if (limit_of(dir, d) != CGROUP_NO_LIMIT)
			*vec_push(&c->dirs) = (struct cgroup_dir){xstrdup(dir), d};
		if (n <= top)
			break;
		*strrchr(dir, '/') = 0;
	}
	xfree(dir);
}

/*
 * The group as seen from the mount: its path without that of the mount's root.  What lies outside is
 * not shown; then the root is as near as we get.
 */
static const char *below_root(const char *group, const char *root)
{
	size_t n = strlen(root);

	if (strstr(group, "/.."))
		return "";
	if (!strcmp(root, "/"))
		return group;
	if (!strncmp(group, root, n) && (group[n] == '/' || !group[n]))
		return group + n;
	return "";
}

/* In place: the kernel writes blanks and the like in names as \040. */
static void unescape(char *s)
{
	char *out = s;

	while (*s) {
		if (s[0] == '\\' && s[1] && s[2] && s[3]) {
			*out++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 4;
		} else {
			*out++ = *s++;
		}
	}
	*out = 0;
}

/* Is one of the words between commas `word`? */
static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; p; p = strchr(p, ',')) {
		p += *p == ',';
		if (!strncmp(p, word, n) && (p[n] == ',' || !p[n] || p[n] == '\n'))
			return true;
	}
	return false;
}

struct hierarchy {
	const struct cgroup_dialect *dialect;
	char group[4096]; /* of this process; "" when it has none there */
};

/* "36 35 0:33 /root /mount options... - type source options" */
static void consider_mount(struct cgroups *c, const char *root, char *line,
			   const struct hierarchy *h)
{
	char top[4096], mount[4096], type[64], options[1024];
	char *tail = strstr(line, " - "), *dir;

	if (!tail || strncmp(tail, " - cgroup", 9) ||
	    sscanf(tail, " - %63s %*s %1023s", type, options) != 2 ||
	    strcmp(type, h->dialect->type) || (h->dialect == &v1 && !has_word(options, "memory")) ||
	    sscanf(line, "%*s %*s %*s %4095s %4095s", top, mount) != 2)
		return;
	unescape(top);
	unescape(mount);
	dir = xasprintf("%s%s", root, mount);
	add_dirs(c, dir, below_root(h->group, top), h->dialect);
	xfree(dir);
}

/* "4:memory,cpu:/path" of v1, "0::/path" of v2 */
static void consider_group(char *line, struct hierarchy h[2])
{
	char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
	struct hierarchy *mine;

	if (!path)
		return;
	*path++ = 0;
	path[strcspn(path, "\n")] = 0;
	mine = names[1] ? &h[0] : &h[1];
	if (names[1] && !has_word(names + 1, "memory"))
		return;
	snprintf(mine->group, sizeof(mine->group), "%s", path);
}

static FILE *open_proc(const char *root, const char *name)
{
	char *path = xasprintf("%s/proc/self/%s", root, name);
	FILE *f = fopen(path, "re");

	xfree(path);
	return f;
}

void cgroups_find(struct cgroups *c, const char *root)
{
	struct hierarchy h[2]; /* large, and mostly not used */
	FILE *f = open_proc(root, "cgroup");
	char *line = NULL;
	size_t room = 0;

	memset(c, 0, sizeof(*c));
	h[0].dialect = &v1;
	h[1].dialect = &v2;
	h[0].group[0] = h[1].group[0] = 0;
	while (f && getline(&line, &room, f) > 0)
		consider_group(line, h);
	if (f)
		fclose(f);
	f = open_proc(root, "mountinfo");
	while (f && getline(&line, &room, f) > 0)
		for (size_t i = 0; i < 2; i++)
			if (h[i].group[0])
				consider_mount(c, root, line, &h[i]);
	if (f)
		fclose(f);
	free(line);
}

void cgroups_free(struct cgroups *c)
{
	vec_for(&c->dirs, dir)
		xfree(dir->path);
	vec_free(&c->dirs);
}

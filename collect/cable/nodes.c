/* SPDX-License-Identifier: MIT */
/*
 * nodes.c - the collector's directories: one a recording, known by its session.
 *
 * The file `cable` in it has the session, so that a collector that was killed, or ended, and is started again goes on
 * where the files end.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "collect/cable/serve.h"

#define ID_FILE "cable"
#define ID_TEXT (2 * CABLE_ID)
#define SAME_NAME_MOST 10000

static void id_text(char text[ID_TEXT + 1], const uint8_t id[CABLE_ID])
{
	for (size_t i = 0; i < CABLE_ID; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
}

static struct cable_node *node_new(struct cable_server *s, const uint8_t *id, const char *name)
{
	struct cable_node *n = xcalloc(1, sizeof(*n));

	memcpy(n->id, id, CABLE_ID);
	n->name = xstrdup(name);
	for (size_t i = 0; i < CABLE_FILES; i++)
		n->fds[i] = -1;
	*vec_push(&s->nodes) = n;
	return n;
}

static void close_files(struct cable_node *n)
{
	for (size_t i = 0; i < CABLE_FILES; i++) {
		if (n->fds[i] >= 0)
			close(n->fds[i]);
		n->fds[i] = -1;
	}
}

void cable_node_free(struct cable_node *n)
{
	close_files(n);
	xfree(n->name);
	xfree(n);
}

static int open_file(struct cable_server *s, struct cable_node *n, unsigned file, int flags)
{
	char path[CABLE_NAME + 80];

	snprintf(path, sizeof(path), "%s/%s", n->name, cable_files[file]);
	return openat(s->dirfd, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
}

/* How long its files are. */
static void look_at_files(struct cable_server *s, struct cable_node *n)
{
	for (unsigned i = 0; i < CABLE_FILES; i++) {
		struct stat st;

		if (n->fds[i] < 0)
			n->fds[i] = open_file(s, n, i, 0);
		n->has.v[i] = n->fds[i] >= 0 && !fstat(n->fds[i], &st) ? (uint64_t)st.st_size : 0;
	}
}

/* ---- sessions that are there ---- */

static bool read_id(struct cable_server *s, const char *name, uint8_t id[CABLE_ID])
{
	char path[CABLE_NAME + 80], text[ID_TEXT];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/" ID_FILE, name);
	fd = openat(s->dirfd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text));
	close(fd);
	for (size_t i = 0; n == sizeof(text) && i < CABLE_ID; i++) {
		char digits[3] = {text[2 * i], text[2 * i + 1], 0}, *end;

		id[i] = (uint8_t)strtoul(digits, &end, 16);
		if (end != digits + 2)
			n = 0;
	}
	return n == sizeof(text);
}

void cable_nodes_find(struct cable_server *s)
{
	int fd = openat(s->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;

	while (d && (de = readdir(d))) {
		char name[CABLE_NAME] = "";
		uint8_t id[CABLE_ID];

		if (strlen(de->d_name) >= sizeof(name))
			continue;
		memcpy(name, de->d_name, strlen(de->d_name) + 1);
		if (cable_is_name(name) && read_id(s, name, id))
			node_new(s, id, name);
	}
	if (d)
		closedir(d);
}

/* ---- new ones ---- */

static int write_id(struct cable_server *s, const char *name, const uint8_t *id)
{
	char path[CABLE_NAME + 80], text[ID_TEXT + 2];
	int fd, ret = 0;

	snprintf(path, sizeof(path), "%s/" ID_FILE, name);
	id_text(text, id);
	text[ID_TEXT] = '\n';
	fd = openat(s->dirfd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || write(fd, text, ID_TEXT + 1) != ID_TEXT + 1)
		ret = errno ? -errno : -EIO;
	if (fd >= 0)
		close(fd);
	return ret;
}

/* NAME, or NAME-2 ... where that is another recording's. */
static int make_directory(struct cable_server *s, const char *wanted, char name[CABLE_NAME])
{
	for (unsigned i = 1; i < SAME_NAME_MOST; i++) {
		if (i == 1)
			snprintf(name, CABLE_NAME, "%s", wanted);
		else
			snprintf(name, CABLE_NAME, "%.*s-%u", CABLE_NAME - 8, wanted, i);
		if (!mkdirat(s->dirfd, name, 0700))
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

struct cable_node *cable_node_of(struct cable_server *s, const struct cable_hello *h,
				 struct err *err)
{
	char name[CABLE_NAME];
	struct cable_node *n;
	int ret;

	vec_for(&s->nodes, known) {
		if (memcmp((*known)->id, h->id, CABLE_ID))
			continue;
		look_at_files(s, *known);
		return *known;
	}
	ret = make_directory(s, h->name, name);
	if (!ret)
		ret = write_id(s, name, h->id);
	if (ret) {
		err_set(err, -ret, "cannot make a directory in %s: %s", s->dir, strerror(-ret));
		return NULL;
	}
	n = node_new(s, h->id, name);
	return n;
}

int cable_node_append(struct cable_server *s, struct cable_node *n, unsigned file, uint64_t offset,
		      const uint8_t *v, size_t size)
{
	uint64_t has = n->has.v[file];

	if (offset > has)
		return -ERANGE;
	if (offset + size <= has)
		return 0; /* it is there: sent again after the link was broken */
	v += has - offset;
	size -= has - offset;
	if (n->fds[file] < 0)
		n->fds[file] = open_file(s, n, file, O_CREAT);
	if (n->fds[file] < 0)
		return -errno;
	while (size) {
		ssize_t did = pwrite(n->fds[file], v, size, (off_t)n->has.v[file]);

		if (did < 0 && errno == EINTR)
			continue;
		if (did <= 0)
			return did ? -errno : -EIO;
		v += did;
		size -= (size_t)did;
		n->has.v[file] += (uint64_t)did;
		s->received += (uint64_t)did;
	}
	return 0;
}

/* ---- the folder ---- */

int cable_server_open(struct cable_server *s, const char *dir, struct err *err)
{
	s->dir = dir;
	if (mkdir(dir, 0700) && errno != EEXIST)
		return err_set(err, errno, "cannot make %s: %s", dir, strerror(errno));
	s->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dirfd < 0)
		return err_set(err, errno, "cannot open %s: %s", dir, strerror(errno));
	if (!faccessat(s->dirfd, "session", F_OK, 0)) {
		close(s->dirfd);
		return err_set(err, EEXIST, "%s is a trace; name a folder for traces with -o", dir);
	}
	if (flock(s->dirfd, LOCK_EX | LOCK_NB)) {
		close(s->dirfd);
		return err_set(err, EBUSY, "another kron collect writes to %s", dir);
	}
	cable_nodes_find(s);
	return 0;
}

void cable_server_close(struct cable_server *s)
{
	while (s->conns.n)
		cable_conn_free(s, s->conns.v[s->conns.n - 1]);
	vec_for(&s->nodes, n)
		cable_node_free(*n);
	vec_free(&s->nodes);
	vec_free(&s->conns);
	close(s->dirfd);
}

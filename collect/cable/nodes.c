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
#include <poll.h>
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
#define LOCK_MS 4000 /* less than a sender waits for an answer */
#define LOCK_SLICE_MS 20

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
	n->dirfd = -1;
	*vec_push(&s->nodes) = n;
	return n;
}

void cable_node_close(struct cable_node *n)
{
	if (n->dirfd >= 0)
		close(n->dirfd);
	n->dirfd = -1;
}

void cable_node_free(struct cable_node *n)
{
	cable_node_close(n);
	xfree(n->name);
	xfree(n);
}

/*
 * A directory that we have made: where others may write to the folder, a symbolic link or a directory of theirs can
 * stand in its place.  -errno: it is none.
 */
static int open_directory(struct cable_server *s, const char *name)
{
	int fd = openat(s->dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && st.st_uid == geteuid())
		return fd;
	close(fd);
	return -EPERM;
}

static int open_file(const struct cable_node *n, unsigned file)
{
	return openat(n->dirfd, cable_files[file], O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
		      0600);
}

/* How long its files are. */
static void look_at_files(struct cable_node *n)
{
	for (unsigned i = 0; i < CABLE_FILES; i++) {
		struct stat st;

		n->has.v[i] = fstatat(n->dirfd, cable_files[i], &st, AT_SYMLINK_NOFOLLOW)
				      ? 0
				      : (uint64_t)st.st_size;
	}
}

/* ---- sessions that are there ---- */

static bool read_id(struct cable_server *s, const char *name, uint8_t id[CABLE_ID])
{
	int dir = open_directory(s, name), fd;
	char text[ID_TEXT];
	ssize_t n;

	if (dir < 0)
		return false;
	fd = openat(dir, ID_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	close(dir);
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

/*
 * Of a sender that has come by another link, the far end of the old one may not know yet that it is broken.  False:
 * it has the node still.
 */
static bool lock_node(struct cable_server *s, int dirfd)
{
	bool locked = !s->shares || !flock(dirfd, LOCK_EX | LOCK_NB);

	for (unsigned ms = 0; !locked && ms < LOCK_MS; ms += LOCK_SLICE_MS) {
		poll(NULL, 0, LOCK_SLICE_MS);
		locked = !flock(dirfd, LOCK_EX | LOCK_NB);
	}
	s->was_locked = !locked;
	return locked;
}

/* ---- new ones ---- */

static int write_id(int dirfd, const uint8_t *id)
{
	char text[ID_TEXT + 2];
	int fd, ret = 0;

	id_text(text, id);
	text[ID_TEXT] = '\n';
	fd = openat(dirfd, ID_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
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

static struct cable_node *known_node(struct cable_server *s, const uint8_t id[CABLE_ID])
{
	for (size_t i = 0; i < s->nodes.n; i++)
		if (!memcmp(s->nodes.v[i]->id, id, CABLE_ID))
			return s->nodes.v[i];
	return NULL;
}

static struct cable_node *new_node(struct cable_server *s, const struct cable_hello *h,
				   struct err *err)
{
	char name[CABLE_NAME];
	struct cable_node *n = NULL;
	int ret = make_directory(s, h->name, name), dirfd = -1;

	if (!ret)
		ret = dirfd = open_directory(s, name);
	if (ret >= 0)
		ret = lock_node(s, dirfd) ? write_id(dirfd, h->id) : -EBUSY;
	if (!ret) {
		n = node_new(s, h->id, name);
		n->dirfd = dirfd;
		return n;
	}
	if (dirfd >= 0)
		close(dirfd);
	err_set(err, -ret, "cannot make a directory in %s: %s", s->dir, strerror(-ret));
	return NULL;
}

struct cable_node *cable_node_of(struct cable_server *s, const struct cable_hello *h,
				 struct err *err)
{
	struct cable_node *n = known_node(s, h->id);

	if (!n)
		return new_node(s, h, err);
	if (n->dirfd < 0)
		n->dirfd = open_directory(s, n->name);
	if (n->dirfd < 0) {
		err_set(err, -n->dirfd, "cannot open %s/%s: %s", s->dir, n->name,
			strerror(-n->dirfd));
		n->dirfd = -1;
		return NULL;
	}
	if (!lock_node(s, n->dirfd)) {
		cable_node_close(n);
		err_set(err, EBUSY, "the far end of an older link has %s still", n->name);
		return NULL;
	}
	look_at_files(n);
	return n;
}

static int write_at(int fd, uint64_t *at, const uint8_t *v, size_t size)
{
	while (size) {
		ssize_t did = pwrite(fd, v, size, (off_t)*at);

		if (did < 0 && errno == EINTR)
			continue;
		if (did <= 0)
			return did ? -errno : -EIO;
		v += did;
		size -= (size_t)did;
		*at += (uint64_t)did;
	}
	return 0;
}

int cable_node_append(struct cable_server *s, struct cable_node *n, unsigned file, uint64_t offset,
		      const uint8_t *v, size_t size)
{
	uint64_t has = n->has.v[file];
	int fd, ret;

	if (offset > has)
		return -ERANGE;
	if (offset + size <= has)
		return 0;        /* it is there: sent again after the link was broken */
	fd = open_file(n, file); /* not kept open: thousands of nodes have thirteen each */
	if (fd < 0)
		return -errno;
	ret = write_at(fd, &n->has.v[file], v + (has - offset), size - (size_t)(has - offset));
	close(fd);
	s->received += n->has.v[file] - has;
	return ret;
}

/* ---- the folder ---- */

int cable_server_open(struct cable_server *s, const char *dir, struct err *err)
{
	s->dir = dir;
	s->made_dir = !mkdir(dir, 0700);
	if (!s->made_dir && errno != EEXIST)
		return err_set(err, errno, "cannot make %s: %s", dir, strerror(errno));
	s->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dirfd < 0)
		return err_set(err, errno, "cannot open %s: %s", dir, strerror(errno));
	if (!faccessat(s->dirfd, "session", F_OK, 0)) {
		close(s->dirfd);
		return err_set(err, EEXIST, "%s is a trace; name a folder for traces with -o", dir);
	}
	if (flock(s->dirfd, (s->shares ? LOCK_SH : LOCK_EX) | LOCK_NB)) {
		close(s->dirfd);
		return err_set(err, EBUSY, "another kron collect writes to %s", dir);
	}
	cable_nodes_find(s);
	return 0;
}

void cable_server_unmake(struct cable_server *s)
{
	if (s->made_dir)
		rmdir(s->dir);
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

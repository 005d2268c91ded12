/* SPDX-License-Identifier: MIT */
/* far_end.c - see far_end.h. */
#define _GNU_SOURCE
#include "board/toolkit/far_end.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"
#include "board/bus/cable.h"
#include "board/bus/find_sample.h"

static void nap(void)
{
	const struct timespec t = {.tv_nsec = 1000000};

	nanosleep(&t, NULL);
}

/* ---- bytes to samples ---- */

/* As a word lies in mk.dat: the byte that was sent first is the most significant one. */
static void turn_words(uint8_t *p, size_t n)
{
	for (; n >= 4; n -= 4, p += 4) {
		uint8_t w[4] = {p[3], p[2], p[1], p[0]};

		memcpy(p, w, 4);
	}
}

static size_t size_at(const uint8_t *p)
{
	const uint8_t word[4] = {p[3], p[2], p[1], p[0]};

	return sample_size(word);
}

/* Writes the samples that are whole; -errno. */
static int write_samples(struct far_end *f)
{
	size_t at = 0, size;

	while (f->n - at >= 4) {
		size = size_at(f->held + at);
		if (!size) { /* not a beginning: the cable has 16 bits at a time */
			at += 2;
			f->damaged += 2;
			continue;
		}
		if (size > f->n - at)
			break;
		turn_words(f->held + at, size);
		if (fwrite(f->held + at, 1, size, f->out) != size)
			return -errno;
		if (size == KRON_SAMPLE_SIZE)
			f->trace++;
		else
			f->resource++;
		at += size;
	}
	f->n -= at;
	memmove(f->held, f->held + at, f->n);
	return fflush(f->out) ? -errno : 0;
}

static int add(struct far_end *f, const uint8_t *p, size_t n, struct err *err)
{
	while (n) {
		size_t k = sizeof(f->held) - f->n < n ? sizeof(f->held) - f->n : n;
		int code;

		memcpy(f->held + f->n, p, k);
		f->n += k;
		p += k;
		n -= k;
		code = write_samples(f);
		if (code)
			return err_set(err, -code, "cannot write the samples: %s", strerror(-code));
	}
	return 0;
}

/* ---- a board ---- */

int far_end_of_board(struct far_end *f, struct bus *b, struct err *err)
{
	struct bus_cable *c = xmalloc(sizeof(*c));
	bool there = true;
	size_t n = 0;
	int code = bus_cable_open(c, b, err);

	while (!code && (there || n)) {
		if (!n) {
			if (*f->stop)
				break;
			there = bus_cable_is_there(c);
		}
		code = bus_cable_take(c, &n, err);
		if (!code && n)
			code = add(f, c->bytes, n, err);
		else if (there)
			nap();
	}
	if (!code)
		bus_cable_close(c);
	xfree(c);
	return code;
}

/* ---- a path ---- */

/* The one connection that is made to unix:PATH; the name goes then. */
static int accept_at(const char *path, struct err *err)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd, conn = -1, code;
	mode_t mask;

	if (!*path || strlen(path) >= sizeof(a.sun_path))
		return err_set(err, EINVAL, "\"%.80s\" is not a path of a socket", path);
	strcpy(a.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	mask = umask(077);
	code = fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) ? errno : 0;
	umask(mask);
	if (!code) {
		conn = listen(fd, 1) ? -1 : accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		code = conn < 0 ? errno : 0;
		unlink(path);
	}
	if (fd >= 0)
		close(fd);
	if (code && code != EINTR)
		return err_set(err, code, "cannot listen at %s: %s", path, strerror(code));
	return code ? -code : conn;
}

static int open_path(const char *path, struct err *err)
{
	int fd;

	if (!strcmp(path, "-"))
		return 0;
	if (!strncmp(path, "unix:", 5))
		return accept_at(path + 5, err);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno != EINTR)
		return err_set(err, errno, "cannot read %s: %s", path, strerror(errno));
	return fd < 0 ? -EINTR : fd;
}

static bool is_regular(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode);
}

int far_end_of_path(struct far_end *f, const char *path, struct err *err)
{
	uint8_t bytes[8192];
	int code = 0, fd = open_path(path, err);
	ssize_t n;

	if (fd < 0)
		return fd == -EINTR && *f->stop ? 0 : fd;
	while (!code && !*f->stop) {
		n = read(fd, bytes, sizeof(bytes));
		if (n > 0)
			code = add(f, bytes, (size_t)n, err);
		else if (n < 0 && errno != EINTR)
			code = err_set(err, errno, "cannot read %s: %s", path, strerror(errno));
		else if (!n && !(f->follow && is_regular(fd)))
			break;
		else if (!n)
			nap();
	}
	if (fd)
		close(fd);
	return code;
}

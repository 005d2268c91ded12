/* SPDX-License-Identifier: MIT */
/* file_bytes.c - see file_bytes.h */
#define _GNU_SOURCE
#include "base/file_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"

bool file_is_others(const struct stat *st)
{
	return (st->st_uid != 0 && st->st_uid != geteuid()) || st->st_mode & (S_IWGRP | S_IWOTH);
}

int file_open_plain(const char *path)
{
	int found = open(path, O_PATH | O_CLOEXEC), fd, code;
	char self[64];
	struct stat st;

	if (found < 0 || fstat(found, &st) || !S_ISREG(st.st_mode))
		return found;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", found);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	code = errno;
	close(found);
	errno = code;
	return fd;
}

/* As much as is there: a file that has become shorter ends earlier. */
static ssize_t read_all(int fd, uint8_t *to, size_t size)
{
	size_t n = 0;

	while (n < size) {
		ssize_t r = pread(fd, to + n, size - n, (off_t)n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (!r)
			break;
		n += (size_t)r;
	}
	return (ssize_t)n;
}

/* Pages of our own, to be given back like those of a mapping. */
static int copy(struct file_bytes *b, int fd)
{
	void *p = mmap(NULL, b->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ssize_t n;

	if (p == MAP_FAILED)
		return -errno;
	n = read_all(fd, p, b->size);
	if (n != (ssize_t)b->size) {
		munmap(p, b->size);
		return n < 0 ? (int)n : -ESTALE;
	}
	b->v = p;
	b->copied = true;
	return 0;
}

static int map(struct file_bytes *b, int fd)
{
	void *p = mmap(NULL, b->size, PROT_READ, MAP_PRIVATE, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	b->v = p;
	b->guard = guard_add(p, b->size);
	return 0;
}

int file_bytes_open(struct file_bytes *b, int fd, const struct stat *st, const char *path,
		    struct err *err)
{
	int code;

	memset(b, 0, sizeof(*b));
	b->size = (size_t)st->st_size;
	code = file_is_others(st) ? copy(b, fd) : map(b, fd);
	if (code == -ESTALE)
		return err_set(err, ESTALE, "%s was cut off while it was read", path);
	return code ? err_set(err, -code, "cannot read %s: %s", path, strerrordesc_np(-code)) : 0;
}

bool file_bytes_are_cut(const struct file_bytes *b)
{
	return guard_was_hit(b->guard);
}

void file_bytes_close(struct file_bytes *b)
{
	guard_remove(b->guard);
	if (b->v)
		munmap((void *)(uintptr_t)b->v, b->size);
	b->v = NULL;
}

/* SPDX-License-Identifier: MIT */
/* file_bytes.c - see file_bytes.h */
#define _GNU_SOURCE
#include "base/file_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/memory.h"

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

/* Where the next bytes are that are not a hole, or `size`.  A hole is zero here anyhow, and takes no memory. */
static size_t skip_hole(int fd, size_t at, size_t size)
{
	off_t data = lseek(fd, (off_t)at, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? size : at;
	return (size_t)data < size ? (size_t)data : size;
}

#define AT_ONCE (1u << 20)

/* 0, or -errno: -ESTALE when the file has become shorter. */
static int read_all(int fd, uint8_t *to, size_t size)
{
	size_t n = skip_hole(fd, 0, size);
	struct stat st;

	while (n < size) {
		ssize_t r = pread(fd, to + n, size - n < AT_ONCE ? size - n : AT_ONCE, (off_t)n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? -errno : -ESTALE;
		n = skip_hole(fd, n + (size_t)r, size);
	}
	if (fstat(fd, &st))
		return -errno;
	return (size_t)st.st_size < size ? -ESTALE : 0;
}

/* ---- how much may be copied ---- */

static uint64_t being_copied; /* atomic: the kernel does not count all of it yet */

/* The size is another user's choice.  With half of what there is at most, nobody is killed for it. */
static bool take_memory(size_t size)
{
	uint64_t all = __atomic_add_fetch(&being_copied, size, __ATOMIC_RELAXED);

	if (all <= memory_available() / 2)
		return true;
	__atomic_sub_fetch(&being_copied, size, __ATOMIC_RELAXED);
	return false;
}

/* Pages of our own, to be given back like those of a mapping. */
static int copy(struct file_bytes *b, int fd)
{
	void *p;
	int code;

	if (!take_memory(b->size))
		return -EFBIG;
	p = mmap(NULL, b->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	code = p == MAP_FAILED ? -errno : read_all(fd, p, b->size);
	__atomic_sub_fetch(&being_copied, b->size, __ATOMIC_RELAXED);
	if (code) {
		if (p != MAP_FAILED)
			munmap(p, b->size);
		return code;
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
	if (code == -EFBIG)
		return err_set(
			err, EFBIG,
			"%s is too large: others may change it, so it would have to be copied, "
			"and its %zu MiB are more than half of the memory that is available",
			path, b->size >> 20);
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

/* SPDX-License-Identifier: MIT */
/* chunks.c - see chunks.h. */
#define _GNU_SOURCE
#include "trace/chunks.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

int chunk_map_open(struct chunk_map *m, int fd)
{
	struct stat st;
	void *p;

	m->base = NULL;
	m->size = 0;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (!st.st_size)
		return 0;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	m->base = p;
	m->size = (size_t)st.st_size;
	return 0;
}

void chunk_map_close(struct chunk_map *m)
{
	if (m->base)
		munmap((void *)(uintptr_t)m->base, m->size);
	m->base = NULL;
	m->size = 0;
}

static bool is_magic(uint32_t magic)
{
	return magic == TRACE_CHUNK_MAGIC || magic == TRACE_PACKED_MAGIC ||
	       magic == TRACE_PAD_MAGIC;
}

static bool is_header(const struct trace_chunk *h)
{
	return is_magic(h->magic) && h->nbytes <= TRACE_CHUNK_MAX && h->nbytes % 4 == 0;
}

/* The last chunk or pad, not written to its end: what a kill leaves, or is being written. */
static bool is_torn_chunk(const struct chunk_map *m, size_t at)
{
	uint32_t magic;

	if (m->size - at < sizeof(magic))
		return true;
	memcpy(&magic, m->base + at, sizeof(magic));
	return is_magic(magic);
}

const uint8_t *chunk_map_next(struct chunk_map *m, size_t *off, struct trace_chunk *head,
			      uint64_t *skipped)
{
	size_t start = *off, at = start;

	while (at <= m->size && m->size - at >= sizeof(*head)) {
		memcpy(head, m->base + at, sizeof(*head));
		if (!is_header(head) || head->nbytes > m->size - at - sizeof(*head)) {
			at += 4; /* everything written is a multiple of 4 bytes long */
			continue;
		}
		*skipped += at - start;
		*off = at + sizeof(*head) + head->nbytes;
		if (head->magic != TRACE_PAD_MAGIC)
			return m->base + at + sizeof(*head);
		start = at = *off;
	}
	m->torn = start < m->size && is_torn_chunk(m, start);
	if (!m->torn)
		*skipped += m->size - start;
	*off = m->size;
	return NULL;
}

size_t chunk_map_whole(struct chunk_map *m)
{
	struct trace_chunk head;
	uint64_t skipped = 0;
	size_t off = 0, end = 0;

	while (chunk_map_next(m, &off, &head, &skipped))
		end = off;
	return end;
}

/* SPDX-License-Identifier: MIT */
/* whole.c - see whole.h. */
#define _GNU_SOURCE
#include "collect/cable/whole.h"

#include <string.h>
#include <unistd.h>

#include "trace/format.h"

static bool is_head(const struct trace_chunk *h)
{
	return h->magic == TRACE_CHUNK_MAGIC || h->magic == TRACE_PACKED_MAGIC ||
	       h->magic == TRACE_PAD_MAGIC;
}

/* A pad at the end is cut off as well. */
static uint64_t whole_chunks(int fd, uint64_t from, uint64_t size)
{
	struct trace_chunk head;
	uint64_t end = from;

	while (from < size && size - from >= sizeof(head) &&
	       pread(fd, &head, sizeof(head), (off_t)from) == (ssize_t)sizeof(head) &&
	       is_head(&head) && head.nbytes <= size - from - sizeof(head)) {
		from += sizeof(head) + head.nbytes;
		if (head.magic != TRACE_PAD_MAGIC)
			end = from;
	}
	return end;
}

static uint64_t whole_lines(int fd, uint64_t from, uint64_t size)
{
	char part[4096];

	while (from < size) {
		const uint64_t left = size - from;
		const size_t n = left < sizeof(part) ? (size_t)left : sizeof(part);
		const char *end;

		if (pread(fd, part, n, (off_t)(size - n)) != (ssize_t)n)
			return from;
		end = memrchr(part, '\n', n);
		if (end)
			return size - n + (uint64_t)(end + 1 - part);
		size -= n;
	}
	return from;
}

uint64_t cable_whole(unsigned file, int fd, uint64_t from, uint64_t size)
{
	if (file == CABLE_SAMPLES)
		return whole_chunks(fd, from, size);
	if (!strcmp(cable_files[file], "switches"))
		return size / sizeof(struct trace_switch) * sizeof(struct trace_switch);
	return whole_lines(fd, from, size);
}

/* SPDX-License-Identifier: MIT */
/*
 * sample_file.h - appends chunks to the `samples` file of a trace.
 *
 * Two ways.  append() hands one chunk to the kernel at once, as it is.  stage() gathers chunks,
 * packed, commit() writes them together; when they are many, past the page cache (O_DIRECT), if
 * the file system can and the disk keeps up: copying into the page cache is what a busy recording
 * costs most, and it takes the memory bandwidth of the very program that is being measured.
 *
 *   chunk chunk chunk | pad to 4 KiB | batch: chunk ... chunk pad | batch ... | chunk chunk
 *
 * Whatever fails, the file ends with its last whole chunk again and what was to be written is
 * the caller's still.  Not for several threads at once.
 */
#ifndef TRACE_SAMPLE_FILE_H
#define TRACE_SAMPLE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "trace/format.h"

struct iovec;

struct sample_file {
	int fd;
	off_t good;     /* bytes of whole chunks */
	uint8_t *stage; /* NULL until something is staged */
	size_t staged;
	bool no_direct;    /* the file system refused */
	off_t slow_to;     /* the disk was slower than the page cache: not before this offset */
	double cache_rate; /* bytes a second that the page cache took; 0: not known */
};
#define SAMPLE_FILE_INIT ((struct sample_file){.fd = -1})

void sample_file_close(struct sample_file *f);
/* 0 or -errno. */
int sample_file_append(struct sample_file *f, const struct trace_chunk *head, const void *samples);
/* Packs or copies the chunk; false: no room, commit first. */
bool sample_file_stage(struct sample_file *f, const struct trace_chunk *head, const void *samples);
/* All that was staged, or nothing of it: 0 or -errno.  The stage is empty afterwards. */
int sample_file_commit(struct sample_file *f);

/* pwritev() of it all; whatever fails, the file ends at off again.  0 or -errno. */
int write_whole(int fd, struct iovec *iov, int n, off_t off);

#endif

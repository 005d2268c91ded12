/* SPDX-License-Identifier: MIT */
/*
 * chunks.h - walks the `samples` file: header, samples, header, samples ... and survives
 * garbage between them by looking for the next header that makes sense.
 */
#ifndef TRACE_CHUNKS_H
#define TRACE_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/format.h"

struct chunk_map {
	const uint8_t *base; /* NULL when the file is empty */
	size_t size;
	bool torn; /* once chunk_map_next() has come to its end: that is in the middle of a chunk */
};

/* Map the file read-only (private).  0 or -errno. */
int chunk_map_open(struct chunk_map *m, int fd);
void chunk_map_close(struct chunk_map *m);

/*
 * The next whole chunk at or after *off: its header in *head, its samples at the return value,
 * *off moved past it.  Bytes that were skipped are added to *skipped.  NULL at the end.
 */
const uint8_t *chunk_map_next(struct chunk_map *m, size_t *off, struct trace_chunk *head,
			      uint64_t *skipped);

/* Where the last whole chunk ends: what follows it is a torn tail. */
size_t chunk_map_whole(struct chunk_map *m);

#endif

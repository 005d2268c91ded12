/* SPDX-License-Identifier: MIT */
/*
 * content.h - what a file holds, as a number for which nobody can make a second file: SHA-256 over
 * the SHA-256 of each megabyte, so that all processors may take part.  Of the last one the first 28
 * bytes are kept: as text they fit into an inode, as a symbolic link (plan_source.h).
 *
 *   leaf    SHA-256(0, at most 1 MiB of the file)
 *   root    SHA-256(1, length in bytes (8, little endian), leaf, leaf, ...)
 */
#ifndef COLLECT_CONTENT_H
#define COLLECT_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTENT_LEN 28
struct content {
	uint8_t v[CONTENT_LEN];
};

void content_of(struct content *out, const void *bytes, size_t n);
/* Of several together, in this order. */
void content_join(struct content *out, const struct content *parts, size_t n);
bool content_is(const struct content *a, const struct content *b);

/* As text that may stand in a file's name, and back. */
#define CONTENT_TEXT (2 * CONTENT_LEN + 1)
void content_write(char out[CONTENT_TEXT], const struct content *c);
bool content_read(struct content *out, const char *text);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * cache_dir.h - a folder of files that nobody but us can have written, and its size.
 *
 *   NAME          an entry: a regular file of ours that nobody else may write to
 *   NAME ──► TEXT a short text, kept as a symbolic link: one system call to read, never half written
 *   .new-XXXXXX   an entry while it is written, by whoever has it locked
 *   .room         how large all entries are together, and when it was last counted (cache_room.c)
 *
 * The folder is held by a descriptor, and is taken only if no other user but root can have
 * changed the way to it: each folder and link on that way belongs to root or to us, and each
 * folder keeps others from writing, or from renaming what is not theirs (the sticky bit), or
 * lies in one of ours that others cannot enter.
 */
#ifndef COLLECT_CACHE_DIR_H
#define COLLECT_CACHE_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

/* The folder's descriptor, -errno with a sentence.  It is made, and its parent, if there is none. */
int cache_dir_open(const char *path, struct err *err);

/* The entry, open for reading: a descriptor; -ENOENT; -EPERM if it is not ours alone. */
int cache_dir_get(int dir, const char *name, struct stat *st);

/*
 * A new entry of this many bytes, which fill() writes: 0 or -errno.  It takes the place of one with
 * the same name, and stands there whole or not at all.  What was not used for longest goes if it
 * would otherwise be more than max bytes with it; -EFBIG: it is more alone.
 */
int cache_dir_put(int dir, const char *name, uint64_t size, uint64_t max,
		  int (*fill)(int fd, void *ctx, struct err *err), void *ctx, struct err *err);

/* A text of less than `size` bytes, false: there is none of ours.  And a new one. */
bool cache_dir_get_text(int dir, const char *name, char *text, size_t size);
int cache_dir_put_text(int dir, const char *name, const char *text);

/* ---- cache_room.c ---- */

#define CACHE_TEXT "known-" /* begins the names of texts */
#define CACHE_ENTRY ".plan" /* ends the names of entries */
#define CACHE_DAYS 90       /* entries that were not used for so long go, and texts of that age */

/* Reserves room for this many bytes more in the folder. */
int cache_room_take(int dir, uint64_t size, uint64_t max);
/* Gives that room back. */
void cache_room_give(int dir, uint64_t size);
/* What is too old goes, if nobody looked since yesterday. */
void cache_room_trim(int dir, uint64_t max);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * file_bytes.h - the bytes of a file, to be read for a while.
 *
 * A file that nobody but root and we can change is mapped.  What another user could change, its owner
 * or who may write to it, is copied: he could cut it off while we read, or show us now this and now
 * that.  Holes in it cost no memory, and what would take more than half of the memory that there is, is
 * refused.  Ours can be cut off, too, by mistake: a mapping is guarded (guard.h), and file_bytes_are_cut()
 * says that it happened.
 */
#ifndef BASE_FILE_BYTES_H
#define BASE_FILE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct stat;

struct file_bytes {
	const uint8_t *v;
	size_t size;
	bool copied;
	unsigned guard; /* 0: not guarded */
};

/* Can another user than root and us change it? */
bool file_is_others(const struct stat *st);

/*
 * open(path, O_RDONLY) of what somebody else may have put there: a device, whose opening does something,
 * is not opened, and a FIFO not waited for.  Of what is not a regular file the descriptor is good for fstat()
 * alone.
 */
int file_open_plain(const char *path);

/* All of a regular file; st is fstat() of fd.  0, or -errno with a sentence: also when it has become
 * shorter meanwhile. */
int file_bytes_open(struct file_bytes *b, int fd, const struct stat *st, const char *path,
		    struct err *err);
/* It was cut off while we had it: some of what was read were zeros. */
bool file_bytes_are_cut(const struct file_bytes *b);
void file_bytes_close(struct file_bytes *b);

#endif

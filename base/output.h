/* SPDX-License-Identifier: MIT */
/*
 * output.h - what a command writes for its user: whole under its name, or not there.
 *
 *   output_begin   a new file or folder beside the old one
 *   ...            the caller writes to stream, fd, or below path of the temporary name
 *   output_end     to the disk, then renamed; after any failure it goes, and the old one stays
 *   output_drop    ... it goes, because something else failed
 *
 * Links are followed, a link to nothing is refused.  Mode and owner are the old one's, or what
 * the umask leaves.  Pipes, devices and descriptors that we were given (/dev/stdout) cannot be
 * replaced: an OUTPUT_STREAM is written to them as they are, the other kinds refuse them.
 *
 * One process, one thread.  Each failure comes as one sentence that names the path.
 */
#ifndef BASE_OUTPUT_H
#define BASE_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/temp.h"

enum output_kind {
	OUTPUT_STREAM,  /* through output_stream() */
	OUTPUT_REGULAR, /* through fd, at any place of it */
	OUTPUT_NAMED,   /* through a library that opens output_path() itself */
	OUTPUT_FOLDER,  /* below output_path(); what is there must be empty */
};

struct output {
	const char *path; /* as the user wrote it */
	enum output_kind kind;
	int fd;
	FILE *stream;
	int error;   /* errno of the first failure; the caller may set it */
	mode_t mode; /* ... this: a mode of its own, and no owner but ours */

	/* private */
	char *folder, *name; /* where it is to stand, links followed */
	struct temp temp;
	struct stat old; /* st_nlink 0: nothing is there */
	bool direct;     /* fd is what the user named */
};

int output_begin(struct output *o, const char *path, enum output_kind kind, struct err *err);
/* Never NULL.  Failures of it need not be asked for: output_end() knows the first. */
FILE *output_stream(struct output *o);
/* What stands there until it is renamed. */
static inline const char *output_path(const struct output *o)
{
	return o->temp.path;
}
/* Both close the output and free what it holds. */
int output_end(struct output *o, struct err *err);
void output_drop(struct output *o);

#endif

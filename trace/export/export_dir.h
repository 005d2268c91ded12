/* SPDX-License-Identifier: MIT */
/*
 * export_dir.h - the files of a directory that is an output (base/output.h).
 *
 *   export_dir_begin   refuses a PATH that is there and not empty
 *   export_dir_make    a folder in it, or in one of its folders
 *   export_dir_open    a file in it
 *   export_dir_close   ... is done
 *   export_dir_end     PATH is there, or all of it goes after the first error
 */
#ifndef TRACE_EXPORT_DIR_H
#define TRACE_EXPORT_DIR_H

#include <stdio.h>

#include "base/output.h"

struct export_dir {
	struct output out;
	int error; /* errno of the first failure */
};

int export_dir_begin(struct export_dir *d, const char *path, struct err *err);
/* Where it is until then. */
static inline const char *export_dir_path(const struct export_dir *d)
{
	return output_path(&d->out);
}
/* That it is there already is no failure. */
void export_dir_make(struct export_dir *d, const char *name);
/* Never NULL: where the file cannot be made, nothing is written and the error is kept. */
FILE *export_dir_open(struct export_dir *d, const char *name);
void export_dir_close(struct export_dir *d, FILE *f);
int export_dir_end(struct export_dir *d, struct err *err);

#endif

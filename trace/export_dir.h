/* SPDX-License-Identifier: MIT */
/*
 * export_dir.h - a directory that appears under its name when it is whole.
 *
 *   export_dir_begin   makes PATH.new-XXXXXX; refuses a PATH that is there and not empty
 *   export_dir_open    a file in it
 *   export_dir_close   ... is done
 *   export_dir_end     renames it to PATH, or takes it all away after the first error
 */
#ifndef TRACE_EXPORT_DIR_H
#define TRACE_EXPORT_DIR_H

#include <stdio.h>

#include "base/err.h"

struct export_dir {
	const char *path;
	char *temp;
	int error; /* errno of the first failure */
};

int export_dir_begin(struct export_dir *d, const char *path, struct err *err);
/* Never NULL: where the file cannot be made, it is /dev/null and the error is kept. */
FILE *export_dir_open(struct export_dir *d, const char *name);
void export_dir_close(struct export_dir *d, FILE *f);
int export_dir_end(struct export_dir *d, struct err *err);

#endif

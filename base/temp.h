/* SPDX-License-Identifier: MIT */
/*
 * temp.h - a file or folder on its way to a name: ".NAME.kron-XXXXXX" beside NAME.
 *
 * A file has no name at all until it is moved, where the file system can do that, so a maker who
 * is killed leaves nothing.  What has a name is locked as long as its maker lives; temp_clean()
 * takes away what nobody holds any more.  SIGINT, SIGTERM and their like take it away, too.
 */
#ifndef BASE_TEMP_H
#define BASE_TEMP_H

#include <stdbool.h>
#include <sys/types.h>

enum temp_kind { TEMP_FILE, TEMP_NAMED_FILE, TEMP_FOLDER };

struct temp {
	char *path; /* NULL: it has no name */
	int fd;     /* of a file for reading and writing; -1: there is none */
	bool is_folder;
};

/* `folder` ends in a slash, or is empty.  The mode is what the umask leaves of `mode`.  0 or
 * -errno. */
int temp_make(struct temp *t, const char *folder, const char *name, enum temp_kind kind,
	      mode_t mode);
/* It becomes folder/name, in place of what is there.  0 or -errno. */
int temp_move(struct temp *t, const char *folder, const char *name);
/* Takes away what has not been moved, and closes. */
void temp_close(struct temp *t);
/* What killed makers of this name have left there, if it is ours. */
void temp_clean(const char *folder, const char *name);
/* Likewise what has this path, if it has such a name.  True: it is not there any more. */
bool temp_clean_path(const char *path);

#endif

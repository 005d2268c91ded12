/* SPDX-License-Identifier: MIT */
/*
 * stream.h - a FILE that keeps why it could not be written, which stdio forgets.
 */
#ifndef BASE_STREAM_H
#define BASE_STREAM_H

#include <stdbool.h>
#include <stdio.h>

/* *error gets the errno of the first failure, and after it nothing is written any more; so it may
 * be set before, and fd be -1.  `owned`: fclose() closes fd.  Never NULL; for one thread. */
FILE *stream_open(int fd, bool owned, int *error);

#endif

/* SPDX-License-Identifier: MIT */
/* base_folder.h - a folder for all traces of a test program, which goes with it. */
#ifndef TESTS_BASE_FOLDER_H
#define TESTS_BASE_FOLDER_H

#include <stdlib.h>

#include "base/vec.h"

static char base[] = "/tmp/kron-collect-XXXXXX";

static inline int make_base(void **state)
{
	(void)state;
	return mkdtemp(base) ? 0 : -1;
}

static inline int remove_base(void **state)
{
	char *command = xasprintf("rm -rf %s", base);
	int code = system(command);

	(void)state;
	xfree(command);
	return code;
}

#endif

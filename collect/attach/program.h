/* SPDX-License-Identifier: MIT */
/*
 * program.h - which file will be executed, and whether kron can trace what it becomes.
 *
 * Looks at files and starts nothing.  What it says is advice: execve(2) has the last word on
 * whether a file runs, and a program that cannot be traced runs untraced.
 */
#ifndef COLLECT_PROGRAM_H
#define COLLECT_PROGRAM_H

#include <stdbool.h>

#include "base/err.h"

enum program_verdict {
	PROGRAM_TRACEABLE,
	PROGRAM_STATIC,      /* not by what its dynamic linker loads; but by collect/live/ */
	PROGRAM_UNTRACEABLE, /* it may run; why says what keeps kron out */
	PROGRAM_BROKEN       /* it cannot run; why says what is wrong */
};

struct program {
	char *path;       /* for execve(), allocated */
	bool needs_shell; /* neither ELF nor #!: execvp() gives such a file to /bin/sh */
	enum program_verdict verdict;
	struct err why;
};

/*
 * Find name as execvp(3) does and look at it.  -ENOENT: there is none (exit status 127);
 * -EACCES: there is one, but it may not be executed (126).
 */
int program_find(struct program *p, const char *name, const char *path_variable, struct err *err);
void program_free(struct program *p);

#endif

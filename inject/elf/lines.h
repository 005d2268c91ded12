/* SPDX-License-Identifier: MIT */
/*
 * lines.h - lines of the source, from DWARF.  lines_dwarf.c is the only file that knows libdw,
 * and runs in a process of its own, which damaged debug information may crash (lines.c); kron
 * without it, and modules without debug information, have no lines and everything else.
 */
#ifndef INJECT_LINES_H
#define INJECT_LINES_H

#include "base/vec.h"
#include "inject/elf/elf_image.h"

struct lines;

struct line_place {
	uint64_t vaddr;
	bool is_inlined; /* in a copy of the function */
};

struct line_places {
	VEC(struct line_place) v;
	/* When there is none: does any file match, and which lines around it have code? */
	bool has_file;
	unsigned before, next; /* 0: none */
	unsigned unreadable;   /* units whose lines could not be read */
};

/* Of the process that reads: processor seconds for a question, and memory. */
struct lines_limits {
	unsigned seconds;
	uint64_t memory;
};

/* Its own DWARF, or its debug file's (by build-id, then debug link). */
int lines_open(struct lines **out, const struct elf_image *img, struct err *err);
int lines_open_with(struct lines **out, const struct elf_image *img,
		    const struct lines_limits *limits, struct err *err);
void lines_close(struct lines *l);

/*
 * Where the code of a line begins: one place for each function and each inlined copy that has
 * code for it, the lowest that compilers call the beginning of a statement.  The file is a path
 * or the end of one ("calc.c", "src/calc.c").
 */
void lines_find(struct lines *l, const char *file, unsigned line, struct line_places *out);
/* Of the function that begins at vaddr: its file (until the next call) and line.  False: not known. */
bool lines_function(struct lines *l, uint64_t vaddr, const char **file, unsigned *line);
/* Why reading broke off, a sentence: then nothing is found any more.  NULL: it did not. */
const char *lines_broken(const struct lines *l);
/* Does the path name the file: as a whole, or by what follows a slash? */
bool lines_is_file(const char *path, const char *file);

#endif

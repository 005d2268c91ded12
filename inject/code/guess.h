/* SPDX-License-Identifier: MIT */
/*
 * guess.h - functions of a file that says nothing about them: no symbols, no frame information.
 *
 * What is called, pointed to or jumped to by code that is certainly code starts a function, if
 * nothing speaks against it.  Each is a guess, and is marked as one wherever it is shown.
 */
#ifndef INJECT_GUESS_H
#define INJECT_GUESS_H

#include "inject/elf/elf_image.h"

enum guess_kind {
	GUESS_CALLED,  /* code calls it */
	GUESS_POINTED, /* a pointer in data or code names it */
	GUESS_JUMPED,  /* other functions end with a jump to it */
	GUESS_ROOT     /* the file itself names it: its entry, its constructors */
};

struct guess {
	uint64_t start, end;
	uint8_t kind;  /* enum guess_kind */
	bool is_whole; /* all of [start, end) was reached, and nothing else can be of it: without
			  that the end is only as far as is known */
};

struct guess_range {
	uint64_t start, end;
};

struct guess_input {
	const struct elf_image *img;
	/* What is known for sure, sorted: no guess lies in it, and what it calls is believed.  A
	 * range of one byte: only the start is known. */
	const struct guess_range *known;
	size_t nknown;
	/* May no function start here (a linker's stub)? */
	bool (*is_excluded)(const void *ctx, uint64_t vaddr);
	const void *ctx;
};

struct guesses {
	struct guess *v; /* sorted, no overlaps */
	size_t n;
};

/* Too large a file, or one made to keep us busy, has none. */
void guess_functions(struct guesses *out, const struct guess_input *in);
void guesses_free(struct guesses *g);

#endif

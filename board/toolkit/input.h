/* SPDX-License-Identifier: MIT */
/*
 * input.h - the files that mk_expand and mk_rpt read: mk.dat in the current directory, or the
 * operands one after the other ("-": standard input), as if they were one file.
 */
#ifndef TOOLKIT_INPUT_H
#define TOOLKIT_INPUT_H

#include "board/toolkit/mkdat.h"
#include "board/toolkit/tool.h"

struct input {
	const struct opt_command *command; /* in whose name to speak */
	char **names;                      /* NULL: MKDAT_FILE */
	int n;
	/* results */
	struct mkdat_count count;
	int files_read;
};

/* false: stop reading (stdout cannot be written any more). */
typedef bool input_fn(void *arg, const struct mkdat_sample *s);

/*
 * Call fn for each sample of each file.  Says what cannot be read, what is damaged, and when
 * there is no sample at all.  Returns TOOL_OK or TOOL_ERROR.
 */
int input_read(struct input *in, input_fn *fn, void *arg);

#endif

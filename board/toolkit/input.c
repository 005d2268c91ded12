/* SPDX-License-Identifier: MIT */
/* input.c - see input.h. */
#define _GNU_SOURCE
#include "board/toolkit/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int open_file(const struct opt_command *c, const char *name)
{
	int fd;

	if (!strcmp(name, "-"))
		return STDIN_FILENO;
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		tool_fail(c, TOOL_ERROR, "cannot open %s: %s", name, strerror(errno));
	return fd;
}

static int read_file(struct input *in, const char *name, input_fn *fn, void *arg)
{
	int fd = open_file(in->command, name), code;
	struct mkdat_sample s;
	struct err err;
	struct mkdat m;
	char text[200];

	if (fd < 0)
		return TOOL_ERROR;
	mkdat_open(&m, fd);
	while ((code = mkdat_next(&m, &s, &err)) > 0 && fn(arg, &s))
		;
	if (code < 0)
		tool_fail(in->command, TOOL_ERROR, "%s: %s", name, err.msg);
	else if (code == 0 && !m.count.bytes)
		tool_note(in->command, "%s is empty", name);
	else if (code == 0 && !(m.count.trace + m.count.resource))
		tool_note(in->command, "%s holds no sample: this is not a file of mk_rdsample",
			  name);
	else if (code == 0 && mkdat_complaint(&m.count, text, sizeof(text)))
		tool_note(in->command, "%s: %s", name, text);
	mkdat_add(&in->count, &m.count);
	in->files_read++;
	mkdat_close(&m);
	if (fd != STDIN_FILENO)
		close(fd);
	return code < 0 ? TOOL_ERROR : TOOL_OK;
}

int input_read(struct input *in, input_fn *fn, void *arg)
{
	static char default_name[] = MKDAT_FILE;
	char *alone[] = {default_name};
	char **names = in->n ? in->names : alone;
	int n = in->n ? in->n : 1, status = TOOL_OK;

	for (int i = 0; i < n; i++)
		if (read_file(in, names[i], fn, arg))
			status = TOOL_ERROR;
	return status || in->count.trace + in->count.resource ? status : TOOL_ERROR;
}

/* SPDX-License-Identifier: MIT */
/* analysis.c - see analysis.h. */
#define _GNU_SOURCE
#include "cmd/analysis.h"

#include <inttypes.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"

struct filter_options analysis_filter;

/* What is wrong with a filter is wrong use, whatever the trace is. */
static struct trace *set_filter(const struct opt_command *c, struct trace *t)
{
	struct err err;

	if (trace_filter_set(t, &analysis_filter, &err))
		exit(cmd_fail(c, CMD_USAGE, "%s", err.msg));
	if (analysis_filter.trigger && !trace_filter_fired(t->filter))
		fprintf(stderr, "kron %s: the trigger never fires in this trace\n", c->name);
	return t;
}

struct trace *analysis_open(const struct opt_command *c, int argc, char **argv, int first)
{
	const char *dir = first < argc ? argv[first] : TRACE_DEFAULT_DIR;
	struct trace *t;
	struct err err;

	if (!trace_open(&t, dir, &err))
		return set_filter(c, t);
	if (first >= argc)
		cmd_fail(c, CMD_ERROR, "%s (`kron record` makes one)", err.msg);
	else
		cmd_fail(c, CMD_ERROR, "%s", err.msg);
	return NULL;
}

void analysis_output(bool no_pager)
{
	static char buffer[256 * 1024];

	cmd_pager(!no_pager);
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	__fsetlocking(stdout, FSETLOCKING_BYCALLER);
}

int analysis_close(const struct opt_command *c, struct trace *t, int status)
{
	uint64_t damaged = t->damaged;

	trace_close(t);
	status = cmd_finish(c, status);
	if (damaged && status == CMD_OK)
		fprintf(stderr,
			"kron %s: left out what makes no sense in the trace: %" PRIu64
			" bytes of samples or lines of tables\n",
			c->name, damaged);
	return status;
}

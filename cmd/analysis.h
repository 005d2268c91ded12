/* SPDX-License-Identifier: MIT */
/* analysis.h - what the commands that read a trace share. */
#ifndef CMD_ANALYSIS_H
#define CMD_ANALYSIS_H

#include "base/opt.h"
#include "trace/reader.h"

/*
 * Open the trace that the operand argv[first] names, kron.data if there is none.  NULL: said
 * on stderr why; leave with CMD_ERROR.
 */
struct trace *analysis_open(const struct opt_command *c, int argc, char **argv, int first);

/* Say on stderr what is damaged, close, and finish. */
int analysis_close(const struct opt_command *c, struct trace *t, int status);

/* A page for stdout if it is a terminal, and a large buffer. */
void analysis_output(bool no_pager);

#endif

/* SPDX-License-Identifier: MIT */
/* analysis.h - what the commands that read a trace share. */
#ifndef CMD_ANALYSIS_H
#define CMD_ANALYSIS_H

#include "base/opt.h"
#include "trace/analysis/filter.h"
#include "trace/reader.h"
#include "trace/report/report.h"

/* What of the trace to look at: analysis_open() applies it.  In the table of each such command. */
extern struct filter_options analysis_filter;
extern bool analysis_quiet;
/* NULL, or: the messages in it mend the clocks of several hosts. */
extern const char *analysis_mend;
/* Calls of functions that end by a jump, for commands that show calls. */
extern int analysis_tail_calls;
/* The output has counts of pages: nobody need be told where they are. */
extern bool analysis_has_pages;
#define ANALYSIS_TAIL_CALLS                                                                  \
	{                                                                                    \
		0, "tail-calls", OPT_CHOICE, &analysis_tail_calls, "nested|flat",            \
			"A function that ends with a jump into another one has called that " \
			"one and lasts as long (nested, the default), or is over with the "  \
			"jump, as the machine has it (flat).",                               \
			0, 0                                                                 \
	}
#define ANALYSIS_QUIET                                                                   \
	{                                                                                \
		'q', "quiet", OPT_FLAG, &analysis_quiet, NULL,                           \
			"Print neither progress nor the name of what was written.", 0, 0 \
	}
#define ANALYSIS_FILTER                                                                                     \
	{0,                                                                                                 \
	 "where",                                                                                           \
	 OPT_STR,                                                                                           \
	 &analysis_filter.where,                                                                            \
	 "CONDITION",                                                                                       \
	 "Look only at the samples for which CONDITION holds: a function's or event's name, "               \
	 "entry=NAME, exit=NAME, event=N, data=V, data&MASK=V, cpu=N, thread=T, process=P, "                \
	 "module=M, source=V, joined by and, or, not and parentheses.",                                     \
	 0,                                                                                                 \
	 0},                                                                                                \
		{0,                                                                                         \
		 "trigger",                                                                                 \
		 OPT_STR,                                                                                   \
		 &analysis_filter.trigger,                                                                  \
		 "SEQUENCE",                                                                                \
		 "Look only around the places where SEQUENCE matches: 'A then B within 1ms', "              \
		 "'A without B within 20ms', 'FUNC>20ms'; see kron-report(1), TRIGGERS.",                   \
		 0,                                                                                         \
		 0},                                                                                        \
		{0,                                                                                         \
		 "pre",                                                                                     \
		 OPT_STR,                                                                                   \
		 &analysis_filter.pre,                                                                      \
		 "SPAN",                                                                                    \
		 "How much to see before the trigger, or before what it waited from: a "                    \
		 "number of samples, or a time like 20us. Default 1000.",                                   \
		 0,                                                                                         \
		 0},                                                                                        \
		{0,                                                                                         \
		 "mend-clocks",                                                                             \
		 OPT_STR,                                                                                   \
		 &analysis_mend,                                                                            \
		 "FILE",                                                                                    \
		 "Of traces of several hosts: no message of FILE, an interval.info(5), is received before " \
		 "it was sent; mpi, net: none of MPI's, TCP's. Times of hosts whose clocks are behind are " \
		 "moved.",                                                                                  \
		 0,                                                                                         \
		 0},                                                                                        \
		{0,       "post",                                                                           \
		 OPT_STR, &analysis_filter.post,                                                            \
		 "SPAN",  "How much to see after it. Default 1000.",                                        \
		 0,       0},                                                                               \
		ANALYSIS_QUIET

/*
 * Open the trace that the operand argv[first] names, kron.data if there is none; of a folder of traces all as
 * one.  NULL: said on stderr why; leave with CMD_ERROR.
 */
struct trace *analysis_open(const struct opt_command *c, int argc, char **argv, int first);
/* All operands from the first one on as one trace. */
struct trace *analysis_open_all(const struct opt_command *c, int argc, char **argv, int first);

/* Is all of it there, and if not, where is the rest? */
void analysis_state(const struct trace *t, struct report_state *out);

/* Say on stderr how many samples were lost, where the output does not. */
void analysis_say_lost(const struct opt_command *c, const struct trace *t);
/* Say on stderr what is missing, and that counts of pages are damaged. */
void analysis_say_state(const struct opt_command *c, const struct trace *t);
/* Say on stderr what is missing and what is damaged, close, and finish. */
int analysis_close(const struct opt_command *c, struct trace *t, int status);
/* One of several: say what is missing, and close it. */
void analysis_drop(const struct opt_command *c, struct trace *t);

/* The output comes while the trace is read: no progress between its lines on a terminal. */
void analysis_streams(void);

/* A page for stdout if it is a terminal, and a large buffer. */
void analysis_output(bool no_pager);
/* On stderr, where samples share a reading of the clock: what is shown has no bounds of its times. */
void analysis_say_estimates(const struct opt_command *c, const struct trace *t, const char *what);

#endif

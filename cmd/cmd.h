/* SPDX-License-Identifier: MIT */
/*
 * cmd.h - the subcommands.  Each lives in cmd/NAME.c, reads its own options through cmd_parse
 * and returns the exit status.  A new command: write cmd/NAME.c, add it to cmd/fragment.am and
 * its line to COMMANDS below, and a page doc/man/kron-NAME.1 (doc/HOWTO_TEST.md says how the
 * OPTIONS part of the page is made).
 */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#include "base/opt.h"
#include "base/temp.h"

/* X(name, what it does): the order of `kron --help` */
#define COMMANDS(X)                                                                \
	X(record, "Run a program and record its functions")                        \
	X(collect, "Take traces that other machines send while they record")       \
	X(stat, "Run a program and count the calls of its functions")              \
	X(monitor, "Show counters of a program for each interval")                 \
	X(report, "Show calls and times by function")                              \
	X(diff, "Compare two traces by function")                                  \
	X(replay, "Show the calls in order, indented")                             \
	X(dump, "Show every sample")                                               \
	X(export, "Write the trace in the format of another tool")                 \
	X(view, "Make a page with pictures of the trace")                          \
	X(info, "Show what was recorded, and what is missing")                     \
	X(pages, "Count how often each page of memory is read and written")        \
	X(list, "List the functions of an ELF file and how they can be probed")    \
	X(patch, "Write a copy of an ELF file that has the probes in it")          \
	X(snapshot, "Have a running flight recorder keep what it holds")           \
	X(recover, "Finish the trace of a kron record that was killed")            \
	X(read, "Write the MultiKron toolkit's data file from a trace or a board") \
	X(board, "Make, list and remove boards that have names")                   \
	X(ctl, "Change the registers of a board while it is used")                 \
	X(status, "Show every register of a board, and who records on it")         \
	X(top, "Show what is being recorded right now")                            \
	X(tui, "Browse a trace on the terminal, or watch it grow")

#define X(name, text) int cmd_##name(int argc, char **argv);
COMMANDS(X)
#undef X

/* Exit statuses of the commands that read traces and files. */
enum { CMD_OK = 0, CMD_ERROR = 1, CMD_USAGE = 2 };

/*
 * Parse the options.  Returns the index of the first operand (argc when there is none), or 0:
 * everything is said, leave with *status.
 */
int cmd_parse(const struct opt_command *c, int argc, char **argv, int *status);

/* A command line as a shell would read it; to be freed. */
char *cmd_quoted(char *const *argv);

/* Say "kron NAME: sentence" on stderr and return status. */
int cmd_fail(const struct opt_command *c, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Leave with this after writing to stdout: 1 with a sentence if the output could not be written
 * (a full disk), else status.  A closed pipe (`kron dump | head`) is not an error. */
int cmd_finish(const struct opt_command *c, int status);

/*
 * A folder of this command's own, in $TMPDIR or else in /tmp, which temp_close() removes with all that is in
 * it, as signals do that end kron.  What killed ones have left goes.  -errno: there is a sentence.
 */
int cmd_temp_folder(struct temp *t, const struct opt_command *c, struct err *err);

/* -o DIR, and not -o FILE: it is there, or its name ends with / or .data. */
bool cmd_names_folder(const char *name);

/*
 * Send stdout through $KRON_PAGER or $PAGER (default `less -FRSX`, when there is one) if it is a
 * terminal and want is set.  cmd_finish waits for the pager.
 */
void cmd_pager(bool want);

#endif

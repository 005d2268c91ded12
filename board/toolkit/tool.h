/* SPDX-License-Identifier: MIT */
/*
 * tool.h - what the mk_ programs share: reading options, saying errors, leaving.
 *
 *   static const struct opt_command command = {
 *           .name = "mk_rpt", .operands = "[FILE]...", .summary = "...", .opts = options,
 *           .alone = true,
 *   };
 *   int main(int argc, char **argv)
 *   {
 *           int status, first = tool_parse(&command, argc, argv, &status);
 *
 *           if (!first)
 *                   return status;
 *           ...
 *           return tool_finish(&command, TOOL_OK);
 *   }
 *
 * --help, --version and (for scripts/update-man) --help-man need no line in the table.  -h is
 * the program's own when its table has it, as NISTIR 5993 has it for mk_expand and mk_rpt.
 */
#ifndef TOOLKIT_TOOL_H
#define TOOLKIT_TOOL_H

#include <stdint.h>

#include "base/opt.h"

/* Exit statuses of all mk_ programs. */
enum { TOOL_OK = 0, TOOL_ERROR = 1, TOOL_USAGE = 2 };

/*
 * Read the options.  Returns the index of the first operand (argc when there is none), or 0:
 * everything is said, leave with *status.
 */
int tool_parse(const struct opt_command *c, int argc, char **argv, int *status);

/* Say "NAME: sentence" on stderr; tool_fail returns status. */
int tool_fail(const struct opt_command *c, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void tool_note(const struct opt_command *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Leave with this: TOOL_ERROR with a sentence when stdout could not be written (a full disk),
 * else status.  A closed pipe (mk_expand | head) is not an error.
 */
int tool_finish(const struct opt_command *c, int status);

/* stdout still takes what is printed; ask now and then in a long output. */
bool tool_can_write(void);

/* Decimal, or hexadecimal after 0x; no sign, no blanks.  0 or -EINVAL. */
int tool_number(const char *text, uint64_t *out);

#endif

/* SPDX-License-Identifier: MIT */
/* tool.c - what the mk_ programs share.  Prints to stdout and stderr, exits never. */
#define _GNU_SOURCE
#include "board/toolkit/tool.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

static int write_error; /* why stdout took no more: errno of the first failure */

bool tool_can_write(void)
{
	if (ferror(stdout) && !write_error)
		write_error = errno;
	return !ferror(stdout);
}

static void flush(void)
{
	if (tool_can_write() && fflush(stdout))
		tool_can_write();
}

static void say(const struct opt_command *c, const char *fmt, va_list ap)
{
	flush();
	fprintf(stderr, "%s: ", c->name);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

int tool_fail(const struct opt_command *c, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(c, fmt, ap);
	va_end(ap);
	return status;
}

void tool_note(const struct opt_command *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(c, fmt, ap);
	va_end(ap);
}

/*
 * --version anywhere among the options; --help-man, for scripts/update-man, and --help-words, for
 * completion, alone.
 */
static bool print_about(const struct opt_command *c, int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--help-man")) {
		opt_man(c, stdout);
		return true;
	}
	if (argc == 2 && !strcmp(argv[1], "--help-words")) {
		opt_words(c, stdout);
		return true;
	}
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		if (!strcmp(argv[i], "--version")) {
			printf("%s (kron) %s\n", c->name, PACKAGE_VERSION);
			return true;
		}
	}
	return false;
}

int tool_parse(const struct opt_command *c, int argc, char **argv, int *status)
{
	struct err err;
	int first;

	if (print_about(c, argc, argv)) {
		*status = tool_finish(c, TOOL_OK);
		return 0;
	}
	first = opt_parse(c, argc, argv, &err);
	if (first > 0)
		return first;
	if (first == 0) {
		opt_help(c, stdout);
		*status = tool_finish(c, TOOL_OK);
		return 0;
	}
	*status = tool_fail(c, TOOL_USAGE, "%s (`%s --help` shows the usage)", err.msg, c->name);
	return 0;
}

int tool_finish(const struct opt_command *c, int status)
{
	flush();
	if (write_error && write_error != EPIPE)
		return tool_fail(c, TOOL_ERROR, "cannot write the output: %s",
				 strerror(write_error));
	return status;
}

int tool_number(const char *text, uint64_t *out)
{
	int base = text[0] == '0' && (text[1] | 0x20) == 'x' ? 16 : 10;
	const char *digits = base == 16 ? text + 2 : text;
	char *end;

	if (base == 16 ? !isxdigit((unsigned char)*digits) : !isdigit((unsigned char)*digits))
		return -EINVAL;
	errno = 0;
	*out = strtoull(digits, &end, base);
	return errno || *end ? -EINVAL : 0;
}

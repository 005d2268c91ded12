/* SPDX-License-Identifier: MIT */
/*
 * opt.h - the options of a command stand in one table, which makes the parser, the --help
 * text, the OPTIONS part of the man page and the shell completion.
 *
 *   static const char *output = "kron.data";
 *   static struct opt_list libs;
 *   static const struct opt options[] = {
 *           {'o', "output", OPT_STR, &output, "DIR", "Write the trace to DIR."},
 *           {'L', "library", OPT_LIST, &libs, "GLOB", "Also trace libraries named so."},
 *           {0, "when-full", OPT_CHOICE, &full, "discard|wait|wrap", "What to do when ..."},
 *           {0, "json", OPT_FLAG, &json, NULL, "Print JSON."},
 *           OPT_END,
 *   };
 *   static const struct opt_command command = {
 *           .name = "record", .operands = "[--] CMD [ARG]...", .summary = "Run CMD traced.",
 *           .opts = options, .stop_at_operand = true, .usage_status = 125, .min_operands = 1,
 *   };
 *
 * A command calls cmd_parse() (cmd/cmd.h), which adds --help and prints; nothing here prints
 * to anything but the FILE it is given.  Defaults are what the variables hold beforehand.
 */
#ifndef BASE_OPT_H
#define BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

enum opt_type {
	OPT_FLAG,  /* bool: becomes true */
	OPT_COUNT, /* int: one more each time it is given */
	OPT_STR,   /* const char *: the last one given */
	OPT_LIST,  /* struct opt_list: all of them, in order */
	OPT_UINT,  /* uint64_t: decimal */
	OPT_HEX,   /* uint64_t: hexadecimal, 0x or not */
	OPT_SIZE,  /* uint64_t: bytes; K, M, G (powers of 1024) may follow */
	OPT_CHOICE, /* int: index of the word in arg, "a|b|c"; the last one given, or with max 1 (and -1
		     * beforehand) one only */
};

struct opt_list {
	const char **v; /* points into argv */
	size_t n, cap;
};

struct opt {
	char letter;      /* 0: no short form */
	const char *name; /* long form, without dashes */
	enum opt_type type;
	void *value;       /* of the type that enum opt_type says */
	const char *arg;   /* what --help calls the argument; NULL for FLAG and COUNT */
	const char *help;  /* sentences for people */
	uint64_t min, max; /* UINT, HEX, SIZE: the values allowed; max 0 = no limit */
};
#define OPT_END                                    \
	{                                          \
		0, NULL, 0, NULL, NULL, NULL, 0, 0 \
	}

struct opt_command {
	const char *name;     /* "record" */
	const char *operands; /* "[DIR]" */
	const char *summary;  /* one sentence */
	const struct opt *opts;
	bool stop_at_operand; /* options end at the first operand (those after it are CMD's) */
	int usage_status;     /* exit status of wrong usage; 0 means 2 */
	int min_operands;
	int max_operands; /* 0: no limit, unless operands is NULL */
	bool alone;       /* a program of its own (mk_rpt), not a command of kron */
};

/*
 * Read argv[1..] (argv[0] is the command's name).  Returns the index of the first operand, or
 * 0 when --help was asked for, or -EINVAL with a sentence.  May reorder argv.
 */
int opt_parse(const struct opt_command *c, int argc, char **argv, struct err *err);

void opt_help(const struct opt_command *c, FILE *out);  /* what --help prints */
void opt_man(const struct opt_command *c, FILE *out);   /* mdoc: synopsis and options */
void opt_words(const struct opt_command *c, FILE *out); /* every spelling: an opt_word() */
/* For completion: WORD, ARGUMENT (or nothing) and the first sentence of help, by tabs. */
void opt_word(FILE *out, const char *word, const char *arg, const char *help);

/* One value, for other places where people write numbers.  0 or -EINVAL. */
int opt_size(const char *text, uint64_t *out);

#endif

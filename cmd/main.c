/* SPDX-License-Identifier: MIT */
/*
 * main.c - finds the subcommand and hands over.  What a command does, its options and its exit
 * statuses are its own file's business.
 */
#include <stdio.h>
#include <stdlib.h>
#include <malloc.h>
#include <string.h>

#include "base/guard.h"
#include "base/log.h"
#include "base/near.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/record/inherited.h"
#include "collect/keeper.h"
#include "collect/live/surgeon.h"
#include "config.h"

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
};

static const struct command commands[] = {
#define X(name, text) {#name, cmd_##name, text},
	COMMANDS(X)
#undef X
		{NULL, NULL, NULL},
};

static void print_help(void)
{
	puts("Usage: kron COMMAND [OPTION]... [ARGUMENT]...\n"
	     "Trace every function of programs that nobody recompiled.\n");
	for (const struct command *c = commands; c->name; c++)
		printf("  %-10s%s\n", c->name, c->help);
	puts("\n`kron help COMMAND` shows a command's options, `man kron-COMMAND` its page.\n"
	     "`kron --version` shows the version.");
}

/* For the shell completion. */
static void print_words(void)
{
	for (const struct command *c = commands; c->name; c++)
		opt_word(stdout, c->name, NULL, c->help);
}

static const struct command *find_command(const char *name)
{
	for (const struct command *c = commands; c->name; c++)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

static int explain_unknown(const char *name)
{
	struct near near = {.n = 0};

	for (const struct command *c = commands; c->name; c++)
		near_consider(&near, name, c->name);
	if (near.n)
		fprintf(stderr, "kron: '%s' is not a kron command; did you mean %s?\n", name,
			near.v[0]);
	else
		fprintf(stderr, "kron: '%s' is not a kron command: `kron --help` lists them\n",
			name);
	return CMD_USAGE;
}

static int run(const char *name, int argc, char **argv)
{
	const struct command *c = find_command(name);

	if (!c)
		return explain_unknown(name);
	log_init(getenv("KRON_LOG"));
	guard_install(CMD_ERROR);
	vec_set_exit_status(CMD_ERROR);
	return c->run(argc, argv);
}

/* kron help COMMAND is kron COMMAND --help. */
static int help_on(char *name)
{
	char help[] = "--help", *argv[] = {name, help, NULL};

	return run(name, 2, argv);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;

	inherited_note();
	/* plans are a few big arrays that grow: each in a mapping of its own, which moves without
	 * a copy and goes when it is freed */
	mallopt(M_MMAP_THRESHOLD, 256 << 10);
	if (!name) {
		fputs("kron: no command given: `kron --help` lists the commands\n", stderr);
		return CMD_USAGE;
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-V"))
		puts("kron " PACKAGE_VERSION);
	else if (!strcmp(name, "help") && argc > 2)
		return help_on(argv[2]);
	else if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help"))
		print_help();
	else if (!strcmp(name, "--help-words"))
		print_words();
	else if ((!strcmp(name, "--keep") || !strcmp(name, "--drop")) &&
		 argc == 4) /* by collect/keeper.c, and by nobody else */
		return keeper_main(argv[2], argv[3], !strcmp(name, "--drop"));
	else if (!strcmp(name, "--operate") && argc == 2) /* by collect/live/surgeon.c, likewise */
		return surgeon_main();
	else
		return run(name, argc - 1, argv + 1);
	return fflush(stdout) ? CMD_ERROR : CMD_OK;
}

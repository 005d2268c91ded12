/* SPDX-License-Identifier: MIT */
/*
 * environment.c - prints the environment and what follows it on the stack, as a program
 * sees it that walks from argv to envp to the auxiliary vector by itself.
 *
 * Build: O2 O2,no-pie
 * Args: one two
 * Calls: walk=1 main=1
 */
#include "torture.h"
#include <elf.h>
#include <sys/auxv.h>

extern char **environ;

OPAQUE static void walk(int argc, char **argv, char **envp)
{
	char **p = argv + argc;
	const Elf64_auxv_t *aux;
	unsigned long entry = 0, page = 0, random = 0, phdr = 0;
	int count = 0;

	CHECK(*p == NULL);
	CHECK(p + 1 == envp);
	CHECK(envp == environ);
	for (p++; *p; p++) {
		/* the harness's temporary folders differ from run to run */
		if (strncmp(*p, "PWD=", 4) && strncmp(*p, "OLDPWD=", 7) && strncmp(*p, "_=", 2))
			printf("%s\n", *p);
		count++;
	}
	for (aux = (const Elf64_auxv_t *)(p + 1); aux->a_type != AT_NULL; aux++) {
		switch (aux->a_type) {
		case AT_ENTRY:
			entry = aux->a_un.a_val;
			break;
		case AT_PAGESZ:
			page = aux->a_un.a_val;
			break;
		case AT_RANDOM:
			random = aux->a_un.a_val;
			break;
		case AT_PHDR:
			phdr = aux->a_un.a_val;
			break;
		}
	}
	CHECK(entry == getauxval(AT_ENTRY) && entry);
	CHECK(page == 4096);
	CHECK(random == getauxval(AT_RANDOM) && random);
	CHECK(phdr == getauxval(AT_PHDR) && phdr);
	printf("%d variables\n", count);
}

int main(int argc, char **argv, char **envp)
{
	CHECK(argc == 3 && !strcmp(argv[1], "one") && !strcmp(argv[2], "two"));
	CHECK(!getenv("LD_PRELOAD") && !getenv("KRON_RT"));
	walk(argc, argv, envp);
	/* The variables can be changed, and children see them. */
	CHECK(!setenv("ANOTHER", "value", 1) && !unsetenv("HOME"));
	fflush(stdout);
	return system("echo \"$ANOTHER.$HOME.$LD_PRELOAD.$KRON_RT\"");
}

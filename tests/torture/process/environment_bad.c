/* SPDX-License-Identifier: MIT */
/*
 * environment_bad.c - execve() with an environment that cannot be read is refused by the kernel, and the
 * program goes on; one whose last string ends with its page is as good as any.
 *
 * Build: O2
 * Modes: exe
 * Calls: main=1 try=5
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

static void try(const char *what, char *const *envp)
{
	char *argv[] = {"sh", "-c", "echo $B", NULL};

	fflush(stdout);
	execve("/bin/sh", argv, envp);
	printf("%s: %s\n", what, strerror(errno));
}

int main(void)
{
	char *pages =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *envp[] = {"A=1", pages, NULL};

	if (pages == MAP_FAILED)
		return 1;
	mprotect(pages, PAGE, PROT_NONE);
	try("array nobody may read", (char **)pages);
	try("string nobody may read", envp);
	munmap(pages, PAGE);
	try("array that is not there", (char **)pages);
	try("string that is not there", envp);
	envp[1] = strcpy(pages + 2 * PAGE - 4, "B=2"); /* nothing is mapped after it, mostly */
	try("string at the end", envp);
	return 1;
}

/* SPDX-License-Identifier: MIT */
/*
 * exec_script.c - executes scripts: a shebang, a shebang with an argument, a script whose
 * interpreter is a script, one without a shebang (ENOEXEC, then execvp's shell), and what
 * fails: a missing interpreter, a directory, a file without the right to execute.
 *
 * Build: O2
 * Calls: run=7 main=1
 */
#include "torture.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void script(const char *name, const char *text, mode_t mode)
{
	FILE *f = fopen(name, "w");

	CHECK(f && fputs(text, f) >= 0 && !fclose(f));
	CHECK(!chmod(name, mode));
}

OPAQUE static void run(const char *name, int want)
{
	char *args[] = {(char *)name, "one", "two", NULL};
	int status;
	pid_t pid;

	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		execvp(name, args);
		_exit(errno == ENOENT ? 101 : errno == EACCES ? 102 : 103);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == want);
}

int main(void)
{
	char text[512], cwd[256];

	CHECK(getcwd(cwd, sizeof(cwd)));
	script("./plain.sh", "#!/bin/sh\necho plain $1 $#\nexit 5\n", 0755);
	script("./arg.sh", "#!/bin/sh -e\necho arg\nfalse\necho not reached\n", 0755);
	snprintf(text, sizeof(text), "#!%s/plain.sh\nnever run\n", cwd);
	script("./nested.sh", text, 0755);
	script("./bare.sh", "echo bare $2\nexit 6\n", 0755);
	script("./lost.sh", "#!/nonexistent/interpreter\n", 0755);
	script("./locked.sh", "#!/bin/sh\n", 0644);
	run("./plain.sh", 5);
	run("./arg.sh", 1);
	run("./nested.sh", 5);
	run("./bare.sh", 6);
	run("./lost.sh", 101);
	run("./locked.sh", 102);
	run("./", 102);
	puts("scripts");
	return 0;
}

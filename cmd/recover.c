/* SPDX-License-Identifier: MIT */
/* recover.c - kron recover: see collect/recover/recover.h */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "collect/recover/recover.h"
#include "trace/format.h"

static const char *output;

static const struct opt options[] = {
	{'o', "output", OPT_STR, &output, "OUT",
	 "With CORE: make a trace OUT of what the core has, and leave DIR as it is. For a recording that "
	 "goes on, or that has ended in good order.",
	 0, 0},
	OPT_END,
};

static const struct opt_command command = {
	.name = "recover",
	.operands = "[CORE] [DIR]",
	.summary = "Finish the trace in DIR (default kron.data, or the one that CORE is of) whose "
		   "kron record was killed or ran out of disk space, from the shared memory that "
		   "it left, or from the core of the program.",
	.opts = options,
	.max_operands = 2,
};

/* A trace is a folder. */
static bool is_core(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISDIR(st.st_mode);
}

int cmd_recover(int argc, char **argv)
{
	char recovered[STR_NUMBER], total[STR_NUMBER], lost[STR_NUMBER];
	const char *core = NULL;
	char *dir = NULL;
	struct recovery r;
	struct err err;
	int status, code, first = cmd_parse(&command, argc, argv, &status);

	if (!first)
		return status;
	if (first < argc && (first + 1 < argc || is_core(argv[first])))
		core = argv[first++];
	if (output && !core)
		return cmd_fail(&command, CMD_USAGE, "--output goes with a core file");
	if (core && access(core, R_OK))
		return cmd_fail(&command, CMD_ERROR, "cannot read %s: %s", core, strerror(errno));
	dir = xstrdup(first < argc ? argv[first] : TRACE_DEFAULT_DIR);
	if (core && first == argc && recover_find_dir(core, &dir, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	code = core ? recover_core(dir, core, output, &r, &err) : recover_trace(dir, &r, &err);
	if (r.living)
		printf("%u traced %s still %s, untraced from here\n", r.living,
		       r.living == 1 ? "process" : "processes", r.living == 1 ? "runs" : "run");
	if (code == -EALREADY)
		printf("%s\n", err.msg);
	else if (code)
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	else
		printf("%s samples recovered, %s in all, %s lost -> %s\n",
		       str_thousands(recovered, sizeof(recovered), r.recovered),
		       str_thousands(total, sizeof(total), r.in_file + r.recovered),
		       str_thousands(lost, sizeof(lost), r.lost), output ? output : dir);
	if (!code && r.untraced)
		printf("untraced (%" PRIu64 " %s): kron info %s says why\n", r.untraced,
		       r.untraced == 1 ? "time" : "times", output ? output : dir);
	if (!code && r.left_out)
		printf("%" PRIu64
		       " chunks of samples are left out: other processes and the recorder "
		       "went on while the core was made\n",
		       r.left_out);
	if (!code && r.is_cut)
		printf("the core was cut short: samples are missing\n");
	xfree(dir);
	return cmd_finish(&command, CMD_OK);
}

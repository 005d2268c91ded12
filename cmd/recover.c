/* SPDX-License-Identifier: MIT */
/* recover.c - kron recover: see collect/recover/recover.h */
#include <errno.h>
#include <stdio.h>

#include "base/str.h"
#include "cmd/cmd.h"
#include "collect/recover/recover.h"
#include "trace/format.h"

static const struct opt options[] = {OPT_END};

static const struct opt_command command = {
	.name = "recover",
	.operands = "[DIR]",
	.summary = "Finish the trace in DIR (default kron.data) whose kron record was killed or "
		   "ran out of disk space, from the shared memory that it left.",
	.opts = options,
	.max_operands = 1,
};

int cmd_recover(int argc, char **argv)
{
	char recovered[STR_NUMBER], total[STR_NUMBER], lost[STR_NUMBER];
	const char *dir = TRACE_DEFAULT_DIR;
	struct recovery r;
	struct err err;
	int status, code, first = cmd_parse(&command, argc, argv, &status);

	if (!first)
		return status;
	if (first < argc)
		dir = argv[first];
	code = recover_trace(dir, &r, &err);
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
		       str_thousands(lost, sizeof(lost), r.lost), dir);
	return cmd_finish(&command, CMD_OK);
}

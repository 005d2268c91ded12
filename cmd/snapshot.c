/* SPDX-License-Identifier: MIT */
/* snapshot.c - kron snapshot: a running `kron record --flight` keeps what its ring holds */
#include <stdio.h>

#include "base/vec.h"
#include "board/bus/bus.h"
#include "board/bus/lanes.h"
#include "board/bus/object.h"
#include "cmd/cmd.h"
#include "collect/live/control.h"

static const char *why = "";

static const struct opt options[] = {
	{'m', "why", OPT_STR, &why, "TEXT",
	 "Why, in one line: `kron info` shows it. Default: \"kron snapshot\".", 0, 0},
	OPT_END,
};

static const struct opt_command command = {
	.name = "snapshot",
	.operands = "[BOARD]",
	.summary =
		"Have a running `kron record --flight` write what its ring holds to DIR/001, DIR/002 and "
		"so on, and print that directory. BOARD: the process id of the kron record, or the name "
		"of its board. Default: $KRON_BOARD, else \"default\", else the only one that there is.",
	.opts = options,
	.max_operands = 1,
};

static int ask(struct bus *b)
{
	struct kron_control_answer *answer = xcalloc(1, sizeof(*answer));
	struct lanes_view view;
	struct err err;
	int status = CMD_OK;

	lanes_look(b, &view);
	if (!view.recorder_pid)
		status =
			cmd_fail(&command, CMD_ERROR,
				 "no kron record runs on board %s: nothing is kept there", b->name);
	else if (control_ask(object_note(b->board.ctl)->recording, view.recorder_pid,
			     KRON_CONTROL_SNAPSHOT, why, answer, &err))
		status = cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	else if (answer->code)
		status = cmd_fail(&command, CMD_ERROR, "%s", answer->text);
	else
		fputs(answer->text, stdout);
	xfree(answer);
	return status;
}

int cmd_snapshot(int argc, char **argv)
{
	int status, first = cmd_parse(&command, argc, argv, &status);
	struct bus bus;
	struct err err;

	if (!first)
		return status;
	if (bus_open(&bus, first < argc ? argv[first] : NULL, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	status = ask(&bus);
	bus_close(&bus);
	return cmd_finish(&command, status);
}

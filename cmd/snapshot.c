/* SPDX-License-Identifier: MIT */
/* snapshot.c - kron snapshot: a running `kron record --flight` keeps what its ring holds */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "board/bus/bus.h"
#include "board/bus/lanes.h"
#include "board/bus/object.h"
#include "cmd/cmd.h"
#include "collect/changes/control.h"

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
		"of its board. Default: $KRON_BOARD, else the flight recorder on the board \"default\", else the "
		"only one that there is.",
	.opts = options,
	.max_operands = 1,
};

/* ---- which one ---- */

/* Who takes snapshots now, by its own word. */
static bool takes_snapshots(const struct boards_entry *e)
{
	struct kron_control_answer *answer;
	bool takes;

	if (!e->recorder_pid || e->damaged || e->orphaned)
		return false;
	answer = xcalloc(1, sizeof(*answer));
	takes = !control_ask(e->recording, e->recorder_pid, KRON_CONTROL_FLIGHT, "", answer,
			     NULL) &&
		!answer->code;
	xfree(answer);
	return takes;
}

struct recorders {
	VEC(struct boards_entry) v;
};

/* The place of the one that is meant; -1: none, or any of several. */
static int choose(const struct recorders *r)
{
	for (size_t i = 0; i < r->v.n; i++)
		if (!strcmp(r->v.v[i].name, BOARDS_DEFAULT))
			return (int)i;
	return r->v.n == 1 ? 0 : -1;
}

static int explain(const struct recorders *r, struct err *err)
{
	char pids[256] = "";
	size_t len = 0;

	if (!r->v.n)
		return err_set(err, ENOENT,
			       "no `kron record --flight` of yours runs: nothing can be kept");
	for (size_t i = 0; i < r->v.n && len + 16 < sizeof(pids); i++)
		len += (size_t)snprintf(pids + len, sizeof(pids) - len, "%s%d", i ? ", " : "",
					r->v.v[i].recorder_pid);
	return err_set(
		err, EINVAL,
		"several `kron record --flight` run: name one, as `kron snapshot %d`; there are "
		"%s",
		r->v.v[0].recorder_pid, pids);
}

static int open_the_only_one(struct bus *b, struct err *err)
{
	struct recorders r = {0};
	struct boards_entry *all;
	size_t n;
	int chosen, code = boards_list(&all, &n, err);

	if (code)
		return code;
	for (size_t i = 0; i < n; i++)
		if (takes_snapshots(&all[i]))
			*vec_push(&r.v) = all[i];
	chosen = choose(&r);
	code = chosen < 0 ? explain(&r, err) : bus_open(b, r.v.v[chosen].name, err);
	vec_free(&r.v);
	xfree(all);
	return code;
}

static int open_recorder(struct bus *b, const char *name, struct err *err)
{
	const char *named = getenv(BOARDS_ENV);

	return name || (named && *named) ? bus_open(b, name, err) : open_the_only_one(b, err);
}

/* ---- the snapshot ---- */

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
	if (open_recorder(&bus, first < argc ? argv[first] : NULL, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	status = ask(&bus);
	bus_close(&bus);
	return cmd_finish(&command, status);
}

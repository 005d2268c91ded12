/* SPDX-License-Identifier: MIT */
/* board.c - kron board: makes, lists and removes the boards with names.  See board/bus/bus.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "base/vec.h"
#include "board/bus/bus.h"
#include "board/bus/node.h"
#include "cmd/board/cable.h"
#include "cmd/cmd.h"

#define NO_NODE UINT64_MAX
static uint64_t chip_fifo, board_fifo, drain, node = NO_NODE;
static const char *cable;
static bool vc, virtual_clock, json;

static const struct opt options[] = {
	{0, "chip-fifo", OPT_UINT, &chip_fifo, "N",
	 "With create: the chip's FIFO holds N samples, 1 to 16. Default 4.", 1,
	 MODEL_CHIP_FIFO_MAX},
	{0, "board-fifo", OPT_UINT, &board_fifo, "BYTES",
	 "With create: the size of the board's FIFO in bytes, 4 to 1024. Default 1024.", 4,
	 MODEL_BOARD_FIFO_MAX},
	{0, "drain", OPT_UINT, &drain, "CLOCKS",
	 "With create: the clocks of 25 ns that the board's FIFO needs to move 4 bytes to local "
	 "memory or 2 to the cable. Default 5.",
	 1, MODEL_DRAIN_MAX},
	{0, "cable", OPT_STR, &cable, "PATH",
	 "With create or connect: the board's samples go over its external cable, and what comes "
	 "out at the far end is written to this FIFO, file (at its end) or socket (its path, "
	 "unix:PATH or tcp://HOST:PORT of this machine); -: nobody takes it yet.",
	 0, 0},
	{0, "vc", OPT_FLAG, &vc, NULL, "With create: a MultiKron_vc is on the board.", 0, 0},
	{0, "node", OPT_UINT, &node, "N",
	 "With create: the node that the board is in, 0 to 1023, for the source addresses of its samples. Default: the rank in an "
	 "MPI job, $SLURM_NODEID, the number at the end of the host's name, or 0.",
	 0, NODE_MAX},
	{0, "virtual-clock", OPT_FLAG, &virtual_clock, NULL,
	 "With create: the board's time stands still but for `kron ctl tick`, so that a run can be "
	 "repeated exactly.",
	 0, 0},
	{0, "json", OPT_FLAG, &json, NULL, "With list: print a JSON array.", 0, 0},
	OPT_END,
};

static const struct opt_command command = {
	.name = "board",
	.operands = "create|connect|list|rm [NAME]",
	.summary =
		"Make a board that stays until it is removed or the machine restarts, connect its "
		"cable, list the boards that there are, remove one. NAME is \"default\" unless given.",
	.opts = options,
	.min_operands = 1,
	.max_operands = 2,
};

/* ---- create, connect, rm ---- */

/* "-": nothing is connected yet. */
static bool is_connected_at_once(void)
{
	return cable && strcmp(cable, "-");
}

static int connect_board(const char *name)
{
	struct err err;
	int to;

	if (!is_connected_at_once())
		return cmd_fail(&command, CMD_USAGE, "connect needs --cable and where it leads to");
	if (board_cable_open(&to, cable, &err) || board_cable_start(name, cable, to, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	return CMD_OK;
}

static int create(const char *name)
{
	struct model_geometry g = MODEL_GEOMETRY_DEFAULT;
	struct err err;
	int to = -1;

	if (chip_fifo)
		g.chip_fifo = (uint32_t)chip_fifo;
	if (board_fifo)
		g.board_fifo = (uint32_t)board_fifo;
	if (drain)
		g.drain_memory = g.drain_cable = (uint32_t)drain;
	g.cable = cable ? MODEL_CABLE_MAX : 0;
	g.vc = vc;
	if (is_connected_at_once() && board_cable_open(&to, cable, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	if (boards_create(name, &g, virtual_clock ? ACCESS_CLOCK_VIRTUAL : ACCESS_CLOCK_REAL,
			  node == NO_NODE ? NODE_DEFAULT : (int)node, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	if (is_connected_at_once() && board_cable_start(name, cable, to, &err)) {
		boards_remove(name, NULL);
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	}
	return CMD_OK;
}

static int rm(const char *name)
{
	struct err err;

	if (boards_remove(name, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	return CMD_OK;
}

/* ---- list ---- */

static const char *kind_of(const struct boards_entry *e)
{
	if (e->damaged)
		return "damaged";
	return e->permanent ? "permanent" : "recorder's";
}

static void print_state(const struct boards_entry *e)
{
	if (e->damaged)
		printf("%s", e->why);
	else if (e->recorder_pid)
		printf("kron record, pid %d", e->recorder_pid);
	else if (e->orphaned)
		printf("recorder (pid %d) killed: `kron recover %s`", e->orphaned_pid,
		       e->dir[0] ? e->dir : "DIR");
	else
		printf("-");
}

static void print_table(const struct boards_entry *all, size_t n)
{
	char bytes[STR_NUMBER];

	if (n)
		printf("%-24s %-10s %10s  %s\n", "NAME", "KIND", "MEMORY", "RECORDER");
	for (size_t i = 0; i < n; i++) {
		printf("%-24s %-10s %10s  ", all[i].name, kind_of(&all[i]),
		       str_bytes(bytes, sizeof(bytes), all[i].bytes));
		print_state(&all[i]);
		putchar('\n');
	}
}

static void print_json(const struct boards_entry *all, size_t n)
{
	struct json j = JSON_INIT(stdout);

	json_open(&j, '[');
	for (size_t i = 0; i < n; i++) {
		json_open(&j, '{');
		json_kstr(&j, "name", all[i].name);
		json_ku64(&j, "bytes", all[i].bytes);
		json_ku64(&j, "node", all[i].node);
		json_key(&j, "permanent");
		json_bool(&j, all[i].permanent);
		json_key(&j, "recorder_pid");
		json_i64(&j, all[i].recorder_pid);
		json_key(&j, "damaged");
		json_bool(&j, all[i].damaged);
		json_kstr(&j, "why", all[i].damaged ? all[i].why : NULL);
		json_key(&j, "orphaned");
		json_bool(&j, all[i].orphaned);
		json_kstr(&j, "trace", all[i].dir[0] ? all[i].dir : NULL);
		json_close(&j, '}');
	}
	json_close(&j, ']');
}

static int list(void)
{
	struct boards_entry *all;
	struct err err;
	size_t n;

	if (boards_list(&all, &n, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	if (json)
		print_json(all, n);
	else
		print_table(all, n);
	xfree(all);
	return cmd_finish(&command, CMD_OK);
}

/* ---- all together ---- */

static bool has_geometry(void)
{
	return chip_fifo || board_fifo || drain || vc || virtual_clock || node != NO_NODE;
}

int cmd_board(int argc, char **argv)
{
	int status, first = cmd_parse(&command, argc, argv, &status);
	const char *verb, *name;
	bool given;

	if (!first)
		return status;
	verb = argv[first];
	given = first + 1 < argc;
	name = given ? argv[first + 1] : BOARDS_DEFAULT;
	if (has_geometry() && strcmp(verb, "create"))
		return cmd_fail(&command, CMD_USAGE,
				"only create takes options about what the board is like");
	if (cable && strcmp(verb, "create") && strcmp(verb, "connect"))
		return cmd_fail(&command, CMD_USAGE, "only create and connect take --cable");
	if (json && strcmp(verb, "list"))
		return cmd_fail(&command, CMD_USAGE, "only list takes --json");
	if (!strcmp(verb, "create"))
		return create(name);
	if (!strcmp(verb, "connect"))
		return connect_board(name);
	if (!strcmp(verb, "rm"))
		return rm(name);
	if (!strcmp(verb, "list") && !given)
		return list();
	if (!strcmp(verb, "list"))
		return cmd_fail(&command, CMD_USAGE, "list takes no name: it shows all boards");
	return cmd_fail(&command, CMD_USAGE,
			"unknown action '%s'; choose one of create, connect, list and rm", verb);
}

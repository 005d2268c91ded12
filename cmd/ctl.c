/* SPDX-License-Identifier: MIT */
/*
 * ctl.c - kron ctl: writes the registers of a running board.
 *
 * Each verb is one bus cycle or two; who records on the board or takes samples there sees it at
 * once, for the cycle that writes a register sets the gates, too.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "board/bus/bus.h"
#include "board/bus/lanes.h"
#include "board/bus/object.h"
#include "board/bus/reset.h"
#include "cmd/cmd.h"
#include "cmd/ctl_probe.h"
#include "cmd/registers.h"

static const char *board;
static struct ctl_probe_options probe;

static const struct opt options[] = {
	{0, "board", OPT_STR, &board, "NAME",
	 "The board: a name, the process id of a kron record, or the path of a device. Default: "
	 "$KRON_BOARD, else \"default\", else the only one that there is.",
	 0, 0},
	{'F', "function", OPT_STR, &probe.functions, "GLOB",
	 "With probe add and probe rm: the functions that this matches.", 0, 0},
	{'L', "library", OPT_LIST, &probe.libraries, "GLOB",
	 "With probe add -F: also functions of libraries named so, besides those that the recording "
	 "traces. May be repeated.",
	 0, 0},
	{0, "json", OPT_FLAG, &probe.json, NULL, "With probe list: print a JSON array.", 0, 0},
	OPT_END,
};

static const struct opt_command command = {
	.name = "ctl",
	.operands = "VERB [ARG]...",
	.summary =
		"Change the registers of a board while it is used: filter [MASK], on GROUP..., "
		"off GROUP..., sampling on|off, wait, discard, reset [NAME]..., read ADDR, write ADDR "
		"VALUE, tick N, external N high|low|toggle; or, while a kron record runs on it, its "
		"probes: probe add SPEC, probe rm NAME, probe add -F GLOB, probe rm -F GLOB, probe "
		"list.",
	.opts = options,
	.min_operands = 1,
};

static int usage(const char *sentence)
{
	return cmd_fail(&command, CMD_USAGE, "%s (`kron ctl --help` shows the usage)", sentence);
}

/* ---- numbers ---- */

static bool parse_number(const char *text, int base, uint64_t max, uint64_t *out)
{
	char *end;

	if (!strchr("0123456789abcdefABCDEF", text[0]) || !text[0])
		return false;
	errno = 0;
	*out = strtoull(text, &end, base);
	return !errno && !*end && *out <= max;
}

/* "3", "3-5", "all" */
static bool parse_groups(const char *text, uint32_t *mask)
{
	uint64_t from, to;
	const char *dash = strchr(text, '-');
	char first[8];

	if (!strcmp(text, "all")) {
		*mask |= 0xffff;
		return true;
	}
	snprintf(first, sizeof(first), "%.*s", dash ? (int)(dash - text) : 7, text);
	if (!parse_number(first, 10, KRON_LEVELS - 1, &from))
		return false;
	to = from;
	if (dash && !parse_number(dash + 1, 10, KRON_LEVELS - 1, &to))
		return false;
	if (to < from)
		return false;
	for (uint64_t i = from; i <= to; i++)
		*mask |= 1u << i;
	return true;
}

/* With its outputs off the chip answers nobody: reads are all ones, writes are gone. */
static bool chip_answers(struct bus *b)
{
	if (!bus_is_exact(b) || bus_read32(b, KRON_BOARD_CONFIG) & KRON_CONFIG_MK_OE)
		return true;
	cmd_fail(&command, CMD_ERROR,
		 "the chip of board %s does not answer: MK_OE is off in the Configuration Register "
		 "(`kron ctl write config 0x%x` switches it on)",
		 b->name, KRON_CONFIG_DEFAULT);
	return false;
}

/* ---- verbs: argv[0] is the verb, n arguments follow it ---- */

#define WORD(w) KRON_CHIP_BYTE(KRON_WORD_##w)

static uint32_t filter_of(struct bus *b)
{
	return bus_read32(b, WORD(FILTER)) & 0xffff;
}

static int do_filter(struct bus *b, int n, char **argv)
{
	uint64_t mask;

	if (!n) {
		printf("%04x\n", filter_of(b));
		return CMD_OK;
	}
	if (!parse_number(argv[1], 16, 0xffff, &mask))
		return usage("filter takes 16 bits in hexadecimal: one a group, 1 = take samples");
	bus_write32(b, WORD(FILTER), (uint32_t)mask);
	return CMD_OK;
}

static int do_groups(struct bus *b, int n, char **argv)
{
	bool on = !strcmp(argv[0], "on");
	uint32_t mask = 0;

	for (int i = 1; i <= n; i++)
		if (!parse_groups(argv[i], &mask))
			return usage("a group is a number from 0 to 15, a range like 3-5, or all");
	/* Two who do this at the same time must both have their way. */
	if (!object_lock_change(b->fd))
		return cmd_fail(&command, CMD_ERROR,
				"another process keeps the lock on the registers of board %s",
				b->name);
	bus_write32(b, WORD(FILTER), on ? filter_of(b) | mask : filter_of(b) & ~mask);
	object_unlock_change(b->fd);
	return CMD_OK;
}

static int do_sampling(struct bus *b, int n, char **argv)
{
	(void)n;
	if (strcmp(argv[1], "on") && strcmp(argv[1], "off"))
		return usage("sampling is on or off");
	bus_write32(b, WORD(CSR), strcmp(argv[1], "on") ? KRON_CSR_STOP : KRON_CSR_SAMPLING);
	return CMD_OK;
}

static int do_full(struct bus *b, int n, char **argv)
{
	bool wait = !strcmp(argv[0], "wait");

	(void)n;
	bus_write32(b, WORD(CSR), wait ? KRON_CSR_WAIT : KRON_CSR_DISCARD);
	if (bus_is_exact(b))
		lanes_set_wait(b, wait);
	return CMD_OK;
}

static int do_reset(struct bus *b, int n, char **argv)
{
	struct err err;

	(void)n;
	(void)argv;
	return boards_reset(b, 1, &err) ? cmd_fail(&command, CMD_ERROR, "%s", err.msg) : CMD_OK;
}

/* Those that are named: all, or none of them. */
static int reset_boards(int n, char **names)
{
	struct bus *b = xcalloc((size_t)n, sizeof(*b));
	int code = 0, opened = 0;
	struct err err;

	while (!code && opened < n) {
		code = bus_open(&b[opened], names[opened], &err);
		opened += !code;
	}
	if (!code)
		code = boards_reset(b, (size_t)n, &err);
	while (opened)
		bus_close(&b[--opened]);
	xfree(b);
	return code ? cmd_fail(&command, CMD_ERROR, "%s", err.msg) : CMD_OK;
}

static bool find_register(const char *text, struct reg *r)
{
	if (registers_find(text, r))
		return true;
	usage("that is neither the name of a register nor the offset of a word in the board's "
	      "address space");
	return false;
}

static bool is_of_chip(const struct reg *r)
{
	return r->offset >= KRON_BOARD_CHIP && r->offset < KRON_CHIP_BYTE(KRON_CHIP_WORDS);
}

static int do_read(struct bus *b, int n, char **argv)
{
	struct reg r;

	(void)n;
	if (!find_register(argv[1], &r))
		return CMD_USAGE;
	if (is_of_chip(&r) && !chip_answers(b))
		return CMD_ERROR;
	if (r.bits > 32)
		printf("%0*" PRIx64 "\n", (int)r.bits / 4,
		       bus_read_chip64(b, r.word) & (UINT64_MAX >> (64 - r.bits)));
	else
		printf("%08" PRIx32 "\n", bus_read32(b, r.offset));
	return CMD_OK;
}

static int do_write(struct bus *b, int n, char **argv)
{
	uint64_t value;
	struct reg r;

	(void)n;
	if (!find_register(argv[1], &r))
		return CMD_USAGE;
	if (is_of_chip(&r) && !chip_answers(b))
		return CMD_ERROR;
	if (!parse_number(argv[2], 0, r.bits > 32 ? UINT64_MAX : UINT32_MAX, &value))
		return usage(r.bits > 32 ? "a value has at most 64 bits: 123, 0x7b"
					 : "a value has at most 32 bits: 123, 0x7b");
	if (r.bits > 32)
		bus_write_chip64(b, r.word, value);
	else
		bus_write32(b, r.offset, (uint32_t)value);
	return CMD_OK;
}

static int do_tick(struct bus *b, int n, char **argv)
{
	uint64_t ticks;

	(void)n;
	if (!parse_number(argv[1], 10, 1ull << 62, &ticks))
		return usage("tick takes a number of clocks, decimal");
	if (!bus_is_exact(b))
		return cmd_fail(&command, CMD_ERROR, "%s is hardware: its clock runs by itself",
				b->name);
	if (!bus_has_virtual_clock(b))
		return cmd_fail(&command, CMD_ERROR,
				"the clock of board %s runs by itself: `kron board create "
				"--virtual-clock` makes one whose does not",
				b->name);
	board_tick(&b->board, ticks);
	return CMD_OK;
}

/* What would be a wire on the connector: NISTIR 5993, 2.3. */
static int do_external(struct bus *b, int n, char **argv)
{
	static const char *const levels[] = {
		[ACCESS_LOW] = "low", [ACCESS_HIGH] = "high", [ACCESS_TOGGLE] = "toggle"};
	unsigned level = 0;
	uint64_t input;

	(void)n;
	while (level <= ACCESS_TOGGLE && strcmp(argv[2], levels[level]))
		level++;
	if (!parse_number(argv[1], 10, KRON_COUNTERS - 1, &input) || level > ACCESS_TOGGLE)
		return usage(
			"external takes the number of a counter input, 0 to 15, and high, low or toggle");
	if (!bus_is_exact(b))
		return cmd_fail(&command, CMD_ERROR,
				"%s is hardware: its counter inputs are on its connector", b->name);
	if (board_set_external(&b->board, (unsigned)input, (enum access_level)level))
		return cmd_fail(&command, CMD_ERROR, "board %s does not answer: it is damaged",
				b->name);
	return CMD_OK;
}

static int do_probe(struct bus *b, int n, char **argv)
{
	return ctl_probe(&command, b, &probe, n - 1, argv + 1);
}

#define BOARDS_MAX 1024 /* that have one reset */
static const struct verb {
	const char *name;
	int min, max; /* arguments */
	int (*run)(struct bus *b, int n, char **argv);
	bool chip;  /* for it alone */
	bool gates; /* it may open or close them */
} verbs[] = {
	{"filter", 0, 1, do_filter, true, true},
	{"on", 1, 16, do_groups, true, true},
	{"off", 1, 16, do_groups, true, true},
	{"sampling", 1, 1, do_sampling, true, true},
	{"wait", 0, 0, do_full, true, false},
	{"discard", 0, 0, do_full, true, false},
	{"reset", 0, BOARDS_MAX, do_reset, false, true},
	{"read", 1, 1, do_read, false, false},
	{"write", 2, 2, do_write, false, true},
	{"tick", 1, 1, do_tick, false, false},
	{"external", 2, 2, do_external, false, false},
	{"input", 2, 2, do_external, false, false},
	{"probe", 1, 2, do_probe, false, false},
};

static int wrong_number(const struct verb *verb, int n)
{
	char takes[32];

	if (!verb->max)
		snprintf(takes, sizeof(takes), "no arguments");
	else if (verb->min == verb->max)
		snprintf(takes, sizeof(takes), "%d argument%s", verb->max,
			 verb->max > 1 ? "s" : "");
	else
		snprintf(takes, sizeof(takes), "%d to %d arguments", verb->min, verb->max);
	return cmd_fail(&command, CMD_USAGE,
			"%s takes %s, not %d (`kron ctl --help` shows the usage)", verb->name,
			takes, n);
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

int cmd_ctl(int argc, char **argv)
{
	int status, n, first = cmd_parse(&command, argc, argv, &status);
	const struct verb *verb;
	struct bus bus;
	struct err err;

	if (!first)
		return status;
	n = argc - first - 1;
	verb = find_verb(argv[first]);
	if (!verb)
		return cmd_fail(&command, CMD_USAGE,
				"'%s' is not a verb (`kron ctl --help` shows them)", argv[first]);
	if ((probe.json || probe.functions || probe.libraries.n) && verb->run != do_probe)
		return usage(probe.json        ? "only probe list takes --json"
			     : probe.functions ? "only probe add and probe rm take -F"
					       : "only probe add -F takes -L");
	if (n < verb->min || n > verb->max)
		return wrong_number(verb, n);
	if (verb->run == do_probe) {
		status = ctl_probe_check(&command, &probe, n - 1, argv + first + 1);
		if (status)
			return status;
	}
	if (verb->run == do_reset && n && board)
		return usage("reset takes the names of boards, or --board");
	if (verb->run == do_reset && n)
		return cmd_finish(&command, reset_boards(n, argv + first + 1));
	if (bus_open(&bus, board, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	status = CMD_ERROR;
	if (!verb->chip || chip_answers(&bus))
		status = verb->run(&bus, n, argv + first);
	if (verb->gates && status == CMD_OK && bus_is_exact(&bus))
		lanes_tell_gates(&bus);
	bus_close(&bus);
	return cmd_finish(&command, status);
}

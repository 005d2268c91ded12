/* SPDX-License-Identifier: MIT */
/* top.c - kron top: what is being recorded right now. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/live.h"

static const char *board;
static bool json;
static uint64_t delay = 1000, rounds, limit;

static const struct opt options[] = {
	{0, "board", OPT_STR, &board, "NAME",
	 "The board that is recorded on: a name, or the process id of a kron record. Default: "
	 "$KRON_BOARD, else that of the recording that runs.",
	 0, 0},
	{'d', "delay", OPT_UINT, &delay, "MS",
	 "Milliseconds from one picture to the next. Default 1000.", 10, 3600000},
	{'n', "rounds", OPT_UINT, &rounds, "N",
	 "End after N pictures. Default: with the recording.", 1, 0},
	{'l', "limit", OPT_UINT, &limit, "N",
	 "Show only the N busiest functions. Default: what fits on the terminal, else all.", 1, 0},
	{0, "json", OPT_FLAG, &json, NULL, "Print a JSON object a line.", 0, 0},
	OPT_END,
};

static const struct opt_command command = {
	.name = "top",
	.summary = "Show which functions and events are being recorded right now, and how often.",
	.opts = options,
};

/* ---- showing ---- */

/* Of the terminal; no limit where there is none. */
static void find_size(size_t *rows, size_t *columns)
{
	struct winsize ws = {0};

	if (isatty(STDOUT_FILENO))
		ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws);
	*rows = ws.ws_row ? ws.ws_row : SIZE_MAX;
	*columns = ws.ws_col ? ws.ws_col : SIZE_MAX;
}

/* Lines that would go on in the next one are cut: the picture stays in its place. */
static void put_cut(const char *text, size_t columns, FILE *out)
{
	size_t column = 0;

	for (const char *p = text; *p; p++) {
		if (*p == '\n')
			column = 0;
		else if ((*p & 0xc0) != 0x80) /* not inside of a character */
			column++;
		if (column <= columns)
			putc(*p, out);
	}
}

#define LINES_AROUND 4 /* board, a blank one, the head, where the cursor is */

static void print_picture(const struct live *l, size_t max, FILE *out)
{
	char rate[STR_NUMBER], lost[STR_NUMBER];
	const struct rates *r = &l->rates;
	double all = l->seconds > 0 ? (double)r->samples / l->seconds : 0;

	fprintf(out,
		"board %s: about %s samples/s, %s lost, %" PRIu64
		" threads; 1 of %.0f was looked at\n\n",
		l->bus.name, str_thousands(rate, sizeof(rate), (uint64_t)all),
		str_thousands(lost, sizeof(lost), r->lost_now), r->threads, l->factor);
	fprintf(out, "%14s  %7s  %s\n", "Samples/s", "Share", "Function [Module]");
	for (size_t i = 0; i < l->rows.n && i < max; i++) {
		const struct live_row *row = &l->rows.v[i];
		char *name = live_name(l, row);

		fprintf(out, "%14s  %6.2f%%  %s\n",
			str_thousands(rate, sizeof(rate), (uint64_t)live_rate(l, row)),
			100.0 * (double)row->seen / (double)r->seen, name);
		xfree(name);
	}
}

static void print_text(const struct live *l)
{
	size_t rows, columns, size;
	char *text = NULL;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return;
	find_size(&rows, &columns);
	print_picture(l, limit ? limit : rows > LINES_AROUND ? rows - LINES_AROUND : 1, f);
	fclose(f);
	if (isatty(STDOUT_FILENO))
		fputs("\033[H\033[J", stdout);
	put_cut(text, columns, stdout);
	if (!isatty(STDOUT_FILENO))
		putchar('\n');
	free(text);
}

static void print_json(const struct live *l)
{
	struct json j = JSON_INIT(stdout);
	const struct rates *r = &l->rates;

	json_open(&j, '{');
	json_kstr(&j, "board", l->bus.name);
	json_ku64(&j, "ms", (uint64_t)(l->seconds * 1000));
	json_ku64(&j, "samples", r->samples);
	json_ku64(&j, "seen", r->seen);
	json_ku64(&j, "lost", r->lost_now);
	json_ku64(&j, "threads", r->threads);
	json_key(&j, "functions");
	json_open(&j, '[');
	for (size_t i = 0; i < l->rows.n && (!limit || i < limit); i++) {
		const struct live_row *row = &l->rows.v[i];
		char *name = live_name(l, row);

		json_open(&j, '{');
		json_kstr(&j, "function", name);
		json_ku64(&j, "seen", row->seen);
		json_ku64(&j, "per_second", (uint64_t)live_rate(l, row));
		json_close(&j, '}');
		xfree(name);
	}
	json_close(&j, ']');
	json_close(&j, '}');
}

/* ---- the command ---- */

static int follow(struct live *l)
{
	const struct timespec pause = {.tv_sec = (time_t)(delay / 1000),
				       .tv_nsec = (long)(delay % 1000) * 1000000};
	int status = CMD_OK;

	for (uint64_t i = 0; status == CMD_OK && (!rounds || i < rounds); i++) {
		nanosleep(&pause, NULL);
		if (!live_look(l))
			break;
		if (json)
			print_json(l);
		else
			print_text(l);
		status = cmd_finish(&command, CMD_OK);
	}
	return status;
}

int cmd_top(int argc, char **argv)
{
	struct live live;
	struct err err;
	int status;

	if (!cmd_parse(&command, argc, argv, &status))
		return status;
	if (live_open(&live, board, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	status = follow(&live);
	live_close(&live);
	return status;
}

/* SPDX-License-Identifier: MIT */
/*
 * top.c - kron top: what is being recorded right now.
 *
 * Rates come from the board (bus/rates.h), names from the tables of the trace that its recorder
 * writes.  Disturbs neither.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "bus/lanes.h"
#include "bus/rates.h"
#include "cmd/cmd.h"
#include "trace/reader.h"
#include "trace/text.h"

static const char *board;
static bool json;
static uint64_t delay = 1000, rounds, limit;

static const struct opt options[] = {
	{0, "board", OPT_STR, &board, "NAME",
	 "The board that is recorded on: a name, or the process id of a kron record. Default: "
	 "$KRON_BOARD, else \"default\", else the only one that there is.",
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

/* ---- names ---- */

struct names {
	char *dir;
	off_t size; /* of the tables when they were read */
	struct trace *t;
};

static off_t size_of_tables(const char *dir)
{
	static const char *const files[] = {"functions", "events"};
	off_t sum = 0;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char *path = xasprintf("%s/%s", dir, files[i]);
		struct stat st;

		if (!stat(path, &st))
			sum += st.st_size;
		xfree(path);
	}
	return sum;
}

/* A trace that is not there, or not yet: numbers are shown. */
static void read_names(struct names *n)
{
	off_t size = size_of_tables(n->dir);
	struct trace *t;

	if (!n->dir[0] || (n->t && size == n->size) || trace_open(&t, n->dir, NULL))
		return;
	trace_close(n->t);
	n->t = t;
	n->size = size;
}

/* ---- rows: entry and exit of a function are one ---- */

struct row {
	uint32_t n; /* number of the function or the user's event */
	uint64_t seen;
};

struct picture {
	VEC(struct row) rows;
	double seconds; /* since the last one */
	double factor;  /* samples for each that was seen */
};

static int by_seen(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->seen != y->seen)
		return x->seen < y->seen ? 1 : -1;
	return (x->n > y->n) - (x->n < y->n);
}

static void make_rows(struct picture *p, const struct rates *r)
{
	p->rows.n = 0;
	for (size_t i = 0; i < r->events.n; i++) {
		uint32_t n = r->events.v[i].event / 2;

		if (!p->rows.n || p->rows.v[p->rows.n - 1].n != n)
			vec_push(&p->rows)->n = n;
		p->rows.v[p->rows.n - 1].seen += r->events.v[i].seen;
	}
	if (p->rows.n)
		qsort(p->rows.v, p->rows.n, sizeof(*p->rows.v), by_seen);
	p->factor = r->seen ? (double)r->samples / (double)r->seen : 0;
}

static double rate_of(const struct picture *p, const struct row *row)
{
	return p->seconds > 0 ? (double)row->seen * p->factor / p->seconds : 0;
}

static const char *name_of(const struct names *n, uint32_t number, char *buf, size_t size)
{
	const struct trace_user_event *u = n->t ? trace_user_event_of(n->t, 2 * number) : NULL;

	if (u)
		return u->name;
	if (n->t)
		return text_function(n->t, number, buf, size);
	snprintf(buf, size, "events %" PRIu32 " and %" PRIu32, 2 * number, 2 * number + 1);
	return buf;
}

/* ---- showing ---- */

static size_t lines_wanted(void)
{
	struct winsize ws;

	if (limit)
		return limit;
	if (isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) && ws.ws_row > 6)
		return ws.ws_row - 5u;
	return SIZE_MAX;
}

static void print_text(const struct picture *p, const struct rates *r, const struct names *n)
{
	char rate[STR_NUMBER], lost[STR_NUMBER], name[512];
	double all = p->seconds > 0 ? (double)r->samples / p->seconds : 0;
	size_t max = lines_wanted();

	if (isatty(STDOUT_FILENO))
		fputs("\033[H\033[J", stdout);
	printf("board %s: about %s samples/s, %s lost, %" PRIu64
	       " threads; 1 of %.0f was looked at\n\n",
	       r->bus->name, str_thousands(rate, sizeof(rate), (uint64_t)all),
	       str_thousands(lost, sizeof(lost), r->lost_now), r->threads,
	       p->factor > 1 ? p->factor : 1);
	printf("%14s  %7s  %s\n", "Samples/s", "Share", "Function [Module]");
	for (size_t i = 0; i < p->rows.n && i < max; i++) {
		const struct row *row = &p->rows.v[i];

		printf("%14s  %6.2f%%  ",
		       str_thousands(rate, sizeof(rate), (uint64_t)rate_of(p, row)),
		       100.0 * (double)row->seen / (double)r->seen);
		text_put(stdout, name_of(n, row->n, name, sizeof(name)));
		if (n->t && trace_function_of(n->t, 2 * row->n)) {
			fputs(" [", stdout);
			text_put(stdout, text_base(text_module(n->t, row->n)));
			putchar(']');
		}
		putchar('\n');
	}
	if (!isatty(STDOUT_FILENO))
		putchar('\n');
}

static void print_json(const struct picture *p, const struct rates *r, const struct names *n)
{
	struct json j = JSON_INIT(stdout);
	char name[512];

	json_open(&j, '{');
	json_kstr(&j, "board", r->bus->name);
	json_ku64(&j, "ms", (uint64_t)(p->seconds * 1000));
	json_ku64(&j, "samples", r->samples);
	json_ku64(&j, "seen", r->seen);
	json_ku64(&j, "lost", r->lost_now);
	json_ku64(&j, "threads", r->threads);
	json_key(&j, "functions");
	json_open(&j, '[');
	for (size_t i = 0; i < p->rows.n && (!limit || i < limit); i++) {
		const struct row *row = &p->rows.v[i];

		json_open(&j, '{');
		json_kstr(&j, "function", name_of(n, row->n, name, sizeof(name)));
		json_ku64(&j, "seen", row->seen);
		json_ku64(&j, "per_second", (uint64_t)rate_of(p, row));
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
}

/* ---- the command ---- */

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int follow(struct rates *r, struct names *n)
{
	const struct timespec pause = {.tv_sec = (time_t)(delay / 1000),
				       .tv_nsec = (long)(delay % 1000) * 1000000};
	struct picture p = {.factor = 1};
	int status = CMD_OK;

	rates_look(r); /* what is there already is not of now */
	for (uint64_t i = 0; status == CMD_OK && (!rounds || i < rounds); i++) {
		double start = now_s();

		nanosleep(&pause, NULL);
		if (!rates_look(r))
			break;
		p.seconds = now_s() - start;
		read_names(n);
		make_rows(&p, r);
		if (json)
			print_json(&p, r, n);
		else
			print_text(&p, r, n);
		status = cmd_finish(&command, CMD_OK);
	}
	vec_free(&p.rows);
	return status;
}

int cmd_top(int argc, char **argv)
{
	struct names names = {0};
	struct lanes_view lanes;
	struct rates rates;
	struct bus bus;
	struct err err;
	int status;

	if (!cmd_parse(&command, argc, argv, &status))
		return status;
	if (bus_open(&bus, board, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	status = CMD_ERROR;
	if (!bus_is_exact(&bus)) {
		cmd_fail(&command, CMD_ERROR, "%s is a device: nothing records into lanes there",
			 bus.name);
	} else if (rates_open(&rates, &bus, &err)) {
		cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	} else {
		lanes_look(&bus, &lanes);
		names.dir = lanes.dir;
		status = follow(&rates, &names);
		trace_close(names.t);
		rates_close(&rates);
	}
	bus_close(&bus);
	return status;
}

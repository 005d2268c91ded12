/* SPDX-License-Identifier: MIT */
/* live.c - see live.h. */
#define _GNU_SOURCE
#include "cmd/live.h"
#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "board/bus/lanes.h"
#include "trace/jumps.h"
#include "trace/text.h"

static double now_s(void)
{
	return (double)clock_ns(CLOCK_MONOTONIC) / 1e9;
}

/* "kron-0123456789abcdef (pid 12), lab (pid 34)" */
static void name_recordings(char *out, size_t size, const struct boards_entry *all, size_t n)
{
	size_t len = 0;

	*out = 0;
	for (size_t i = 0; i < n && len + 100 < size; i++)
		if (all[i].recorder_pid)
			len += (size_t)snprintf(out + len, size - len, "%s%s (pid %d)",
						len ? ", " : "", all[i].name, all[i].recorder_pid);
}

/* Whatever boards there are: the one on which somebody records. */
static int find_recording(char *name, size_t size, struct err *err)
{
	struct boards_entry *all;
	char names[400];
	size_t n, running = 0;
	int code = boards_list(&all, &n, err);

	if (code)
		return code;
	for (size_t i = 0; i < n; i++) {
		if (!all[i].recorder_pid)
			continue;
		snprintf(name, size, "%s", all[i].name);
		running++;
	}
	name_recordings(names, sizeof(names), all, n);
	xfree(all);
	if (!running)
		return err_set(err, ENOENT, "no recording is running");
	if (running > 1)
		return err_set(err, EINVAL,
			       "%zu recordings are running: --board names one of them: %s", running,
			       names);
	return 0;
}

int live_open(struct live *l, const char *board, struct err *err)
{
	char found[sizeof(((struct boards_entry *)0)->name)];
	const char *env = getenv(BOARDS_ENV);
	struct lanes_view lanes;
	int code = 0;

	memset(l, 0, sizeof(*l));
	if (!board && (!env || !*env)) {
		code = find_recording(found, sizeof(found), err);
		board = found;
	}
	if (!code)
		code = bus_open(&l->bus, board, err);
	if (code)
		return code;
	if (!bus_is_exact(&l->bus))
		code = err_set(err, EINVAL, "%s is hardware: nothing records into lanes there",
			       l->bus.name);
	else
		code = rates_open(&l->rates, &l->bus, err);
	if (code) {
		bus_close(&l->bus);
		return code;
	}
	lanes_look(&l->bus, &lanes);
	snprintf(l->dir, sizeof(l->dir), "%s", lanes.dir);
	l->factor = 1;
	l->looked = now_s();
	rates_look(&l->rates); /* what is there already is not of now */
	return 0;
}

void live_close(struct live *l)
{
	trace_close(l->t);
	rates_close(&l->rates);
	bus_close(&l->bus);
	vec_free(&l->rows);
}

/* ---- names ---- */

static off_t size_of_tables(const char *dir)
{
	static const char *const files[] = {"functions", "events", "jumps"};
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
static void read_names(struct live *l)
{
	off_t size = size_of_tables(l->dir);
	struct trace *t;

	if (!l->dir[0] || (l->t && size == l->tables) || trace_open(&t, l->dir, NULL))
		return;
	trace_close(l->t);
	l->t = t;
	l->tables = size;
}

char *live_name(const struct live *l, const struct live_row *row)
{
	const struct trace_user_event *u = l->t ? trace_user_event_of(l->t, 2 * row->n) : NULL;
	char buf[512], *name, *shown;

	if (u)
		return text_shown(u->name);
	if (!l->t || !trace_function_of(l->t, 2 * row->n))
		return xasprintf("events %" PRIu32 " and %" PRIu32, 2 * row->n, 2 * row->n + 1);
	name = xasprintf("%s [%s]", text_function(l->t, row->n, buf, sizeof(buf)),
			 text_base(text_module(l->t, row->n)));
	shown = text_shown(name);
	xfree(name);
	return shown;
}

/* ---- rows: entry and exit of a function are one ---- */

static int by_seen(const void *a, const void *b)
{
	const struct live_row *x = a, *y = b;

	if (x->seen != y->seen)
		return x->seen < y->seen ? 1 : -1;
	return (x->n > y->n) - (x->n < y->n);
}

static int by_number(const void *a, const void *b)
{
	const struct live_row *x = a, *y = b;

	return (x->n > y->n) - (x->n < y->n);
}

static void make_rows(struct live *l)
{
	const struct rates *r = &l->rates;
	size_t n = 0;

	l->factor = r->seen ? (double)r->samples / (double)r->seen : 1;
	l->rows.n = 0;
	for (size_t i = 0; i < r->events.n; i++) {
		uint32_t event = r->events.v[i].event;

		*vec_push(&l->rows) =
			(struct live_row){.n = l->t ? trace_number_of(l->t, event) : event / 2,
					  .seen = r->events.v[i].seen};
	}
	if (!l->rows.n)
		return;
	qsort(l->rows.v, l->rows.n, sizeof(*l->rows.v), by_number);
	for (size_t i = 1; i < l->rows.n; i++) {
		if (l->rows.v[i].n == l->rows.v[n].n)
			l->rows.v[n].seen += l->rows.v[i].seen;
		else
			l->rows.v[++n] = l->rows.v[i];
	}
	l->rows.n = n + 1;
	qsort(l->rows.v, l->rows.n, sizeof(*l->rows.v), by_seen);
}

double live_rate(const struct live *l, const struct live_row *row)
{
	return l->seconds > 0 ? (double)row->seen * l->factor / l->seconds : 0;
}

bool live_look(struct live *l)
{
	double now = now_s();

	if (!rates_look(&l->rates))
		return false;
	l->seconds = now - l->looked;
	l->looked = now;
	read_names(l);
	make_rows(l);
	return true;
}

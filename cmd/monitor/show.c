/* SPDX-License-Identifier: MIT */
/* show.c - see show.h */
#include "cmd/monitor/show.h"

#include <sys/ioctl.h>
#include <unistd.h>

/* ---- diagrams ---- */

#define ESC "\033"
#define BESIDE 62 /* characters of a row that are not intervals */

static unsigned width_of_terminal(const struct show *s)
{
	struct winsize w;

	if (!s->is_live || ioctl(fileno(s->table.out), TIOCGWINSZ, &w) || w.ws_col <= BESIDE)
		return 60;
	return w.ws_col - BESIDE;
}

void show_begin(struct show *s)
{
	if (!s->draws)
		return;
	s->is_live = isatty(fileno(s->table.out));
	pictures_begin(&s->pictures, s->table.columns, width_of_terminal(s));
}

void show_end(struct show *s)
{
	if (s->draws)
		pictures_free(&s->pictures);
}

static void draw(struct show *s)
{
	if (s->lines)
		fprintf(s->table.out, ESC "[%uA", s->lines);
	s->lines = pictures_print(&s->pictures, s->table.out, s->is_live ? ESC "[K\n" : "\n");
}

static void row_as_picture(struct show *s, const struct monitor_row *row)
{
	pictures_add(&s->pictures, row->v, row->to_ns - row->from_ns);
	if (s->is_live)
		draw(s);
}

/* ---- all of them ---- */

void show_row(struct show *s, const struct monitor_row *row)
{
	if (!s->table.out)
		return;
	if (s->draws)
		row_as_picture(s, row);
	else
		monitor_table_row(&s->table, row);
	fflush(s->table.out);
}

void show_totals(struct show *s, const struct monitor_summary *sum, const struct reading *totals)
{
	if (!s->table.out)
		return;
	if (s->draws && !s->is_live)
		draw(s);
	monitor_table_totals(&s->table, sum, totals);
	fflush(s->table.out);
}

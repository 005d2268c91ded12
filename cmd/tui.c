/* SPDX-License-Identifier: MIT */
/*
 * tui.c - kron tui: functions on the terminal, live while a recording goes on, the trace after.
 *
 *   live (cmd/live.h) ──recording ends──> functions ──enter──> callers and callees of one
 *                                             └──g, i──> call graph, what was recorded
 *
 * What the trace says comes from the same code as the reports; a view is a list of lines.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cmd/analysis.h"
#include "cmd/cmd.h"
#include "cmd/live.h"
#include "cmd/screen.h"
#include "trace/analysis/profile.h"
#include "trace/report/report.h"
#include "trace/report/report_slack.h"
#include "trace/text.h"

static uint64_t delay = 500;

static const struct opt options[] = {
	{'d', "delay", OPT_UINT, &delay, "MS",
	 "Milliseconds from one picture of a recording to the next. Default 500.", 10, 60000},
	ANALYSIS_TAIL_CALLS,
	ANALYSIS_FILTER,
	OPT_END,
};

static const struct opt_command command = {
	.name = "tui",
	.operands = "[DIR]",
	.summary = "Browse the trace DIR (default kron.data) on the terminal; while it is still "
		   "being recorded, watch it grow.",
	.opts = options,
	.max_operands = 1,
};

/* ---- a view ---- */

struct view {
	char *title;
	char *head; /* names of the columns; NULL: none */
	VEC(char *) lines;
	size_t selected, top;
	int from;       /* columns that have gone out to the left */
	bool functions; /* lines are the profile's rows */
};

struct tui {
	struct trace *t;
	struct profile profile;
	int sort; /* enum profile_key: total, self, calls, avg, max */
	VEC(struct view) views;
	char search[80];
	char message[120];
};

static void view_clear(struct view *v)
{
	for (size_t i = 0; i < v->lines.n; i++)
		xfree(v->lines.v[i]);
	v->lines.n = 0;
}

static void view_free(struct view *v)
{
	view_clear(v);
	vec_free(&v->lines);
	xfree(v->title);
	xfree(v->head);
}

static struct view *current(struct tui *u)
{
	return &u->views.v[u->views.n - 1];
}

static struct view *push_view(struct tui *u, char *title)
{
	struct view *v = vec_push(&u->views);

	v->title = title;
	return v;
}

static void pop_view(struct tui *u)
{
	view_free(current(u));
	u->views.n--;
}

/* Lines of a report's text. */
static void take_text(struct view *v, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");

		*vec_push(&v->lines) = xstrndup(text, n);
		text += n + (text[n] == '\n');
	}
}

/* ---- functions ---- */

static const struct {
	int key;
	const char *name;
} sorts[] = {{PROFILE_TOTAL, "total"},
	     {PROFILE_SELF, "self"},
	     {PROFILE_CALLS, "calls"},
	     {PROFILE_AVG, "average"},
	     {PROFILE_MAX, "maximum"}};
#define NSORTS (sizeof(sorts) / sizeof(sorts[0]))

static int by_value(const void *a, const void *b, void *ctx)
{
	const struct profile_row *x = a, *y = b;
	uint64_t p = profile_value(x, *(int *)ctx), q = profile_value(y, *(int *)ctx);

	return p != q ? (p < q ? 1 : -1)
		      : (x->function > y->function) - (x->function < y->function);
}

static char *line_of(const struct tui *u, const struct profile_row *r)
{
	const struct trace_bounds average = profile_average_in(u->t, &r->s);
	char *text = NULL, calls[STR_NUMBER], buf[512];
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		abort();
	text_put_duration(f, trace_ns(u->t, r->s.total));
	fputs("  ", f);
	text_put_duration(f, trace_ns(u->t, r->s.self));
	fprintf(f, "  %12s  ", str_thousands(calls, sizeof(calls), r->s.calls));
	text_put_bounded(f, profile_average_ns(u->t, &r->s), average.lo, average.hi);
	fputs("  ", f);
	report_slack_put_longest(u->t, r->s.slack, profile_maximum(&r->s), f);
	fputs("  ", f);
	text_put(f, text_function(u->t, r->function, buf, sizeof(buf)));
	fputs(" [", f);
	text_put(f, text_base(text_module(u->t, r->function)));
	fputc(']', f);
	report_slack_put(u->t, r->s.slack, r->s.total, r->s.self, f);
	fclose(f);
	return text;
}

static void fill_functions(struct tui *u, struct view *v)
{
	int key = sorts[u->sort].key;

	view_clear(v);
	if (u->profile.rows.n)
		qsort_r(u->profile.rows.v, u->profile.rows.n, sizeof(*u->profile.rows.v), by_value,
			&key);
	vec_for(&u->profile.rows, r)
		*vec_push(&v->lines) = line_of(u, r);
	v->selected = v->top = 0;
	snprintf(u->message, sizeof(u->message), "sorted by %s", sorts[u->sort].name);
}

static void open_functions(struct tui *u)
{
	const struct profile_want want = {.by = PROFILE_BY_FUNCTION};
	const char *ran = trace_session(u->t, "command");
	char calls[STR_NUMBER], lost[STR_NUMBER], *shown = text_shown(ran ? ran : "?");
	struct view *v;

	profile_gather(&u->profile, u->t, &want);
	v = push_view(u,
		      xasprintf("%s: %s calls, %s samples lost", shown,
				str_thousands(calls, sizeof(calls), u->profile.totals.calls.calls),
				str_thousands(lost, sizeof(lost),
					      u->t->lost > u->profile.totals.lost
						      ? u->t->lost
						      : u->profile.totals.lost)));
	xfree(shown);
	v->head = xasprintf("%10s  %10s  %12s  %10s  %10s  %s", "Total", "Self", "Calls", "Average",
			    "Maximum", "Function [Module]");
	v->functions = true;
	fill_functions(u, v);
}

/* ---- texts ---- */

typedef void (*text_fn)(const struct tui *u, const char *function, FILE *out);

static void put_edges(const struct tui *u, const char *function, FILE *out)
{
	struct edges_options o = {.function = function, .callers = true, .callees = true};
	struct err err;

	if (report_edges(u->t, &o, out, &err))
		fprintf(out, "%s\n", err.msg);
}

static void put_graph(const struct tui *u, const char *function, FILE *out)
{
	const struct graph_options o = {.threshold = 0.1};

	(void)function;
	report_graph(u->t, &o, out);
}

static void put_info(const struct tui *u, const char *function, FILE *out)
{
	struct report_state state;

	(void)function;
	analysis_state(u->t, &state);
	report_info(u->t, &state, false, out);
}

static void put_help(const struct tui *u, const char *function, FILE *out)
{
	(void)u;
	(void)function;
	fputs("Up, Down, Page Up, Page Down, Home, End   move\n"
	      "< >             move sideways\n"
	      "Enter           callers and callees of the function\n"
	      "s               sort by the next column\n"
	      "g               the call graph\n"
	      "i               what was recorded\n"
	      "/               search; n: again\n"
	      "Backspace, q    back, and out\n",
	      out);
}

static void open_text(struct tui *u, char *title, text_fn put, const char *function)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	struct view *v;

	if (!f)
		abort();
	put(u, function, f);
	fclose(f);
	v = push_view(u, title);
	take_text(v, text);
	free(text);
}

/* A name may hold what is special in a glob. */
static char *quote_glob(const char *name)
{
	char *out = xmalloc(2 * strlen(name) + 1), *p = out;

	for (; *name; name++) {
		if (strchr("*?[]\\", *name))
			*p++ = '\\';
		*p++ = *name;
	}
	*p = 0;
	return out;
}

static void open_function(struct tui *u)
{
	const struct view *v = current(u);
	char buf[512], *glob, *shown;
	const char *name;

	if (!v->functions || v->selected >= u->profile.rows.n)
		return;
	name = text_function(u->t, u->profile.rows.v[v->selected].function, buf, sizeof(buf));
	glob = quote_glob(name);
	shown = text_shown(name);
	open_text(u, xasprintf("callers and callees of %s", shown), put_edges, glob);
	xfree(shown);
	xfree(glob);
}

/* ---- the screen ---- */

static void draw(struct tui *u)
{
	struct view *v = current(u);
	int row = 0, height = screen_height(), body;

	screen_line(row++, v->title, 0, SCREEN_TITLE);
	if (v->head)
		screen_line(row++, v->head, v->from, SCREEN_FAINT);
	body = height - row - 1;
	if (body < 1)
		body = 1;
	if (v->selected < v->top)
		v->top = v->selected;
	if (v->selected >= v->top + (size_t)body)
		v->top = v->selected - (size_t)body + 1;
	for (int i = 0; i < body; i++, row++) {
		size_t at = v->top + (size_t)i;

		screen_line(row, at < v->lines.n ? v->lines.v[at] : "", v->from,
			    at == v->selected && v->lines.n ? SCREEN_SELECTED : SCREEN_PLAIN);
	}
	screen_line(row, u->message[0] ? u->message : "? help   q quit", 0, SCREEN_FAINT);
	screen_show();
}

static void move_by(struct view *v, long by)
{
	size_t last = v->lines.n ? v->lines.n - 1 : 0;

	if (by < 0)
		v->selected -= (size_t)-by < v->selected ? (size_t)-by : v->selected;
	else
		v->selected += (size_t)by < last - v->selected ? (size_t)by : last - v->selected;
}

static void find_next(struct tui *u)
{
	struct view *v = current(u);

	if (!u->search[0])
		return;
	for (size_t i = 1; i <= v->lines.n; i++) {
		size_t at = (v->selected + i) % v->lines.n;

		if (strcasestr(v->lines.v[at], u->search)) {
			v->selected = at;
			return;
		}
	}
	snprintf(u->message, sizeof(u->message), "nothing has \"%s\" in it", u->search);
}

static void search(struct tui *u)
{
	size_t n = 0;
	int key;

	u->search[0] = 0;
	for (;;) {
		snprintf(u->message, sizeof(u->message), "/%s", u->search);
		draw(u);
		key = screen_key(-1);
		if (key == SCREEN_ENTER)
			break;
		if (key == SCREEN_BACK && n)
			u->search[--n] = 0;
		else if (key == SCREEN_BACK)
			break;
		else if (key == SCREEN_PAGE_DOWN && n + 1 < sizeof(u->search))
			u->search[n++] = ' ', u->search[n] = 0; /* the space bar */
		else if (key >= 32 && key < 256 && n + 1 < sizeof(u->search))
			u->search[n++] = (char)key, u->search[n] = 0;
	}
	u->message[0] = 0;
	find_next(u);
}

static void scroll(struct view *v, int key)
{
	long page = screen_height() > 4 ? screen_height() - 4 : 1;

	switch (key) {
	case SCREEN_UP:
		move_by(v, -1);
		break;
	case SCREEN_DOWN:
		move_by(v, 1);
		break;
	case SCREEN_PAGE_UP:
		move_by(v, -page);
		break;
	case SCREEN_PAGE_DOWN:
		move_by(v, page);
		break;
	case SCREEN_HOME:
		move_by(v, -(long)v->lines.n);
		break;
	case SCREEN_END:
		move_by(v, (long)v->lines.n);
		break;
	case '<':
		v->from -= v->from > 8 ? 8 : v->from;
		break;
	case '>':
		v->from += 8;
		break;
	}
}

/* false: out. */
static bool act(struct tui *u, int key)
{
	u->message[0] = 0;
	switch (key) {
	case 'q':
	case SCREEN_BACK:
		if (u->views.n == 1)
			return key != 'q';
		pop_view(u);
		break;
	case SCREEN_ENTER:
		open_function(u);
		break;
	case 's':
		if (current(u)->functions) {
			u->sort = (u->sort + 1) % (int)NSORTS;
			fill_functions(u, current(u));
		}
		break;
	case 'g':
		open_text(u, xstrdup("call graph"), put_graph, NULL);
		break;
	case 'i':
		open_text(u, xstrdup("what was recorded"), put_info, NULL);
		break;
	case '?':
	case 'h':
		open_text(u, xstrdup("keys"), put_help, NULL);
		break;
	case '/':
		search(u);
		break;
	case 'n':
		find_next(u);
		break;
	default:
		scroll(current(u), key);
	}
	return true;
}

static void browse(struct trace *t)
{
	struct tui u = {.t = t};

	open_functions(&u);
	do
		draw(&u);
	while (act(&u, screen_key(-1)));
	while (u.views.n)
		pop_view(&u);
	vec_free(&u.views);
	profile_free(&u.profile);
}

/* ---- a recording that goes on ---- */

static void fill_live(struct tui *u, struct view *v, const struct live *l)
{
	char rate[STR_NUMBER], lost[STR_NUMBER];
	size_t selected = v->selected;

	view_clear(v);
	for (size_t i = 0; i < l->rows.n; i++) {
		const struct live_row *row = &l->rows.v[i];
		char *name = live_name(l, row);

		*vec_push(&v->lines) =
			xasprintf("%14s  %6.2f%%  %s",
				  str_thousands(rate, sizeof(rate), (uint64_t)live_rate(l, row)),
				  100.0 * (double)row->seen / (double)l->rates.seen, name);
		xfree(name);
	}
	v->selected = selected < v->lines.n ? selected : v->lines.n ? v->lines.n - 1 : 0;
	xfree(v->title);
	v->title = xasprintf(
		"recording: about %s samples/s, %s lost, %" PRIu64 " threads",
		str_thousands(rate, sizeof(rate),
			      l->seconds > 0 ? (uint64_t)((double)l->rates.samples / l->seconds)
					     : 0),
		str_thousands(lost, sizeof(lost), l->rates.lost), l->rates.threads);
	snprintf(u->message, sizeof(u->message), "the trace follows when it ends   q quit");
}

/* false: the user has had enough. */
static bool watch(struct live *l)
{
	struct tui u = {.t = NULL};
	struct view *v = push_view(&u, xstrdup("recording"));
	bool go_on = true;
	int key;

	v->head = xasprintf("%14s  %7s  %s", "Samples/s", "Share", "Function [Module]");
	while (go_on) {
		draw(&u);
		key = screen_key((int)delay);
		if (key == SCREEN_NONE) {
			if (!live_look(l))
				break;
			fill_live(&u, v, l);
		}
		go_on = key != 'q';
		scroll(v, key);
	}
	pop_view(&u);
	vec_free(&u.views);
	return go_on;
}

/* The board of a recording that goes on, or NULL. */
static const char *board_of(const struct trace *t)
{
	const char *segment = trace_session(t, "segment");

	if (t->complete || !segment)
		return NULL;
	if (!strncmp(segment, "/kron-board.", 12)) { /* /kron-board.UID.NAME */
		const char *name = strchr(segment + 12, '.');

		return name ? name + 1 : NULL;
	}
	return segment[0] == '/' ? segment + 1 : segment;
}

static struct trace *watch_first(struct trace *t, int argc, char **argv, int first)
{
	const char *board = board_of(t);
	struct live live;
	bool go_on;

	if (!board || live_open(&live, board, NULL))
		return t;
	go_on = watch(&live);
	live_close(&live);
	trace_close(t);
	return go_on ? analysis_open(&command, argc, argv, first) : NULL;
}

int cmd_tui(int argc, char **argv)
{
	int status, first = cmd_parse(&command, argc, argv, &status);
	struct trace *t;

	if (!first)
		return status;
	t = analysis_open(&command, argc, argv, first);
	if (!t)
		return CMD_ERROR;
	if (!screen_open()) {
		trace_close(t);
		return cmd_fail(&command, CMD_ERROR,
				"this needs a terminal, and a kron that was built with ncurses; "
				"`kron report` and `kron top` do without");
	}
	t = watch_first(t, argc, argv, first);
	if (t)
		browse(t);
	screen_close();
	return t ? analysis_close(&command, t, CMD_OK) : CMD_OK;
}

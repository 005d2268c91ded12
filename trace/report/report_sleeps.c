/* SPDX-License-Identifier: MIT */
/* report_sleeps.c - see report_sleeps.h. */
#define _GNU_SOURCE
#include "trace/report/report_sleeps.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/str.h"
#include "trace/text.h"

typedef VEC(struct watched_function) rows;

static int by_estimate(const void *a, const void *b)
{
	const struct watched_function *x = a, *y = b;

	if (x->estimate < y->estimate || x->estimate > y->estimate)
		return x->estimate < y->estimate ? 1 : -1;
	return (x->calls < y->calls) - (x->calls > y->calls);
}

static const char *budget_of(const struct trace *t)
{
	const char *text = trace_session(t, "budget");

	return text ? text : "?";
}

/* Of all functions that the budget took out, in all nodes. */
static rows rows_of(const struct watched *w)
{
	rows out = {0};
	struct watched_function f;

	for (size_t i = 0; w->v.n && i < w->t->nfunctions; i++)
		if (watched_of(w, w->t->functions[i].n, &f) && f.by_budget)
			*vec_push(&out) = f;
	if (out.n)
		qsort(out.v, out.n, sizeof(*out.v), by_estimate);
	return out;
}

static void put_name(const struct trace *t, uint32_t function, FILE *out)
{
	text_put_function(out, t, function);
	fputs(" [", out);
	text_put(out, text_base(text_module(t, function)));
	fputs("]\n", out);
}

/* ---- kron info ---- */

void report_sleeps_put(const struct trace *t, FILE *out)
{
	struct watched w;
	rows v;

	watched_open(&w, t);
	v = rows_of(&w);
	if (v.n) {
		fprintf(out, "\n%zu function%s taken out to stay within --budget %s:\n", v.n,
			v.n == 1 ? "" : "s", budget_of(t));
		fprintf(out, "%10s  %7s  %-6s  %s\n", "Watched", "Windows", "Now",
			"Function [Module]");
	}
	vec_for(&v, f) {
		text_put_duration(out, trace_ns(t, f->watched));
		fprintf(out, "  %7zu  %-6s  ", f->windows, f->is_asleep ? "out" : "in");
		put_name(t, f->function, out);
	}
	vec_free(&v);
	watched_free(&w);
}

static void json_function(struct json *j, const struct watched *w, const struct watched_function *f)
{
	char buf[32];

	json_open(j, '{');
	json_kstr(j, "function", text_function(w->t, f->function, buf, sizeof(buf)));
	json_kstr(j, "module", text_module(w->t, f->function));
	json_ku64(j, "watched_ns", trace_ns(w->t, f->watched));
	json_ku64(j, "windows", f->windows);
	json_key(j, "asleep");
	json_bool(j, f->is_asleep);
	json_close(j, '}');
}

void report_sleeps_json(struct json *j, const struct trace *t)
{
	struct watched w;
	rows v;

	watched_open(&w, t);
	v = rows_of(&w);
	if (trace_session(t, "budget"))
		json_kstr(j, "budget", trace_session(t, "budget"));
	json_key(j, "suppressed");
	json_open(j, '[');
	vec_for(&v, f)
		json_function(j, &w, f);
	json_close(j, ']');
	vec_free(&v);
	watched_free(&w);
}

/* ---- kron report ---- */

static void put_estimate(const struct watched_function *f, FILE *out)
{
	char calls[STR_NUMBER], error[STR_NUMBER];

	if (f->estimate < 0)
		fprintf(out, "%15s  %15s  ", "?", "");
	else
		fprintf(out, "%15s  %15s  ",
			str_thousands(calls, sizeof(calls), (uint64_t)(f->estimate + 0.5)),
			str_thousands(error, sizeof(error), (uint64_t)(f->error + 0.5)));
}

static void put_row(const struct watched *w, const struct watched_function *f, FILE *out)
{
	char calls[STR_NUMBER];

	fprintf(out, "%15s  ", str_thousands(calls, sizeof(calls), f->calls));
	put_estimate(f, out);
	text_put_duration(out, trace_ns(w->t, f->watched));
	fputs("  ", out);
	text_put_duration(out, trace_ns(w->t, f->whole));
	fputs("  ", out);
	put_name(w->t, f->function, out);
}

void report_sleeps_estimates(const struct watched *w, uint64_t limit, FILE *out)
{
	rows v = rows_of(w);
	uint64_t n = 0;

	if (v.n) {
		fprintf(out,
			"\nTaken out to stay within --budget %s: what stands above of these is of the time that "
			"they were watched\n",
			budget_of(w->t));
		fprintf(out, "%15s  %15s  %15s  %10s  %10s  %s\n", "Calls seen", "Calls, about",
			"+-", "Watched", "Of", "Function [Module]");
	}
	vec_for(&v, f)
		if (!limit || n++ < limit)
			put_row(w, f, out);
	vec_free(&v);
}

void report_sleeps_row_json(struct json *j, const struct watched *w, uint32_t function)
{
	struct watched_function f;

	if (!watched_of(w, function, &f) || !f.by_budget)
		return;
	json_key(j, "suppressed");
	json_open(j, '{');
	json_ku64(j, "watched_ns", trace_ns(w->t, f.watched));
	json_ku64(j, "of_ns", trace_ns(w->t, f.whole));
	if (f.estimate >= 0) {
		json_key(j, "calls");
		json_f64(j, f.estimate);
		json_key(j, "calls_error");
		json_f64(j, f.error);
	}
	json_close(j, '}');
}

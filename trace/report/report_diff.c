/* SPDX-License-Identifier: MIT */
/*
 * report_diff.c - two traces by function, the greatest difference first.
 *
 * Functions are the same if they have one name and are in the same module; several of that kind in
 * one trace (static ones) are added up.  Numbers of functions mean nothing here.
 *
 * Modules are the same if they have one file name, up to ".so" and the version after it.  A program
 * may have two names (old/prog and new/prog2): if each trace has one executable whose name the other
 * one does not have, these two are the same.
 *
 * Whether the calls of a function took longer, or only happened to: Welch's t-test of the
 * per-call times (entry to exit), which does not want equal variances.  From count, sum and
 * sum of squares of each side:
 *
 *   t  = (mean2 - mean1) / sqrt(s1 + s2)         s = variance / n
 *   df = (s1 + s2)^2 / (s1^2 / (n1 - 1) + s2^2 / (n2 - 1))
 *   p  = I(df / (df + t^2); df / 2, 1 / 2)       regularised incomplete beta function
 *
 * With many functions some p are small by chance.  So a difference is called significant only
 * if p is below 5% divided by the number of functions that were tested (Bonferroni).
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "base/vec.h"
#include "trace/analysis/profile.h"
#include "trace/report/report.h"
#include "trace/report/report_slack.h"
#include "trace/text.h"

enum { FEWEST = 5 }; /* calls on each side, below which the test says nothing */
#define SIGNIFICANT 0.05

struct side { /* times in ns */
	uint64_t calls, total, self;
	uint64_t n; /* calls that mean and variance are of */
	long double sum, squares;
	bool rough;       /* some of them span a loss, or it was not watched all the time */
	bool is_sparse;   /* samples share readings of the clock: what the times may be off by */
	struct slack off; /* in ns */
};

struct entry {
	char *name;
	const char *module; /* its name, in the trace after if it is there */
	struct side side[2];
	const char *untested; /* why; NULL: it is tested */
	double t, df, p;
};

struct diff {
	const struct diff_options *o;
	const struct trace *trace[2];
	VEC(struct entry) v;
	size_t tested;
	uint64_t lost[2];
	const char *renamed[2]; /* the same program under two names; NULL: none is */
};

/* ---- modules ---- */

static const char *exe_name(const struct trace *t, size_t proc)
{
	const char *exe = t->procs[proc].exe;

	return exe && *exe ? text_base(exe) : NULL;
}

static bool has_exe(const struct trace *t, const char *name)
{
	for (size_t i = 0; i < t->nprocs; i++) {
		const char *exe = exe_name(t, i);

		if (exe && !strcmp(exe, name))
			return true;
	}
	return false;
}

static bool has_functions(const struct trace *t, const char *name)
{
	for (size_t i = 0; i < t->nmodules; i++)
		if (!strcmp(text_base(t->modules[i].path), name))
			return true;
	return false;
}

/* The executable with functions that the other trace does not have; NULL: none, or several. */
static const char *only_here(const struct trace *t, const struct trace *other)
{
	const char *only = NULL;

	for (size_t i = 0; i < t->nprocs; i++) {
		const char *exe = exe_name(t, i);

		if (!exe || !has_functions(t, exe) || has_exe(other, exe) ||
		    (only && !strcmp(only, exe)))
			continue;
		if (only)
			return NULL;
		only = exe;
	}
	return only;
}

static void pair_programs(struct diff *d)
{
	const char *a = only_here(d->trace[0], d->trace[1]);
	const char *b = only_here(d->trace[1], d->trace[0]);

	if (!a || !b)
		return;
	d->renamed[0] = a;
	d->renamed[1] = b;
}

/* The module's name in both traces. */
static const char *common_name(const struct diff *d, int which, const char *path)
{
	const char *name = text_base(path);

	return d->renamed[which] && !strcmp(name, d->renamed[which]) ? d->renamed[1] : name;
}

static size_t unversioned_length(const char *name)
{
	const char *so = strstr(name, ".so");

	return so && (!so[3] || so[3] == '.') ? (size_t)(so - name) : strlen(name);
}

static int compare_modules(const char *a, const char *b)
{
	size_t na = unversioned_length(a), nb = unversioned_length(b);
	int order = strncmp(a, b, na < nb ? na : nb);

	return order ? order : (na > nb) - (na < nb);
}

/* ---- gathering ---- */

static struct slack in_ns(const struct trace *t, const struct slack *s)
{
	const long double ns = 1e9l / (long double)t->tsc_hz;

	return (struct slack){.total = trace_ns(t, s->total),
			      .self = trace_ns(t, s->self),
			      .sum = trace_ns(t, s->sum),
			      .squares = s->squares * ns * ns,
			      .has_no_end = s->has_no_end};
}

static void take_side(struct diff *d, int which)
{
	const struct trace *t = d->trace[which];
	struct profile_want want = {.by = PROFILE_BY_FUNCTION};
	long double ns = 1e9l / (long double)t->tsc_hz;
	struct profile p;
	char buf[32];

	profile_gather(&p, t, &want);
	d->lost[which] = t->lost > p.totals.lost ? t->lost : p.totals.lost;
	vec_for(&p.rows, r) {
		struct entry *e = vec_push(&d->v);

		e->name = xstrdup(text_function(t, r->function, buf, sizeof(buf)));
		e->module = common_name(d, which, text_module(t, r->function));
		e->side[which] = (struct side){
			.calls = r->s.calls,
			.total = trace_ns(t, r->s.total),
			.self = trace_ns(t, r->s.self),
			.n = r->s.measured,
			.rough = r->s.rough || trace_has_slept(t, r->function),
			.sum = (long double)r->s.sum * ns,
			.squares = (long double)r->s.squares * ns * ns,
			.is_sparse = r->s.slack,
			.off = r->s.slack ? in_ns(t, r->s.slack) : (struct slack){0},
		};
	}
	profile_free(&p);
}

static int by_name(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : compare_modules(x->module, y->module);
}

static void add_side(struct side *to, const struct side *s)
{
	to->calls += s->calls;
	to->total += s->total;
	to->self += s->self;
	to->n += s->n;
	to->sum += s->sum;
	to->squares += s->squares;
	to->rough |= s->rough;
	to->is_sparse |= s->is_sparse;
	to->off.total += s->off.total;
	to->off.self += s->off.self;
	to->off.sum += s->off.sum;
	to->off.squares += s->off.squares;
	to->off.has_no_end |= s->off.has_no_end;
}

static void merge(struct diff *d)
{
	size_t n = 0;

	if (d->v.n)
		qsort(d->v.v, d->v.n, sizeof(*d->v.v), by_name);
	for (size_t i = 0; i < d->v.n; i++) {
		if (!n || by_name(&d->v.v[n - 1], &d->v.v[i])) {
			d->v.v[n++] = d->v.v[i];
			continue;
		}
		if (d->v.v[i].side[1].calls)
			d->v.v[n - 1].module = d->v.v[i].module;
		add_side(&d->v.v[n - 1].side[0], &d->v.v[i].side[0]);
		add_side(&d->v.v[n - 1].side[1], &d->v.v[i].side[1]);
		xfree(d->v.v[i].name);
	}
	d->v.n = n;
}

/* ---- the test ---- */

/* Continued fraction of the incomplete beta function, by Lentz's method; for x < (a+1)/(a+b+2) */
static double beta_fraction(double x, double a, double b)
{
	double c = 1, f = 1 / (1 - (a + b) * x / (a + 1)), d = f;

	for (int m = 1; m < 10000; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step;

		d = 1 / (1 + even * d);
		c = 1 + even / c;
		f *= d * c;
		d = 1 / (1 + odd * d);
		c = 1 + odd / c;
		step = d * c;
		f *= step;
		if (fabs(step - 1) < 1e-13)
			break;
	}
	return f;
}

static double log_beta(double a, double b)
{
	int sign;

	return lgamma_r(a, &sign) + lgamma_r(b, &sign) - lgamma_r(a + b, &sign);
}

/* How often |t| would be at least this, were there no difference; y = 1 - x without rounding. */
static double student_p(double t, double df)
{
	double x = df / (df + t * t), y = t * t / (df + t * t), a = df / 2, b = 0.5, front;

	if (x <= 0 || y <= 0)
		return x <= 0 ? 0 : 1;
	front = exp(a * log(x) + b * log(y) - log_beta(a, b));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(x, a, b) / a;
	return 1 - front * beta_fraction(y, b, a) / b;
}

static double mean(const struct side *s)
{
	return s->n ? (double)(s->sum / s->n) : 0;
}

static double variance(const struct side *s)
{
	long double v = s->n > 1 ? (s->squares - s->sum * (s->sum / s->n)) / (s->n - 1) : 0;

	/* what rounding left of nothing */
	return v > s->squares / s->n * 1e-15l ? (double)v : 0;
}

/* Times between two readings of the clock are no measurements. */
static bool is_sparse(const struct diff *d)
{
	return trace_clock_every(d->trace[0]) > 1 || trace_clock_every(d->trace[1]) > 1;
}

/* Why there is no test of it, in a word; NULL: there is one. */
static const char *untested(const struct diff *d, const struct entry *e)
{
	const struct side *a = &e->side[0], *b = &e->side[1];

	if (!a->calls || !b->calls)
		return a->calls ? "gone" : "new";
	if (a->n < FEWEST || b->n < FEWEST)
		return "few";
	return a->rough || b->rough || is_sparse(d) ? "rough" : NULL;
}

static void test(struct diff *d, struct entry *e)
{
	const struct side *a = &e->side[0], *b = &e->side[1];
	double sa, sb, difference;

	e->untested = untested(d, e);
	if (e->untested)
		return;
	d->tested++;
	sa = variance(a) / (double)a->n;
	sb = variance(b) / (double)b->n;
	difference = mean(b) - mean(a);
	if (sa + sb <= 0) {
		e->p = fabs(difference) > 1e-9 * mean(a) ? 0 : 1;
		e->t = e->p > 0 ? 0 : copysign(INFINITY, difference);
		return;
	}
	e->t = difference / sqrt(sa + sb);
	e->df = (sa + sb) * (sa + sb) /
		(sa * sa / (double)(a->n - 1) + sb * sb / (double)(b->n - 1));
	e->p = student_p(e->t, e->df);
}

static bool is_significant(const struct diff *d, const struct entry *e)
{
	return !e->untested && e->p * (double)d->tested < SIGNIFICANT;
}

/* ---- sorting ---- */

static uint64_t value(const struct side *s, int key)
{
	switch (key) {
	case DIFF_TOTAL:
		return s->total;
	case DIFF_CALLS:
		return s->calls;
	case DIFF_AVG:
		/* of whole ns and cut off, as kron report has it */
		return s->n ? (uint64_t)(s->sum + 1e-3l) / s->n : 0;
	default:
		return s->self;
	}
}

static struct trace_bounds average_in(const struct side *s)
{
	return slack_around_average(s->is_sparse ? &s->off : NULL, value(s, DIFF_AVG),
				    s->rough ? s->off.total : s->off.sum, s->n);
}

static struct trace_bounds value_in(const struct side *s, int key)
{
	if (key == DIFF_AVG)
		return average_in(s);
	return slack_around(&s->off, value(s, key), key == DIFF_TOTAL ? s->off.total : s->off.self);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a < b ? b - a : a - b;
}

static int by_difference(const void *a, const void *b, void *ctx)
{
	const struct entry *x = a, *y = b;
	const struct diff *d = ctx;
	int key = d->o->sort;
	uint64_t dx = distance(value(&x->side[0], key), value(&x->side[1], key));
	uint64_t dy = distance(value(&y->side[0], key), value(&y->side[1], key));

	if (dx != dy)
		return dx > dy ? -1 : 1;
	return by_name(x, y);
}

/* ---- text ---- */

static void put_value(const struct diff *d, uint64_t v, FILE *out)
{
	char number[STR_NUMBER];

	if (d->o->sort == DIFF_CALLS)
		fprintf(out, "%10s  ", str_thousands(number, sizeof(number), v));
	else
		fprintf(out, "%10s  ", str_duration_column(number, sizeof(number), v));
}

static void put_difference(const struct diff *d, uint64_t a, uint64_t b, FILE *out)
{
	char number[STR_NUMBER], text[STR_NUMBER + 1];

	if (d->o->sort == DIFF_CALLS)
		str_thousands(number, sizeof(number), distance(a, b));
	else
		str_duration_column(number, sizeof(number), distance(a, b));
	snprintf(text, sizeof(text), "%c%s",
		 a < b   ? '+'
		 : a > b ? '-'
			 : ' ',
		 number + strspn(number, " "));
	fprintf(out, "%11s  ", text);
	if (a)
		fprintf(out, "%7.2f  ", (double)b / (double)a);
	else
		fprintf(out, "%7s  ", "-");
}

static void put_p(const struct diff *d, const struct entry *e, FILE *out)
{
	const char *mark = is_significant(d, e) ? "*" : " ";

	if (e->untested)
		fprintf(out, "%6s   ", e->untested);
	else if (e->p < 0.001)
		fprintf(out, "%6s%s  ", "<0.001", mark);
	else
		fprintf(out, "%6.3f%s  ", e->p, mark);
}

static void put_average(const struct side *s, FILE *out)
{
	const struct trace_bounds in = average_in(s);

	text_put_bounded(out, value(s, DIFF_AVG), in.lo, in.hi);
	fputs("  ", out);
}

/* By how much the value may be off that rows are sorted by. */
static void put_off(const struct diff *d, const char *what, const struct side *s, FILE *out)
{
	const int key = d->o->sort;
	const struct trace_bounds in = value_in(s, key);
	char buf[STR_NUMBER];

	if (!s->is_sparse || key == DIFF_CALLS || in.lo == in.hi)
		return;
	if (s->off.has_no_end)
		fprintf(out, "%s >%s", what, str_duration(buf, sizeof(buf), in.lo));
	else
		fprintf(out, "%s +-%s", what,
			str_duration(buf, sizeof(buf), in.hi - value(s, key)));
}

static void put_entry(const struct diff *d, const struct entry *e, FILE *out)
{
	const struct side *a = &e->side[0], *b = &e->side[1];
	char calls[STR_NUMBER];

	put_value(d, value(a, d->o->sort), out);
	put_value(d, value(b, d->o->sort), out);
	put_difference(d, value(a, d->o->sort), value(b, d->o->sort), out);
	fprintf(out, "%12s  ", str_thousands(calls, sizeof(calls), a->calls));
	fprintf(out, "%12s  ", str_thousands(calls, sizeof(calls), b->calls));
	put_average(a, out);
	put_average(b, out);
	put_p(d, e, out);
	text_put(out, e->name);
	fputs(" [", out);
	text_put(out, e->module);
	fputs("]", out);
	put_off(d, "  before", a, out);
	put_off(d, "  after", b, out);
	fputc('\n', out);
}

/* What all functions took by themselves is what the programs took in functions that have probes. */
static void put_total(struct diff *d, FILE *out)
{
	struct side all[2] = {0};
	char a[STR_NUMBER], b[STR_NUMBER];

	vec_for(&d->v, e)
		for (int i = 0; i < 2; i++)
			add_side(&all[i], &e->side[i]);
	fprintf(out, "\nall functions: self time %s before, %s after",
		str_duration(a, sizeof(a), all[0].self), str_duration(b, sizeof(b), all[1].self));
	if (all[0].self)
		fprintf(out, " (ratio %.2f)", (double)all[1].self / (double)all[0].self);
	if (is_sparse(d) && !all[0].off.has_no_end && !all[1].off.has_no_end)
		fprintf(out, ", +-%s before, +-%s after",
			str_duration(a, sizeof(a), all[0].off.self),
			str_duration(b, sizeof(b), all[1].off.self));
	fprintf(out, "; calls %s before, %s after", str_thousands(a, sizeof(a), all[0].calls),
		str_thousands(b, sizeof(b), all[1].calls));
}

static void put_foot(struct diff *d, FILE *out)
{
	uint64_t gone = 0, new = 0, significant = 0, rough = 0;
	char a[STR_NUMBER], b[STR_NUMBER];

	vec_for(&d->v, e) {
		gone += !e->side[1].calls;
		new += !e->side[0].calls;
		significant += is_significant(d, e);
		rough += e->untested && !strcmp(e->untested, "rough");
	}
	fprintf(out,
		"\n%zu functions, %" PRIu64 " of them gone and %" PRIu64
		" new; %zu with %d calls or more on both sides%s, %" PRIu64
		" of them significantly different (*) in time per call\n",
		d->v.n, gone, new, d->tested, FEWEST,
		is_sparse(d) ? " and a reading of the clock for each sample"
		: rough      ? " and no estimates"
			     : "",
		significant);
	if (d->lost[0] || d->lost[1])
		fprintf(out, "samples lost: %s before, %s after: calls and times are too low\n",
			str_thousands(a, sizeof(a), d->lost[0]),
			str_thousands(b, sizeof(b), d->lost[1]));
	report_slack_foot(d->trace[trace_clock_every(d->trace[1]) > 1], out);
}

static void print_text(struct diff *d, FILE *out)
{
	static const char *const what[] = {"Self time", "Total time", "Calls", "Time a call"};
	uint64_t shown = 0;

	fputs("before: ", out);
	text_put(out, d->trace[0]->dir);
	fputs("\nafter:  ", out);
	text_put(out, d->trace[1]->dir);
	if (d->renamed[0]) {
		fputs("\n", out);
		text_put(out, d->renamed[0]);
		fputs(" before is taken for ", out);
		text_put(out, d->renamed[1]);
		fputs(" after", out);
	}
	fprintf(out, "\n\n%s\n%10s  %10s  %11s  %7s  %12s  %12s  %10s  %10s  %6s   %s\n",
		what[d->o->sort], "before", "after", "difference", "ratio", "Calls before",
		"Calls after", "Avg before", "Avg after", "p", "Function [Module]");
	vec_for(&d->v, e)
		if (!d->o->limit || shown++ < d->o->limit)
			put_entry(d, e, out);
	put_total(d, out);
	put_foot(d, out);
}

/* ---- JSON ---- */

static void json_real(struct json *j, const char *key, double v)
{
	json_key(j, key);
	json_f64(j, v);
}

static void json_slack(struct json *j, const struct side *s)
{
	const double deviates = s->n > 1 ? sqrt(variance(s)) : NAN;
	/* with n - 1 in place of n, as the variance has it */
	const double off = s->n > 1 ? sqrt((double)(s->off.squares / (s->n - 1))) : NAN;

	report_slack_json_ns(j, "total_low_ns", "total_high_ns", value_in(s, DIFF_TOTAL));
	report_slack_json_ns(j, "self_low_ns", "self_high_ns", value_in(s, DIFF_SELF));
	report_slack_json_ns(j, "avg_low_ns", "avg_high_ns", average_in(s));
	json_real(j, "stddev_low_ns", deviates < off ? 0 : deviates - off);
	json_real(j, "stddev_high_ns", s->off.has_no_end ? NAN : deviates + off);
}

static void json_side(struct json *j, const char *key, const struct side *s)
{
	json_key(j, key);
	json_open(j, '{');
	json_ku64(j, "calls", s->calls);
	json_ku64(j, "total_ns", s->total);
	json_ku64(j, "self_ns", s->self);
	json_real(j, "avg_ns", mean(s));
	json_real(j, "stddev_ns", s->n > 1 ? sqrt(variance(s)) : NAN);
	if (s->is_sparse)
		json_slack(j, s);
	json_close(j, '}');
}

static void json_entry(struct json *j, const struct diff *d, const struct entry *e)
{
	json_open(j, '{');
	json_kstr(j, "function", e->name);
	json_kstr(j, "module", e->module);
	json_side(j, "before", &e->side[0]);
	json_side(j, "after", &e->side[1]);
	json_real(j, "t", e->untested ? NAN : e->t);
	json_real(j, "df", !e->untested && e->df > 0 ? e->df : NAN);
	json_real(j, "p", e->untested ? NAN : e->p);
	json_key(j, "significant");
	if (e->untested)
		json_str(j, NULL);
	else
		json_bool(j, is_significant(d, e));
	json_kstr(j, "untested", e->untested);
	json_close(j, '}');
}

static void print_json(struct diff *d, FILE *out)
{
	struct json j = JSON_INIT(out);
	uint64_t shown = 0;

	json_open(&j, '[');
	vec_for(&d->v, e) {
		if (!d->o->limit || shown++ < d->o->limit) {
			fputc('\n', out);
			json_entry(&j, d, e);
		}
	}
	json_close(&j, ']');
}

void report_diff(const struct trace *before, const struct trace *after,
		 const struct diff_options *o, FILE *out)
{
	struct diff d = {.o = o, .trace = {before, after}};

	pair_programs(&d);
	take_side(&d, 0);
	take_side(&d, 1);
	merge(&d);
	vec_for(&d.v, e)
		test(&d, e);
	if (d.v.n)
		qsort_r(d.v.v, d.v.n, sizeof(*d.v.v), by_difference, &d);
	(o->json ? print_json : print_text)(&d, out);
	vec_for(&d.v, e)
		xfree(e->name);
	vec_free(&d.v);
}

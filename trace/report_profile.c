/* SPDX-License-Identifier: MIT */
/*
 * report_profile.c - calls and times by function.
 *
 * Lanes are read one after another: their order does not matter to a sum, and so neither a
 * merge nor the state of more than one thread is needed.
 *
 *   calls   entry samples
 *   total   time between entry and exit, of outermost calls only: recursion counts once
 *   self    total without the time in probed callees, of all calls
 *   avg, min, max    of all calls; a call that spans a loss counts for none of the three, for
 *                    its entry and exit may belong to different calls
 *   ~N without exit  calls closed by inference: by an exception, or because the exit has no
 *                    probe.  They are taken to last until their caller is seen again, so their
 *                    times are upper limits.
 */
#define _GNU_SOURCE
#include "trace/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "base/vec.h"
#include "trace/pairs.h"
#include "trace/text.h"

struct stat { /* times in TSC ticks */
	uint64_t calls, inferred;
	uint64_t total, self;
	uint64_t measured, sum, max;
	uint64_t inverse_min; /* UINT64_MAX - min: zero is the right start */
};

struct row {
	uint32_t function;
	uint32_t group; /* lane, or index of process */
	struct stat s;
};

struct profile {
	const struct trace *t;
	const struct profile_options *o;
	struct stat *stats; /* by function number, below nstats */
	uint32_t nstats;
	VEC(struct row) others; /* numbers beyond: no functions, open addressing in `slots` */
	uint32_t *slots;
	size_t nslots;
	VEC(uint32_t) touched; /* functions below nstats that were called in this group */
	VEC(struct row) rows;
	uint64_t self_sum; /* of the table that is printed */
};

/* ---- gathering ---- */

static void grow_slots(struct profile *p)
{
	size_t n = p->nslots ? p->nslots * 2 : 64;

	xfree(p->slots);
	p->slots = xcalloc(n, sizeof(*p->slots));
	p->nslots = n;
	for (size_t i = 0; i < p->others.n; i++) {
		size_t at = p->others.v[i].function * 2654435761u & (n - 1);

		while (p->slots[at])
			at = (at + 1) & (n - 1);
		p->slots[at] = (uint32_t)i + 1;
	}
}

static struct stat *other_stat(struct profile *p, uint32_t function)
{
	size_t at;
	struct row *r;

	if (p->others.n * 2 >= p->nslots)
		grow_slots(p);
	at = function * 2654435761u & (p->nslots - 1);
	for (; p->slots[at]; at = (at + 1) & (p->nslots - 1))
		if (p->others.v[p->slots[at] - 1].function == function)
			return &p->others.v[p->slots[at] - 1].s;
	r = vec_push(&p->others);
	r->function = function;
	p->slots[at] = (uint32_t)p->others.n;
	return &r->s;
}

static inline struct stat *stat_of(struct profile *p, uint32_t function)
{
	return function < p->nstats ? &p->stats[function] : other_stat(p, function);
}

static void on_enter(void *ctx, const struct trace_event *e, uint32_t function, uint32_t depth)
{
	struct profile *p = ctx;

	(void)e;
	(void)depth;
	if (!stat_of(p, function)->calls++ && function < p->nstats)
		*vec_push(&p->touched) = function;
}

static void on_leave(void *ctx, const struct trace_event *e, const struct pair_call *c)
{
	struct stat *s = stat_of(ctx, c->function);
	uint64_t time = c->exit_tsc - c->entry_tsc;

	(void)e;
	s->inferred += c->inferred;
	if (!c->recursive)
		s->total += time;
	s->self += time - c->children_tsc;
	if (c->spans_loss)
		return;
	s->measured++;
	s->sum += time;
	if (~time > s->inverse_min)
		s->inverse_min = ~time;
	if (time > s->max)
		s->max = time;
}

static void take_row(struct profile *p, uint32_t function, uint32_t group, struct stat *s)
{
	struct row *r = vec_push(&p->rows);

	r->function = function;
	r->group = group;
	r->s = *s;
	memset(s, 0, sizeof(*s));
}

/* What was gathered since the last time belongs to this thread or process. */
static void end_group(struct profile *p, uint32_t group)
{
	vec_for(&p->touched, f)
		take_row(p, *f, group, &p->stats[*f]);
	p->touched.n = 0;
	vec_for(&p->others, r)
		take_row(p, r->function, group, &r->s);
	p->others.n = 0;
	if (p->slots)
		memset(p->slots, 0, p->nslots * sizeof(*p->slots));
}

static bool ends_group(const struct profile *p, size_t lane)
{
	const struct trace *t = p->t;

	if (lane + 1 == t->nlanes || p->o->by == PROFILE_BY_THREAD)
		return true;
	return p->o->by == PROFILE_BY_PROCESS &&
	       t->lanes[lane].proc_uid != t->lanes[lane + 1].proc_uid;
}

static void gather(struct profile *p, struct pair_counts *counts)
{
	const struct trace *t = p->t;
	struct pair_sink sink = {
		.ctx = p, .enter = on_enter, .leave = on_leave, .want_recursive = true};
	struct pairs *pairs = pairs_open(t, &sink);
	struct trace_event e;

	for (size_t lane = 0; lane < t->nlanes; lane++) {
		struct trace_cursor *c = trace_cursor_open(t, (int)lane);

		while (trace_cursor_next(c, &e))
			pairs_feed(pairs, &e);
		trace_cursor_close(c);
		pairs_finish_lane(pairs, (uint32_t)lane);
		if (ends_group(p, lane))
			end_group(p, (uint32_t)lane);
	}
	*counts = *pairs_counts(pairs);
	pairs_close(pairs);
}

/* ---- sorting ---- */

/* Where all calls span losses, what they took on average is all there is to say. */
static uint64_t average(const struct stat *s)
{
	return s->measured ? s->sum / s->measured : s->total / s->calls;
}

static uint64_t minimum(const struct stat *s)
{
	return s->measured ? ~s->inverse_min : average(s);
}

static uint64_t maximum(const struct stat *s)
{
	return s->measured ? s->max : average(s);
}

static int by_name(const struct trace *t, const struct row *x, const struct row *y)
{
	char bx[32], by[32];

	return strcmp(text_function(t, x->function, bx, sizeof(bx)),
		      text_function(t, y->function, by, sizeof(by)));
}

static uint64_t sort_value(const struct row *r, int key)
{
	switch (key) {
	case PROFILE_SELF:
		return r->s.self;
	case PROFILE_CALLS:
		return r->s.calls;
	case PROFILE_AVG:
		return average(&r->s);
	case PROFILE_MIN:
		return minimum(&r->s);
	case PROFILE_MAX:
		return maximum(&r->s);
	default:
		return r->s.total;
	}
}

/* Groups in the trace's order; numbers from large to small, words from a to z. */
static int by_options(const void *a, const void *b, void *ctx)
{
	const struct row *x = a, *y = b;
	const struct profile *p = ctx;
	int key = p->o->sort, order = 0;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (key == PROFILE_MODULE)
		order = strcmp(text_module(p->t, x->function), text_module(p->t, y->function));
	if (!order && key == PROFILE_NAME)
		order = by_name(p->t, x, y);
	if (!order) {
		uint64_t vx = sort_value(x, key), vy = sort_value(y, key);

		order = (vx < vy) - (vx > vy);
	}
	if (!order)
		order = by_name(p->t, x, y);
	return order ? order : (x->function > y->function) - (x->function < y->function);
}

/* ---- output ---- */

static void print_group(const struct profile *p, uint32_t lane, FILE *out)
{
	const struct trace_lane *l = &p->t->lanes[lane];
	const struct trace_proc *proc = trace_proc_of(p->t, l->proc_uid);

	if (p->o->by == PROFILE_BY_THREAD) {
		fprintf(out, "thread %u", l->tid);
		if (l->name[0]) {
			fputs(" (", out);
			text_put(out, l->name);
			fputc(')', out);
		}
		fputs(" of ", out);
	}
	if (proc && proc->known)
		fprintf(out, "process %d", proc->pid);
	else
		fputs("an unknown process", out);
	if (proc && proc->exe[0]) {
		fputs(" (", out);
		text_put(out, text_base(proc->exe));
		fputc(')', out);
	}
	fputs(":\n", out);
}

#define GAP "  "

static void print_head(FILE *out)
{
	fputs("Total time" GAP " Self time" GAP "Self %" GAP "       Calls" GAP "  Avg time" GAP
	      "  Min time" GAP "  Max time" GAP "Function [Module]\n"
	      "==========" GAP "==========" GAP "======" GAP "============" GAP "==========" GAP
	      "==========" GAP "==========" GAP "=================\n",
	      out);
}

static void print_row(const struct profile *p, const struct row *r, FILE *out)
{
	const struct trace *t = p->t;
	char calls[STR_NUMBER];

	text_put_duration(out, trace_ns(t, r->s.total));
	fputs(GAP, out);
	text_put_duration(out, trace_ns(t, r->s.self));
	fprintf(out, GAP "%5.1f%%" GAP "%12s" GAP,
		p->self_sum ? 100.0 * (double)r->s.self / (double)p->self_sum : 0.0,
		str_thousands(calls, sizeof(calls), r->s.calls));
	text_put_duration(out, trace_ns(t, average(&r->s)));
	fputs(GAP, out);
	text_put_duration(out, trace_ns(t, minimum(&r->s)));
	fputs(GAP, out);
	text_put_duration(out, trace_ns(t, maximum(&r->s)));
	fputs(GAP, out);
	text_put_function(out, t, r->function);
	fputs(" [", out);
	text_put(out, text_base(text_module(t, r->function)));
	fputs("]", out);
	if (r->s.inferred)
		fprintf(out, "  ~%s without exit",
			r->s.inferred == r->s.calls
				? "all"
				: str_thousands(calls, sizeof(calls), r->s.inferred));
	fputc('\n', out);
}

static void print_count(FILE *out, uint64_t n, const char *text)
{
	char number[STR_NUMBER];

	if (n)
		fprintf(out, ", %s %s", str_thousands(number, sizeof(number), n), text);
}

static void print_foot(const struct profile *p, const struct pair_counts *c, FILE *out)
{
	char number[STR_NUMBER];

	fprintf(out, "\n%s calls", str_thousands(number, sizeof(number), c->entries));
	print_count(out, c->inferred, "of them without an exit (closed by inference)");
	print_count(out, c->open, "still running at the end");
	print_count(out, c->spans_loss, "across a loss");
	print_count(out, c->orphans, "exits without an entry");
	fprintf(out, "; %s samples lost\n", str_thousands(number, sizeof(number), p->t->lost));
}

/* What "Self %" is of: all rows of one table, also those that -n leaves out. */
static uint64_t sum_self(const struct profile *p, size_t from)
{
	uint64_t sum = 0;

	for (size_t i = from; i < p->rows.n && p->rows.v[i].group == p->rows.v[from].group; i++)
		sum += p->rows.v[i].s.self;
	return sum;
}

static void print_text(struct profile *p, const struct pair_counts *counts, FILE *out)
{
	uint64_t shown = 0;

	if (p->o->by == PROFILE_BY_FUNCTION || !p->rows.n)
		print_head(out);
	p->self_sum = sum_self(p, 0);
	vec_for(&p->rows, r) {
		if (p->o->by != PROFILE_BY_FUNCTION &&
		    (r == p->rows.v || r[-1].group != r->group)) {
			if (r != p->rows.v)
				fputc('\n', out);
			p->self_sum = sum_self(p, (size_t)(r - p->rows.v));
			print_group(p, r->group, out);
			print_head(out);
			shown = 0;
		}
		if (!p->o->limit || shown++ < p->o->limit)
			print_row(p, r, out);
	}
	print_foot(p, counts, out);
}

static void json_row(struct json *j, const struct profile *p, const struct row *r)
{
	const struct trace *t = p->t;
	char buf[32];

	json_open(j, '{');
	json_kstr(j, "function", text_function(t, r->function, buf, sizeof(buf)));
	json_kstr(j, "module", text_module(t, r->function));
	json_ku64(j, "calls", r->s.calls);
	json_ku64(j, "total_ns", trace_ns(t, r->s.total));
	json_ku64(j, "self_ns", trace_ns(t, r->s.self));
	json_ku64(j, "min_ns", trace_ns(t, minimum(&r->s)));
	json_ku64(j, "avg_ns", trace_ns(t, average(&r->s)));
	json_ku64(j, "max_ns", trace_ns(t, maximum(&r->s)));
	if (p->o->by != PROFILE_BY_FUNCTION) {
		const struct trace_lane *l = &t->lanes[r->group];
		const struct trace_proc *proc = trace_proc_of(t, l->proc_uid);

		if (p->o->by == PROFILE_BY_THREAD)
			json_ku64(j, "thread", l->tid);
		json_ku64(j, "process", proc ? (uint64_t)proc->pid : 0);
		json_ku64(j, "process_uid", l->proc_uid);
	}
	json_close(j, '}');
}

static void print_json(struct profile *p, FILE *out)
{
	struct json j = JSON_INIT(out);
	uint64_t shown = 0;

	json_open(&j, '[');
	vec_for(&p->rows, r) {
		if (r == p->rows.v || r[-1].group != r->group)
			shown = 0;
		if (!p->o->limit || shown++ < p->o->limit) {
			fputc('\n', out);
			json_row(&j, p, r);
		}
	}
	json_close(&j, ']');
}

void report_profile(const struct trace *t, const struct profile_options *o, FILE *out)
{
	struct profile p = {.t = t, .o = o};
	struct pair_counts counts;

	p.nstats = trace_function_limit(t);
	p.stats = xcalloc(p.nstats, sizeof(*p.stats));
	gather(&p, &counts);
	if (p.rows.n)
		qsort_r(p.rows.v, p.rows.n, sizeof(*p.rows.v), by_options, &p);
	if (o->json)
		print_json(&p, out);
	else
		print_text(&p, &counts, out);
	vec_free(&p.rows);
	vec_free(&p.touched);
	vec_free(&p.others);
	xfree(p.slots);
	xfree(p.stats);
}

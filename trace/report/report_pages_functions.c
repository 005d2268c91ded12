/* SPDX-License-Identifier: MIT */
/*
 * report_pages_functions.c - page reference counters by function: the functions, and under each mapping, range and
 * page who touched it.
 *
 *   p->functions, by process, address and function ── of one row ── by function ──► hottest first
 *
 * What a row has and no function is known for has a line of its own: the lines of a row add up to it.
 */
#include "trace/report/report_pages_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/str.h"
#include "trace/text.h"

#define SHOWN 5u /* under a row */

struct sum {
	uint32_t function;
	uint64_t reads, writes, pages;
};
struct sums { /* as VEC() has it */
	struct sum *v;
	size_t n, cap;
};

/* ---- names ---- */

static const char *module_of(const struct report *rep, const struct trace_function *f)
{
	return f && f->module < rep->t->nmodules ? rep->t->modules[f->module].path : NULL;
}

static void put_name(const struct report *rep, FILE *f, uint32_t number)
{
	const struct trace_function *function = trace_part_function(rep->t, 0, number);
	const char *module = module_of(rep, function);

	if (!function) {
		fprintf(f, "(function %" PRIu32 ", of which the trace has no name)", number);
		return;
	}
	text_put(f, function->name);
	if (module) {
		fputs(" of ", f);
		text_put(f, str_base_name(module));
	}
}

/* ---- sums ---- */

static int by_function(const void *a, const void *b)
{
	const struct sum *x = a, *y = b;

	return x->function < y->function ? -1 : x->function > y->function;
}

static int hottest_first(const void *a, const void *b)
{
	const struct sum *x = a, *y = b;
	uint64_t n = x->reads + x->writes, m = y->reads + y->writes;

	if (n != m)
		return n > m ? -1 : 1;
	return by_function(a, b);
}

static void add_up(struct sums *s)
{
	size_t n = 0;

	if (s->n)
		qsort(s->v, s->n, sizeof(s->v[0]), by_function);
	for (size_t i = 0; i < s->n; i++) {
		if (n && s->v[n - 1].function == s->v[i].function) {
			s->v[n - 1].reads += s->v[i].reads;
			s->v[n - 1].writes += s->v[i].writes;
			s->v[n - 1].pages += s->v[i].pages;
		} else {
			s->v[n++] = s->v[i];
		}
	}
	s->n = n;
	if (n)
		qsort(s->v, n, sizeof(s->v[0]), hottest_first);
}

static void take(struct sums *s, const struct trace_page_function *p)
{
	*vec_push(s) = (struct sum){p->function, p->reads, p->writes, 1};
}

/* What was done there in this process, page by page. */
static void take_range(const struct report *rep, const struct range *r, struct sums *s)
{
	const struct trace_page_function *v = rep->p->functions.v;
	size_t i = partition_point(i, rep->p->functions.n,
				   v[i].uid < r->uid ||
					   (v[i].uid == r->uid && v[i].address < r->start));

	for (; i < rep->p->functions.n && v[i].uid == r->uid && v[i].address < r->end; i++)
		take(s, &v[i]);
}

/* A mapping is all ranges of its name. */
static void take_mapping(const struct report *rep, const struct range *r, struct sums *s)
{
	const char *name = trace_mapping_name(r->mapping);

	for (size_t i = 0; i < rep->ranges.n; i++)
		if (rep->ranges.v[i].pid == r->pid &&
		    !strcmp(trace_mapping_name(rep->ranges.v[i].mapping), name))
			take_range(rep, &rep->ranges.v[i], s);
}

/* What of the row no function is known for. */
static struct sum rest_of(const struct range *r, const struct sums *s)
{
	struct sum rest = {.reads = r->reads, .writes = r->writes};

	for (size_t i = 0; i < s->n; i++) {
		rest.reads -= s->v[i].reads < rest.reads ? s->v[i].reads : rest.reads;
		rest.writes -= s->v[i].writes < rest.writes ? s->v[i].writes : rest.writes;
	}
	return rest;
}

/* ---- text ---- */

void report_pages_row_functions(const struct report *rep, FILE *f, const struct range *r,
				bool is_mapping)
{
	struct sum others = {0}, rest;
	struct sums s = {0};
	size_t shown;

	(is_mapping ? take_mapping : take_range)(rep, r, &s);
	add_up(&s);
	shown = s.n <= SHOWN + 1 ? s.n : SHOWN;
	for (size_t i = 0; i < shown; i++) {
		report_pages_reads_writes(f, s.v[i].reads, s.v[i].writes);
		fputs("  by ", f);
		put_name(rep, f, s.v[i].function);
		fputc('\n', f);
	}
	for (size_t i = shown; i < s.n; i++) {
		others.reads += s.v[i].reads;
		others.writes += s.v[i].writes;
	}
	if (shown < s.n) {
		report_pages_reads_writes(f, others.reads, others.writes);
		fprintf(f, "  by %zu other functions\n", s.n - shown);
	}
	rest = rest_of(r, &s);
	if (rest.reads || rest.writes) {
		report_pages_reads_writes(f, rest.reads, rest.writes);
		fputs("  by functions that are not known\n", f);
	}
	vec_free(&s);
}

void report_pages_functions(const struct report *rep, FILE *f)
{
	const uint64_t limit = rep->o->limit ? rep->o->limit : LIMIT;
	struct sums s = {0};

	for (size_t i = 0; i < rep->p->functions.n; i++)
		take(&s, &rep->p->functions.v[i]);
	add_up(&s);
	fprintf(f, "\nFunctions\n%15s %15s %8s %7s %7s  Function\n", "Reads", "Writes", "R/W",
		"Share", rep->p->unit == TRACE_LINE_SIZE ? "Lines" : "Pages");
	for (size_t i = 0; i < s.n && i < limit; i++) {
		const struct sum *one = &s.v[i];

		report_pages_share(rep, f, one->reads, one->writes);
		fprintf(f, " %7" PRIu64 "  ", one->pages);
		put_name(rep, f, one->function);
		fputc('\n', f);
	}
	if (limit < s.n)
		fprintf(f, "and %zu more (-n)\n", s.n - (size_t)limit);
	vec_free(&s);
}

/* ---- JSON ---- */

static void put_json(struct json *j, const char *name, const char *module, const struct sum *s)
{
	json_open(j, '{');
	json_kstr(j, "function", name);
	json_kstr(j, "module", module);
	json_ku64(j, "reads", s->reads);
	json_ku64(j, "writes", s->writes);
	json_close(j, '}');
}

void report_pages_json_functions(const struct report *rep, struct json *j, const struct range *page)
{
	struct sums s = {0};
	struct sum rest;

	take_range(rep, page, &s);
	add_up(&s);
	json_key(j, "by_function");
	json_open(j, '[');
	for (size_t i = 0; i < s.n; i++) {
		const struct trace_function *f = trace_part_function(rep->t, 0, s.v[i].function);

		put_json(j, f ? f->name : NULL, module_of(rep, f), &s.v[i]);
	}
	rest = rest_of(page, &s);
	if (rest.reads || rest.writes)
		put_json(j, NULL, NULL, &rest);
	json_close(j, ']');
	vec_free(&s);
}

/* SPDX-License-Identifier: MIT */
/*
 * report_pages.c - page reference counters for people and as JSON: see report_pages.h.
 *
 * A range is what lies next to each other in one mapping of one process.
 */
#include "trace/report/report_pages.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "base/vec.h"
#include "trace/text.h"

#define LIMIT 20u
#define NODES_FILE "/sys/devices/system/node/has_cpu"

struct range {
	const struct trace_mapping *mapping;
	uint32_t pid;
	uint64_t start, end;
	uint64_t pages, reads, writes;
	size_t first, threads; /* of a page: what its threads did */
	unsigned writers;
};

struct report {
	const struct trace *t;
	const struct trace_pages *p;
	const struct pages_options *o;
	bool one_node;
	bool many; /* processes */
	VEC(struct range) pages, ranges;
	struct range sum;
};

bool report_pages_one_node(void)
{
	char text[8] = "0";
	FILE *f = fopen(NODES_FILE, "re");

	if (f) {
		if (!fgets(text, sizeof(text), f))
			text[0] = 0;
		fclose(f);
	}
	return text[0] == '0' && (!text[1] || text[1] == '\n');
}

static int hottest_first(const void *a, const void *b)
{
	const struct range *x = a, *y = b;
	uint64_t n = x->reads + x->writes, m = y->reads + y->writes;

	if (n != m)
		return n > m ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* ---- names ---- */

static const struct trace_mapping *neighbour(const struct trace_pages *p, uint32_t pid, uint64_t at)
{
	const struct trace_mapping *below = NULL;

	for (size_t i = 0; i < p->maps.n; i++) {
		const struct trace_mapping *m = &p->maps.v[i];

		if (m->pid == pid && m->end <= at && (!below || m->end > below->end))
			below = m;
	}
	return below;
}

/* "" is what nobody gave a name, and what was mapped and gone before anybody looked. */
static const char *name_of(const struct range *r)
{
	if (!r->mapping)
		return "(not mapped when kron looked)";
	return *r->mapping->name ? r->mapping->name : "(anonymous memory)";
}

/* The data of a module that lies in anonymous memory after its file's pages. */
static const char *module_before(const struct report *rep, const struct range *r)
{
	const struct trace_mapping *before;

	if (!r->mapping || *r->mapping->name)
		return NULL;
	before = neighbour(rep->p, r->pid, r->mapping->start);
	return before && before->end == r->mapping->start && before->name[0] == '/' ? before->name
										    : NULL;
}

/* ---- sums ---- */

static void add(struct range *to, const struct range *r)
{
	to->end = r->end;
	to->pages += r->pages;
	to->reads += r->reads;
	to->writes += r->writes;
}

/* Of all threads. */
static struct range page_at(const struct report *rep, size_t first)
{
	const struct trace_page *p = &rep->p->v.v[first], *end = rep->p->v.v + rep->p->v.n;
	const struct trace_proc *proc = trace_proc_of(rep->t, p->uid);
	const uint32_t uid = p->uid;
	struct range r = {
		.pid = proc ? (uint32_t)proc->pid : 0,
		.start = p->address,
		.end = p->address + TRACE_PAGE_SIZE,
		.pages = 1,
		.first = first,
	};

	for (; p < end && p->uid == uid && p->address == r.start; p++) {
		r.threads++;
		r.writers += p->writes != 0;
		r.reads += p->reads;
		r.writes += p->writes;
	}
	r.mapping = trace_pages_mapping(rep->p, r.pid, r.start);
	return r;
}

static void take_pages(struct report *rep)
{
	for (size_t i = 0; i < rep->p->v.n; i += rep->pages.v[rep->pages.n - 1].threads) {
		struct range r = page_at(rep, i);
		struct range *last = rep->ranges.n ? &rep->ranges.v[rep->ranges.n - 1] : NULL;

		rep->many |= last && last->pid != r.pid;
		*vec_push(&rep->pages) = r;
		add(&rep->sum, &r);
		if (last && last->pid == r.pid && last->mapping == r.mapping &&
		    last->end == r.start)
			add(last, &r);
		else
			*vec_push(&rep->ranges) = r;
	}
}

static void keep_shared(struct report *rep)
{
	size_t n = 0;

	for (size_t i = 0; i < rep->pages.n; i++)
		if (rep->pages.v[i].writers > 1)
			rep->pages.v[n++] = rep->pages.v[i];
	rep->pages.n = n;
}

/* ---- counters of refcnt(5)'s ---- */

static uint64_t counter_of(const struct report *rep, const struct range *r)
{
	return (r->reads + r->writes) % ((1u << rep->o->width) - 1);
}

static uint64_t mirror_of(const struct report *rep, const struct range *r)
{
	uint64_t n = r->reads + r->writes - counter_of(rep, r);

	return n < UINT32_MAX ? n : UINT32_MAX;
}

/* ---- output ---- */

static void put_ratio(FILE *f, const struct range *r)
{
	if (r->writes)
		fprintf(f, " %8.2f", (double)r->reads / (double)r->writes);
	else
		fprintf(f, " %8s", "-");
}

static void put_range(const struct report *rep, FILE *f, const struct range *r, bool is_range)
{
	uint64_t all = rep->sum.reads + rep->sum.writes;
	char reads[STR_NUMBER], writes[STR_NUMBER];
	const char *module = module_before(rep, r);

	fprintf(f, "%15s %15s", str_thousands(reads, sizeof(reads), r->reads),
		str_thousands(writes, sizeof(writes), r->writes));
	put_ratio(f, r);
	fprintf(f, " %6.2f%%", all ? 100.0 * (double)(r->reads + r->writes) / (double)all : 0.0);
	if (rep->o->width && !is_range)
		fprintf(f, " %7" PRIu64 " %10" PRIu64, counter_of(rep, r), mirror_of(rep, r));
	if (is_range)
		fprintf(f, " %7" PRIu64, r->pages);
	fprintf(f, "  0x%-14" PRIx64, r->start);
	if (rep->many)
		fprintf(f, " %7" PRIu32, r->pid);
	fputc(' ', f);
	text_put(f, name_of(r));
	if (module) {
		fputs(", after ", f);
		text_put(f, module);
	}
	fputc('\n', f);
}

static void put_threads(const struct report *rep, FILE *f, const struct range *r)
{
	const struct trace_page *p = &rep->p->v.v[r->first];
	char reads[STR_NUMBER], writes[STR_NUMBER];

	for (size_t i = 0; i < r->threads; i++)
		fprintf(f, "%15s %15s  by thread %" PRIu32 "\n",
			str_thousands(reads, sizeof(reads), p[i].reads),
			str_thousands(writes, sizeof(writes), p[i].writes), p[i].tid);
}

static void put_table(const struct report *rep, FILE *f, const struct range *v, size_t n,
		      bool is_range)
{
	uint64_t limit = rep->o->limit ? rep->o->limit : LIMIT;
	size_t shown = n < limit ? n : limit;
	bool has_width = rep->o->width && !is_range;

	fprintf(f, "%15s %15s %8s %7s%s%s  %-16s%s %s\n", "Reads", "Writes", "R/W", "Share",
		is_range ? "   Pages" : "", has_width ? " Counter   Extended" : "", "Address",
		rep->many ? "     Pid" : "", "Mapping");
	for (size_t i = 0; i < shown; i++) {
		put_range(rep, f, &v[i], is_range);
		if (rep->o->sharing)
			put_threads(rep, f, &v[i]);
	}
	if (shown < n)
		fprintf(f, "and %zu more (-n)\n", n - shown);
}

static void put_text(const struct report *rep, FILE *f)
{
	char reads[STR_NUMBER], writes[STR_NUMBER], pages[STR_NUMBER];

	fprintf(f, "%s reads and %s writes in %s pages of %u bytes",
		str_thousands(reads, sizeof(reads), rep->sum.reads),
		str_thousands(writes, sizeof(writes), rep->sum.writes),
		str_thousands(pages, sizeof(pages), rep->sum.pages), TRACE_PAGE_SIZE);
	if (rep->sum.writes)
		fprintf(f, "; %.2f reads a write",
			(double)rep->sum.reads / (double)rep->sum.writes);
	if (!rep->o->sharing) {
		fputs("\n\nRanges\n", f);
		put_table(rep, f, rep->ranges.v, rep->ranges.n, true);
	}
	fputs(rep->o->sharing ? "\n\nPages that several threads write\n" : "\nPages\n", f);
	put_table(rep, f, rep->pages.v, rep->pages.n, false);
}

static void put_json_threads(const struct report *rep, struct json *j, const struct range *r)
{
	const struct trace_page *p = &rep->p->v.v[r->first];

	json_key(j, "threads");
	json_open(j, '[');
	for (size_t i = 0; i < r->threads; i++) {
		json_open(j, '{');
		json_ku64(j, "tid", p[i].tid);
		json_ku64(j, "reads", p[i].reads);
		json_ku64(j, "writes", p[i].writes);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_json_page(const struct report *rep, struct json *j, const struct range *r)
{
	char address[STR_NUMBER];

	snprintf(address, sizeof(address), "0x%" PRIx64, r->start);
	json_open(j, '{');
	json_kstr(j, "address", address);
	json_ku64(j, "size", TRACE_PAGE_SIZE);
	json_key(j, "node");
	if (rep->one_node)
		json_u64(j, 0);
	else
		json_str(j, NULL);
	json_ku64(j, "reads", r->reads);
	json_ku64(j, "writes", r->writes);
	if (rep->o->width) {
		json_ku64(j, "counter", counter_of(rep, r));
		json_ku64(j, "extended", mirror_of(rep, r));
	}
	json_ku64(j, "pid", r->pid);
	json_kstr(j, "mapping", r->mapping && *r->mapping->name ? r->mapping->name : NULL);
	if (rep->o->sharing)
		put_json_threads(rep, j, r);
	json_close(j, '}');
}

static void put_json(const struct report *rep, FILE *f)
{
	uint64_t limit = rep->o->limit;
	size_t n = limit && limit < rep->pages.n ? limit : rep->pages.n;
	struct json j = JSON_INIT(f);

	json_open(&j, '[');
	for (size_t i = 0; i < n; i++)
		put_json_page(rep, &j, &rep->pages.v[i]);
	json_close(&j, ']');
}

void report_pages(const struct trace *t, const struct trace_pages *p, const struct pages_options *o,
		  FILE *f)
{
	struct report rep = {.t = t, .p = p, .o = o, .one_node = report_pages_one_node()};

	take_pages(&rep);
	if (o->sharing)
		keep_shared(&rep);
	if (rep.pages.n)
		qsort(rep.pages.v, rep.pages.n, sizeof(rep.pages.v[0]), hottest_first);
	if (rep.ranges.n)
		qsort(rep.ranges.v, rep.ranges.n, sizeof(rep.ranges.v[0]), hottest_first);
	if (o->json)
		put_json(&rep, f);
	else
		put_text(&rep, f);
	vec_free(&rep.pages);
	vec_free(&rep.ranges);
}

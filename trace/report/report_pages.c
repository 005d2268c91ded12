/* SPDX-License-Identifier: MIT */
/*
 * report_pages.c - page reference counters for people and as JSON: see report_pages.h.
 *
 * A range is what lies next to each other in one mapping of one process.
 */
#include "trace/report/report_pages_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "trace/text.h"

const char *report_pages_units(const struct report *rep)
{
	return rep->p->unit == TRACE_LINE_SIZE ? "lines" : "pages";
}

uint32_t report_pages_pid(const struct report *rep, uint32_t uid)
{
	const struct trace_proc *proc = trace_proc_of(rep->t, uid);

	return proc ? (uint32_t)proc->pid : 0;
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

static const struct trace_mapping *neighbour(const struct report *rep, const struct range *r)
{
	const struct trace_mapping *below = NULL;
	const uint64_t at = r->mapping->start;

	for (size_t i = 0; i < rep->p->maps.n; i++) {
		const struct trace_mapping *m = &rep->p->maps.v[i];

		if (trace_mapping_is_of(m, r->uid, r->pid) && m->end <= at &&
		    (!below || m->end > below->end))
			below = m;
	}
	return below;
}

/* The data of a module that lies in anonymous memory after its file's pages. */
static const char *module_before(const struct report *rep, const struct range *r)
{
	const struct trace_mapping *before;

	if (!r->mapping || *r->mapping->name)
		return NULL;
	before = neighbour(rep, r);
	return before && before->end == r->mapping->start && before->name[0] == '/' ? before->name
										    : NULL;
}

/* A program that the process has executed before or since, or another library, had a file of its own there. */
static bool is_anothers_too(const struct report *rep, const struct range *r, const char *name)
{
	const uint64_t at = *r->mapping->name ? r->start : r->mapping->start - 1;

	for (size_t i = 0; i < rep->p->maps.n; i++) {
		const struct trace_mapping *m = &rep->p->maps.v[i];

		if (trace_mapping_is_of(m, r->uid, r->pid) && m->name[0] == '/' &&
		    at - m->start < m->end - m->start && strcmp(m->name, name))
			return true;
	}
	return false;
}

/* Its first mapping at or below the page: the process may have had it at several places, one after the other. */
static const struct trace_mapping *first_mapping(const struct report *rep, const struct range *r,
						 const char *name)
{
	const struct trace_mapping *lowest = NULL, *nearest = NULL;

	for (size_t i = 0; i < rep->p->maps.n; i++) {
		const struct trace_mapping *m = &rep->p->maps.v[i];

		if (!trace_mapping_is_of(m, r->uid, r->pid) || strcmp(m->name, name))
			continue;
		if (!lowest || m->start < lowest->start)
			lowest = m;
		if (!m->offset && m->start <= r->start && (!nearest || m->start > nearest->start))
			nearest = m;
	}
	return nearest ? nearest : lowest;
}

const char *report_pages_module(const struct report *rep, const struct range *r, uint64_t *base)
{
	const char *name =
		r->mapping && r->mapping->name[0] == '/' ? r->mapping->name : module_before(rep, r);
	const struct trace_mapping *first;

	if (!name || is_anothers_too(rep, r, name))
		return NULL;
	first = first_mapping(rep, r, name);
	*base = first ? first->start - first->offset : 0;
	return name;
}

static size_t symbols_of(const struct report *rep, const struct range *r, const char *names[],
			 size_t max)
{
	uint64_t base;
	const char *module = rep->o->symbols.find ? report_pages_module(rep, r, &base) : NULL;

	return module ? rep->o->symbols.find(rep->o->symbols.ctx, module, r->start - base,
					     r->end - base, names, max)
		      : 0;
}

/* ---- sums ---- */

static void add(struct range *to, const struct range *r)
{
	to->end = r->end;
	to->pages += r->pages;
	to->reads += r->reads;
	to->writes += r->writes;
	to->mixed |= r->mixed;
}

/* Of all threads. */
static struct range page_at(const struct report *rep, size_t first)
{
	const struct trace_page *p = &rep->p->v.v[first], *end = rep->p->v.v + rep->p->v.n;
	const uint32_t uid = p->uid;
	struct range r = {
		.uid = p->uid,
		.pid = report_pages_pid(rep, p->uid),
		.start = p->address,
		.end = p->address + rep->p->unit,
		.pages = 1,
		.first = first,
	};

	for (uint32_t last = 0; p < end && p->uid == uid && p->address == r.start; p++) {
		bool is_new = p->writes && (!r.writers || p->tid != last);

		r.n++;
		r.writers += is_new;
		if (p->writes)
			last = p->tid;
		r.reads += p->reads;
		r.writes += p->writes;
	}
	r.mapping = trace_pages_mapping(rep->p, r.uid, r.pid, r.start);
	r.mixed = trace_pages_are_mixed(rep->p, r.mapping, r.uid, r.pid, r.start);
	return r;
}

static void take_pages(struct report *rep)
{
	for (size_t i = 0; i < rep->p->v.n; i += rep->pages.v[rep->pages.n - 1].n) {
		struct range r = page_at(rep, i);
		struct range *last = rep->ranges.n ? &rep->ranges.v[rep->ranges.n - 1] : NULL;

		r.at = rep->pages.n;
		rep->many |= last && last->pid != r.pid;
		*vec_push(&rep->pages) = r;
		add(&rep->sum, &r);
		if (last && last->uid == r.uid && last->mapping == r.mapping &&
		    last->end == r.start)
			add(last, &r);
		else
			*vec_push(&rep->ranges) = r;
	}
}

static int by_mapping(const void *a, const void *b)
{
	const struct range *x = a, *y = b;
	int order;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	order = strcmp(trace_mapping_name(x->mapping), trace_mapping_name(y->mapping));
	if (order)
		return order;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* Those with one name are one: a module, all anonymous memory. */
static void take_mappings(struct report *rep)
{
	VEC(struct range) v = {0};

	vec_for(&rep->ranges, r)
		*vec_push(&v) = *r;
	if (v.n)
		qsort(v.v, v.n, sizeof(v.v[0]), by_mapping);
	vec_for(&v, r) {
		struct range *last = rep->mappings.n ? &rep->mappings.v[rep->mappings.n - 1] : NULL;

		if (last && last->pid == r->pid &&
		    !strcmp(trace_mapping_name(last->mapping), trace_mapping_name(r->mapping)))
			add(last, r);
		else
			*vec_push(&rep->mappings) = *r;
	}
	vec_free(&v);
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

static uint64_t counter_of(const struct report *rep, uint64_t references)
{
	return references % ((1u << rep->o->width) - 1);
}

static uint64_t mirror_of(const struct report *rep, uint64_t references)
{
	uint64_t n = references - counter_of(rep, references);

	return n < UINT32_MAX ? n : UINT32_MAX;
}

/* ---- output ---- */

enum table { TABLE_MAPPINGS, TABLE_RANGES, TABLE_PAGES };

void report_pages_ratio(FILE *f, uint64_t reads, uint64_t writes)
{
	if (writes)
		fprintf(f, " %8.2f", (double)reads / (double)writes);
	else
		fprintf(f, " %8s", "-");
}

void report_pages_reads_writes(FILE *f, uint64_t reads, uint64_t writes)
{
	char r[STR_NUMBER], w[STR_NUMBER];

	fprintf(f, "%15s %15s", str_thousands(r, sizeof(r), reads),
		str_thousands(w, sizeof(w), writes));
}

void report_pages_share(const struct report *rep, FILE *f, uint64_t reads, uint64_t writes)
{
	const uint64_t all = rep->sum.reads + rep->sum.writes;

	report_pages_reads_writes(f, reads, writes);
	report_pages_ratio(f, reads, writes);
	fprintf(f, " %6.2f%%", all ? 100.0 * (double)(reads + writes) / (double)all : 0.0);
}

/* Which variables lie there. */
static void put_symbols(const struct report *rep, FILE *f, const struct range *r)
{
	const char *names[REPORT_SYMBOLS];
	size_t n = symbols_of(rep, r, names, REPORT_SYMBOLS);

	for (size_t i = 0; i < n && i < REPORT_SYMBOLS; i++) {
		fputs(i ? ", " : ": ", f);
		text_put(f, names[i]);
	}
	if (n > REPORT_SYMBOLS)
		fprintf(f, " and %zu more", n - REPORT_SYMBOLS);
}

static void put_range(const struct report *rep, FILE *f, const struct range *r, enum table table)
{
	const char *module = table == TABLE_MAPPINGS ? NULL : module_before(rep, r);

	report_pages_share(rep, f, r->reads, r->writes);
	if (rep->o->width && table == TABLE_PAGES)
		fprintf(f, " %7" PRIu64 " %10" PRIu64, counter_of(rep, r->reads + r->writes),
			mirror_of(rep, r->reads + r->writes));
	if (table != TABLE_PAGES)
		fprintf(f, " %7" PRIu64, r->pages);
	if (table != TABLE_MAPPINGS)
		fprintf(f, "  0x%-14" PRIx64, r->start);
	else
		fputc(' ', f);
	if (rep->many)
		fprintf(f, " %7" PRIu32, r->pid);
	fputc(' ', f);
	text_put(f, trace_mapping_name(r->mapping));
	fputs(r->mixed ? " ~" : "", f);
	if (module) {
		fputs(", after ", f);
		text_put(f, module);
	}
	if (table == TABLE_PAGES)
		put_symbols(rep, f, r);
	fputc('\n', f);
}

/* What one thread did there, from all nodes: where the next one's begins. */
static size_t thread_at(const struct report *rep, const struct range *r, size_t i,
			struct trace_page *out)
{
	const struct trace_page *p = &rep->p->v.v[r->first];

	*out = p[i];
	for (i++; i < r->n && p[i].tid == out->tid; i++) {
		out->reads += p[i].reads;
		out->writes += p[i].writes;
	}
	return i;
}

static void put_threads(const struct report *rep, FILE *f, const struct range *r)
{
	struct trace_page one;

	for (size_t i = 0; i < r->n;) {
		i = thread_at(rep, r, i, &one);
		report_pages_reads_writes(f, one.reads, one.writes);
		fprintf(f, "  by thread %" PRIu32 "\n", one.tid);
	}
}

static void put_table(const struct report *rep, FILE *f, const struct range *v, size_t n,
		      enum table table)
{
	uint64_t limit = rep->o->limit ? rep->o->limit : LIMIT;
	size_t shown = n < limit ? n : limit;
	bool has_width = rep->o->width && table == TABLE_PAGES;

	fprintf(f, "%15s %15s %8s %7s%s%s%s%s %s\n", "Reads", "Writes", "R/W", "Share",
		table == TABLE_PAGES              ? ""
		: rep->p->unit == TRACE_LINE_SIZE ? "   Lines"
						  : "   Pages",
		has_width ? " Counter   Extended" : "",
		table != TABLE_MAPPINGS ? "  Address         " : " ", rep->many ? "     Pid" : "",
		table == TABLE_PAGES ? "Mapping: variables" : "Mapping");
	for (size_t i = 0; i < shown; i++) {
		put_range(rep, f, &v[i], table);
		if (rep->o->sharing)
			put_threads(rep, f, &v[i]);
		if (rep->o->functions)
			report_pages_row_functions(rep, f, &v[i], table == TABLE_MAPPINGS);
		if (rep->sites && table == TABLE_PAGES)
			report_pages_row_sites(rep, f, &v[i]);
	}
	if (shown < n)
		fprintf(f, "and %zu more (-n)\n", n - shown);
}

static void put_head(const struct report *rep, FILE *f)
{
	char reads[STR_NUMBER], writes[STR_NUMBER], pages[STR_NUMBER];

	fprintf(f, "%s reads and %s writes in %s %s of %u bytes",
		str_thousands(reads, sizeof(reads), rep->sum.reads),
		str_thousands(writes, sizeof(writes), rep->sum.writes),
		str_thousands(pages, sizeof(pages), rep->sum.pages), report_pages_units(rep),
		rep->p->unit);
	if (rep->sum.writes)
		fprintf(f, "; %.2f reads a write",
			(double)rep->sum.reads / (double)rep->sum.writes);
	fputc('\n', f);
}

static void put_text(const struct report *rep, FILE *f)
{
	bool is_lines = rep->p->unit == TRACE_LINE_SIZE;

	put_head(rep, f);
	if (rep->sum.mixed)
		fputs("~: other mappings were at some of the addresses at another time, and what was counted there is "
		      "of all of them\n",
		      f);
	if (rep->o->functions)
		report_pages_functions(rep, f);
	if (rep->sites)
		report_pages_sites(rep, f);
	if (rep->o->sharing) {
		fprintf(f, "\n%s that several threads write\n", is_lines ? "Lines" : "Pages");
	} else {
		fputs("\nMappings\n", f);
		put_table(rep, f, rep->mappings.v, rep->mappings.n, TABLE_MAPPINGS);
		fputs("\nRanges\n", f);
		put_table(rep, f, rep->ranges.v, rep->ranges.n, TABLE_RANGES);
		fputs(is_lines ? "\nLines\n" : "\nPages\n", f);
	}
	put_table(rep, f, rep->pages.v, rep->pages.n, TABLE_PAGES);
	if (rep->o->steps)
		report_pages_steps(rep, f);
	if (rep->p->nodes > 1)
		report_pages_nodes(rep, f);
	if (rep->o->migrate)
		report_pages_moves(rep, f);
}

/* ---- JSON ---- */

static void put_json_node(struct json *j, const char *key, int node)
{
	json_key(j, key);
	if (node == TRACE_NODE_UNKNOWN)
		json_str(j, NULL);
	else
		json_i64(j, node);
}

static void put_json_threads(const struct report *rep, struct json *j, const struct range *r)
{
	struct trace_page one;

	json_key(j, "threads");
	json_open(j, '[');
	for (size_t i = 0; i < r->n;) {
		i = thread_at(rep, r, i, &one);
		json_open(j, '{');
		json_ku64(j, "tid", one.tid);
		json_ku64(j, "reads", one.reads);
		json_ku64(j, "writes", one.writes);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_json_symbols(const struct report *rep, struct json *j, const struct range *r)
{
	const char *names[64];
	size_t n = symbols_of(rep, r, names, 64);

	json_key(j, "variables");
	json_open(j, '[');
	for (size_t i = 0; i < n && i < 64; i++)
		json_str(j, names[i]);
	json_close(j, ']');
}

static void put_json_row(const struct report *rep, struct json *j, const struct range *r, int node,
			 uint64_t reads, uint64_t writes)
{
	char address[STR_NUMBER];

	snprintf(address, sizeof(address), "0x%" PRIx64, r->start);
	json_open(j, '{');
	json_kstr(j, "address", address);
	json_ku64(j, "size", rep->p->unit);
	put_json_node(j, "node", node);
	json_ku64(j, "reads", reads);
	json_ku64(j, "writes", writes);
	if (rep->o->width) {
		json_ku64(j, "counter", counter_of(rep, reads + writes));
		json_ku64(j, "extended", mirror_of(rep, reads + writes));
	}
	json_ku64(j, "pid", r->pid);
	json_kstr(j, "mapping", r->mapping && *r->mapping->name ? r->mapping->name : NULL);
	if (r->mixed) {
		json_key(j, "mixed");
		json_bool(j, true);
	}
	put_json_symbols(rep, j, r);
	if (rep->p->nodes > 1)
		put_json_node(j, "home", trace_pages_home(rep->p, r->uid, r->start));
	if (rep->o->sharing)
		put_json_threads(rep, j, r);
	if (rep->o->functions)
		report_pages_json_functions(rep, j, r);
	if (rep->sites)
		report_pages_json_sites(rep, j, r);
	json_close(j, '}');
}

/* One object for each node that used it. */
static void put_json_page(const struct report *rep, struct json *j, const struct range *r)
{
	struct node_use use;

	if (rep->p->nodes <= 1 || rep->o->sharing || rep->o->functions || rep->sites) {
		put_json_row(rep, j, r, rep->p->nodes <= 1 ? 0 : TRACE_NODE_UNKNOWN, r->reads,
			     r->writes);
		return;
	}
	report_pages_by_node(rep, r, &use);
	for (uint32_t k = 0; k <= TRACE_NODES_MAX; k++)
		if (use.reads[k] || use.writes[k])
			put_json_row(rep, j, r, k < TRACE_NODES_MAX ? (int)k : TRACE_NODE_UNKNOWN,
				     use.reads[k], use.writes[k]);
}

static void put_json(const struct report *rep, FILE *f)
{
	uint64_t limit = rep->o->limit;
	size_t n = limit && limit < rep->pages.n ? limit : rep->pages.n;
	struct json j = JSON_INIT(f);

	if (rep->o->steps) {
		report_pages_steps_json(rep, &j);
		return;
	}
	json_open(&j, '[');
	for (size_t i = 0; i < n; i++)
		put_json_page(rep, &j, &rep->pages.v[i]);
	json_close(&j, ']');
}

static void sort_hottest(struct range *v, size_t n)
{
	if (n)
		qsort(v, n, sizeof(*v), hottest_first);
}

void report_pages(const struct trace *t, const struct trace_pages *p, const struct pages_options *o,
		  FILE *f)
{
	struct report rep = {.t = t, .p = p, .o = o};

	take_pages(&rep);
	take_mappings(&rep);
	if (o->sites)
		rep.sites = report_pages_sites_read(&rep);
	if (o->sharing)
		keep_shared(&rep);
	sort_hottest(rep.pages.v, rep.pages.n);
	sort_hottest(rep.ranges.v, rep.ranges.n);
	sort_hottest(rep.mappings.v, rep.mappings.n);
	if (o->json)
		put_json(&rep, f);
	else
		put_text(&rep, f);
	report_pages_sites_free(rep.sites);
	vec_free(&rep.pages);
	vec_free(&rep.ranges);
	vec_free(&rep.mappings);
}

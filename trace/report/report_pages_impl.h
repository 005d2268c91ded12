/* SPDX-License-Identifier: MIT */
/*
 * report_pages_impl.h - the parts of the report of pages.
 *
 *   report_pages.c        sums, names, tables, JSON of pages
 *   report_pages_steps.c  what was touched between two looks
 *   report_pages_functions.c  which functions touch what
 *   report_pages_sites.c  who has allocated what lies there
 *   report_pages_nodes.c  who uses what from where, and what follows
 */
#ifndef REPORT_PAGES_IMPL_H
#define REPORT_PAGES_IMPL_H

#include "base/json.h"
#include "base/vec.h"
#include "trace/report/report_pages.h"

#define LIMIT 20u

struct range {
	const struct trace_mapping *mapping;
	uint32_t uid, pid;
	uint64_t start, end;
	uint64_t pages, reads, writes;
	size_t first, n; /* of a page: what its threads did, p->v.v[first] ... */
	size_t at;       /* of a page: the how many-th it is by process and address */
	unsigned writers;
	bool mixed; /* other mappings were there, too, at another time */
};

struct report {
	const struct trace *t;
	const struct trace_pages *p;
	const struct pages_options *o;
	bool many; /* processes */
	VEC(struct range) pages, ranges, mappings;
	struct range sum;
	struct sites *sites; /* NULL: not asked for */
};

/* "pages", or "lines". */
const char *report_pages_units(const struct report *rep);
uint32_t report_pages_pid(const struct report *rep, uint32_t uid);
void report_pages_reads_writes(FILE *f, uint64_t reads, uint64_t writes);
void report_pages_ratio(FILE *f, uint64_t reads, uint64_t writes);
/* Both of these, and how much of all that is. */
void report_pages_share(const struct report *rep, FILE *f, uint64_t reads, uint64_t writes);

/* A table of all functions; who touched what a row shows, in lines below it; the same of a page. */
void report_pages_functions(const struct report *rep, FILE *f);
void report_pages_row_functions(const struct report *rep, FILE *f, const struct range *r,
				bool is_mapping);
void report_pages_json_functions(const struct report *rep, struct json *j,
				 const struct range *page);

/* The file that holds what lies at r->start, and where its first byte is in memory; NULL: none does. */
const char *report_pages_module(const struct report *rep, const struct range *r, uint64_t *base);

/* While rep->pages are in their order. */
struct sites *report_pages_sites_read(const struct report *rep);
void report_pages_sites_free(struct sites *s);
/* A table of all; of a page, in a line below its row; the same as JSON. */
void report_pages_sites(const struct report *rep, FILE *f);
void report_pages_row_sites(const struct report *rep, FILE *f, const struct range *page);
void report_pages_json_sites(const struct report *rep, struct json *j, const struct range *page);

void report_pages_steps(const struct report *rep, FILE *f);
void report_pages_steps_json(const struct report *rep, struct json *j);

/* References of a page by node; the last one is of those that are not known. */
struct node_use {
	uint64_t reads[TRACE_NODES_MAX + 1], writes[TRACE_NODES_MAX + 1];
};
void report_pages_by_node(const struct report *rep, const struct range *page, struct node_use *out);
void report_pages_nodes(const struct report *rep, FILE *f);
void report_pages_moves(const struct report *rep, FILE *f);

#endif

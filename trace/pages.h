/* SPDX-License-Identifier: MIT */
/*
 * pages.h - the file `pages` of a trace directory: page reference counters, and what was mapped where.
 * It is written once, at the end of a recording.
 */
#ifndef TRACE_PAGES_H
#define TRACE_PAGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"

#define TRACE_PAGE_SIZE 4096u

/* What one thread did to one page. */
struct trace_page {
	uint32_t uid; /* process, as in `tasks` */
	uint32_t tid; /* 0 in older traces, which do not tell threads apart */
	uint64_t address;
	uint64_t reads, writes;
};

struct trace_mapping {
	uint32_t pid;
	uint64_t start, end;
	char *name; /* as /proc/PID/maps has it; "" */
};

struct trace_pages {
	VEC(struct trace_page) v; /* by process, address and thread */
	VEC(struct trace_mapping) maps;
};

/* 0, or -errno. */
int trace_pages_write(const char *dir, const struct trace_page *v, size_t n,
		      const struct trace_mapping *maps, size_t nmaps);
/* Without a file: -ENOENT. */
int trace_pages_read(struct trace_pages *out, const char *dir, struct err *err);
void trace_pages_free(struct trace_pages *p);
/* The mapping that holds the address, the one noted last; NULL: none is known. */
const struct trace_mapping *trace_pages_mapping(const struct trace_pages *p, uint32_t pid,
						uint64_t address);

#endif

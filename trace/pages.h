/* SPDX-License-Identifier: MIT */
/*
 * pages.h - the file `pages` of a trace directory: page reference counters, what was mapped where, and what was
 * seen at each look.  It is written once, at the end of a recording.
 *
 * The unit that is counted is a page of 4096 bytes or a line of 64; "page" means it below.
 */
#ifndef TRACE_PAGES_H
#define TRACE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"

#define TRACE_PAGE_SIZE 4096u
#define TRACE_LINE_SIZE 64u
#define TRACE_NODES_MAX 64u
#define TRACE_NODE_UNKNOWN (-1)

/* What one thread did to one page, from one node. */
struct trace_page {
	uint32_t uid; /* process, as in `tasks` */
	uint32_t tid; /* 0 in older traces, which do not tell threads apart */
	uint64_t address;
	uint64_t reads, writes;
	int32_t node; /* or TRACE_NODE_UNKNOWN */
};

/* What one function did to one page, in all threads of a process. */
struct trace_page_function {
	uint32_t uid;
	uint32_t function; /* its number in the trace */
	uint64_t address;
	uint64_t reads, writes;
};

/* What all threads of a process did to a page between two looks. */
struct trace_page_step {
	uint32_t look; /* which ended it, counted from 0 */
	uint32_t uid;
	uint64_t address;
	uint64_t reads, writes;
};

/* On which node a page of 4096 bytes was when it was last looked for. */
struct trace_page_home {
	uint32_t uid;
	int32_t node;
	uint64_t address;
	int32_t rehearsed; /* while it is recorded: 1 + where it would be by now; 0: not moved */
};

/* A page that went to the node that uses it. */
struct trace_page_move {
	uint64_t ns; /* from the start of the recording */
	uint32_t uid;
	int32_t from, to;
	int32_t code; /* 0: it is there; -errno; 1: a rehearsal, nothing was moved */
	uint64_t address;
	uint64_t local, remote; /* references since it came to `from`: from there, and from `to` */
};

struct trace_mapping {
	uint32_t
		uid; /* 0 in older traces, which know the pid only: a program that it has executed has the same */
	uint32_t pid;
	uint64_t start, end, offset; /* offset: of start, in the file */
	char *name;                  /* as /proc/PID/maps has it; "": nobody gave it one */
};

/* A mapping, in the order of owners and addresses. */
struct trace_place {
	uint32_t at;  /* index of the mapping */
	uint64_t end; /* the highest of its owner's mappings up to here */
};

struct trace_pages {
	VEC(struct trace_page) v; /* by process, address, thread and node */
	VEC(struct trace_page_function)
	functions; /* by process, address and function; none: not counted by function */
	VEC(struct trace_mapping) maps;
	VEC(struct trace_place) places; /* of what was read: where to look for an address */
	uint32_t unit;                  /* bytes */
	uint32_t nodes;                 /* of the machine, that have processors */
	bool is_test;                   /* a map of processors to nodes that somebody made up */
	/* References of threads that had changed their node between two looks: they stand at the later one. */
	uint64_t unsure;
	VEC(uint64_t) looks; /* when, in ns from the start of the recording; none: nobody looked */
	VEC(struct trace_page_step) steps; /* by look, process and address */
	VEC(struct trace_page_home) homes; /* by process and address */
	VEC(struct trace_page_move) moves; /* by time */
};

/* 0, or -errno. */
int trace_pages_write(const char *dir, const struct trace_pages *p);
/* Without a file: -ENOENT. */
int trace_pages_read(struct trace_pages *out, const char *dir, struct err *err);
/* Is there a file of which a part is missing, or not what was written? */
bool trace_pages_are_damaged(int dirfd);
void trace_pages_free(struct trace_pages *p);
/* Is, or was, it this process's? */
bool trace_mapping_is_of(const struct trace_mapping *m, uint32_t uid, uint32_t pid);
/* The mapping that holds the address, the one noted last; NULL: none is known.  Of what was read. */
const struct trace_mapping *trace_pages_mapping(const struct trace_pages *p, uint32_t uid,
						uint32_t pid, uint64_t address);
/*
 * Mappings with other names than m, which trace_pages_mapping() has given, held the address, too, at another time: what
 * was counted there is of all of them.
 */
bool trace_pages_are_mixed(const struct trace_pages *p, const struct trace_mapping *m, uint32_t uid,
			   uint32_t pid, uint64_t address);
/* For people, of none as well. */
const char *trace_mapping_name(const struct trace_mapping *m);
/* For qsort(), of struct trace_page_step: by process, address and look. */
int trace_page_step_compare(const void *a, const void *b);
/* TRACE_NODE_UNKNOWN: the page was never seen. */
int trace_pages_home(const struct trace_pages *p, uint32_t uid, uint64_t address);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * impl.h - the parts of librefcnt.
 *
 *   refcnt.c ──► ask.c     which recording counts the process, and what it says
 *   node.c   ──► where.c   where pages lie, as the kernel tells
 *
 * It runs in other people's programs: it prints nothing, exits never, keeps no descriptor open between two
 * calls, and believes nothing that a traced process could have written.
 */
#ifndef LIBREFCNT_IMPL_H
#define LIBREFCNT_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <kron/control.h>

/* What it declares is what the library exports. */
#pragma GCC visibility push(default)
#include <refcnt.h>
#pragma GCC visibility pop

/* Counted pages by address and node, each once. */
struct rc_counts {
	struct kron_control_count *v;
	size_t n, cap;
	uint32_t nodes;                  /* of the machine */
	uint64_t absolute, differential; /* thresholds; 0: nothing is migrated */
};

struct rc_section {
	uint64_t start, end;   /* of pages */
	struct rc_counts then; /* what had been counted when it was enabled */
};

struct refcnt {
	pid_t pid; /* as the recorder is asked: 0 the calling process */
	unsigned width;
	struct rc_section *sections;
	size_t nsections;
	bool has_sections; /* only they are enabled */
};

/* Keeps the sentence, sets errno, and returns -code. */
int rc_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What the process has counted in [start, end), both of pages; *out is the caller's to free. */
int rc_ask(pid_t pid, uint64_t start, uint64_t end, struct rc_counts *out);
/* The same as the handle sees it. */
int rc_count(const struct refcnt *r, uint64_t start, uint64_t end, struct rc_counts *out);

/* One more; -ENOMEM. */
int rc_push(struct rc_counts *c, const struct kron_control_count *one);
/* NULL: nothing was counted there from this node. */
const struct kron_control_count *rc_find(const struct rc_counts *c, uint64_t address, int node);

/* Software mirror and hardware counter after so many references. */
refcnt_t rc_mirror(uint64_t references, unsigned width);
refcnt_t rc_hardware(uint64_t references, unsigned width);

/* Physical address and home node of n pages from `start` on, or that they are unknown; no size. */
void rc_where(pid_t pid, uint64_t start, size_t n, sn0_refcnt_buf_t *buf);
/* What size the pages have that map them. */
void rc_sizes(pid_t pid, uint64_t start, size_t n, sn0_refcnt_buf_t *buf);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * offcpu.h - when threads were off a processor, by the records of context switches in a trace.
 *
 * Trusts the file no more than the reader trusts the others.  A thread that goes twice without
 * having come back, or while records were lost, was seen off for the second time only: what is
 * not known counts as time on a processor.  All records are held in memory, twice 16 bytes each, and
 * 32 for each time that a thread was off.
 */
#ifndef TRACE_OFFCPU_H
#define TRACE_OFFCPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/reader.h"

struct offcpu_stretch {
	uint64_t out, in; /* in: UINT64_MAX: it never came back */
	uint64_t before;  /* ticks off in all stretches before this one */
	bool preempted;   /* it could have gone on */
	uint16_t from_cpu, to_cpu;
};

struct offcpu_counts {
	uint64_t records, outs, preempted, lost;
};

/* One thread's stretches in order, and where somebody is in them. */
struct offcpu_walk {
	const struct offcpu_stretch *v;
	size_t n, at; /* at: the first that is not over at the time last asked for */
};

struct offcpu;
struct offcpu *offcpu_open(const struct trace *t); /* empty where the trace has none */
void offcpu_close(struct offcpu *o);
bool offcpu_is_known(const struct trace *t); /* whether they were recorded */
/* Why they were not, a sentence. */
const char *offcpu_why_not(const struct trace *t);
struct offcpu_counts offcpu_count(const struct offcpu *o);
/* All records by time. */
const struct trace_switch *offcpu_records(const struct offcpu *o, size_t *n);
/* And with each thread that is on a processor when it ends, or when its trace of several does: out, of which there is no record. */
const struct trace_switch *offcpu_with_ends(const struct offcpu *o, size_t *n);
void offcpu_of(const struct offcpu *o, uint32_t tid, struct offcpu_walk *w);
/* Ticks that the thread was off before this time.  Times that go forward cost next to nothing. */
uint64_t offcpu_before(struct offcpu_walk *w, uint64_t tsc);

#endif

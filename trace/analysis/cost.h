/* SPDX-License-Identifier: MIT */
/*
 * cost.h - what the probes of a recording have cost.  Whoever says it takes it from here:
 *
 *   probes     all that took a sample, whatever became of it: in the trace, lost, let go by a
 *              trigger, or in a flight recorder's ring.  A probe that is switched off, or only
 *              counts, is not among them
 *   probes_ns  their number times the cost of one, and what a board made its users wait
 *   cpu_ns     processor time, user and system, of all threads of the program and of the processes
 *              that it waited for, traced or not, with the probes
 *   percent    100 * probes_ns / (cpu_ns - probes_ns): of the processor time that the program
 *              would have taken without them
 *   error_ns   what probes_ns may be off by: the range of percent comes from it.  Where that is so
 *              wide that a figure in it says nothing, there is the least, and no percent
 */
#ifndef TRACE_COST_H
#define TRACE_COST_H

#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "trace/reader.h"

struct cost {
	uint64_t probes;
	double probe_ns; /* one of them; 0: not measured */
	bool uncounted; /* of a flight recorder that was killed: nobody knows how many probes ran */
	double probes_ns;
	double error_ns;
	uint64_t cpu_ns;                 /* 0: not known */
	double percent;                  /* below 0: it cannot be told */
	double percent_min, percent_max; /* likewise */
};

/* How far the measured cost of a probe may be off; limit_ns: reading the clock and one store, 0: not known. */
double cost_probe_error(double probe_ns, double limit_ns);
/* error_ns: of one probe; waits: NODECLKs. */
void cost_take(struct cost *c, uint64_t probes, double probe_ns, double error_ns, uint64_t waits,
	       uint64_t cpu_ns);
/* By the session; counted: samples in the trace, where that does not say. */
void cost_of_trace(struct cost *c, const struct trace *t, uint64_t counted);
/* "about 41%", "at least 91%", "about 6.969 ms" where the share cannot be told, "an unknown time". */
#define COST_TEXT 48
const char *cost_text(char *buf, const struct cost *c);
/* "6.969 ms, 41% (26 to 61%) of the 17.0 ms (+-2.1 ms) of processor time that the program took without them" */
void cost_print(FILE *out, const struct cost *c);
/* probes_run, probes_ns and _error, cpu_ns, probes_percent, _min and _max; what is not known is null. */
void cost_json(struct json *j, const struct cost *c);

#endif

/* SPDX-License-Identifier: MIT */
/* cost.c - see cost.h. */
#define _GNU_SOURCE
#include "trace/analysis/cost.h"

#include <stdlib.h>

#include "base/number.h"
#include "base/str.h"

/*
 * What one costs was measured in a loop, and is a third off at times.  Close to all of the time,
 * what remains for the program is not a figure any more.
 */
#define SHARE_MAX 0.95

static double percent_of(const struct cost *c)
{
	double cpu = (double)c->cpu_ns;

	if (c->probe_ns <= 0 || cpu <= 0 || c->probes_ns > SHARE_MAX * cpu)
		return -1;
	return 100.0 * c->probes_ns / (cpu - c->probes_ns);
}

void cost_take(struct cost *c, uint64_t probes, double probe_ns, uint64_t waits, uint64_t cpu_ns)
{
	*c = (struct cost){
		.probes = probes,
		.probe_ns = probe_ns,
		.probes_ns = (double)probes * probe_ns + (double)waits * 1e9 / KRON_OSCILLATOR_HZ,
		.cpu_ns = cpu_ns,
	};
	c->percent = percent_of(c);
}

void cost_of_trace(struct cost *c, const struct trace *t, uint64_t counted)
{
	const char *s = trace_session(t, "probe_ns");
	double probe_ns = s ? strtod(s, NULL) : 0;
	uint64_t probes = trace_session_number(t, "samples", counted) +
			  trace_session_number(t, "lost", t->lost) +
			  trace_session_number(t, "outside", 0) +
			  trace_session_number(t, "ring_samples", 0);

	if (trace_session(t, "flight") && !trace_session(t, "snapshot") &&
	    !trace_session(t, "ring_samples")) {
		cost_take(c, 0, 0, 0, 0);
		c->uncounted = true;
		return;
	}
	cost_take(c, probes, probe_ns > 0 && probe_ns < 1e9 ? probe_ns : 0,
		  trace_session_number(t, "board_waits", 0), trace_session_number(t, "cpu_ns", 0));
}

static const char *percent_text(char *buf, size_t size, double percent)
{
	snprintf(buf, size, "%.*f%%", percent < 10 ? 1 : 0, percent);
	return buf;
}

const char *cost_text(char *buf, const struct cost *c)
{
	if (c->percent >= 0)
		return percent_text(buf, COST_TEXT, c->percent);
	if (c->probe_ns > 0)
		return str_duration(buf, COST_TEXT, number_u64(c->probes_ns));
	snprintf(buf, COST_TEXT, "unknown");
	return buf;
}

void cost_print(FILE *out, const struct cost *c)
{
	char cost[STR_NUMBER], cpu[STR_NUMBER], percent[16];

	if (c->uncounted) {
		fputs("unknown: its end is not known (snapshots know theirs)", out);
		return;
	}
	if (c->probe_ns <= 0) {
		fputs("not measured", out);
		return;
	}
	fputs(str_duration(cost, sizeof(cost), number_u64(c->probes_ns)), out);
	if (c->percent >= 0)
		fprintf(out, ", %s of the %s of processor time that the program took without them",
			percent_text(percent, sizeof(percent), c->percent),
			str_duration(cpu, sizeof(cpu), c->cpu_ns - number_u64(c->probes_ns)));
	else if (c->cpu_ns)
		fprintf(out, ", nearly all of the %s of processor time that the program took",
			str_duration(cpu, sizeof(cpu), c->cpu_ns));
}

static void json_known(struct json *j, const char *key, double v, bool known)
{
	json_key(j, key);
	if (known)
		json_f64(j, v);
	else
		json_str(j, NULL);
}

void cost_json(struct json *j, const struct cost *c)
{
	json_ku64(j, "probes_run", c->probes);
	json_known(j, "probes_ns", c->probes_ns, c->probe_ns > 0);
	if (c->cpu_ns)
		json_ku64(j, "cpu_ns", c->cpu_ns);
	else
		json_kstr(j, "cpu_ns", NULL);
	json_known(j, "probes_percent", c->percent, c->percent >= 0);
}

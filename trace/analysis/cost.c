/* SPDX-License-Identifier: MIT */
/* cost.c - see cost.h. */
#define _GNU_SOURCE
#include "trace/analysis/cost.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/str.h"

/*
 * The cost was measured in a loop over samples that stay in the cache.  A program that does
 * nothing but small calls was seen to pay from 6% less (what the processor does meanwhile) to
 * 38% more (on a busy machine), so this is about the least to reckon with, and not the most that was seen.
 */
#define PROBE_ERROR 0.3

double cost_probe_error(double probe_ns, double limit_ns)
{
	const double rest = limit_ns > 0 && limit_ns < probe_ns ? probe_ns - limit_ns : 0;

	return rest > probe_ns * PROBE_ERROR ? rest : probe_ns * PROBE_ERROR;
}

/* Of all that was taken: above it, what remains for the program is not a figure any more. */
#define SHARE_MAX 0.95
/* From the least that the share may be to the most: what lies between says nothing. */
#define RANGE_MAX 4

/* Below 0: it cannot be told. */
static double percent_of(const struct cost *c, double probes_ns)
{
	const double cpu = (double)c->cpu_ns;

	if (c->probe_ns <= 0 || cpu <= 0 || probes_ns > SHARE_MAX * cpu)
		return -1;
	return 100.0 * probes_ns / (cpu - probes_ns);
}

void cost_take(struct cost *c, uint64_t probes, double probe_ns, double error_ns, uint64_t waits,
	       uint64_t cpu_ns)
{
	*c = (struct cost){
		.probes = probes,
		.probe_ns = probe_ns,
		.probes_ns = (double)probes * probe_ns + (double)waits * 1e9 / KRON_OSCILLATOR_HZ,
		.error_ns = (double)probes * error_ns,
		.cpu_ns = cpu_ns,
	};
	c->percent_min = percent_of(c, c->probes_ns - c->error_ns);
	c->percent_max = percent_of(c, c->probes_ns + c->error_ns);
	c->percent = c->percent_max < 0 || c->percent_max > RANGE_MAX * c->percent_min
			     ? -1
			     : percent_of(c, c->probes_ns);
}

void cost_of_trace(struct cost *c, const struct trace *t, uint64_t counted)
{
	const char *s = trace_session(t, "probe_ns");
	const char *limit = trace_session(t, "probe_ns_limit");
	double probe_ns = s ? strtod(s, NULL) : 0;
	uint64_t probes = trace_session_number(t, "samples", counted) +
			  trace_session_number(t, "lost", t->lost) +
			  trace_session_number(t, "outside", 0) +
			  trace_session_number(t, "ring_samples", 0);

	if (trace_session(t, "flight") && !trace_session(t, "snapshot") &&
	    !trace_session(t, "ring_samples")) {
		cost_take(c, 0, 0, 0, 0, 0);
		c->uncounted = true;
		return;
	}
	if (!(probe_ns > 0 && probe_ns < 1e9))
		probe_ns = 0;
	cost_take(c, probes, probe_ns, cost_probe_error(probe_ns, limit ? strtod(limit, NULL) : 0),
		  trace_session_number(t, "board_waits", 0), trace_session_number(t, "cpu_ns", 0));
}

static const char *percent_text(char *buf, size_t size, double percent)
{
	snprintf(buf, size, "%.*f%%", percent < 10 ? 1 : 0, percent);
	return buf;
}

const char *cost_text(char *buf, const struct cost *c)
{
	char text[STR_NUMBER];

	if (c->percent >= 0)
		snprintf(buf, COST_TEXT, "about %s", percent_text(text, sizeof(text), c->percent));
	else if (c->percent_min >= 0)
		snprintf(buf, COST_TEXT, "at least %s",
			 percent_text(text, sizeof(text), c->percent_min));
	else if (c->probe_ns > 0)
		snprintf(buf, COST_TEXT, "about %s",
			 str_duration(text, sizeof(text), number_u64(c->probes_ns)));
	else
		snprintf(buf, COST_TEXT, "an unknown time");
	return buf;
}

static uint64_t without(const struct cost *c, double probes_ns)
{
	return c->cpu_ns - number_u64(probes_ns);
}

/* With what it may be off by, unless that is not to be seen. */
static void print_share(FILE *out, const struct cost *c)
{
	char share[16], least[16], most[16], base[STR_NUMBER], error[STR_NUMBER];
	bool is_exact;

	percent_text(share, sizeof(share), c->percent);
	percent_text(least, sizeof(least), c->percent_min);
	percent_text(most, sizeof(most), c->percent_max);
	str_duration(base, sizeof(base), without(c, c->probes_ns));
	str_duration(error, sizeof(error), number_u64(c->error_ns));
	is_exact = !strcmp(least, most);
	least[strlen(least) - 1] = 0;
	if (is_exact)
		fprintf(out, ", %s of the %s", share, base);
	else
		fprintf(out, ", %s (%s to %s) of the %s (+-%s)", share, least, most, base, error);
}

void cost_print(FILE *out, const struct cost *c)
{
	static const char rest[] = " of processor time that the program took without them";
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
	if (c->percent >= 0) {
		print_share(out, c);
		fputs(rest, out);
	} else if (c->percent_min >= 0) {
		fprintf(out, ", at least %s of the%s (%s at most)",
			percent_text(percent, sizeof(percent), c->percent_min),
			rest + strlen(" of"),
			str_duration(cpu, sizeof(cpu), without(c, c->probes_ns - c->error_ns)));
	} else if (c->cpu_ns) {
		fprintf(out, ", nearly all of the %s of processor time that the program took",
			str_duration(cpu, sizeof(cpu), c->cpu_ns));
	}
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
	json_known(j, "probes_ns_error", c->error_ns, c->probe_ns > 0);
	if (c->cpu_ns)
		json_ku64(j, "cpu_ns", c->cpu_ns);
	else
		json_kstr(j, "cpu_ns", NULL);
	json_known(j, "probes_percent", c->percent, c->percent >= 0);
	json_known(j, "probes_percent_min", c->percent_min, c->percent_min >= 0);
	json_known(j, "probes_percent_max", c->percent_max, c->percent_max >= 0);
}

/* SPDX-License-Identifier: MIT */
/* report_machine.c - see report_machine.h */
#define _GNU_SOURCE
#include "trace/report/report_machine.h"

#include <inttypes.h>

#include "base/str.h"
#include "base/vec.h"
#include "trace/text.h"

void report_line(FILE *out, const char *label, const char *text)
{
	if (!text || !*text)
		return;
	fprintf(out, REPORT_LABEL, label);
	text_put(out, text);
	fputc('\n', out);
}

/* Older traces do not say it. */
static void put_node(const struct trace *t, FILE *out)
{
	const char *node = trace_session(t, "node"), *from = trace_session(t, "node_from");
	const char *boot = trace_session(t, "boot_id"), *source = trace_session(t, "clocksource");

	char line[256];

	snprintf(line, sizeof(line), "%s%s%s", node ? node : "", from ? ", by " : "",
		 from ? from : "");
	report_line(out, "node:", line);
	snprintf(line, sizeof(line), "%s%s%s", boot ? boot : "", source ? ", clock source " : "",
		 source ? source : "");
	report_line(out, "boot:", line);
}

/* Of what came over a cable. */
static void put_readings(const struct trace *t, FILE *out)
{
	struct trace_clock c;

	if (trace_nodes(t) || !trace_clock(t, &c))
		return;
	fprintf(out, REPORT_LABEL "%zu readings of the collector's clock, ", "", c.readings);
	if (c.error_ns == UINT64_MAX)
		fputs("too few for a line\n", out);
	else
		fprintf(out, "%s, to %.3f us\n",
			c.is_line ? "a straight line" : "from one to the next",
			(double)c.error_ns / 1e3);
}

void report_machine_put(const struct trace *t, FILE *out)
{
	char cpu[256];
	const char *name = trace_session(t, "cpu"), *n = trace_session(t, "ncpu");

	report_line(out, "host:", trace_session(t, "hostname"));
	put_node(t, out);
	report_line(out, "kernel:", trace_session(t, "kernel"));
	snprintf(cpu, sizeof(cpu), "%s%s%s%s", n ? n : "", n ? " x " : "", name ? name : "",
		 name || !n ? "" : "CPU");
	report_line(out, "cpu:", cpu);
	fprintf(out, REPORT_LABEL "%.3f MHz%s\n", "clock:", t->tsc_hz / 1e6,
		t->complete ? "" : " (estimated: the recording was cut short)");
	put_readings(t, out);
	report_line(out, "recorded by:", trace_session(t, "kron"));
}

static void json_node(struct json *j, const struct trace *t)
{
	struct trace_clock c;

	json_key(j, "node");
	if (trace_session(t, "node"))
		json_u64(j, trace_session_number(t, "node", 0));
	else
		json_str(j, NULL);
	json_kstr(j, "node_from", trace_session(t, "node_from"));
	json_kstr(j, "boot_id", trace_session(t, "boot_id"));
	json_kstr(j, "clocksource", trace_session(t, "clocksource"));
	if (!trace_nodes(t) && trace_clock(t, &c)) {
		json_ku64(j, "clock_readings", c.readings);
		json_key(j, "clock_error_ns");
		if (c.error_ns == UINT64_MAX)
			json_str(j, NULL);
		else
			json_u64(j, c.error_ns);
	}
}

void report_machine_json(struct json *j, const struct trace *t)
{
	json_kstr(j, "hostname", trace_session(t, "hostname"));
	json_node(j, t);
	json_kstr(j, "kernel", trace_session(t, "kernel"));
	json_kstr(j, "cpu", trace_session(t, "cpu"));
	json_ku64(j, "ncpu", trace_session_number(t, "ncpu", 0));
	json_kstr(j, "kron", trace_session(t, "kron"));
}

/* ---- nodes ---- */

/* Of its lanes; counted already. */
static uint64_t samples_of(const struct trace *t, uint32_t node)
{
	uint64_t n = 0;

	for (size_t i = 0; i < t->nlanes; i++)
		if (t->lanes[i].node == node)
			n += t->lanes[i].samples;
	return n;
}

#define NODES_SHOWN 64

static void put_clock(const struct trace_node *n, FILE *out)
{
	fputs(n->how, out);
	if (n->error_ns == UINT64_MAX)
		fputs(", error unknown", out);
	else if (n->error_ns)
		fprintf(out, ", to %.3f us", (double)n->error_ns / 1e3);
	fputc('\n', out);
}

void report_machine_nodes(const struct trace *t, FILE *out)
{
	char number[STR_NUMBER];

	if (!trace_nodes(t))
		return;
	fprintf(out, "\n%-16s  %-16s  %5s  %14s  %8s  %s\n", "Node", "Host", "CPUs", "Samples",
		"Lost", "Clock");
	for (uint32_t i = 0; i < trace_nodes(t) && i < NODES_SHOWN; i++) {
		const struct trace_node *n = trace_node_at(t, i);
		const char *host = trace_session(n->t, "hostname");
		char *name = text_shown(n->name), *shown = text_shown(host ? host : "?");
		uint64_t ncpu = trace_session_number(n->t, "ncpu", 0);
		char cpus[48];

		snprintf(cpus, sizeof(cpus), "%" PRIu32 "-%" PRIu64, n->first_cpu,
			 n->first_cpu + (ncpu ? ncpu - 1 : 0));
		fprintf(out, "%-16.40s  %-16.64s  %5s  %14s  %8" PRIu64 "  ", name, shown, cpus,
			str_thousands(number, sizeof(number), samples_of(t, i)), n->t->lost);
		put_clock(n, out);
		xfree(name);
		xfree(shown);
	}
	if (trace_nodes(t) > NODES_SHOWN)
		fprintf(out, "... and %zu more (--json has all)\n", trace_nodes(t) - NODES_SHOWN);
}

void report_machine_nodes_json(struct json *j, const struct trace *t)
{
	if (!trace_nodes(t))
		return;
	json_key(j, "nodes");
	json_open(j, '[');
	for (uint32_t i = 0; i < trace_nodes(t); i++) {
		const struct trace_node *n = trace_node_at(t, i);

		json_open(j, '{');
		json_kstr(j, "name", n->name);
		json_kstr(j, "directory", n->t->dir);
		json_kstr(j, "hostname", trace_session(n->t, "hostname"));
		json_kstr(j, "boot_id", trace_session(n->t, "boot_id"));
		json_ku64(j, "first_cpu", n->first_cpu);
		json_ku64(j, "samples", samples_of(t, i));
		json_ku64(j, "lost", n->t->lost);
		json_key(j, "complete");
		json_bool(j, n->t->complete);
		json_kstr(j, "clock", n->how);
		json_key(j, "clock_error_ns");
		if (n->error_ns == UINT64_MAX)
			json_str(j, NULL);
		else
			json_u64(j, n->error_ns);
		json_close(j, '}');
	}
	json_close(j, ']');
}

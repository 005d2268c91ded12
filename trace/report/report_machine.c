/* SPDX-License-Identifier: MIT */
/* report_machine.c - see report_machine.h */
#define _GNU_SOURCE
#include "trace/report/report_machine.h"

#include <inttypes.h>

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
	report_line(out, "recorded by:", trace_session(t, "kron"));
}

static void json_node(struct json *j, const struct trace *t)
{
	json_key(j, "node");
	if (trace_session(t, "node"))
		json_u64(j, trace_session_number(t, "node", 0));
	else
		json_str(j, NULL);
	json_kstr(j, "node_from", trace_session(t, "node_from"));
	json_kstr(j, "boot_id", trace_session(t, "boot_id"));
	json_kstr(j, "clocksource", trace_session(t, "clocksource"));
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

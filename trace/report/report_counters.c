/* SPDX-License-Identifier: MIT */
/* report_counters.c - see report_counters.h. */
#include "trace/report/report_counters.h"

#include <stdlib.h>

#include "base/str.h"
#include "trace/report/report_machine.h"

#define COUNTERS 16u

/* What probes of kind count:J have counted, 0 where none has. */
static uint64_t counter(const struct trace *t, unsigned j)
{
	char key[16];

	snprintf(key, sizeof(key), "counter.%u", j);
	return trace_session_number(t, key, 0);
}

/* The next virtual counter of a session line; false: there is none. */
static bool next_virtual(const char **line, unsigned *number, uint64_t *count)
{
	char *end;

	if (!*line || !**line)
		return false;
	*number = (unsigned)strtoul(*line, &end, 10);
	if (end == *line || *end != ':' || *number >= TRACE_COUNTERS)
		return false;
	*line = end + 1;
	*count = strtoull(*line, &end, 10);
	if (end == *line || *end != ',')
		return false;
	*line = end + 1;
	return true;
}

/* Calls take with each virtual counter that is not zero, by number. */
static void each_virtual(const struct trace *t,
			 void (*take)(void *ctx, unsigned number, uint64_t count), void *ctx)
{
	for (unsigned k = 0; k < TRACE_COUNTERS / TRACE_COUNTERS_LINE; k++) {
		const char *line;
		unsigned number;
		uint64_t count;
		char key[24];

		snprintf(key, sizeof(key), "counters.%u", k);
		for (line = trace_session(t, key); next_virtual(&line, &number, &count);)
			take(ctx, number, count);
	}
}

static void print_virtual(void *ctx, unsigned number, uint64_t count)
{
	char n[STR_NUMBER];

	fprintf(ctx, REPORT_LABEL "%2u: %s\n", "counted:", number,
		str_thousands(n, sizeof(n), count));
}

static void json_virtual(void *ctx, unsigned number, uint64_t count)
{
	char key[16];

	snprintf(key, sizeof(key), "%u", number);
	json_ku64(ctx, key, count);
}

void report_counters_text(const struct trace *t, FILE *out)
{
	char n[STR_NUMBER];

	for (unsigned j = 0; j < COUNTERS; j++)
		if (counter(t, j))
			fprintf(out, REPORT_LABEL "%2u: %s\n", "counted:", j,
				str_thousands(n, sizeof(n), counter(t, j)));
	each_virtual(t, print_virtual, out);
}

void report_counters_json(struct json *j, const struct trace *t)
{
	json_key(j, "counters");
	json_open(j, '[');
	for (unsigned i = 0; i < COUNTERS; i++)
		json_u64(j, counter(t, i));
	json_close(j, ']');
	json_key(j, "virtual_counters");
	json_open(j, '{');
	each_virtual(t, json_virtual, j);
	json_close(j, '}');
}

/* SPDX-License-Identifier: MIT */
/* report_snapshots.c - see report_snapshots.h. */
#include "trace/report/report_snapshots.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "trace/report/report_machine.h"
#include "trace/text.h"

struct snapshot {
	char name[16];
	uint64_t ns; /* after the start */
	uint64_t samples, left_out;
	uint64_t matches; /* of --snapshot-on; 0: something else asked for it */
	const char *why;
};

bool report_samples_are_elsewhere(const struct trace *t)
{
	return trace_session(t, "flight") && !trace_session(t, "snapshot") && !t->nlanes;
}

/*
 * The first from line *n on of those that the recorder has written (collect/flight/flight.c); *n: the one after it.
 * What --worst has dropped has a line without numbers.
 */
static bool find(const struct trace *t, unsigned *n, struct snapshot *out)
{
	const char *line;
	char key[48];
	uint64_t tsc;
	int at = 0;

	do {
		snprintf(key, sizeof(key), "snapshot_%03u", (*n)++);
		line = trace_session(t, key);
	} while (line && !strcmp(line, "dropped"));
	if (!line || sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %n", &tsc, &out->samples,
			    &out->left_out, &at) != 3)
		return false;
	snprintf(out->name, sizeof(out->name), "%03u", *n - 1);
	out->ns = tsc > t->start_tsc ? trace_ns(t, tsc) - trace_ns(t, t->start_tsc) : 0;
	out->why = line + at;
	snprintf(key, sizeof(key), "snapshot_%s_matches", out->name);
	out->matches = trace_session_number(t, key, 0);
	return true;
}

static void put_matches(struct json *j, uint64_t matches)
{
	json_key(j, "matches");
	if (matches)
		json_u64(j, matches);
	else
		json_str(j, NULL);
}

void report_snapshots_put(const struct trace *t, FILE *out)
{
	const char *why = trace_session(t, "snapshot");
	struct snapshot s;
	char n[STR_NUMBER];

	if (!trace_session(t, "flight"))
		return;
	report_line(out, "flight:", trace_session(t, "flight"));
	if (why) { /* it has the lines of those before it, too */
		report_line(out, "snapshot:", why);
		return;
	}
	fprintf(out, "\nSnapshot          At         Samples  Why\n");
	for (unsigned i = 1; find(t, &i, &s);) {
		fprintf(out, "%8s  +%10.6f s  %12s  ", s.name, (double)s.ns / 1e9,
			str_thousands(n, sizeof(n), s.samples));
		text_put(out, s.why);
		if (s.left_out)
			fprintf(out, "; %" PRIu64 " chunks were overwritten meanwhile", s.left_out);
		fputc('\n', out);
	}
}

static void put(struct json *j, const struct trace *t, const struct snapshot *s)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", t->dir, s->name);
	json_open(j, '{');
	json_kstr(j, "name", s->name);
	json_kstr(j, "directory", path);
	json_kstr(j, "why", s->why);
	json_ku64(j, "at_ns", s->ns);
	json_ku64(j, "samples", s->samples);
	json_ku64(j, "left_out_chunks", s->left_out);
	put_matches(j, s->matches);
	json_close(j, '}');
}

void report_snapshots_json(struct json *j, const struct trace *t)
{
	const char *why = trace_session(t, "snapshot");
	struct snapshot s;

	if (!trace_session(t, "flight"))
		return;
	json_kstr(j, "flight", trace_session(t, "flight"));
	if (why) {
		json_key(j, "snapshot");
		json_open(j, '{');
		json_kstr(j, "why", why);
		json_ku64(j, "left_out_chunks", trace_session_number(t, "snapshot_left_out", 0));
		put_matches(j, trace_session_number(t, "snapshot_matches", 0));
		json_close(j, '}');
		return;
	}
	json_key(j, "snapshots");
	json_open(j, '[');
	for (unsigned i = 1; find(t, &i, &s);)
		put(j, t, &s);
	json_close(j, ']');
}

/* SPDX-License-Identifier: MIT */
/* report_events.c - kron report --events: the user's events, how often, and their values. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/str.h"
#include "base/vec.h"
#include "trace/report/report.h"
#include "trace/text.h"
#include "trace/value.h"

struct tally {
	const struct trace_user_event *event;
	uint64_t count;
	const struct trace_event_place *place; /* that its samples are of */
	bool of_several;                       /* or they are of several, or do not say which */
	uint64_t first_tsc, last_tsc;
	uint64_t numbers; /* of them have a payload that is a number */
	uint64_t unreadable, nan;
	double sum;
	struct value lowest, highest; /* payload */
};

static void add_sample(struct tally *v, const struct trace *t, const struct trace_event *e)
{
	const struct trace_event_place *place = trace_event_place(t, v->event, e->lane);
	const struct value x = value_of(v->event, e);

	if (!v->count++) {
		v->first_tsc = e->tsc;
		v->place = place;
	}
	v->of_several |= !place || place != v->place;
	v->last_tsc = e->tsc > v->last_tsc ? e->tsc : v->last_tsc;
	if (!value_is_number(x)) {
		v->unreadable += x.memory->is_unreadable;
		return;
	}
	if (isnan(value_double(x))) {
		v->nan++;
		return;
	}
	if (!v->numbers++)
		v->lowest = v->highest = x;
	v->lowest = value_is_less(x, v->lowest) ? x : v->lowest;
	v->highest = value_is_less(v->highest, x) ? x : v->highest;
	v->sum += value_double(x);
}

static int by_count(const void *a, const void *b)
{
	const struct tally *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->event->n < y->event->n ? -1 : x->event->n > y->event->n;
}

static struct tally *count_events(const struct trace *t)
{
	struct tally *v = xcalloc(t->nuser_events + 1, sizeof(*v));
	struct trace_cursor *c = trace_cursor_open(t, -1);
	struct trace_event e;

	for (size_t i = 0; i < t->nuser_events; i++)
		v[i].event = &t->user_events[i];
	while (trace_cursor_next(c, &e)) {
		const struct trace_user_event *u = trace_user_event_of(t, e.s.event);

		if (u)
			add_sample(&v[u - t->user_events], t, &e);
	}
	trace_cursor_close(c);
	qsort(v, t->nuser_events, sizeof(*v), by_count);
	return v;
}

/* Samples a second between the first and the last one; 0: cannot be told. */
static double rate_of(const struct trace *t, const struct tally *v)
{
	uint64_t ns = trace_ns(t, v->last_tsc - v->first_tsc);

	return v->count > 1 && ns ? (double)(v->count - 1) * 1e9 / (double)ns : 0;
}

/* Columns of a value. */
static int value_width(const struct trace *t)
{
	for (size_t i = 0; i < t->nuser_events; i++)
		if (t->user_events[i].type.bits == 64)
			return 20;
	return 10;
}

static void put_value(FILE *out, const struct tally *v, struct value value, int width)
{
	char text[VALUE_TEXT];

	if (v->event->payload[0] && v->numbers)
		fprintf(out, "  %*s", width, value_text(value, text));
	else
		fprintf(out, "  %*s", width, "-");
}

/* NULL: of several, or nobody can tell. */
static const struct trace_event_place *place_of(const struct tally *v)
{
	if (!v->count)
		return trace_only_place(v->event);
	return v->of_several ? NULL : v->place;
}

static void put_modules(const struct trace *t, const struct tally *v, FILE *out)
{
	const struct trace_event_place *at = place_of(v);
	char *modules = at ? NULL : text_event_modules(t, v->event, true);

	fputs(" [", out);
	text_put(out, at ? text_base(t->modules[at->module].path) : modules);
	fputs("]\n", out);
	xfree(modules);
}

static void put_row(const struct trace *t, const struct tally *v, int width, FILE *out)
{
	char count[STR_NUMBER];

	fprintf(out, "%12s  %12.0f", str_thousands(count, sizeof(count), v->count), rate_of(t, v));
	put_value(out, v, v->lowest, width);
	put_value(out, v, v->highest, width);
	fprintf(out, "  %5u  ", v->event->level);
	text_put(out, v->event->name);
	if (v->event->payload[0]) {
		fputc(' ', out);
		text_put(out, v->event->payload);
	}
	put_modules(t, v, out);
}

void json_event_module(struct json *j, const struct trace *t, const struct trace_user_event *u,
		       const struct trace_event_place *at)
{
	json_kstr(j, "module", at ? t->modules[at->module].path : NULL);
	if (at)
		return;
	json_key(j, "modules");
	json_open(j, '[');
	for (size_t i = 0; i < u->nplaces; i++)
		json_str(j, t->modules[u->places[i].module].path);
	json_close(j, ']');
}

static void put_refused_json(struct json *j, const struct trace *t,
			     const struct trace_user_event *u)
{
	const char *why;
	uint64_t wanted, refused = trace_event_refused(t, u, &wanted, &why);

	if (!refused)
		return;
	json_ku64(j, "places", wanted);
	json_ku64(j, "refused_places", refused);
	json_kstr(j, "refused", why);
}

static void put_object(struct json *j, const struct trace *t, const struct tally *v)
{
	json_open(j, '{');
	json_kstr(j, "event", v->event->name);
	json_ku64(j, "number", v->event->n);
	json_ku64(j, "level", v->event->level);
	json_kstr(j, "kind", v->event->resource ? "resource" : "trace");
	json_event_module(j, t, v->event, place_of(v));
	if (place_of(v))
		json_ku64(j, "address", place_of(v)->vaddr);
	else
		json_kstr(j, "address", NULL);
	json_ku64(j, "count", v->count);
	put_refused_json(j, t, v->event);
	json_key(j, "per_second");
	json_f64(j, rate_of(t, v));
	json_kstr(j, "payload", v->event->payload[0] ? v->event->payload : NULL);
	if (v->unreadable)
		json_ku64(j, "unreadable", v->unreadable);
	if (v->nan)
		json_ku64(j, "nan", v->nan);
	if (v->event->payload[0] && v->numbers) {
		json_key(j, "lowest");
		value_json(j, v->lowest);
		json_key(j, "highest");
		value_json(j, v->highest);
		json_key(j, "average");
		json_f64(j, v->sum / (double)v->numbers);
	}
	json_close(j, '}');
}

/* None of its places got a probe: nobody knows how often it happened. */
static bool is_refused(const struct trace *t, const struct trace_user_event *u)
{
	const char *why;
	uint64_t wanted, refused = trace_event_refused(t, u, &wanted, &why);

	return refused && refused == wanted;
}

#define REFUSED_SHOWN 20u

/* Those whose samples are not all that happened. */
static void put_refused(const struct trace *t, FILE *out)
{
	size_t n = 0;

	for (size_t i = 0; i < t->nuser_events; i++) {
		const char *why;
		uint64_t wanted;
		uint64_t refused = trace_event_refused(t, &t->user_events[i], &wanted, &why);

		if (!refused || n++ >= REFUSED_SHOWN)
			continue;
		text_put(out, t->user_events[i].name);
		if (wanted == 1)
			fputs(" could not be placed: ", out);
		else
			fprintf(out,
				": %" PRIu64 " of %" PRIu64 " places could not be had, the first: ",
				refused, wanted);
		text_put(out, why);
		fputc('\n', out);
	}
	if (n > REFUSED_SHOWN)
		fprintf(out, "and %zu more that were not, or not everywhere\n", n - REFUSED_SHOWN);
}

void report_events(const struct trace *t, bool json, uint64_t limit, FILE *out)
{
	struct tally *v = count_events(t);
	struct json j = JSON_INIT(out);
	int width = value_width(t);
	size_t silent = 0, n = limit && limit < t->nuser_events ? (size_t)limit : t->nuser_events;

	if (json)
		json_open(&j, '[');
	else
		fprintf(out, "%12s  %12s  %*s  %*s  %5s  %s\n", "Samples", "Per second", width,
			"Lowest", width, "Highest", "Level", "Event [Module]");
	for (size_t i = 0; i < n; i++) {
		silent += !v[i].count && !is_refused(t, v[i].event);
		if (json)
			put_object(&j, t, &v[i]);
		else if (v[i].count)
			put_row(t, &v[i], width, out);
	}
	if (json)
		json_close(&j, ']');
	else if (!t->nuser_events)
		fputs("no probes of events: kron record -p places some\n", out);
	else if (silent)
		fprintf(out, "%12zu  more that never happened%s%s\n", silent,
			t->filter ? " where the filter lets them through" : "",
			t->nchanges ? " while they had a probe (kron info: when that was)" : "");
	if (!json)
		put_refused(t, out);
	xfree(v);
}

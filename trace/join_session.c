/* SPDX-License-Identifier: MIT */
/*
 * join_session.c - the session of several traces that are read as one, and their nodes' names.
 *
 * What all say alike is said.  Counts are added up.  Words that differ stand side by side, each once.  Whatever
 * else differs is true of no whole, and is left out: each trace by itself still says it.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "trace/reader_impl.h"

static const char *const added[] = {"overwritten",   "left_out",       "outside",
				    "unsure",        "board_overruns", "board_waits",
				    "board_samples", "switches_lost",  "buffer",
				    "ring_samples"};
static const char *const listed[] = {"command", "hostname", "kernel",    "cpu",         "kron",
				     "node",    "boot_id",  "exit",      "clocksource", "device",
				     "error",   "trigger",  "when_full", "bus",         "timed",
				     "budget",  "keep"};

static bool is_among(const char *const *v, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(v[i], key))
			return true;
	return false;
}
#define AMONG(list, key) is_among(list, sizeof(list) / sizeof((list)[0]), key)

static void put(struct trace *t, const char *key, char *value)
{
	struct session_entry *e = vec_push(&priv_of(t)->session);

	e->key = xstrdup(key);
	e->value = value;
}

/* NULL: they differ, or one does not say it */
static const char *same_in_all(const struct trace_priv *p, const char *key)
{
	const char *value = trace_session(p->joined[0].t, key);

	for (size_t i = 1; value && i < p->njoined; i++)
		if (!trace_session_is(p->joined[i].t, key, value))
			value = NULL;
	return value;
}

/* Of these a recording that was cut short says none, and a reader counts itself. */
static const char *const totals[] = {"samples", "lost",      "cut_off", "probes",
				     "refused", "processes", "threads", "cpu_ns"};

/* NULL: nobody says it, or not all do who have to */
static char *sum_of(const struct trace_priv *p, const char *key)
{
	uint64_t sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < p->njoined; i++) {
		n += trace_session(p->joined[i].t, key) != NULL;
		sum += trace_session_number(p->joined[i].t, key, 0);
	}
	return n == p->njoined || (n && !AMONG(totals, key)) ? xasprintf("%" PRIu64, sum) : NULL;
}

#define LISTED_MAX 8

static char *list_of(const struct trace_priv *p, const char *key)
{
	const char *seen[LISTED_MAX];
	char *text = xstrdup("");
	size_t n = 0, more = 0;

	for (size_t i = 0; i < p->njoined; i++) {
		const char *value = trace_session(p->joined[i].t, key);
		char *longer;

		if (!value || !*value || is_among(seen, n, value))
			continue;
		if (n == LISTED_MAX) {
			more++;
			continue;
		}
		seen[n++] = value;
		longer = xasprintf("%s%s%s", text, *text ? ", " : "", value);
		xfree(text);
		text = longer;
	}
	if (more) {
		char *longer = xasprintf("%s ...", text);

		xfree(text);
		text = longer;
	}
	return text;
}

static bool is_put(const struct trace *t, const char *key)
{
	return trace_session(t, key) != NULL;
}

static void put_key(struct trace *t, const char *key)
{
	const struct trace_priv *p = priv_of(t);
	const char *same;
	char *text;

	if (is_put(t, key))
		return;
	if (AMONG(added, key) || AMONG(totals, key)) {
		text = sum_of(p, key);
		if (text)
			put(t, key, text);
	} else if ((same = same_in_all(p, key))) {
		put(t, key, xstrdup(same));
	} else if (AMONG(listed, key)) {
		put(t, key, list_of(p, key));
	}
}

/* As often as probes ran: so the whole's cost is the sum of the parts'. */
static double weight_of(const struct trace *t)
{
	return (double)trace_session_number(t, "samples", 0) +
	       (double)trace_session_number(t, "lost", 0);
}

/* The mean of what probes cost, and of a few like it.  Where none ran all nodes count alike. */
static void put_mean(struct trace *t, const char *key)
{
	const struct trace_priv *p = priv_of(t);
	double sum = 0, weights = 0, plain = 0;
	size_t n = 0;

	for (size_t i = 0; i < p->njoined; i++) {
		const char *value = trace_session(p->joined[i].t, key);
		const double weight = weight_of(p->joined[i].t),
			     v = value ? strtod(value, NULL) : 0;

		if (!(v > 0))
			continue;
		sum += weight * v;
		weights += weight;
		plain += v;
		n++;
	}
	if (n)
		put(t, key, xasprintf("%.3f", weights > 0 ? sum / weights : plain / (double)n));
}

/* When the whole begins, by the first node's clocks. */
static void put_start(struct trace *t, const char *key)
{
	const struct joined *j = &priv_of(t)->joined[0];
	uint64_t own = timeline_to(&j->clock, j->t->start_tsc);

	if (trace_session(j->t, key))
		put(t, key,
		    xasprintf("%" PRIu64, trace_session_number(j->t, key, 0) -
						  trace_ns(t, own - t->start_tsc)));
}

static void put_switches(struct trace *t)
{
	const struct trace_priv *p = priv_of(t);
	const char *same = same_in_all(p, "switches");

	put(t, "switches",
	    xstrdup(same ? same : "not all of the nodes recorded them, or not for one reason"));
}

/* Is the number of the node that of no other one?  Is the directory called like no other one? */
static bool has_own_number(const struct trace_priv *p, const struct trace *t)
{
	const char *node = trace_session(t, "node");

	for (size_t i = 0; node && i < p->njoined; i++)
		if (p->joined[i].t != t && trace_session_is(p->joined[i].t, "node", node))
			return false;
	return node;
}

static bool has_own_directory(const struct trace_priv *p, const struct trace *t)
{
	for (size_t i = 0; i < p->njoined; i++)
		if (p->joined[i].t != t &&
		    !strcmp(str_base_name(p->joined[i].t->dir), str_base_name(t->dir)))
			return false;
	return true;
}

/* Numbers, if each node has one of its own; else directories; for those that are called like others,
 * or like a number, places in the row. */
static void name_nodes(struct trace_priv *p)
{
	bool numbers = true;

	for (size_t i = 0; i < p->njoined; i++)
		numbers &= has_own_number(p, p->joined[i].t);
	for (size_t i = 0; i < p->njoined; i++) {
		struct joined *j = &p->joined[i];
		const char *base = str_base_name(j->t->dir);

		if (numbers)
			j->name = xstrdup(trace_session(j->t, "node"));
		else if (has_own_directory(p, j->t) && base[strspn(base, "0123456789")])
			j->name = xstrdup(base);
		else
			j->name = xasprintf("#%zu", i + 1);
		j->node.name = j->name;
	}
}

static bool same_host(const struct trace *a, const struct trace *b)
{
	const char *key = trace_session(a, "boot_id") ? "boot_id" : "hostname";

	return trace_session(a, key) && trace_session_is(b, key, trace_session(a, key));
}

/* Nodes on one host have its CPUs, and those of other hosts come after them. */
static void number_cpus(struct trace_priv *p)
{
	uint32_t next = 0;

	for (size_t i = 0; i < p->njoined; i++) {
		size_t first = 0;

		while (!same_host(p->joined[first].t, p->joined[i].t) && first < i)
			first++;
		p->joined[i].node.first_cpu = first < i ? p->joined[first].node.first_cpu : next;
		if (first == i)
			next += (uint32_t)trace_session_number(p->joined[i].t, "ncpu", 1) & 0xffff;
	}
}

void join_session(struct trace *t)
{
	struct trace_priv *p = priv_of(t);

	number_cpus(p);
	name_nodes(p);
	put_start(t, "start_mono_ns");
	put_start(t, "start_real_ns");
	put(t, "start_tsc", xasprintf("%" PRIu64, t->start_tsc));
	put_mean(t, "probe_ns");
	put_mean(t, "probe_ns_off");
	put_mean(t, "probe_ns_limit");
	put_switches(t);
	for (size_t i = 0; i < p->njoined; i++)
		vec_for(&priv_of(p->joined[i].t)->session, e)
			if (strcmp(e->key, "end_tsc") && strcmp(e->key, "closed_tsc") &&
			    strcmp(e->key, "trigger_ns"))
				put_key(t, e->key);
}

/* SPDX-License-Identifier: MIT */
/* monitored.c - see monitored.h */
#define _GNU_SOURCE
#include "trace/monitor/monitored.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/rows.h"

/* ---- sums ---- */

void monitored_add(struct reading *totals, const struct columns *columns, const struct reading *row)
{
	for (size_t i = 0; i < columns->v.n; i++) {
		const struct reading *r = &row[i];
		struct reading *total = &totals[i];

		if (columns->v.v[i].kind == READING_VALUE) {
			*total = r->known ? *r : *total;
			continue;
		}
		total->n += r->n;
		total->of += r->of;
		total->known |= r->known;
		total->is_estimate |= r->is_estimate;
		total->has_overrun |= r->has_overrun;
	}
}

static bool has_overrun(const struct columns *columns, const struct reading *v)
{
	for (size_t i = 0; i < columns->v.n; i++)
		if (v[i].has_overrun)
			return true;
	return false;
}

/* ---- values of a line ---- */

void monitored_put_values(table_text *out, const struct columns *columns, const struct reading *v)
{
	for (size_t i = 0; i < columns->v.n; i++) {
		if (i)
			table_put_char(out, ',');
		if (!v[i].known) {
			table_put_char(out, '-');
			continue;
		}
		table_put_number(out, 10, v[i].n);
		if (columns->v.v[i].kind == READING_PERCENT) {
			table_put_char(out, '/');
			table_put_number(out, 10, v[i].of);
		}
		if (v[i].is_estimate)
			table_put_char(out, '~');
		if (v[i].has_overrun)
			table_put_char(out, '!');
	}
}

/* ---- for programs in a browser ---- */

#define JSON_EXACT (1ull << 53)

const char *monitored_kind(enum reading_kind kind)
{
	static const char *const kinds[] = {"count", "ns", "bytes", "percent", "value"};

	return kinds[kind];
}

void monitored_json_value(struct json *j, const struct column *c, const struct reading *r)
{
	char number[32];
	double d;

	if (!r->known || (c->kind == READING_PERCENT && !r->of)) {
		json_str(j, NULL);
	} else if (c->kind == READING_PERCENT) {
		json_f64(j, 100.0 * (double)r->n / (double)r->of);
	} else if (c->type == VALUE_DOUBLE) {
		memcpy(&d, &r->n, sizeof(d));
		json_f64_exact(j, d);
	} else if (c->type == VALUE_SIGNED && (int64_t)r->n < 0 && -(r->n) < JSON_EXACT) {
		json_i64(j, (int64_t)r->n);
	} else if (r->n < JSON_EXACT) {
		json_u64(j, r->n);
	} else {
		snprintf(number, sizeof(number), c->type == VALUE_SIGNED ? "%" PRId64 : "%" PRIu64,
			 r->n);
		json_str(j, number);
	}
}

/* ---- values that are read back ---- */

static bool take_digits(const char **s, uint64_t *out)
{
	char *end;

	if (**s < '0' || **s > '9')
		return false;
	errno = 0;
	*out = strtoull(*s, &end, 10);
	*s = end;
	return !errno;
}

static bool take_mark(const char **s, char mark)
{
	const bool is = **s == mark;

	*s += is;
	return is;
}

static bool take_value(const char **s, enum reading_kind kind, struct reading *r)
{
	*r = (struct reading){0};
	if (take_mark(s, '-'))
		return true;
	if (!take_digits(s, &r->n) ||
	    (kind == READING_PERCENT && (!take_mark(s, '/') || !take_digits(s, &r->of))))
		return false;
	r->known = true;
	r->is_estimate = take_mark(s, '~');
	r->has_overrun = take_mark(s, '!');
	return true;
}

static bool take_values(const char *s, const struct columns *columns, struct reading *v)
{
	for (size_t i = 0; i < columns->v.n; i++)
		if ((i && !take_mark(&s, ',')) || !take_value(&s, columns->v.v[i].kind, &v[i]))
			return false;
	return !*s;
}

/* ---- lines ---- */

static bool take_interval(struct monitored *m, struct monitor_row *row)
{
	struct trace_interval_line i;

	if (!row_read(&m->lines, row_interval, &i, sizeof(i)) || i.to_ns < i.from_ns ||
	    !take_values(i.values, &m->columns, m->row))
		return false;
	*row = (struct monitor_row){.from_ns = i.from_ns,
				    .to_ns = i.to_ns,
				    .stood_ns = i.stood_ns,
				    .skew_ns = i.skew_ns,
				    .threads = i.threads,
				    .was_frozen = i.was_frozen,
				    .v = m->row};
	return true;
}

static bool take_end(struct monitored *m)
{
	struct trace_monitored_line e;

	if (!row_read(&m->lines, row_monitored, &e, sizeof(e)))
		return false;
	m->sum.is_whole = true;
	m->sum.real_ns = e.real_ns;
	m->sum.virtual_ns = e.virtual_ns;
	m->sum.stood_ns = e.stood_ns;
	m->sum.probes_ns = e.probes_ns;
	m->sum.all_stood_ns = e.all_stood_ns;
	m->sum.freezes = e.stops;
	m->sum.failed_freezes = e.failed_stops;
	return true;
}

static void add_row(struct monitored *m, const struct monitor_row *row)
{
	struct monitor_summary *s = &m->sum;

	monitored_add(m->totals, &m->columns, row->v);
	s->intervals++;
	s->overruns += has_overrun(&m->columns, row->v);
	if (row->skew_ns > s->longest_skew_ns)
		s->longest_skew_ns = row->skew_ns;
	if (s->is_whole)
		return;
	s->real_ns = row->to_ns + row->stood_ns;
	s->all_stood_ns += row->stood_ns;
	s->freezes += row->threads > 0;
	s->failed_freezes += m->freezes && !row->was_frozen;
}

static bool next_line(struct monitored *m, struct monitor_row *row)
{
	while (table_next_fields(&m->lines)) {
		if (take_interval(m, row))
			return true;
		m->damaged += !take_end(m);
	}
	return false;
}

static bool has_value(const struct trace *t, const char *key)
{
	const char *value = trace_session(t, key);

	return value && *value;
}

static bool open_lines(struct monitored *m, const struct trace *t)
{
	const int dir = trace_nodes(t) ? -1 : open(t->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const int code = dir < 0 ? -ENOENT : table_open(&m->lines, dir, "monitor");

	if (dir >= 0)
		close(dir);
	return !code;
}

/* Up to the first line that is none of a column. */
static void read_columns(struct monitored *m)
{
	struct trace_column_line c;
	bool more = false;

	while ((more = table_next_fields(&m->lines)) &&
	       row_read(&m->lines, row_column, &c, sizeof(c)))
		*vec_push(&m->columns.v) = (struct column){.name = xstrdup(c.name),
							   .kind = (enum reading_kind)c.kind,
							   .type = (enum value_type)c.type};
	m->totals = xcalloc(m->columns.v.n + 1, sizeof(*m->totals));
	m->row = xcalloc(m->columns.v.n + 1, sizeof(*m->row));
	if (!more)
		return;
	m->has_row = take_interval(m, &m->first);
	if (!m->has_row)
		m->damaged += !take_end(m);
}

bool monitored_open(struct monitored *m, const struct trace *t)
{
	*m = (struct monitored){0};
	if (!open_lines(m, t))
		return false;
	m->every_ns = trace_session_number(t, "every_ns", 0);
	m->freezes = has_value(t, "freezes");
	m->of_board = trace_session_is(t, "monitor", "board");
	read_columns(m);
	if (!m->columns.v.n && !has_value(t, "monitor")) {
		monitored_close(m);
		return false;
	}
	/* they are written first: of a file that lost them the lines have no meaning */
	m->damaged += !m->columns.v.n && !m->damaged;
	return true;
}

bool monitored_next(struct monitored *m, struct monitor_row *row)
{
	if (m->has_row)
		*row = m->first;
	else if (!next_line(m, row))
		return false;
	m->has_row = false;
	add_row(m, row);
	return true;
}

void monitored_close(struct monitored *m)
{
	vec_for(&m->columns.v, c)
		xfree(c->name);
	vec_free(&m->columns.v);
	xfree(m->totals);
	xfree(m->row);
	table_close(&m->lines);
}

bool trace_is_monitored(const struct trace *t)
{
	struct monitored m;
	const bool is = monitored_open(&m, t);

	if (is)
		monitored_close(&m);
	return is;
}

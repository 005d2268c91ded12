/* SPDX-License-Identifier: MIT */
/* sleeps.c - the table of functions that went to sleep, and woke, and of groups whose gates closed, and opened. */
#include "trace/reader_impl.h"

#include <stdlib.h>

#include "base/vec.h"
#include "trace/rows.h"

/* "7-9", or "3", up to a space or the end, after what came before; NULL: it makes no sense. */
static const char *read_range(const char *s, uint64_t least, struct trace_range *out)
{
	uint64_t first, last;
	char *end;

	first = last = strtoul(s, &end, 10);
	if (end == s)
		return NULL;
	s = end;
	if (*s == '-') {
		last = strtoul(++s, &end, 10);
		if (end == s)
			return NULL;
		s = end;
	}
	if (first < least || first > last || last >= UINT32_MAX || (*s && *s != ' '))
		return NULL;
	*out = (struct trace_range){(uint32_t)first, (uint32_t)last};
	return *s ? s + 1 : s;
}

static bool read_numbers(const char *s, struct trace_sleep *out)
{
	VEC(struct trace_range) v = {0};
	struct trace_range r;

	while (s && *s) {
		s = read_range(s, v.n ? (uint64_t)v.v[v.n - 1].last + 1 : 0, &r);
		if (s)
			*vec_push(&v) = r;
	}
	if (!s)
		vec_free(&v);
	out->numbers = v.v;
	out->n = v.n;
	return s;
}

static int by_end(const void *a, const void *b)
{
	const struct trace_sleep *x = a, *y = b;

	if (x->until != y->until)
		return x->until < y->until ? -1 : 1;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

void sleeps_order(struct trace_sleep *v, size_t n)
{
	if (n)
		qsort(v, n, sizeof(*v), by_end);
}

void sleeps_read(struct trace *t, int dirfd)
{
	VEC(struct trace_sleep) rows = {0};
	struct trace_sleep_line x;
	struct table_lines l;

	if (table_open(&l, dirfd, "sleeps")) /* most traces have none */
		return;
	while (row_next(&l, row_sleep, &x, sizeof(x), &t->damaged)) {
		struct trace_sleep s = {.since = x.since,
					.until = x.until,
					.wakes = x.wakes,
					.by_budget = x.by == TRACE_SLEEP_BUDGET,
					.of_groups = x.by == TRACE_SLEEP_GROUPS};

		s.place = rows.n;
		if (x.since <= x.until && read_numbers(x.numbers, &s))
			*vec_push(&rows) = s;
		else
			t->damaged++;
	}
	table_close(&l);
	sleeps_order(rows.v, rows.n);
	t->sleeps = rows.v;
	t->nsleeps = rows.n;
}

void sleeps_free(struct trace *t)
{
	for (size_t i = 0; i < t->nsleeps; i++)
		xfree(t->sleeps[i].numbers);
	xfree(t->sleeps);
}

static int by_first(const void *a, const void *b)
{
	const struct trace_range *x = a, *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

void sleeps_sort(struct trace_sleep *s)
{
	size_t n = 0;

	if (!s->n)
		return;
	qsort(s->numbers, s->n, sizeof(*s->numbers), by_first);
	for (size_t i = 1; i < s->n; i++) {
		struct trace_range *last = &s->numbers[n], *r = &s->numbers[i];

		if (r->first > last->last && r->first - last->last > 1)
			s->numbers[++n] = *r;
		else if (r->last > last->last)
			last->last = r->last;
	}
	s->n = n + 1;
}

static int around(const void *key, const void *range)
{
	const uint32_t n = *(const uint32_t *)key;
	const struct trace_range *r = range;

	return n < r->first ? -1 : n > r->last;
}

static bool has_number(const struct trace_sleep *s, uint32_t number)
{
	return s->n && bsearch(&number, s->numbers, s->n, sizeof(*s->numbers), around);
}

static bool has_group(const struct trace *t, const struct trace_sleep *s, uint32_t function)
{
	const struct trace_function *f = trace_function_of(t, KRON_EVENT_ENTRY(function));
	const struct trace_user_event *u;

	if (f)
		return has_number(s, f->level);
	u = trace_user_event_of(t, KRON_EVENT_ENTRY(function));
	return u && has_number(s, u->level);
}

bool trace_sleep_has(const struct trace *t, const struct trace_sleep *s, uint32_t function)
{
	return s->of_groups ? has_group(t, s, function) : has_number(s, function);
}

/* Was it taken out by --budget, or asked for, or was its group off? */
static bool has_slept(const struct trace *t, uint32_t function, bool asked, bool groups)
{
	for (size_t i = 0; i < t->nsleeps; i++) {
		const struct trace_sleep *s = &t->sleeps[i];

		if (!s->wakes && (s->by_budget || (s->of_groups ? groups : asked)) &&
		    trace_sleep_has(t, s, function))
			return true;
	}
	return false;
}

bool trace_has_slept(const struct trace *t, uint32_t function)
{
	return has_slept(t, function, true, true);
}

bool trace_was_out(const struct trace *t, uint32_t function)
{
	return has_slept(t, function, true, false);
}

bool trace_slept_by_budget(const struct trace *t, uint32_t function)
{
	return has_slept(t, function, false, false);
}

uint32_t trace_sleep_groups(const struct trace_sleep *s)
{
	uint32_t groups = 0;

	for (uint32_t g = 0; s->of_groups && g < KRON_LEVELS; g++)
		groups |= (uint32_t)has_number(s, g) << g;
	return groups;
}

uint32_t trace_groups_off(const struct trace *t)
{
	uint32_t groups = 0;

	for (size_t i = 0; i < t->nsleeps; i++)
		groups |= trace_sleep_groups(&t->sleeps[i]);
	return groups;
}

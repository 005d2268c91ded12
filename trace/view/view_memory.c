/* SPDX-License-Identifier: MIT */
/*
 * view_memory.c - references to memory by address and time, as page reference counters have them.
 *
 *   rows     pages (or lines) that were touched, lowest first; those of a row are of one process, and their mappings have
 *            one name.  Where there are too many of them, a row may have several, and says so
 *   columns  the steps between two looks; all of the recording where nobody looked
 *
 * Where they are more than there is room for, some that follow one another become one.  Sums stay exact.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "trace/pages.h"
#include "trace/view/view_impl.h"

struct memory {
	struct view *v;
	uint32_t part;
	const struct trace_pages *p;
	uint64_t first, looks;             /* of p->looks: those that the view has a piece of */
	VEC(struct trace_page_step) steps; /* of these looks; by process, address and look */
	VEC(uint64_t) of_page;             /* the name of each page's mapping: index */
	bool cuts; /* a row has pages of one process and name; else there were too many of them */
	uint64_t per, each; /* pages in a row, looks in a column */
	uint64_t columns;
	uint64_t *reads, *writes; /* of the row at work, by column */
	VEC(const char *) names;  /* of mappings */
	uint32_t *same_name;      /* of each mapping: the lowest one of its name */
	uint64_t *name_of;        /* of that one: index of the name + 1; 0: none yet */
	uint64_t no_name,
		several; /* of what is not mapped, and of rows that have several; likewise */
	struct view_bytes cells;
};

/* ---- time ---- */

/* When a look ended what it shows, and the one before it. */
static uint64_t look_end(const struct view *v, uint32_t part, const struct trace_pages *p,
			 uint64_t i)
{
	const struct trace *t = trace_part(v->t, part);
	const uint64_t start = trace_part_at(v->t, part, 0);

	if (p->looks.n)
		return trace_part_at(v->t, part, p->looks.v[i]);
	if (t->end_tsc)
		return trace_part_time(v->t, part, t->end_tsc);
	return v->trace_last > start ? v->trace_last : start; /* its end was not written */
}

static uint64_t look_start(const struct view *v, uint32_t part, const struct trace_pages *p,
			   uint64_t i)
{
	return p->looks.n && i ? look_end(v, part, p, i - 1) : trace_part_at(v->t, part, 0);
}

static uint64_t looks_of(const struct trace_pages *p)
{
	return p->looks.n ? p->looks.n : p->v.n != 0;
}

/* ---- what there is ---- */

void view_memory_look(struct view *v)
{
	struct err err;

	v->memory = xcalloc(trace_parts(v->t), sizeof(*v->memory));
	for (uint32_t i = 0; i < trace_parts(v->t); i++) {
		struct trace_pages *p = &v->memory[i];

		if (trace_pages_read(p, trace_part(v->t, i)->dir, &err) || !looks_of(p))
			continue;
		v->any_memory = true;
		view_widen(v, look_start(v, i, p, 0), look_end(v, i, p, looks_of(p) - 1));
	}
}

void view_memory_free(struct view *v)
{
	for (uint32_t i = 0; v->memory && i < trace_parts(v->t); i++)
		trace_pages_free(&v->memory[i]);
	xfree(v->memory);
}

/* ---- what of it is shown ---- */

static void choose_looks(struct memory *m)
{
	const uint64_t all = looks_of(m->p);

	while (m->first < all && look_end(m->v, m->part, m->p, m->first) < m->v->from)
		m->first++;
	while (m->first + m->looks < all &&
	       look_start(m->v, m->part, m->p, m->first + m->looks) <= m->v->to)
		m->looks++;
}

static void take_steps(struct memory *m)
{
	for (size_t i = 0; m->p->looks.n && i < m->p->steps.n; i++) {
		const struct trace_page_step *s = &m->p->steps.v[i];

		if (s->look >= m->first && s->look - m->first < m->looks)
			*vec_push(&m->steps) = *s;
	}
	for (size_t i = 0; !m->p->looks.n && m->looks && i < m->p->v.n; i++) {
		const struct trace_page *p = &m->p->v.v[i];

		*vec_push(&m->steps) = (struct trace_page_step){.uid = p->uid,
								.address = p->address,
								.reads = p->reads,
								.writes = p->writes};
	}
	if (m->steps.n)
		qsort(m->steps.v, m->steps.n, sizeof(m->steps.v[0]), trace_page_step_compare);
}

static uint32_t pid_of(const struct memory *m, uint32_t uid)
{
	const struct trace_proc *proc = trace_proc_of(trace_part(m->v->t, m->part), uid);

	return proc ? (uint32_t)proc->pid : 0;
}

static int by_name(const void *a, const void *b, void *p)
{
	const struct trace_mapping *maps = p;
	const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const int order = strcmp(maps[i].name, maps[k].name);

	return order ? order : i < k ? -1 : i > k;
}

static void find_same_names(struct memory *m)
{
	const size_t n = m->p->maps.n;
	uint32_t *sorted = xcalloc(n + 1, sizeof(*sorted));

	m->same_name = xcalloc(n + 1, sizeof(*m->same_name));
	m->name_of = xcalloc(n + 1, sizeof(*m->name_of));
	for (uint32_t i = 0; i < n; i++)
		sorted[i] = i;
	if (n)
		qsort_r(sorted, n, sizeof(*sorted), by_name, m->p->maps.v);
	for (size_t i = 0; i < n; i++)
		m->same_name[sorted[i]] =
			i && !strcmp(m->p->maps.v[sorted[i]].name, m->p->maps.v[sorted[i - 1]].name)
				? m->same_name[sorted[i - 1]]
				: sorted[i];
	xfree(sorted);
}

static uint64_t name_once(struct memory *m, uint64_t *known, const char *name)
{
	if (!*known) {
		*vec_push(&m->names) = name;
		*known = m->names.n;
	}
	return *known - 1;
}

static uint64_t name_at(struct memory *m, const struct trace_page_step *s)
{
	const struct trace_mapping *mapping =
		trace_pages_mapping(m->p, s->uid, pid_of(m, s->uid), s->address);

	return name_once(m,
			 mapping ? &m->name_of[m->same_name[mapping - m->p->maps.v]] : &m->no_name,
			 trace_mapping_name(mapping));
}

/* Where the steps of the next page begin. */
static size_t next_page(const struct memory *m, size_t i)
{
	const struct trace_page_step *s = &m->steps.v[i];

	while (i < m->steps.n && m->steps.v[i].uid == s->uid && m->steps.v[i].address == s->address)
		i++;
	return i;
}

/* How many stretches there are that are of one process and name each. */
static uint64_t find_names(struct memory *m)
{
	const struct trace_page_step *last = NULL;
	uint64_t stretches = 0;

	for (size_t i = 0; i < m->steps.n; i = next_page(m, i)) {
		const struct trace_page_step *s = &m->steps.v[i];
		const uint64_t here = name_at(m, s);

		stretches += !last || last->uid != s->uid || m->of_page.v[m->of_page.n - 1] != here;
		*vec_push(&m->of_page) = here;
		last = s;
	}
	return stretches;
}

#define ROWS_MOST 1024u
#define COLUMNS_MOST 1024u
#define CELL_BYTES 64u /* of the file's, for one of them: a cell takes 4 to 12 */

static void share_out(struct memory *m, uint64_t stretches)
{
	uint64_t rows = ROWS_MOST, columns = COLUMNS_MOST;

	while (rows * columns * CELL_BYTES > m->v->o->size && columns > 1) {
		rows /= 2;
		columns /= 2;
	}
	m->per = (m->of_page.n + rows - 1) / rows;
	m->each = (m->looks + columns - 1) / columns;
	m->columns = (m->looks + m->each - 1) / m->each;
	m->reads = xcalloc(m->columns + 1, sizeof(*m->reads));
	m->writes = xcalloc(m->columns + 1, sizeof(*m->writes));
	m->cuts = stretches <= rows;
}

/* ---- the data ---- */

static void put_address(struct json *j, uint64_t address)
{
	char text[STR_NUMBER];

	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	json_str(j, text);
}

/* How many cells; for each how many empty ones come before it, reads and writes. */
static void put_cells(struct memory *m)
{
	uint64_t n = 0, next = 0;

	for (uint64_t i = 0; i < m->columns; i++)
		n += m->reads[i] || m->writes[i];
	view_put_number(&m->cells, n);
	for (uint64_t i = 0; i < m->columns; i++) {
		if (!m->reads[i] && !m->writes[i])
			continue;
		view_put_number(&m->cells, i - next);
		view_put_number(&m->cells, m->reads[i]);
		view_put_number(&m->cells, m->writes[i]);
		next = i + 1;
	}
	memset(m->reads, 0, m->columns * sizeof(*m->reads));
	memset(m->writes, 0, m->columns * sizeof(*m->writes));
}

static void add_step(struct memory *m, const struct trace_page_step *s)
{
	const uint64_t column = (s->look - m->first) / m->each;

	m->reads[column] += s->reads;
	m->writes[column] += s->writes;
}

/*
 * [pid, first address, end of the last one, mapping, pages] from a page on; *i: where its steps begin, and the next row's.
 * pid 0: of several processes.
 */
static size_t put_row(struct memory *m, size_t page, size_t *i)
{
	const struct trace_page_step *first = &m->steps.v[*i], *last = first;
	const uint64_t name = m->of_page.v[page];
	bool of_one = true, same = true; /* process, and name */
	struct json *j = &m->v->j;
	size_t n = 0;

	while (*i < m->steps.n && n < m->per) {
		const struct trace_page_step *s = &m->steps.v[*i];
		const size_t end = next_page(m, *i);

		if (m->cuts && (s->uid != first->uid || m->of_page.v[page + n] != name))
			break;
		of_one &= s->uid == first->uid;
		same &= m->of_page.v[page + n] == name;
		for (; *i < end; ++*i)
			add_step(m, &m->steps.v[*i]);
		last = s;
		n++;
	}
	json_open(j, '[');
	json_u64(j, of_one ? pid_of(m, first->uid) : 0);
	put_address(j, first->address);
	put_address(j, last->address + m->p->unit);
	json_u64(j, same ? name : name_once(m, &m->several, "(several mappings)"));
	json_u64(j, n);
	json_close(j, ']');
	put_cells(m);
	return page + n;
}

static void put_columns(struct memory *m)
{
	struct view *v = m->v;
	struct json *j = &v->j;

	json_key(j, "columns");
	json_open(j, '[');
	for (uint64_t i = 0; i < m->columns; i++) {
		const uint64_t from = m->first + i * m->each;
		const uint64_t end =
			from + m->each < m->first + m->looks ? from + m->each : m->first + m->looks;

		json_open(j, '[');
		json_i64(j, view_ns(v, look_start(v, m->part, m->p, from)));
		json_i64(j, view_ns(v, look_end(v, m->part, m->p, end - 1)));
		json_close(j, ']');
	}
	json_close(j, ']');
}

static void put_part(struct memory *m)
{
	const char *command = trace_session(trace_part(m->v->t, m->part), "command");
	struct json *j = &m->v->j;

	json_open(j, '{');
	view_put_key_name(j, "command", command ? command : "");
	json_ku64(j, "unit", m->p->unit);
	json_ku64(j, "pages", m->of_page.n);
	json_ku64(j, "looks", m->p->looks.n ? m->looks : 0);
	json_ku64(j, "per", m->per);
	json_ku64(j, "each", m->each);
	put_columns(m);
	json_key(j, "rows");
	json_open(j, '[');
	for (size_t i = 0, page = 0; i < m->steps.n;)
		page = put_row(m, page, &i);
	json_close(j, ']');
	json_key(j, "mappings");
	json_open(j, '[');
	vec_for(&m->names, name)
		view_put_name(j, *name);
	json_close(j, ']');
	json_key(j, "cells");
	view_put_bytes(j, &m->cells);
	json_close(j, '}');
}

static void put_memory(struct view *v, uint32_t part)
{
	struct memory m = {.v = v, .part = part, .p = &v->memory[part]};

	choose_looks(&m);
	take_steps(&m);
	if (m.steps.n) {
		find_same_names(&m);
		share_out(&m, find_names(&m));
		put_part(&m);
	}
	vec_free(&m.steps);
	vec_free(&m.of_page);
	vec_free(&m.names);
	view_bytes_free(&m.cells);
	xfree(m.same_name);
	xfree(m.name_of);
	xfree(m.reads);
	xfree(m.writes);
}

void view_memory_put(struct view *v)
{
	json_key(&v->j, "memory");
	json_open(&v->j, '[');
	for (uint32_t i = 0; i < trace_parts(v->t); i++)
		put_memory(v, i);
	json_close(&v->j, ']');
}

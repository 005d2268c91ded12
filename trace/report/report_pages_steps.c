/* SPDX-License-Identifier: MIT */
/*
 * report_pages_steps.c - page reference counters over time: how much was touched between two looks, how much of
 * that for the first time, and where, as a picture.
 *
 *   rows of the picture: the address space that was touched, lowest first, in equal parts of what was touched
 *   columns: the looks, in equal parts
 */
#include "trace/report/report_pages_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "trace/text.h"

#define COLUMNS 60u
#define ROWS 24u

struct step {
	uint64_t from, to; /* ns */
	size_t first, end; /* of p->steps */
	uint64_t pages, fresh, written, reads, writes;
};

static int by_place(const void *a, const void *b)
{
	return trace_page_step_compare(*(const struct trace_page_step *const *)a,
				       *(const struct trace_page_step *const *)b);
}

static bool is_same(const struct trace_page_step *a, const struct trace_page_step *b)
{
	return a->uid == b->uid && a->address == b->address;
}

/* By process, address and look: the first of each page is where it was touched first. */
static const struct trace_page_step **sorted(const struct report *rep)
{
	const struct trace_page_step **v = xcalloc(rep->p->steps.n + 1, sizeof(*v));

	for (size_t i = 0; i < rep->p->steps.n; i++)
		v[i] = &rep->p->steps.v[i];
	qsort(v, rep->p->steps.n, sizeof(*v), by_place);
	return v;
}

static struct step *sum(const struct report *rep, const struct trace_page_step **places)
{
	struct step *v = xcalloc(rep->p->looks.n + 1, sizeof(*v));
	const struct trace_pages *p = rep->p;
	size_t at = 0;

	for (size_t i = 0; i < p->looks.n; i++) {
		v[i].from = i ? p->looks.v[i - 1] : 0;
		v[i].to = p->looks.v[i];
		for (v[i].first = at; at < p->steps.n && p->steps.v[at].look == i; at++) {
			v[i].pages++;
			v[i].written += p->steps.v[at].writes != 0;
			v[i].reads += p->steps.v[at].reads;
			v[i].writes += p->steps.v[at].writes;
		}
		v[i].end = at;
	}
	for (size_t i = 0; i < p->steps.n; i++)
		if (!i || !is_same(places[i - 1], places[i]))
			v[places[i]->look].fresh++;
	return v;
}

/* ---- the picture ---- */

struct picture {
	uint64_t *cells; /* references: ROWS x COLUMNS */
	uint64_t start[ROWS], most;
	uint32_t uid[ROWS];
	unsigned rows, columns;
};

static void draw(const struct report *rep, const struct trace_page_step **places,
		 struct picture *pic)
{
	size_t touched = 0, n = 0, looks = rep->p->looks.n;

	for (size_t i = 0; i < rep->p->steps.n; i++)
		touched += !i || !is_same(places[i - 1], places[i]);
	pic->rows = touched < ROWS ? (unsigned)touched : ROWS;
	pic->columns = looks < COLUMNS ? (unsigned)looks : COLUMNS;
	pic->cells = xcalloc((size_t)ROWS * COLUMNS, sizeof(*pic->cells));
	for (size_t i = 0; i < rep->p->steps.n; i++) {
		bool is_new = !i || !is_same(places[i - 1], places[i]);
		size_t row, column = places[i]->look * (size_t)pic->columns / looks;
		uint64_t *cell;

		n += is_new;
		row = (n - 1) * pic->rows / touched;
		if (is_new && !pic->start[row]) {
			pic->start[row] = places[i]->address;
			pic->uid[row] = places[i]->uid;
		}
		cell = &pic->cells[row * COLUMNS + column];
		*cell += places[i]->reads + places[i]->writes;
		if (*cell > pic->most)
			pic->most = *cell;
	}
}

/* Each is eight times the one before. */
static char shade(uint64_t n, uint64_t most)
{
	static const char shades[] = ".:-=+*#@";
	unsigned k = sizeof(shades) - 2;

	if (!n)
		return ' ';
	for (; k && n < most; most /= 8)
		k--;
	return shades[k];
}

static void put_picture(const struct report *rep, FILE *f, const struct trace_page_step **places)
{
	struct picture pic = {0};

	draw(rep, places, &pic);
	fprintf(f,
		"\nReferences by address and time ('@' is the most; the next shade, #, is an eighth of it or less, and so on)\n");
	for (unsigned i = 0; i < pic.rows; i++) {
		const struct trace_mapping *m = trace_pages_mapping(
			rep->p, pic.uid[i], report_pages_pid(rep, pic.uid[i]), pic.start[i]);

		fprintf(f, "0x%-14" PRIx64 " |", pic.start[i]);
		for (unsigned k = 0; k < pic.columns; k++)
			fputc(shade(pic.cells[i * COLUMNS + k], pic.most), f);
		fputs("| ", f);
		text_put(f, str_base_name(trace_mapping_name(m)));
		fputc('\n', f);
	}
	xfree(pic.cells);
}

/* ---- the table ---- */

void report_pages_steps(const struct report *rep, FILE *f)
{
	const struct trace_page_step **places = sorted(rep);
	struct step *v = sum(rep, places);
	const char *units = rep->p->unit == TRACE_LINE_SIZE ? "Lines" : "Pages";

	fputs("\nWorking set over time\n", f);
	fprintf(f, "%10s %10s %8s %8s %8s %15s %15s\n", "From", "To", units, "New", "Written",
		"Reads", "Writes");
	for (size_t i = 0; i < rep->p->looks.n; i++) {
		fprintf(f, "%9.3fs %9.3fs %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " ",
			(double)v[i].from / 1e9, (double)v[i].to / 1e9, v[i].pages, v[i].fresh,
			v[i].written);
		report_pages_reads_writes(f, v[i].reads, v[i].writes);
		fputc('\n', f);
	}
	if (rep->p->steps.n)
		put_picture(rep, f, places);
	xfree(v);
	xfree(places);
}

static void put_json_step(const struct report *rep, struct json *j, const struct step *s)
{
	char address[STR_NUMBER];

	json_open(j, '{');
	json_ku64(j, "from_ns", s->from);
	json_ku64(j, "to_ns", s->to);
	json_ku64(j, "size", rep->p->unit);
	json_ku64(j, "touched", s->pages);
	json_ku64(j, "new", s->fresh);
	json_ku64(j, "written", s->written);
	json_ku64(j, "reads", s->reads);
	json_ku64(j, "writes", s->writes);
	json_key(j, report_pages_units(rep));
	json_open(j, '[');
	for (size_t i = s->first; i < s->end; i++) {
		const struct trace_page_step *one = &rep->p->steps.v[i];

		snprintf(address, sizeof(address), "0x%" PRIx64, one->address);
		json_open(j, '{');
		json_kstr(j, "address", address);
		json_ku64(j, "reads", one->reads);
		json_ku64(j, "writes", one->writes);
		json_ku64(j, "pid", report_pages_pid(rep, one->uid));
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}

void report_pages_steps_json(const struct report *rep, struct json *j)
{
	const struct trace_page_step **places = sorted(rep);
	struct step *v = sum(rep, places);

	json_open(j, '[');
	for (size_t i = 0; i < rep->p->looks.n; i++)
		put_json_step(rep, j, &v[i]);
	json_close(j, ']');
	xfree(v);
	xfree(places);
}

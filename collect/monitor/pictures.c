/* SPDX-License-Identifier: MIT */
/* pictures.c - see pictures.h */
#include "collect/monitor/pictures.h"

#include <math.h>
#include <string.h>

#include "base/str.h"

#define METER 20
#define UNKNOWN "·"

void pictures_begin(struct pictures *p, const struct columns *columns, unsigned intervals)
{
	if (intervals < PICTURES_INTERVALS_MIN)
		intervals = PICTURES_INTERVALS_MIN;
	if (intervals > PICTURES_INTERVALS_MAX)
		intervals = PICTURES_INTERVALS_MAX;
	*p = (struct pictures){.columns = columns, .intervals = intervals};
	p->values = xcalloc(columns->v.n * intervals + 1, sizeof(double));
}

void pictures_free(struct pictures *p)
{
	xfree(p->values);
	p->values = NULL;
}

/* ---- values: busy in percent, events a second, variables as they are ---- */

static double value_of(const struct column *c, const struct reading *r, uint64_t interval_ns)
{
	double d;

	if (!r->known)
		return NAN;
	switch (c->kind) {
	case READING_PERCENT:
		return r->of ? 100.0 - 100.0 * (double)r->n / (double)r->of : NAN;
	case READING_VALUE:
		if (c->type == VALUE_SIGNED)
			return (double)(int64_t)r->n;
		if (c->type != VALUE_DOUBLE)
			return (double)r->n;
		memcpy(&d, &r->n, sizeof(d));
		return d;
	case READING_NS:
		return interval_ns ? (double)r->n * 1e3 / (double)interval_ns : NAN;
	default:
		return interval_ns ? (double)r->n * 1e9 / (double)interval_ns : NAN;
	}
}

void pictures_add(struct pictures *p, const struct reading *v, uint64_t interval_ns)
{
	for (size_t i = 0; i < p->columns->v.n; i++)
		p->values[i * p->intervals + p->n % p->intervals] =
			value_of(&p->columns->v.v[i], &v[i], interval_ns);
	p->n++;
}

static unsigned shown(const struct pictures *p)
{
	return p->n < p->intervals ? p->n : p->intervals;
}

/* k: 0 is the oldest that is shown */
static double value_at(const struct pictures *p, size_t column, unsigned k)
{
	return p->values[column * p->intervals + (p->n - shown(p) + k) % p->intervals];
}

static double last_of(const struct pictures *p, size_t column)
{
	return p->n ? value_at(p, column, shown(p) - 1) : NAN;
}

static double most_of(const struct pictures *p, size_t column)
{
	double most = 0;

	for (unsigned k = 0; k < shown(p); k++)
		if (value_at(p, column, k) > most)
			most = value_at(p, column, k);
	return most;
}

/* ---- one row a column ---- */

/* The step of `steps` that a value reaches: 0 is nothing at all, and the last the whole. */
static unsigned step_of(double value, double whole, unsigned steps)
{
	if (value <= 0 || whole <= 0)
		return 0;
	if (value >= whole)
		return steps - 1;
	return 1 + (unsigned)(value / whole * (steps - 1));
}

static void put_bars(const struct pictures *p, size_t column, double whole, bool is_gantt,
		     FILE *out)
{
	static const char *const heights[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const shades[] = {" ", "░", "▒", "▓", "█"};

	for (unsigned k = 0; k < p->intervals - shown(p); k++)
		fputs(" ", out);
	for (unsigned k = 0; k < shown(p); k++) {
		const double v = value_at(p, column, k);

		if (isnan(v))
			fputs(UNKNOWN, out);
		else if (is_gantt)
			fputs(shades[step_of(v, whole, 5)], out);
		else
			fputs(heights[step_of(v, whole, 9)], out);
	}
}

static void put_meter(double percent, FILE *out)
{
	const unsigned n = isnan(percent) ? 0 : (unsigned)(percent / 100 * METER + 0.5);

	fputs(" [", out);
	for (unsigned i = 0; i < METER; i++)
		putc(i < n ? '#' : ' ', out);
	putc(']', out);
}

static void put_number(double v, const char *after, FILE *out)
{
	if (isnan(v))
		fputs("        -", out);
	else
		fprintf(out, " %8.*f%s", v < 10 && v > -10 ? 2 : 0, v, after);
}

static void name_of(char *name, size_t size, const struct column *c)
{
	if (c->kind == READING_PERCENT && !strncmp(c->name, "idle", 4))
		snprintf(name, size, "busy%s", c->name + 4);
	else
		snprintf(name, size, "%s", c->name);
}

/* "idle" is that of all processors, "idle3" that of one. */
static bool is_processor(const struct column *c)
{
	return c->kind == READING_PERCENT && c->name[strlen("idle")];
}

static void put_row(const struct pictures *p, size_t column, FILE *out)
{
	const struct column *c = &p->columns->v.v[column];
	const double most = c->kind == READING_PERCENT ? 100 : most_of(p, column);
	char name[24];

	name_of(name, sizeof(name), c);
	fprintf(out, "%-18s |", name);
	put_bars(p, column, most, is_processor(c), out);
	putc('|', out);
	put_number(last_of(p, column), c->kind == READING_PERCENT ? "%" : "", out);
	if (c->kind == READING_PERCENT) {
		put_meter(last_of(p, column), out);
	} else {
		fputs(c->kind == READING_VALUE   ? ", at most"
		      : c->kind == READING_NS    ? " ms a second, at most"
		      : c->kind == READING_BYTES ? " bytes a second, at most"
						 : " a second, at most",
		      out);
		put_number(most, "", out);
	}
}

/* ---- Kiviat diagram ---- */

#define KIVIAT_R 6 /* rows from the middle to the rim; a row is as high as two columns are wide */
#define KIVIAT_H (2 * KIVIAT_R + 1)
#define KIVIAT_W (4 * KIVIAT_R + 1)
#define TURN 6.283185307179586

struct kiviat {
	char at[KIVIAT_H][KIVIAT_W + 1];
};

struct point {
	double x, y;
};

static struct point on_axis(unsigned i, unsigned n, double r)
{
	const double angle = TURN * i / n;

	return (struct point){2 * KIVIAT_R + 2 * r * sin(angle), KIVIAT_R - r * cos(angle)};
}

/* From one to the other; only over what is less than it. */
static void line(struct kiviat *g, struct point from, struct point to, char c)
{
	const int steps = KIVIAT_W;

	for (int i = 0; i <= steps; i++) {
		const double part = (double)i / steps;
		char *at = &g->at[(int)lround(from.y + (to.y - from.y) * part)]
				 [(int)lround(from.x + (to.x - from.x) * part)];

		if (*at == ' ' || (*at == '.' && c != '.'))
			*at = c;
	}
}

static double radius(const struct pictures *p, size_t column)
{
	const double v = last_of(p, column);

	return isnan(v) ? 0 : v / 100 * KIVIAT_R;
}

static unsigned put_kiviat(const struct pictures *p, size_t first, unsigned n, FILE *out,
			   const char *end)
{
	struct kiviat g;
	const struct point middle = on_axis(0, n, 0);

	memset(&g, ' ', sizeof(g));
	for (unsigned i = 0; i < n; i++) {
		const unsigned next = (i + 1) % n;
		const struct point at = on_axis(i, n, radius(p, first + i));

		line(&g, middle, on_axis(i, n, KIVIAT_R), '.');
		line(&g, at, on_axis(next, n, radius(p, first + next)), '*');
	}
	for (unsigned i = 0; i < n; i++) {
		const struct point at = on_axis(i, n, radius(p, first + i));

		g.at[(int)lround(at.y)][(int)lround(at.x)] = 'o';
	}
	fprintf(out,
		"Kiviat: an axis a processor, the first upwards, clockwise; the rim is 100%%%s",
		end);
	for (unsigned y = 0; y < KIVIAT_H; y++)
		fprintf(out, "    %.*s%s", KIVIAT_W, g.at[y], end);
	return KIVIAT_H + 1;
}

/* ---- all together ---- */

unsigned pictures_print(const struct pictures *p, FILE *out, const char *end)
{
	unsigned lines = 0, processors = 0;
	size_t first = 0;

	for (size_t i = 0; i < p->columns->v.n; i++) {
		put_row(p, i, out);
		fputs(end, out);
		lines++;
		if (is_processor(&p->columns->v.v[i]) && !processors++)
			first = i;
	}
	if (processors >= 3)
		lines += put_kiviat(p, first, processors, out, end);
	return lines;
}

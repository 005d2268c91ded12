/* SPDX-License-Identifier: MIT */
/* board.c - see board.h */
#include "collect/monitor/board.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "board/bus/view.h"

#define SECOND 1000000000ull
/* The output network sends a byte in two NODECLKs: 20 MB a second are 5 million words. */
#define WORDS_MAX (KRON_OSCILLATOR_HZ / 2 / 4)

static struct board_column *add(struct monitor_board *b, const char *name, uint64_t mask,
				uint64_t most_a_second)
{
	struct board_column *c = &b->column[b->ncolumns++];

	snprintf(c->name, sizeof(c->name), "%s", name);
	c->mask = mask;
	c->round_ns = most_a_second ? (mask + 1) * SECOND / most_a_second : 0;
	return c;
}

static void add_counters(struct monitor_board *b, const struct bus_view *v)
{
	char name[16];

	for (unsigned i = 0; i < KRON_COUNTERS; i++) {
		const bool two = view_is_double(v->mode, i);

		if ((view_field(v->enable, i) & 3) != KRON_ENABLE_ON || (two && i % 2))
			continue;
		snprintf(name, sizeof(name), "counter%u", i);
		b->counter[b->ncolumns - MONITOR_BOARD_FIXED] = i;
		add(b, name, two ? UINT64_MAX : UINT32_MAX, 0);
	}
}

static uint64_t value_of(const struct monitor_board *b, const struct bus_view *v, unsigned column)
{
	switch (column) {
	case 0:
		return v->map;
	case 1:
		return v->wait;
	case 2:
		return v->overrun;
	default:
		return v->counter[b->counter[column - MONITOR_BOARD_FIXED]];
	}
}

int monitor_board_open(struct monitor_board *b, const char *name, struct err *err)
{
	struct bus_view v;
	int code = bus_open(&b->bus, name, err);

	if (code)
		return code;
	code = bus_look(&b->bus, &v, err);
	if (code) {
		bus_close(&b->bus);
		return code;
	}
	b->ncolumns = 0;
	add(b, "words", KRON_MAP_MASK, WORDS_MAX);
	add(b, "wait", UINT32_MAX, KRON_OSCILLATOR_HZ);
	add(b, "overrun", UINT32_MAX, KRON_OSCILLATOR_HZ);
	add_counters(b, &v);
	for (unsigned i = 0; i < b->ncolumns; i++)
		b->column[i].last = value_of(b, &v, i);
	b->read_ns = clock_ns(CLOCK_MONOTONIC);
	return 0;
}

/* A counter that sticks and is less than it was has been set: it counts from zero again. */
static void read_column(struct board_column *c, uint64_t value, uint64_t since_ns,
			struct reading *out)
{
	const uint64_t was = c->last;

	c->last = value;
	if (c->round_ns)
		c->total += (value - was) & c->mask;
	else
		c->total += value >= was ? value - was : value;
	out->n = c->total;
	out->known = true;
	out->has_overrun = c->round_ns ? since_ns >= c->round_ns : value == c->mask;
}

void monitor_board_read(struct monitor_board *b, struct reading *out)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct bus_view v;
	struct err err;

	memset(out, 0, b->ncolumns * sizeof(*out));
	if (bus_look(&b->bus, &v, &err))
		return; /* shown as not known */
	for (unsigned i = 0; i < b->ncolumns; i++)
		read_column(&b->column[i], value_of(b, &v, i), now - b->read_ns, &out[i]);
	b->read_ns = now;
}

uint64_t monitor_board_longest_ns(const struct monitor_board *b)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < b->ncolumns; i++)
		if (b->column[i].round_ns && b->column[i].round_ns < least)
			least = b->column[i].round_ns;
	return least / 2;
}

void monitor_board_close(struct monitor_board *b)
{
	bus_close(&b->bus);
}

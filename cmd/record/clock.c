/* SPDX-License-Identifier: MIT */
/* clock.c - see clock.h. */
#include "cmd/record/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The runtime compares the lowest bits of a count: a power of two. */
static bool is_allowed(unsigned long n)
{
	return n && n <= CLOCK_EVERY_MAX && !(n & (n - 1));
}

int clock_take(const char *text, uint16_t *every, struct err *err)
{
	static const char word[] = "every";
	unsigned long n;
	char *end;

	*every = 1;
	if (!text || !strcmp(text, "full"))
		return 0;
	*every = CLOCK_EVERY_DEFAULT;
	if (!strcmp(text, word))
		return 0;
	if (strncmp(text, "every:", sizeof(word)) || text[sizeof(word)] < '0' ||
	    text[sizeof(word)] > '9')
		return err_set(err, EINVAL, "--clock: unknown value '%s'; choose full or every:N",
			       text);
	n = strtoul(text + sizeof(word), &end, 10);
	if (*end || !is_allowed(n))
		return err_set(err, EINVAL, "--clock every:%s: N is a power of two, from 1 to %d",
			       text + sizeof(word), CLOCK_EVERY_MAX);
	*every = (uint16_t)n;
	return 0;
}

const char *clock_check(const struct collector_options *o)
{
	if (o->clock_every <= 1 && o->selection.timed.n)
		return "--timed belongs to --clock every:N: without it each sample reads the clock";
	if (o->clock_every <= 1)
		return NULL;
	if (o->bus != KRON_BUS_LANE)
		return "--clock every:N is for lanes: a board stamps each sample by its own clock";
	if (o->constant_time)
		return "--clock every:N and --constant-time exclude each other: a sample that reads the "
		       "clock takes longer than one that does not";
	if (o->watch.trigger)
		return "--trigger needs each sample's own time as it comes: not with --clock every:N "
		       "(`kron report --trigger` reads such a trace)";
	if (o->flight.on || o->flight.worst)
		return "--snapshot-on and --worst need each sample's own time as it comes: not with --clock every:N";
	return NULL;
}

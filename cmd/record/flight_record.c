/* SPDX-License-Identifier: MIT */
/* flight_record.c - see flight_record.h. */
#define _GNU_SOURCE
#include "cmd/record/flight_record.h"

#include <signal.h>

#include "collect/cable/address.h"
#include "collect/flight/worst.h"

static const char *check_trigger(const char *label, const char *text, struct err *err)
{
	return watch_check(&(struct watch_options){.label = label, .trigger = text}, err) ? err->msg
											  : NULL;
}

static const char *check_worst(const struct flight_options *o, struct err *err)
{
	struct worst w;
	const char *why_not;
	char *trigger;

	if (worst_parse(&w, o->worst, err))
		return err->msg;
	worst_free(&w);
	trigger = flight_worst_trigger(o);
	why_not = check_trigger("--worst", trigger, err);
	xfree(trigger);
	return why_not;
}

const char *flight_record_check(struct collector_options *o, bool wants_switches, struct err *err)
{
	if (!o->flight.text)
		return o->flight.most    ? "--max-snapshots belongs to --flight"
		       : o->flight.on    ? "--snapshot-on belongs to --flight"
		       : o->flight.worst ? "--worst belongs to --flight"
					 : NULL;
	if (o->bus != KRON_BUS_LANE)
		return "--flight keeps samples in the lanes of threads: not with --bus exact or "
		       "device";
	if (o->watch.trigger)
		return "--trigger ends a recording, and --flight goes on: use one of them";
	if (o->when_full)
		return "--flight is a ring: leave out --when-full";
	if (wants_switches)
		return "--flight writes nothing until something happens, and context switches are "
		       "written as they come: not with --switches yes";
	if (cable_is_address(o->dir))
		return "--flight writes its snapshots into a directory: not with -o tcp:// or unix:";
	if (flight_parse(&o->flight, o->flight.text, err))
		return err->msg;
	if (o->flight.bytes && o->buffer)
		return "--flight SIZE is the size of the buffer: leave out --buffer";
	if (o->flight.bytes)
		o->buffer = flight_buffer(&o->flight);
	if (o->flight.on && o->flight.worst)
		return "--snapshot-on and --worst both look at the samples: use one of them";
	/* what was not looked at yet is not to be overwritten: drain and watch let the oldest go */
	if (o->flight.worst)
		return check_worst(&o->flight, err);
	if (o->flight.on)
		return check_trigger("--snapshot-on", o->flight.on, err);
	o->when_full = KRON_WHEN_FULL_WRAP;
	return NULL;
}

void flight_record_prepare(const struct collector_options *o)
{
	sigset_t set;

	if (!o->flight.text)
		return;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

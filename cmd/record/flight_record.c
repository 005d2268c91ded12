/* SPDX-License-Identifier: MIT */
/* flight_record.c - see flight_record.h. */
#define _GNU_SOURCE
#include "cmd/record/flight_record.h"

#include <signal.h>

#include "collect/cable/address.h"

const char *flight_record_check(struct collector_options *o, bool wants_switches, struct err *err)
{
	if (!o->flight.text)
		return o->flight.most ? "--max-snapshots belongs to --flight"
		       : o->flight.on ? "--snapshot-on belongs to --flight"
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
	if (!o->flight.on) {
		o->when_full = KRON_WHEN_FULL_WRAP;
		return NULL;
	}
	/* what was not looked at yet is not to be overwritten: drain and watch let the oldest go */
	return watch_check(&(struct watch_options){.label = "--snapshot-on",
						   .trigger = o->flight.on},
			   err)
		       ? err->msg
		       : NULL;
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

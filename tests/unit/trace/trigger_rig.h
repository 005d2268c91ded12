/* SPDX-License-Identifier: MIT */
/*
 * trigger_rig.h - a trigger that is fed rows of samples, made up here, and notes when it fires.
 *
 * Functions are f (events 0, 1), g (2, 3), h (4, 5) and a user's event u (6); a tick is a nanosecond.
 */
#ifndef TESTS_TRIGGER_RIG_H
#define TESTS_TRIGGER_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace/analysis/trigger_impl.h"
#include "trace/reader_impl.h"

enum { F, F_END, G, G_END, H, H_END, U };
enum { LANES = 4 };

static struct trace_function functions[] = {
	{.n = 0, .name = "f"}, {.n = 1, .name = "g"}, {.n = 2, .name = "h"}};
static struct trace_event_place places[] = {{.module = 0}};
static struct trace_user_event user_events[] = {
	{.n = 3, .name = "u", .payload = "", .places = places, .nplaces = 1}};
static struct trace_module modules[] = {{.path = "/bin/m"}};
static struct trace_lane lanes[LANES] = {
	{.proc_uid = 1, .tid = 10, .name = "main"},
	{.proc_uid = 1, .tid = 11, .name = "helper"},
	{.proc_uid = 2, .tid = 20, .name = "main"},
	{.proc_uid = 2, .tid = 21, .name = ""},
};
static struct trace_proc procs[] = {{.uid = 1, .pid = 10, .exe = "/bin/a"},
				    {.uid = 2, .pid = 20, .exe = "/bin/b"}};
static struct trace_priv nothing;
static struct trace trace = {
	.modules = modules,
	.nmodules = 1,
	.functions = functions,
	.nfunctions = 3,
	.user_events = user_events,
	.nuser_events = 1,
	.lanes = lanes,
	.nlanes = LANES,
	.procs = procs,
	.nprocs = 2,
	.tsc_hz = 1e9,
	.priv = &nothing,
};

/* ---- rows of samples ---- */

static struct trigger *g;
static char fired[4096]; /* "AT " or "AT-SINCE " for each */

static inline void start(const char *text)
{
	struct err err;

	fired[0] = 0;
	if (trigger_parse(&g, "--trigger", text, &err))
		fail_msg("%s", err.msg);
	trigger_bind(g, &trace);
}

static inline void note_fired(uint64_t at, uint64_t since)
{
	size_t n = strlen(fired);

	snprintf(fired + n, sizeof(fired) - n, since ? "%llu-%llu " : "%llu ",
		 (unsigned long long)at, (unsigned long long)since);
}

static inline void pass_time(uint64_t t)
{
	struct trigger_due due;

	while (trigger_due(g, t, &due)) {
		note_fired(due.at, due.since);
		assert_int_equal(due.note, due.since + 1000000);
		trigger_settle(g, true);
	}
}

static inline void feed(struct trace_event e)
{
	struct trigger_wants w;
	uint64_t since, at = e.tsc;
	uint8_t bits;

	pass_time(e.tsc);
	w = trigger_wants(g, e.lane);
	bits = trigger_may_want_event(&w, &e) ? trigger_test(g, &w, &e) : 0;
	switch (bits ? trigger_feed(g, &e, bits) : TRIGGER_NOTHING) {
	case TRIGGER_FIRES:
		since = trigger_fired_since(g, &at);
		note_fired(at, since);
		break;
	case TRIGGER_WAITS:
		trigger_note(g, e.tsc + 1000000);
		break;
	case TRIGGER_NOTHING:
		break;
	}
}

static inline void sample(uint64_t tsc, uint32_t lane, uint32_t event, uint32_t sp)
{
	feed((struct trace_event){
		.tsc = tsc,
		.lane = lane,
		.s = {.head = KRON_HEAD_TRACE(0), .event = event, .payload = sp}});
}

static inline void expect(const char *wanted)
{
	assert_string_equal(fired, wanted);
	trigger_free(g);
}

#endif

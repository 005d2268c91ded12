/* SPDX-License-Identifier: MIT */
/*
 * export_perfetto.c - Perfetto's trace, for ui.perfetto.dev and trace_processor.
 *
 * Each thread is a track and a packet sequence of its own, and so is each further stack of it whose
 * calls interleave with others: a track below the thread's.  A sequence begins with a packet that
 * sets its clock (each timestamp is the step from the one before) and its track, so an event
 * needs little more than its type and the number of its name, which the first event of a
 * function on the sequence explains.
 *
 * Context switches are the last sequence, in the form that Perfetto has for kernels that tell
 * only when a task's state changes: nothing has to be said of who had the CPU in between.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>

#include "trace/export/export.h"
#include "trace/export/export_nest.h"
#include "trace/export/export_proto.h"
#include "trace/export/export_switches.h"
#include "trace/text.h"
#include "trace/value.h"

/* Field numbers, of perfetto/protos/perfetto/trace */
enum { TRACE_PACKET = 1 };
enum {
	PACKET_CLOCKS = 6,
	PACKET_TIME = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK = 60,
	PACKET_TASK_STATE = 117
};
enum { FLAG_CLEARED = 1, FLAG_NEEDS_STATE = 2 };
enum { CLOCKS_CLOCK = 1, CLOCK_ID = 1, CLOCK_TIME = 2, CLOCK_INCREMENTAL = 3 };
enum { CLOCK_MONOTONIC_ID = 3, CLOCK_OF_SEQUENCE = 64 };
enum { DEFAULTS_EVENT = 11, DEFAULTS_CLOCK = 58 };
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT = 5 };
enum { PROCESS_PID = 1, PROCESS_CMDLINE = 2, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum { EVENT_ARG = 4, EVENT_TYPE = 9, EVENT_NAME_IID = 10, EVENT_TRACK = 11, EVENT_NAME = 23 };
enum { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3 };
enum { INTERNED_NAMES = 2, NAME_IID = 1, NAME_TEXT = 2 };
enum {
	ARG_UINT = 3,
	ARG_INT = 4,
	ARG_DOUBLE = 5,
	ARG_TEXT = 6,
	ARG_POINTER = 7, /* shown in hexadecimal */
	ARG_NAME = 10
};
enum { TASK_CPU = 1, TASK_NAME = 2, TASK_TID = 3, TASK_STATE = 4 };
enum { STATE_RUNNABLE = 2, STATE_RUNNING = 3, STATE_SLEEPS = 4 };

struct perfetto {
	const struct trace *t;
	FILE *out;
	uint32_t sequence, nstacks;
	uint64_t base_ns, last_ns;
	struct export_set named; /* functions of this sequence */
	struct proto packet, part, inner;
};

static int32_t pid_of(const struct trace *t, uint32_t uid)
{
	const struct trace_proc *p = trace_proc_of(t, uid);

	return p ? (int32_t)trace_pid_number(p) : (int32_t)uid;
}

/* Tracks have numbers over the whole trace: processes even ones, threads odd ones, and stacks those
 * after. */
static uint64_t process_track(uint32_t uid)
{
	return 2 * (uint64_t)uid + 2;
}

static uint64_t thread_track(uint32_t lane)
{
	return 2 * (uint64_t)lane + 1;
}

static void write_packet(struct perfetto *p, unsigned flags)
{
	proto_uint(&p->packet, PACKET_SEQUENCE, p->sequence + 1ul);
	if (flags)
		proto_uint(&p->packet, PACKET_FLAGS, flags);
	proto_write(&p->packet, TRACE_PACKET, p->out);
}

static void put_time(struct perfetto *p, uint64_t tsc)
{
	uint64_t ns = p->base_ns + trace_time(p->t, tsc);

	proto_uint(&p->packet, PACKET_TIME, ns - p->last_ns);
	p->last_ns = ns;
}

/* Of the event in part. */
static void put_level(struct perfetto *p, unsigned level, const char *name)
{
	if (!level)
		return;
	proto_uint(&p->inner, ARG_UINT, level);
	proto_text(&p->inner, ARG_NAME, name);
	proto_message(&p->part, EVENT_ARG, &p->inner);
}

static void on_begin(void *ctx, uint32_t function, uint64_t tsc)
{
	struct perfetto *p = ctx;
	const struct trace_function *f = trace_function_of(p->t, KRON_EVENT_ENTRY(function));
	char name[32];

	put_time(p, tsc);
	if (export_set_add(&p->named, function)) {
		proto_uint(&p->inner, NAME_IID, function + 1ul);
		proto_text(&p->inner, NAME_TEXT, text_function(p->t, function, name, sizeof(name)));
		proto_message(&p->part, INTERNED_NAMES, &p->inner);
		proto_message(&p->packet, PACKET_INTERNED, &p->part);
	}
	proto_uint(&p->part, EVENT_TYPE, SLICE_BEGIN);
	proto_uint(&p->part, EVENT_NAME_IID, function + 1ul);
	put_level(p, f ? f->level : 0, "level");
	proto_message(&p->packet, PACKET_EVENT, &p->part);
	write_packet(p, FLAG_NEEDS_STATE);
}

static void on_end(void *ctx, uint32_t function, uint64_t tsc, const struct track_call *call)
{
	struct perfetto *p = ctx;

	(void)function;
	(void)call;
	put_time(p, tsc);
	proto_uint(&p->part, EVENT_TYPE, SLICE_END);
	proto_message(&p->packet, PACKET_EVENT, &p->part);
	write_packet(p, FLAG_NEEDS_STATE);
}

static void on_special(void *ctx, const struct trace_event *e)
{
	struct perfetto *p = ctx;
	char name[40];

	if (e->s.event != KRON_EVENT_LOST)
		return;
	snprintf(name, sizeof(name), "%" PRIu32 " samples lost", e->s.payload);
	put_time(p, e->tsc);
	proto_uint(&p->part, EVENT_TYPE, INSTANT);
	proto_text(&p->part, EVENT_NAME, name);
	proto_message(&p->packet, PACKET_EVENT, &p->part);
	write_packet(p, FLAG_NEEDS_STATE);
}

/* Of the event in part: the value by its name and type, where it is whole. */
static void put_value(struct perfetto *p, const struct trace_user_event *u, struct value v)
{
	char text[VALUE_TEXT];
	const char *s = value_string(v, text);

	if (!u->payload[0] || !value_is_whole(v) || (v.memory && !s))
		return;
	if (s)
		proto_text(&p->inner, ARG_TEXT, s);
	else if (value_is_floating(v))
		proto_double(&p->inner, ARG_DOUBLE, value_double(v));
	else
		proto_uint(&p->inner,
			   v.type.form == 's'   ? ARG_INT
			   : v.type.form == 'u' ? ARG_UINT
						: ARG_POINTER,
			   v.number);
	proto_text(&p->inner, ARG_NAME, u->payload);
	proto_message(&p->part, EVENT_ARG, &p->inner);
}

/* Names of events are few: they stand in each instant. */
static void on_user_event(void *ctx, const struct trace_event *e, const struct trace_user_event *u)
{
	struct perfetto *p = ctx;
	const struct value v = value_of(u, e);
	char text[VALUE_TEXT], *name;

	if (!u->payload[0])
		name = xstrdup(u->name);
	else if (u->type.form || !value_is_number(v))
		name = xasprintf("%s %s=%s", u->name, u->payload, value_text(v, text));
	else
		name = xasprintf("%s %s=%" PRIu64, u->name, u->payload, v.number);

	put_time(p, e->tsc);
	proto_uint(&p->part, EVENT_TYPE, INSTANT);
	proto_text(&p->part, EVENT_NAME, name);
	put_value(p, u, v);
	put_level(p, u->level, export_level_name(u));
	proto_message(&p->packet, PACKET_EVENT, &p->part);
	write_packet(p, FLAG_NEEDS_STATE);
	xfree(name);
}

static void put_process(struct perfetto *p, const struct trace_proc *proc)
{
	proto_uint(&p->inner, PROCESS_PID, (uint64_t)pid_of(p->t, proc->uid));
	proto_text(&p->inner, PROCESS_CMDLINE, proc->cmdline);
	proto_text(&p->inner, PROCESS_NAME, proc->exe[0] ? text_base(proc->exe) : "?");
	proto_uint(&p->part, TRACK_UUID, process_track(proc->uid));
	proto_message(&p->part, TRACK_PROCESS, &p->inner);
	proto_message(&p->packet, PACKET_TRACK, &p->part);
	write_packet(p, 0);
}

static void put_thread(struct perfetto *p, uint32_t lane)
{
	const struct trace_lane *l = &p->t->lanes[lane];

	proto_uint(&p->inner, THREAD_PID, (uint64_t)pid_of(p->t, l->proc_uid));
	proto_uint(&p->inner, THREAD_TID, trace_lane_task(l));
	if (l->name[0])
		proto_text(&p->inner, THREAD_NAME, l->name);
	proto_uint(&p->part, TRACK_UUID, thread_track(lane));
	proto_uint(&p->part, TRACK_PARENT, process_track(l->proc_uid));
	proto_message(&p->part, TRACK_THREAD, &p->inner);
	proto_message(&p->packet, PACKET_TRACK, &p->part);
	write_packet(p, 0);
}

static void put_stack(struct perfetto *p, uint32_t lane, uint32_t track, uint64_t number)
{
	char name[24];

	snprintf(name, sizeof(name), "stack %" PRIu32, track + 1);
	proto_uint(&p->part, TRACK_UUID, number);
	proto_text(&p->part, TRACK_NAME, name);
	proto_uint(&p->part, TRACK_PARENT, thread_track(lane));
	proto_message(&p->packet, PACKET_TRACK, &p->part);
	write_packet(p, 0);
}

static void put_clock(struct perfetto *p, unsigned id, bool incremental)
{
	proto_uint(&p->inner, CLOCK_ID, id);
	proto_uint(&p->inner, CLOCK_TIME, p->last_ns);
	if (incremental)
		proto_uint(&p->inner, CLOCK_INCREMENTAL, 1);
	proto_message(&p->part, CLOCKS_CLOCK, &p->inner);
}

/* A new one: what its events are steps from, and which track they belong to (0: none). */
static void start_sequence(struct perfetto *p, uint64_t track)
{
	p->sequence++;
	p->last_ns = p->base_ns;
	put_clock(p, CLOCK_MONOTONIC_ID, false);
	put_clock(p, CLOCK_OF_SEQUENCE, true);
	proto_message(&p->packet, PACKET_CLOCKS, &p->part);
	if (track) {
		proto_uint(&p->inner, EVENT_TRACK, track);
		proto_message(&p->part, DEFAULTS_EVENT, &p->inner);
	}
	proto_uint(&p->part, DEFAULTS_CLOCK, CLOCK_OF_SEQUENCE);
	proto_message(&p->packet, PACKET_DEFAULTS, &p->part);
	write_packet(p, FLAG_CLEARED);
}

static void on_track(void *ctx, uint32_t lane, uint32_t track)
{
	struct perfetto *p = ctx;
	uint64_t number = thread_track(lane);

	if (track) {
		number = thread_track((uint32_t)p->t->nlanes + p->nstacks++);
		put_stack(p, lane, track, number);
	} else {
		put_thread(p, lane);
	}
	start_sequence(p, number);
	export_set_free(&p->named);
	p->named = (struct export_set){0};
}

static void put_switch(struct perfetto *p, const struct export_switches *s,
		       const struct trace_switch *r)
{
	put_time(p, r->tsc);
	proto_uint(&p->part, TASK_CPU, r->cpu);
	proto_text(&p->part, TASK_NAME, export_switches_name(s, r->tid));
	proto_uint(&p->part, TASK_TID, r->tid);
	proto_uint(&p->part, TASK_STATE,
		   r->kind == TRACE_SWITCH_IN    ? STATE_RUNNING
		   : r->kind == TRACE_SWITCH_OUT ? STATE_SLEEPS
						 : STATE_RUNNABLE);
	proto_message(&p->packet, PACKET_TASK_STATE, &p->part);
	write_packet(p, FLAG_NEEDS_STATE);
}

static void put_switches(struct perfetto *p)
{
	struct export_switches s;

	export_switches_open(&s, p->t);
	if (s.n)
		start_sequence(p, 0);
	for (size_t i = 0; i < s.n && !ferror(p->out); i++)
		if (export_switches_valid(&s.v[i]) && s.v[i].kind != TRACE_SWITCH_LOST)
			put_switch(p, &s, &s.v[i]);
	export_switches_close(&s);
}

void export_perfetto(const struct trace *t, FILE *out)
{
	struct perfetto p = {.t = t, .out = out};
	struct export_nest nest = {.t = t,
				   .ctx = &p,
				   .track = on_track,
				   .begin = on_begin,
				   .end = on_end,
				   .special = on_special,
				   .user_event = on_user_event};
	const char *start = trace_session(t, "start_mono_ns");

	p.base_ns = start ? strtoull(start, NULL, 10) & INT64_MAX : 0;
	for (size_t i = 0; i < t->nprocs; i++)
		put_process(&p, &t->procs[i]);
	export_nest_open(&nest);
	for (uint32_t lane = 0; lane < t->nlanes; lane++)
		export_nest_lane(&nest, lane);
	export_set_free(&p.named);
	export_nest_close(&nest);
	put_switches(&p);
	proto_free(&p.packet);
	proto_free(&p.part);
	proto_free(&p.inner);
}

/* SPDX-License-Identifier: MIT */
/*
 * export_otf2.c - an OTF2 archive, for otf2-print, Vampir, Cube and their kin.  The only file
 * that knows the library; without it, export_otf2() says so.
 *
 *   PATH/traces.otf2          anchor
 *   PATH/traces.def           strings, processes (location groups), threads (locations),
 *                             functions (regions), the clock
 *   PATH/traces/N.evt, .def   events of thread N: Enter and Leave; a parameter where samples
 *                             were lost or the thread came to another CPU, and for
 *                             each event of a user's probe, with its value as an attribute of the
 *                             value's name and type.  What could not be read does not have it; where the
 *                             sample has the low half of 64 bits, its name says so
 *
 * Further stacks of a thread whose calls interleave with others are locations after the threads.
 * Where the trace has context switches, each CPU is a location after those, in a group
 * of its own: a metric says which thread is on it.  Filter levels are groups of regions.
 *
 * One thread is written after the other, so there is one buffer of events.  Definitions come
 * last, for they count the events.
 *
 * After a failed write the library goes on with a file that it has given up, and crashes, inside of
 * the same call.  So the first error leaves it for good, by longjmp(): it is not called again, not
 * even to close what is open, and what it holds stays until the command ends.
 */
#define _GNU_SOURCE
#include "trace/export/export.h"

#include <errno.h>

#include "config.h"

#ifndef HAVE_OTF2

int export_otf2(const struct trace *t, const char *path, struct err *err)
{
	(void)t;
	return err_set(err, ENOSYS,
		       "cannot write %s: this kron was built without OTF2; on Debian: "
		       "apt-get install libopen-trace-format2-dev, and build it again",
		       path);
}

#else
#include <inttypes.h>
#include <otf2/otf2.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "trace/export/export_dir.h"
#include "trace/export/export_nest.h"
#include "trace/export/export_otf2_messages.h"
#include "trace/export/export_switches.h"
#include "trace/index.h"
#include "trace/text.h"
#include "trace/value.h"

#define EVENT_CHUNK (1 << 20)
#define DEFINITION_CHUNK (256 << 10)
#define NAME "traces"

enum { PARAMETER_LOST, PARAMETER_CPU, NPARAMETERS };
enum { NODE_HOST };
enum { METRIC_THREAD, METRIC_PREEMPTED, NMETRICS }; /* members of the only class */
enum { METRIC_CPU };

struct cpu {
	uint32_t number;
	uint64_t events;
};

struct stack { /* other than a thread's own */
	uint32_t lane, track;
	uint64_t events;
};

struct otf2 {
	const struct trace *t;
	OTF2_Archive *archive;
	OTF2_EvtWriter *events; /* of this lane */
	OTF2_GlobalDefWriter *definitions;
	struct index regions; /* function number -> region */
	uint32_t strings;
	uint64_t last;    /* ns, of all lanes */
	uint64_t *counts; /* events, by lane */
	VEC(struct stack) stacks;
	VEC(char *) texts; /* strings 0 ...: values */
	struct index
		no_value; /* user's events of which samples could not be read -> their parameters */
	struct index attributes; /* user's event << 1 | whether they are low halves -> attribute */
	OTF2_AttributeList *value; /* of the event that is written next */
	OTF2_DefWriter *own;       /* of the location that is being written */
	uint64_t location;
	struct export_switches switches;
	struct otf2_messages *messages; /* NULL: none */
	uint32_t groups;
	VEC(struct cpu) cpus; /* those that there are switches of */
	uint32_t cpu;
	jmp_buf leave; /* after an error */
	bool failed;
	char why[200];
};

/* ---- errors ---- */

static OTF2_ErrorCode on_error(void *ctx, const char *file, uint64_t line, const char *function,
			       OTF2_ErrorCode code, const char *format, va_list args)
{
	struct otf2 *o = ctx;

	(void)file, (void)line, (void)function, (void)format, (void)args;
	if (code == OTF2_SUCCESS)
		return code;
	snprintf(o->why, sizeof(o->why), "%s", OTF2_Error_GetDescription(code));
	o->failed = true;
	longjmp(o->leave, 1);
}

static void check(struct otf2 *o, OTF2_ErrorCode code)
{
	on_error(o, NULL, 0, NULL, code, NULL, (va_list){0});
}

static OTF2_FlushType on_flush(void *ctx, OTF2_FileType type, OTF2_LocationRef location,
			       void *caller, bool final)
{
	(void)ctx, (void)type, (void)location, (void)caller, (void) final;
	return OTF2_FLUSH;
}

/* ---- events ---- */

static uint64_t time_of(struct otf2 *o, uint64_t tsc)
{
	uint64_t ns = trace_time(o->t, tsc);

	if (ns > o->last)
		o->last = ns;
	return ns;
}

/* What the location has sent and received up to this moment; further stacks of a thread have none. */
static void put_messages(struct otf2 *o, uint64_t until)
{
	if (o->messages && o->events && o->location < o->t->nlanes)
		check(o, otf2_messages_put(o->messages, (uint32_t)o->location, until, o->events));
}

static void on_begin(void *ctx, uint32_t function, uint64_t tsc)
{
	struct otf2 *o = ctx;

	put_messages(o, tsc);
	check(o, OTF2_EvtWriter_Enter(o->events, NULL, time_of(o, tsc),
				      index_of(&o->regions, function)));
}

static void on_end(void *ctx, uint32_t function, uint64_t tsc, const struct track_call *call)
{
	struct otf2 *o = ctx;

	(void)call;
	put_messages(o, tsc);
	check(o, OTF2_EvtWriter_Leave(o->events, NULL, time_of(o, tsc),
				      index_of(&o->regions, function)));
}

/* These take the attributes that wait, and leave none. */
static void put_parameter(struct otf2 *o, uint32_t parameter, uint64_t tsc, uint64_t value)
{
	put_messages(o, tsc);
	check(o, OTF2_EvtWriter_ParameterUnsignedInt(o->events, o->value, time_of(o, tsc),
						     parameter, value));
}

static void put_signed(struct otf2 *o, uint32_t parameter, uint64_t tsc, int64_t value)
{
	put_messages(o, tsc);
	check(o,
	      OTF2_EvtWriter_ParameterInt(o->events, o->value, time_of(o, tsc), parameter, value));
}

static void on_special(void *ctx, const struct trace_event *e)
{
	struct otf2 *o = ctx;

	if (e->s.event == KRON_EVENT_LOST)
		put_parameter(o, PARAMETER_LOST, e->tsc, e->s.payload);
	else if (e->s.event == KRON_EVENT_CPU && e->s.payload != o->cpu)
		put_parameter(o, PARAMETER_CPU, e->tsc, o->cpu = e->s.payload);
}

/* Definitions come after all events. */
static OTF2_StringRef keep_text(struct otf2 *o, const char *s)
{
	*vec_push(&o->texts) = xstrdup(s);
	return (OTF2_StringRef)(o->texts.n - 1);
}

/* As reports show it. */
static void put_text(struct otf2 *o, uint32_t parameter, uint64_t tsc, struct value v)
{
	char text[VALUE_TEXT];

	put_messages(o, tsc);
	check(o, OTF2_EvtWriter_ParameterString(o->events, o->value, time_of(o, tsc), parameter,
						keep_text(o, value_text(v, text))));
}

/* A parameter has one type: what has no value is one of its own, after all others. */
static void put_no_value(struct otf2 *o, uint32_t event, uint64_t tsc)
{
	put_parameter(o, NPARAMETERS + (uint32_t)o->t->nuser_events + index_of(&o->no_value, event),
		      tsc, 1);
}

/* ---- values as attributes ---- */

static OTF2_Type attribute_type(const struct trace_value_type *type)
{
	static const OTF2_Type with_sign[] = {OTF2_TYPE_INT8, OTF2_TYPE_INT16, OTF2_TYPE_INT32,
					      OTF2_TYPE_INT64},
			       without[] = {OTF2_TYPE_UINT8, OTF2_TYPE_UINT16, OTF2_TYPE_UINT32,
					    OTF2_TYPE_UINT64};
	const unsigned bits = type->bits ? type->bits : 32;
	const unsigned size = bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : 3;

	if (value_type_is_text(type))
		return OTF2_TYPE_STRING;
	if (type->form == 'd' || type->form == 'f')
		return type->form == 'd' ? OTF2_TYPE_DOUBLE : OTF2_TYPE_FLOAT;
	return type->form == 's' ? with_sign[size] : without[size];
}

/* By the union's first bytes: the lowest of a number. */
static OTF2_AttributeValue attribute_value(struct otf2 *o, struct value v)
{
	OTF2_AttributeValue a = {.uint64 = v.number};
	char text[VALUE_TEXT];
	const char *s = value_string(v, text);
	char *escaped = s ? text_escaped(s) : NULL;

	if (s)
		a.stringRef = keep_text(o, escaped);
	xfree(escaped);
	return a;
}

/* For the event that is written next. */
static void add_value(struct otf2 *o, const struct trace_user_event *u, struct value v)
{
	const uint64_t key = (uint64_t)(u - o->t->user_events) << 1 | (v.type.form == VALUE_HALF);

	if (value_has_field(u, v))
		check(o, OTF2_AttributeList_AddAttribute(o->value, index_of(&o->attributes, key),
							 attribute_type(&v.type),
							 attribute_value(o, v)));
}

/* Each of them is a parameter after our own. */
static void on_user_event(void *ctx, const struct trace_event *e, const struct trace_user_event *u)
{
	struct otf2 *o = ctx;

	const uint32_t i = (uint32_t)(u - o->t->user_events);
	uint32_t parameter = NPARAMETERS + i;
	const struct value v = value_of(u, e);

	add_value(o, u, v);
	if (value_type_is_text(&u->type))
		put_text(o, parameter, e->tsc, v);
	else if (!value_is_number(v))
		put_no_value(o, i, e->tsc);
	else if (u->type.form != 's')
		put_parameter(o, parameter, e->tsc, v.number);
	else
		put_signed(o, parameter, e->tsc, (int64_t)v.number);
}

/* A location needs a file of definitions of its own, be it empty. */
static void begin_location(struct otf2 *o, uint64_t location)
{
	o->location = location;
	o->cpu = UINT32_MAX;
	o->events = OTF2_Archive_GetEvtWriter(o->archive, location);
	o->own = OTF2_Archive_GetDefWriter(o->archive, location);
	if (!o->events || !o->own)
		check(o, OTF2_ERROR_MEM_ALLOC_FAILED);
}

/* Returns how many events it has. */
static uint64_t end_location(struct otf2 *o)
{
	uint64_t n = 0;

	check(o, OTF2_EvtWriter_GetNumberOfEvents(o->events, &n));
	check(o, OTF2_Archive_CloseDefWriter(o->archive, o->own));
	check(o, OTF2_Archive_CloseEvtWriter(o->archive, o->events));
	o->events = NULL;
	o->own = NULL;
	return n;
}

static void end_track(struct otf2 *o)
{
	uint64_t n;

	put_messages(o, UINT64_MAX);
	n = o->events ? end_location(o) : 0;
	if (o->location < o->t->nlanes)
		o->counts[o->location] += n;
	else
		o->stacks.v[o->location - o->t->nlanes].events += n;
}

static void on_track(void *ctx, uint32_t lane, uint32_t track)
{
	struct otf2 *o = ctx;

	end_track(o);
	if (!track) {
		begin_location(o, lane);
		return;
	}
	begin_location(o, o->t->nlanes + o->stacks.n);
	*vec_push(&o->stacks) = (struct stack){.lane = lane, .track = track};
}

/* ---- who is on a CPU ---- */

static uint64_t cpu_location(const struct otf2 *o, size_t i)
{
	return o->t->nlanes + o->stacks.n + i;
}

static void put_switch(struct otf2 *o, const struct trace_switch *r)
{
	static const OTF2_Type types[NMETRICS] = {OTF2_TYPE_UINT64, OTF2_TYPE_UINT64};
	OTF2_MetricValue values[NMETRICS] = {
		[METRIC_THREAD].unsigned_int =
			r->kind == TRACE_SWITCH_IN ? r->tid & TRACE_TASK_MASK : 0,
		[METRIC_PREEMPTED].unsigned_int = r->kind == TRACE_SWITCH_PREEMPTED,
	};

	if (r->kind != TRACE_SWITCH_LOST)
		check(o, OTF2_EvtWriter_Metric(o->events, NULL, time_of(o, r->tsc), METRIC_CPU,
					       NMETRICS, types, values));
}

/* The records of one CPU, v[0] up to v[n]; returns how many that were. */
static size_t put_cpu(struct otf2 *o, const struct trace_switch *v, size_t n)
{
	struct cpu *cpu = vec_push(&o->cpus);
	size_t i;

	cpu->number = v->cpu;
	begin_location(o, cpu_location(o, o->cpus.n - 1));
	for (i = 0; i < n && v[i].cpu == v->cpu; i++)
		put_switch(o, &v[i]);
	cpu->events = end_location(o);
	return i;
}

static void put_cpus(struct otf2 *o)
{
	size_t n, at = 0;
	struct trace_switch *v = export_switches_by_cpu(&o->switches, &n);

	while (at < n)
		at += put_cpu(o, v + at, n - at);
	xfree(v);
}

static void put_lanes(struct otf2 *o)
{
	struct export_nest nest = {.t = o->t,
				   .ctx = o,
				   .track = on_track,
				   .begin = on_begin,
				   .end = on_end,
				   .special = on_special,
				   .user_event = on_user_event};

	check(o, OTF2_Archive_OpenEvtFiles(o->archive));
	check(o, OTF2_Archive_OpenDefFiles(o->archive));
	export_nest_open(&nest);
	for (uint32_t lane = 0; lane < o->t->nlanes; lane++)
		export_nest_lane(&nest, lane);
	if (o->t->nlanes)
		end_track(o);
	export_nest_close(&nest);
	put_cpus(o);
	check(o, OTF2_Archive_CloseDefFiles(o->archive));
	check(o, OTF2_Archive_CloseEvtFiles(o->archive));
}

/* ---- definitions ---- */

static OTF2_StringRef put_string(struct otf2 *o, const char *s)
{
	char *shown = text_shown(s);

	check(o, OTF2_GlobalDefWriter_WriteString(o->definitions, o->strings, shown));
	xfree(shown);
	return o->strings++;
}

static void put_clock(struct otf2 *o)
{
	const char *real = trace_session(o->t, "start_real_ns");

	check(o, OTF2_GlobalDefWriter_WriteClockProperties(
			 o->definitions, 1000000000, 0, o->last + 1,
			 real ? strtoull(real, NULL, 10) : OTF2_UNDEFINED_TIMESTAMP));
}

static void put_texts(struct otf2 *o)
{
	vec_for(&o->texts, s)
		put_string(o, *s);
}

static OTF2_ParameterType parameter_type(const struct trace_value_type *type)
{
	if (value_type_is_text(type))
		return OTF2_PARAMETER_TYPE_STRING;
	return type->form == 's' ? OTF2_PARAMETER_TYPE_INT64 : OTF2_PARAMETER_TYPE_UINT64;
}

static void put_no_value_parameter(struct otf2 *o, uint32_t i)
{
	char *name = xasprintf("%s: unreadable", o->t->user_events[o->no_value.keys[i]].name);

	check(o, OTF2_GlobalDefWriter_WriteParameter(
			 o->definitions, NPARAMETERS + (uint32_t)o->t->nuser_events + i,
			 put_string(o, name), OTF2_PARAMETER_TYPE_UINT64));
	xfree(name);
}

static void put_parameters(struct otf2 *o)
{
	static const char *const names[NPARAMETERS] = {
		[PARAMETER_LOST] = "samples lost", [PARAMETER_CPU] = "cpu"};

	for (uint32_t i = 0; i < NPARAMETERS; i++)
		check(o, OTF2_GlobalDefWriter_WriteParameter(o->definitions, i,
							     put_string(o, names[i]),
							     OTF2_PARAMETER_TYPE_UINT64));
	for (size_t i = 0; i < o->t->nuser_events; i++)
		check(o, OTF2_GlobalDefWriter_WriteParameter(
				 o->definitions, NPARAMETERS + (uint32_t)i,
				 put_string(o, o->t->user_events[i].name),
				 parameter_type(&o->t->user_events[i].type)));
	for (uint32_t i = 0; i < o->no_value.n; i++)
		put_no_value_parameter(o, i);
}

/* Described by the event that they are of. */
static void put_attributes(struct otf2 *o)
{
	static const struct trace_value_type half = {VALUE_HALF, 32, 0};

	for (uint32_t i = 0; i < o->attributes.n; i++) {
		const struct trace_user_event *u = &o->t->user_events[o->attributes.keys[i] >> 1];
		const bool is_half = o->attributes.keys[i] & 1;
		char *name = xasprintf("%s%s", u->payload, is_half ? " (low half)" : "");

		check(o, OTF2_GlobalDefWriter_WriteAttribute(
				 o->definitions, i, put_string(o, name), put_string(o, u->name),
				 attribute_type(is_half ? &half : &u->type)));
		xfree(name);
	}
}

/* Location groups are numbered as the trace's processes are. */
static uint32_t group_of(const struct trace *t, uint32_t uid)
{
	const struct trace_proc *p = trace_proc_of(t, uid);

	return p ? (uint32_t)(p - t->procs) : OTF2_UNDEFINED_LOCATION_GROUP;
}

/* The first node that is on the same host; where there is one trace, NODE_HOST. */
static uint32_t host_of(const struct trace *t, uint32_t node)
{
	const char *host;
	uint32_t first = 0;

	if (!trace_nodes(t))
		return NODE_HOST;
	host = trace_session(trace_node_at(t, node)->t, "hostname");
	while (host && first < node &&
	       !trace_session_is(trace_node_at(t, first)->t, "hostname", host))
		first++;
	return host ? first : node;
}

static void put_host(struct otf2 *o, const struct trace *t, uint32_t number)
{
	const char *host = trace_session(t, "hostname");

	check(o, OTF2_GlobalDefWriter_WriteSystemTreeNode(
			 o->definitions, number, put_string(o, host ? host : "?"),
			 put_string(o, "node"), OTF2_UNDEFINED_SYSTEM_TREE_NODE));
}

static void put_hosts(struct otf2 *o)
{
	if (!trace_nodes(o->t))
		put_host(o, o->t, NODE_HOST);
	for (uint32_t i = 0; i < trace_nodes(o->t); i++)
		if (host_of(o->t, i) == i)
			put_host(o, trace_node_at(o->t, i)->t, i);
}

static void put_process(struct otf2 *o, const struct trace_proc *p)
{
	const char *exe = p->exe[0] ? text_base(p->exe) : "?";
	char pid[TRACE_PID_TEXT];
	char *name = p->known ? xasprintf("%s [%s]", exe, trace_pid_text(o->t, p, pid, sizeof(pid)))
			      : xasprintf("%s [%" PRIu32 "]", exe, p->uid);

	check(o, OTF2_GlobalDefWriter_WriteLocationGroup(
			 o->definitions, (uint32_t)(p - o->t->procs), put_string(o, name),
			 OTF2_LOCATION_GROUP_TYPE_PROCESS, host_of(o->t, p->node),
			 p->parent_uid ? group_of(o->t, p->parent_uid)
				       : OTF2_UNDEFINED_LOCATION_GROUP));
	xfree(name);
}

static void put_thread(struct otf2 *o, uint64_t location, uint32_t lane, uint32_t track,
		       uint64_t events)
{
	const struct trace_lane *l = &o->t->lanes[lane];
	char *name = xasprintf("%s [%" PRIu32 "]", l->name[0] ? l->name : "thread", l->tid);
	char *shown = export_track_name(name, track);

	check(o, OTF2_GlobalDefWriter_WriteLocation(o->definitions, location, put_string(o, shown),
						    OTF2_LOCATION_TYPE_CPU_THREAD, events,
						    group_of(o->t, l->proc_uid)));
	xfree(name);
	xfree(shown);
}

/* A group of locations, their metric, and them. */
static void define_cpus(struct otf2 *o)
{
	static const OTF2_MetricMemberRef members[NMETRICS] = {METRIC_THREAD, METRIC_PREEMPTED};
	static const char *const names[NMETRICS] = {"thread on the CPU", "preempted"};
	static const char *const meanings[NMETRICS] = {
		"TID of the traced thread that runs, 0: none of them",
		"1: the one that left could have gone on"};
	uint32_t group = (uint32_t)o->t->nprocs;

	if (!o->cpus.n)
		return;
	for (uint32_t i = 0; i < NMETRICS; i++)
		check(o, OTF2_GlobalDefWriter_WriteMetricMember(
				 o->definitions, i, put_string(o, names[i]),
				 put_string(o, meanings[i]), OTF2_METRIC_TYPE_OTHER,
				 OTF2_METRIC_ABSOLUTE_NEXT, OTF2_TYPE_UINT64, OTF2_BASE_DECIMAL, 0,
				 put_string(o, "#")));
	check(o, OTF2_GlobalDefWriter_WriteLocationGroup(o->definitions, group,
							 put_string(o, "processors"),
							 OTF2_LOCATION_GROUP_TYPE_PROCESS,
							 NODE_HOST, OTF2_UNDEFINED_LOCATION_GROUP));
	for (size_t i = 0; i < o->cpus.n; i++) {
		char *name = xasprintf("CPU %" PRIu32, o->cpus.v[i].number);

		check(o, OTF2_GlobalDefWriter_WriteLocation(
				 o->definitions, cpu_location(o, i), put_string(o, name),
				 OTF2_LOCATION_TYPE_METRIC, o->cpus.v[i].events, group));
		xfree(name);
	}
	check(o, OTF2_GlobalDefWriter_WriteMetricClass(o->definitions, METRIC_CPU, NMETRICS,
						       members, OTF2_METRIC_ASYNCHRONOUS,
						       OTF2_RECORDER_KIND_CPU));
}

static unsigned level_of_region(const struct otf2 *o, uint32_t i)
{
	const struct trace_function *f =
		trace_function_of(o->t, KRON_EVENT_ENTRY((uint32_t)o->regions.keys[i]));

	return f ? f->level : 0;
}

/* Where a recording has but one level, it says nothing. */
static void put_levels(struct otf2 *o)
{
	uint64_t *members = xcalloc(o->regions.n + 1, sizeof(*members));
	unsigned used = 0;

	for (uint32_t i = 0; i < o->regions.n; i++)
		used |= 1u << level_of_region(o, i);
	for (unsigned level = 0; level < 16 && used & ~1u; level++) {
		char *name = xasprintf("filter level %u", level);
		uint32_t n = 0;

		for (uint32_t i = 0; i < o->regions.n; i++)
			if (level_of_region(o, i) == level)
				members[n++] = i;
		if (n)
			check(o, OTF2_GlobalDefWriter_WriteGroup(
					 o->definitions, o->groups++, put_string(o, name),
					 OTF2_GROUP_TYPE_REGIONS, OTF2_PARADIGM_USER,
					 OTF2_GROUP_FLAG_NONE, n, members));
		xfree(name);
	}
	xfree(members);
}

static void put_regions(struct otf2 *o)
{
	OTF2_StringRef *modules = xcalloc(o->t->nmodules + 1, sizeof(*modules));
	OTF2_StringRef none = put_string(o, "");

	for (size_t i = 0; i < o->t->nmodules; i++)
		modules[i] = put_string(o, o->t->modules[i].path);
	for (uint32_t i = 0; i < o->regions.n; i++) {
		uint32_t n = (uint32_t)o->regions.keys[i];
		const struct trace_function *f = trace_function_of(o->t, KRON_EVENT_ENTRY(n));
		char buf[32];
		OTF2_StringRef name = put_string(o, text_function(o->t, n, buf, sizeof(buf)));

		check(o, OTF2_GlobalDefWriter_WriteRegion(
				 o->definitions, i, name, name, none, OTF2_REGION_ROLE_FUNCTION,
				 OTF2_PARADIGM_USER, OTF2_REGION_FLAG_NONE,
				 f ? modules[f->module] : put_string(o, "?"), 0, 0));
	}
	xfree(modules);
}

static OTF2_StringRef string_of(void *ctx, const char *s)
{
	return put_string(ctx, s);
}

static void put_definitions(struct otf2 *o)
{
	o->definitions = OTF2_Archive_GetGlobalDefWriter(o->archive);
	if (!o->definitions)
		check(o, OTF2_ERROR_MEM_ALLOC_FAILED);
	put_clock(o);
	put_texts(o); /* first: their numbers are in the events */
	put_parameters(o);
	put_attributes(o);
	put_hosts(o);
	for (size_t i = 0; i < o->t->nprocs; i++)
		put_process(o, &o->t->procs[i]);
	for (uint32_t lane = 0; lane < o->t->nlanes; lane++)
		put_thread(o, lane, lane, 0, o->counts[lane]);
	for (size_t i = 0; i < o->stacks.n; i++)
		put_thread(o, o->t->nlanes + i, o->stacks.v[i].lane, o->stacks.v[i].track,
			   o->stacks.v[i].events);
	put_regions(o);
	put_levels(o);
	define_cpus(o);
	if (o->messages)
		check(o,
		      otf2_messages_define(o->messages, o->definitions, &o->groups, string_of, o));
	check(o, OTF2_Archive_CloseGlobalDefWriter(o->archive, o->definitions));
}

static void fill(struct otf2 *o, const char *dir)
{
	static const OTF2_FlushCallbacks flush = {.otf2_pre_flush = on_flush};
	const char *command = trace_session(o->t, "command");
	char *shown = text_shown(command ? command : "");

	o->archive =
		OTF2_Archive_Open(dir, NAME, OTF2_FILEMODE_WRITE, EVENT_CHUNK, DEFINITION_CHUNK,
				  OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
	if (!o->archive)
		check(o, OTF2_ERROR_FILE_CAN_NOT_OPEN);
	check(o, OTF2_Archive_SetFlushCallbacks(o->archive, &flush, NULL));
	check(o, OTF2_Archive_SetSerialCollectiveCallbacks(o->archive));
	check(o, OTF2_Archive_SetCreator(o->archive, "kron"));
	if (trace_clock_every(o->t) > 1) {
		char *told = xasprintf("%s (times are interpolated: %u samples share a reading of "
				       "the clock)",
				       shown, trace_clock_every(o->t));

		xfree(shown);
		shown = told;
	}
	check(o, OTF2_Archive_SetDescription(o->archive, shown));
	put_lanes(o);
	put_definitions(o);
	check(o, OTF2_Archive_Close(o->archive));
	xfree(shown);
}

static void fill_or_leave(struct otf2 *o, const char *dir)
{
	if (!setjmp(o->leave))
		fill(o, dir);
}

int export_otf2(const struct trace *t, const char *path, struct err *err)
{
	struct otf2 o = {.t = t};
	struct export_dir dir;
	OTF2_ErrorCallback before;
	int ret = export_dir_begin(&dir, path, err);

	if (ret)
		return ret;
	export_switches_open(&o.switches, t);
	o.messages = otf2_messages_new(t);
	o.counts = xcalloc(t->nlanes + 1, sizeof(*o.counts));
	o.value = OTF2_AttributeList_New();
	before = OTF2_Error_RegisterCallback(on_error, &o);
	fill_or_leave(&o, export_dir_path(&dir));
	OTF2_Error_RegisterCallback(before, NULL);
	if (o.failed)
		dir.error = EIO;
	ret = export_dir_end(&dir, err);
	if (ret && o.failed)
		ret = err_set(err, EIO, "cannot write %s: OTF2: %s", path, o.why);
	export_switches_close(&o.switches);
	otf2_messages_free(o.messages);
	vec_for(&o.texts, s)
		xfree(*s);
	vec_free(&o.texts);
	OTF2_AttributeList_Delete(o.value);
	index_free(&o.no_value);
	index_free(&o.attributes);
	vec_free(&o.stacks);
	vec_free(&o.cpus);
	index_free(&o.regions);
	xfree(o.counts);
	return ret;
}
#endif

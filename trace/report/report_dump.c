/* SPDX-License-Identifier: MIT */
/*
 * report_dump.c - every sample as the board stored it, with what it means beside it.  With
 * json, one object a line, so that a reader need not hold the whole document.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "trace/jumps.h"
#include "trace/analysis/offcpu.h"
#include "trace/report/report.h"
#include "trace/text.h"
#include "trace/value.h"

struct decoded {
	uint64_t raw;   /* the 56 bits as stored */
	uint32_t event; /* as stored: an exit by a jump has its own number */
	uint32_t header, node, tid;
	const char *type, *kind;
	bool shadow, fifo;
};

struct special {
	const char *kind, *meaning;
};

static struct special special_of(uint32_t event)
{
	switch (event) {
	case KRON_EVENT_LOST:
		return (struct special){"lost", "samples lost before here"};
	case KRON_EVENT_CPU:
		return (struct special){"cpu", "on another CPU from here"};
	case KRON_EVENT_VFORK:
		return (struct special){"vfork", "samples of a vfork child may follow"};
	case KRON_EVENT_SPAWN:
		return (struct special){"spawn", "samples of a spawned child may follow"};
	case KRON_EVENT_CHILD_ENDS:
		return (struct special){"child-ends", "the child ends, by exec or _exit"};
	case KRON_EVENT_CHILD_LIVES:
		return (struct special){"child-lives", "the child's exec has failed"};
	case KRON_EVENT_UNWINDS:
		return (struct special){"unwinds", "frames from here on are left for good"};
	case KRON_EVENT_UNWOUND:
		return (struct special){"unwound", "up to here, where the thread goes on"};
	}
	return (struct special){"special", "special record"};
}

static const char *kind_of(const struct trace *t, uint32_t event)
{
	if (event >= KRON_EVENT_SPECIAL)
		return special_of(event).kind;
	if (trace_user_event_of(t, event))
		return "event";
	if (!trace_function_of(t, event))
		return "unknown";
	return event & 1 ? "exit" : "entry";
}

static struct decoded decode(const struct trace *t, const struct trace_event *e)
{
	uint32_t head = e->s.head;

	return (struct decoded){
		.raw = kron_sample_time(&e->s),
		.event = trace_stored_event(e),
		.header = head >> 24,
		.node = e->s.source >> KRON_SOURCE_TID_BITS,
		.tid = e->s.source & KRON_SOURCE_TID_MASK,
		.type = (head >> KRON_HEAD_TYPE_SHIFT & KRON_HEAD_TYPE_MASK) ==
					KRON_HEAD_TYPE_RESOURCE
				? "resource"
				: "trace",
		.kind = kind_of(t, e->s.event),
		.shadow = head & KRON_HEAD_SHADOW_OVERFLOW,
		.fifo = head & KRON_HEAD_FIFO_OVERFLOW,
	};
}

/* Filter level: most have 0. */
static void put_level(unsigned level, FILE *out)
{
	if (level)
		fprintf(out, " level %u", level);
}

static void put_user_event(const struct trace *t, const struct trace_event *e,
			   const struct trace_user_event *u, FILE *out)
{
	const struct trace_event_place *at = trace_event_place(t, u, e->lane);
	char value[VALUE_TEXT], *modules = at ? NULL : text_event_modules(t, u, true);

	fputs("event ", out);
	text_put(out, u->name);
	if (u->payload[0]) {
		fputc(' ', out);
		text_put(out, u->payload);
		fprintf(out, "=%s", value_text(value_of(u, e), value));
	}
	fputs(" [", out);
	text_put(out, at ? text_base(t->modules[at->module].path) : modules);
	fputc(']', out);
	xfree(modules);
	put_level(u->level, out);
}

/* Of an exit, where the function went. */
static void put_jump(const struct trace *t, const struct trace_event *e, FILE *out)
{
	char buf[32];
	const char *to = e->jump ? trace_jump_name(t, e->jump, buf, sizeof(buf)) : NULL;

	if (!e->jump)
		return;
	fputs(to ? " by a jump to " : " by a jump", out);
	if (to)
		text_put(out, to);
}

static void put_meaning(const struct trace *t, const struct trace_event *e, FILE *out)
{
	const struct trace_user_event *u = trace_user_event_of(t, e->s.event);

	if (e->s.event == KRON_EVENT_LOST) {
		fprintf(out, "* %u samples lost before here", e->s.payload);
	} else if (e->s.event == KRON_EVENT_CPU) {
		fprintf(out, "* on CPU %u from here", e->s.payload);
	} else if (e->s.event >= KRON_EVENT_SPECIAL) {
		fprintf(out, "* %s", special_of(e->s.event).meaning);
		if (e->s.event >= KRON_EVENT_VFORK && e->s.event <= KRON_EVENT_CHILD_LIVES)
			fprintf(out, " (written by %u)", e->s.source & KRON_SOURCE_TID_MASK);
	} else if (u) {
		put_user_event(t, e, u, out);
	} else if (!trace_function_of(t, e->s.event)) {
		fprintf(out, "event %u", e->s.event);
	} else {
		fputs(e->s.event & 1 ? "exit  " : "entry ", out);
		text_put_function(out, t, e->s.event / 2);
		fputs(" [", out);
		text_put(out, text_base(text_module(t, e->s.event / 2)));
		fputc(']', out);
		put_level(trace_function_of(t, e->s.event)->level, out);
		put_jump(t, e, out);
	}
}

/* Right-aligned in width columns, wider where it must be. */
static char *add_decimal(char *to, uint64_t v, int width)
{
	char digits[20];
	int n = 0;

	do
		digits[n++] = (char)('0' + v % 10);
	while (v /= 10);
	for (; width > n; width--)
		*to++ = ' ';
	while (n)
		*to++ = digits[--n];
	return to;
}

static char *add_hex(char *to, uint64_t v, int digits)
{
	for (int i = digits - 1; i >= 0; i--)
		*to++ = "0123456789abcdef"[v >> 4 * i & 15];
	return to;
}

static char *add_text(char *to, const char *s)
{
	while (*s)
		*to++ = *s++;
	return to;
}

/* A Resource sample's, those that are not zero. */
static void put_counters(const struct trace_event *e, FILE *out)
{
	const char *before = "  counters ";

	for (unsigned i = 0; e->counters && i < KRON_COUNTERS; i++) {
		if (!e->counters[i])
			continue;
		fprintf(out, "%s%u:%u", before, i, e->counters[i]);
		before = " ";
	}
}

/* Of a sample that has not read the clock: its time is an estimate, and was between these. */
static void put_bounds(const struct trace *t, struct trace_bounds in, FILE *out)
{
	if (in.lo == in.hi)
		return;
	fprintf(out, "  time %" PRIu64 "..", trace_time(t, in.lo));
	if (in.hi == UINT64_MAX)
		fputc('?', out);
	else
		fprintf(out, "%" PRIu64, trace_time(t, in.hi));
}

/*
 * Time, time stamp, CPU, header byte and its fields (S = shadow overflow, F = FIFO overflow),
 * source, data.  Not by printf: this is most of the work on a trace of millions of samples.
 */
static void put_line(const struct trace *t, const struct trace_event *e, FILE *out)
{
	struct decoded d = decode(t, e);
	char line[160], *p = line;

	p = add_decimal(p, trace_time(t, e->tsc), 16);
	p = add_hex(add_text(p, "  "), d.raw, 14);
	p = add_decimal(add_text(p, "  "), e->cpu, 3);
	p = add_hex(add_text(p, "  "), d.header, 2);
	p = add_text(add_text(p, " "), d.type[0] == 't' ? "trace    " : "resource ");
	*p++ = d.shadow ? 'S' : '-';
	*p++ = d.fifo ? 'F' : '-';
	p = add_decimal(add_text(p, "  "), d.node, 4);
	p = add_decimal(add_text(p, " "), d.tid, 7);
	p = add_hex(add_text(p, "  "), e->s.payload, 8);
	p = add_hex(add_text(p, ":"), d.event, 8);
	p = add_text(p, "  ");
	fwrite(line, 1, (size_t)(p - line), out);
	put_meaning(t, e, out);
	put_counters(e, out);
	put_bounds(t, e->in, out);
	fputc('\n', out);
}

static void json_counters(struct json *j, const struct trace_event *e)
{
	if (!e->counters)
		return;
	json_key(j, "counters");
	json_open(j, '[');
	for (unsigned i = 0; i < KRON_COUNTERS; i++)
		json_u64(j, e->counters[i]);
	json_close(j, ']');
}

/* Which of several traces. */
static void put_node_json(struct json *j, const struct trace *t, uint32_t node)
{
	if (trace_nodes(t))
		json_kstr(j, "node_name", trace_node_at(t, node)->name);
}

/* Of a sample that has not read the clock. */
static void put_bounds_json(struct json *j, const struct trace *t, struct trace_bounds in)
{
	if (in.lo == in.hi)
		return;
	json_ku64(j, "time_low_ns", trace_time(t, in.lo));
	if (in.hi != UINT64_MAX)
		json_ku64(j, "time_high_ns", trace_time(t, in.hi));
}

static void put_json(const struct trace *t, const struct trace_event *e, FILE *out)
{
	const struct trace_function *f = trace_function_of(t, e->s.event);
	const struct trace_user_event *u = trace_user_event_of(t, e->s.event);
	const struct trace_lane *l = &t->lanes[e->lane];
	const struct trace_proc *proc = trace_proc_of(t, l->proc_uid);
	struct decoded d = decode(t, e);
	struct json j = JSON_INIT(out);
	char text[24], buf[32];
	const char *to = e->jump ? trace_jump_name(t, e->jump, buf, sizeof(buf)) : NULL;

	json_open(&j, '{');
	json_ku64(&j, "time_ns", trace_time(t, e->tsc));
	put_bounds_json(&j, t, e->in);
	snprintf(text, sizeof(text), "%014" PRIx64, d.raw);
	json_kstr(&j, "timestamp", text);
	json_ku64(&j, "cpu", e->cpu);
	json_ku64(&j, "header", d.header);
	json_kstr(&j, "type", d.type);
	json_key(&j, "shadow_overflow");
	json_bool(&j, d.shadow);
	json_key(&j, "fifo_overflow");
	json_bool(&j, d.fifo);
	json_ku64(&j, "source", e->s.source);
	json_ku64(&j, "node", d.node);
	json_ku64(&j, "tid", d.tid);
	json_ku64(&j, "process", proc ? (uint64_t)proc->pid : 0);
	put_node_json(&j, t, l->node);
	json_ku64(&j, "thread", l->tid);
	json_ku64(&j, "event", e->s.event);
	json_ku64(&j, "payload", value_bits(e));
	snprintf(text, sizeof(text), "%08x%08x", e->s.payload, d.event);
	json_kstr(&j, "data", text);
	json_kstr(&j, "kind", d.kind);
	if (e->jump)
		json_kstr(&j, "jump_to", to ? to : "");
	json_counters(&j, e);
	if (f) {
		json_kstr(&j, "function", f->name);
		json_kstr(&j, "module", t->modules[f->module].path);
		json_ku64(&j, "level", f->level);
	}
	if (u) {
		json_kstr(&j, "name", u->name);
		json_ku64(&j, "level", u->level);
		if (u->payload[0])
			json_kstr(&j, "payload_name", u->payload);
		if (u->type.form) {
			json_kstr(&j, "payload_type", value_type_text(&u->type, text));
			json_key(&j, value_of(u, e).type.form == VALUE_HALF ? "low_half" : "value");
			value_json(&j, value_of(u, e));
		}
		if (e->memory && e->memory->is_cut)
			json_key(&j, "cut"), json_bool(&j, true);
		json_event_module(&j, t, u, trace_event_place(t, u, e->lane));
	}
	json_close(&j, '}');
}

/* ---- context switches ---- */

static const char *const switch_kinds[] = {
	[TRACE_SWITCH_IN] = "switch-in",
	[TRACE_SWITCH_OUT] = "switch-out",
	[TRACE_SWITCH_PREEMPTED] = "switch-preempted",
	[TRACE_SWITCH_LOST] = "switches-lost",
};
static const char *const switch_meanings[] = {
	[TRACE_SWITCH_IN] = "on this processor from here",
	[TRACE_SWITCH_OUT] = "off the processor, waiting",
	[TRACE_SWITCH_PREEMPTED] = "off the processor, though it could go on",
};

static void put_switch(const struct trace *t, const struct trace_switch *s, FILE *out)
{
	fprintf(out, "%16" PRIu64 "  %014" PRIx64 "  %3u  -- switch   --     - %7u  %17s  * ",
		trace_time(t, s->tsc), s->tsc & (UINT64_MAX >> 8), s->cpu,
		s->kind == TRACE_SWITCH_LOST ? 0 : s->tid & TRACE_TASK_MASK, "");
	if (s->kind == TRACE_SWITCH_LOST)
		fprintf(out, "%u records of switches lost\n", s->tid);
	else
		fprintf(out, "%s\n", switch_meanings[s->kind]);
}

static void put_switch_json(const struct trace *t, const struct trace_switch *s, FILE *out)
{
	struct json j = JSON_INIT(out);

	json_open(&j, '{');
	json_ku64(&j, "time_ns", trace_time(t, s->tsc));
	json_ku64(&j, "cpu", s->cpu);
	if (s->kind == TRACE_SWITCH_LOST)
		json_ku64(&j, "lost", s->tid);
	else
		json_ku64(&j, "thread", s->tid & TRACE_TASK_MASK);
	if (s->kind != TRACE_SWITCH_LOST)
		put_node_json(&j, t, s->tid >> TRACE_TASK_BITS);
	json_kstr(&j, "kind", switch_kinds[s->kind]);
	json_close(&j, '}');
}

/* Context switches that wait to be printed between samples. */
struct pending {
	struct offcpu *offcpu;
	const struct trace_switch *next, *end;
};

static void put_switches(struct pending *p, const struct trace *t, uint64_t until, bool json,
			 FILE *out)
{
	for (; p->next < p->end && p->next->tsc <= until && !ferror(out); p->next++) {
		if (p->next->kind < TRACE_SWITCH_IN || p->next->kind > TRACE_SWITCH_LOST)
			continue;
		(json ? put_switch_json : put_switch)(t, p->next, out);
	}
}

static void open_pending(struct pending *p, const struct trace *t, bool wanted)
{
	size_t n;

	*p = (struct pending){0};
	if (!wanted)
		return;
	p->offcpu = offcpu_open(t);
	p->next = offcpu_records(p->offcpu, &n);
	p->end = p->next ? p->next + n : NULL;
}

void report_dump(const struct trace *t, bool json, bool switches, FILE *out)
{
	struct trace_cursor *c = trace_cursor_open(t, -1);
	struct pending pending;
	struct trace_event e;

	open_pending(&pending, t, switches);

	if (!json)
		fprintf(out, "#%15s  %-14s  %3s  %-11s %-2s  %4s %7s  %-17s  %s\n", "TIME (ns)",
			"TIMESTAMP", "CPU", "HEADER", "OV", "NODE", "TID", "PAYLOAD :EVENT",
			"MEANING");
	while (trace_cursor_next(c, &e) && !ferror(out)) {
		put_switches(&pending, t, e.tsc, json, out);
		if (json)
			put_json(t, &e, out);
		else
			put_line(t, &e, out);
	}
	put_switches(&pending, t, UINT64_MAX, json, out);
	offcpu_close(pending.offcpu);
	trace_cursor_close(c);
}

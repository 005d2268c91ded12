/* SPDX-License-Identifier: MIT */
/*
 * export_ctf.c - a CTF 1.8 trace, for babeltrace2 and Trace Compass: a stream for each thread, and
 * for each further stack of it whose calls interleave with others, and one for each CPU where the
 * trace has context switches.
 *
 *   packet   header of 24 bytes, context of 56, events; at most 64 KiB.  A new one begins where
 *            the thread moves to another CPU, and after a loss: events_discarded counts up
 *   event    u32: id in bits 0-4, low 27 bits of the time above; where more than 2^27 ns have
 *            gone by, the extended form: u8 31, u32 id, u64 time
 *   entry 0  u32 function, u8 level         exit 1  u32 function, u8 how the end is known
 *   user 2   u32 event, u64 payload, u8 level       of a probe that a user placed; negative
 *            payloads are two's complements, doubles their bits
 *   text 3   u32 event, u8 how, string payload, u8 level       likewise, of a value in memory that is a
 *            text, or could not be read
 *   4 ...    one for each of these probes whose value has a name: user or text, and after it a struct `value`
 *            with the value as a field of its name and type.  It is a struct, for the name may be any, and `level`
 *            too; what could not be read does not have it
 *   then     likewise, user with a struct `low_half`, where of 64 bits the sample has but the lower ones
 *   then     likewise, text where it is empty.  babeltrace2 (2.0.4) uses its objects again, by event, and does not
 *            clear a text to which nothing is added: an empty one showed the text before
 *
 * The context of a CPU's packets has no pid, tid and stack, its only event is
 *
 *   switch 0 u32 tid, u32 pid (0: not known), u8 in, out (it waits) or preempted
 *
 * Times are nanoseconds from the start of the trace; the clock's offset makes a date of them.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "trace/export/export.h"
#include "trace/export/export_dir.h"
#include "trace/export/export_nest.h"
#include "trace/export/export_switches.h"
#include "trace/text.h"
#include "trace/value.h"

#define MAGIC 0xc1fc1fc1u
#define PACKET_MAX 65536u
#define EVENT_MAX (26u + 2 * (VALUE_TEXT + 1)) /* a text stands there twice */
#define EXTENDED 31u
#define TIME_BITS 27

enum { THREAD_STREAM, CPU_STREAM };
enum { ENTRY, EXIT, USER, TEXT, FIRST_VALUE };
enum variant { WHOLE, LOW_HALF, EMPTY, VARIANTS }; /* of events with a value */
enum { SWITCH };
enum how { HOW_EXIT, HOW_INFERRED, HOW_RUNNING };

struct __attribute__((packed)) packet {
	uint32_t magic;
	uint8_t uuid[16];
	uint32_t stream_id;
	uint64_t begin, end;
	uint64_t content_bits, packet_bits;
	uint64_t discarded;
	uint32_t cpu, pid, tid, stack; /* a CPU's end before pid; stack: 0 the thread's own */
};
#define CPU_HEAD offsetof(struct packet, pid)
_Static_assert(sizeof(struct packet) == 24 + 56, "packet of the metadata below");

#define USER_FIELDS " enum user name; uint64_t payload; uint8_t level;"
#define TEXT_FIELDS                                                                   \
	" enum user name; enum : uint8_t { whole = 0, cut = 1, unreadable = 2 } how;" \
	" string payload; uint8_t level;"
static const char metadata[] =
	"typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
	"typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
	"typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
	"typealias integer { size = 5; align = 1; signed = false; } := uint5_t;\n"
	"typealias integer { size = 64; align = 8; signed = false; map = clock.kron.value; }"
	" := time64_t;\n"
	"typealias integer { size = 27; align = 1; signed = false; map = clock.kron.value; }"
	" := time27_t;\n"
	"struct event_header {\n"
	"\tenum : uint5_t { compact = 0 ... 30, extended = 31 } id;\n"
	"\tvariant <id> {\n"
	"\t\tstruct { time27_t timestamp; } compact;\n"
	"\t\tstruct { uint32_t id; time64_t timestamp; } extended;\n"
	"\t} v;\n"
	"} align(8);\n"
	"stream {\n"
	"\tid = 0;\n"
	"\tevent.header := struct event_header;\n"
	"\tpacket.context := struct {\n"
	"\t\ttime64_t timestamp_begin;\n\t\ttime64_t timestamp_end;\n"
	"\t\tuint64_t content_size;\n\t\tuint64_t packet_size;\n"
	"\t\tuint64_t events_discarded;\n\t\tuint32_t cpu_id;\n"
	"\t\tuint32_t pid;\n\t\tuint32_t tid;\n\t\tuint32_t stack;\n"
	"\t};\n"
	"};\n"
	"stream {\n"
	"\tid = 1;\n"
	"\tevent.header := struct event_header;\n"
	"\tpacket.context := struct {\n"
	"\t\ttime64_t timestamp_begin;\n\t\ttime64_t timestamp_end;\n"
	"\t\tuint64_t content_size;\n\t\tuint64_t packet_size;\n"
	"\t\tuint64_t events_discarded;\n\t\tuint32_t cpu_id;\n"
	"\t};\n"
	"};\n"
	"event { name = entry; id = 0; stream_id = 0; fields := struct {"
	" enum function function; uint8_t level; }; };\n"
	"event { name = exit; id = 1; stream_id = 0; fields := struct {"
	" enum function function;"
	" enum : uint8_t { exit = 0, inferred = 1, running = 2 } how; }; };\n"
	"event { name = user; id = 2; stream_id = 0; fields := struct {" USER_FIELDS " }; };\n"
	"event { name = text; id = 3; stream_id = 0; fields := struct {" TEXT_FIELDS " }; };\n"
	"event { name = switch; id = 0; stream_id = 1; fields := struct {"
	" uint32_t tid; uint32_t pid;"
	" enum : uint8_t { in = 1, out = 2, preempted = 3 } kind; }; };\n";

struct ctf {
	const struct trace *t;
	struct export_dir dir;
	uint32_t lane;
	FILE *out; /* of this lane, once there is a packet */
	struct packet head;
	size_t head_size;
	uint8_t buffer[PACKET_MAX];
	size_t n; /* of buffer, 0: no packet */
	uint64_t last;
	struct export_set unknown;
	VEC(uint32_t) unknown_list;
	bool *seen[VARIANTS]; /* by user's event */
};

/* ---- packets ---- */

static void end_packet(struct ctf *c)
{
	char name[48];

	if (!c->n)
		return;
	if (!c->out) {
		if (c->head.stream_id == CPU_STREAM)
			snprintf(name, sizeof(name), "cpu_%" PRIu32, c->head.cpu);
		else if (c->head.stack)
			snprintf(name, sizeof(name), "thread_%" PRIu32 "_stack_%" PRIu32, c->lane,
				 c->head.stack);
		else
			snprintf(name, sizeof(name), "thread_%" PRIu32, c->lane);
		c->out = export_dir_open(&c->dir, name);
	}
	c->head.end = c->last;
	c->head.content_bits = c->head.packet_bits = 8 * (uint64_t)c->n;
	memcpy(c->buffer, &c->head, c->head_size);
	fwrite(c->buffer, c->n, 1, c->out);
	c->n = 0;
}

/* Readers take what is lost from the difference of two packets: there has to be a first one. */
static void lose(struct ctf *c, uint64_t tsc, uint32_t n)
{
	if (!c->out && !c->n) {
		c->head.begin = c->last = trace_time(c->t, tsc);
		c->n = c->head_size;
	}
	end_packet(c);
	c->head.discarded += n;
}

static void put(struct ctf *c, const void *p, size_t n)
{
	memcpy(c->buffer + c->n, p, n);
	c->n += n;
}

static void put_event(struct ctf *c, uint32_t id, uint64_t tsc, uint32_t function)
{
	uint64_t ns = trace_time(c->t, tsc);
	uint8_t extended = EXTENDED;
	const uint32_t compact = (uint32_t)(ns << 5) | (id & EXTENDED);

	if (c->n + EVENT_MAX > PACKET_MAX)
		end_packet(c);
	if (!c->n) {
		c->head.begin = c->last = ns;
		c->n = c->head_size;
	}
	if (id >= EXTENDED || (ns - c->last) >> TIME_BITS) {
		put(c, &extended, 1);
		put(c, &id, 4);
		put(c, &ns, 8);
	} else {
		put(c, &compact, 4);
	}
	put(c, &function, 4);
	c->last = ns;
}

static void see(struct ctf *c, uint32_t function)
{
	if (!trace_function_of(c->t, KRON_EVENT_ENTRY(function)) &&
	    export_set_add(&c->unknown, function))
		*vec_push(&c->unknown_list) = function;
}

static void on_begin(void *ctx, uint32_t function, uint64_t tsc)
{
	struct ctf *c = ctx;
	const struct trace_function *f = trace_function_of(c->t, KRON_EVENT_ENTRY(function));
	uint8_t level = f ? f->level : 0;

	see(c, function);
	put_event(c, ENTRY, tsc, function);
	put(c, &level, 1);
}

static void on_end(void *ctx, uint32_t function, uint64_t tsc, const struct track_call *call)
{
	uint8_t how = call->open ? HOW_RUNNING : call->inferred ? HOW_INFERRED : HOW_EXIT;

	put_event(ctx, EXIT, tsc, function);
	put(ctx, &how, 1);
}

static void on_special(void *ctx, const struct trace_event *e)
{
	struct ctf *c = ctx;

	if (e->s.event == KRON_EVENT_LOST) {
		lose(c, e->tsc, e->s.payload);
	} else if (e->s.event == KRON_EVENT_CPU && e->s.payload != c->head.cpu) {
		end_packet(c);
		c->head.cpu = e->s.payload;
	}
}

/* ---- values ---- */

static uint32_t number_of(const struct ctf *c, const struct trace_user_event *u)
{
	return (uint32_t)(u - c->t->user_events);
}

static uint32_t event_number(const struct ctf *c, uint32_t i, enum variant variant)
{
	return FIRST_VALUE + (uint32_t)c->t->nuser_events * variant + i;
}

/* Of which event a value is: with the value as its probe says that it is meant, or without. */
static uint32_t event_of(struct ctf *c, const struct trace_user_event *u, struct value v)
{
	enum variant variant = WHOLE;

	if (!value_has_field(u, v))
		return value_is_number(v) ? USER : TEXT;
	if (v.type.form == VALUE_HALF)
		variant = LOW_HALF;
	else if (u->type.form == VALUE_STRING && !v.memory->text[0])
		variant = EMPTY;
	c->seen[variant][number_of(c, u)] = true;
	return event_number(c, number_of(c, u), variant);
}

/* A type of no bits is none: 32. */
static unsigned size_of(const struct trace_value_type *type)
{
	return type->bits ? type->bits / 8u : 4;
}

static void put_text(struct ctf *c, uint64_t tsc, const struct trace_user_event *u, struct value v)
{
	char buf[VALUE_TEXT];
	const char *text = value_string(v, buf);
	char *shown = text_escaped(text ? text : "");
	const uint8_t how = v.memory->is_unreadable ? 2 : v.memory->is_cut;
	const uint32_t event = event_of(c, u, v);

	put_event(c, event, tsc, u->n);
	put(c, &how, 1);
	put(c, shown, strlen(shown) + 1);
	put(c, &u->level, 1);
	if (event != TEXT && u->type.count)
		put(c, v.memory->text, u->type.count * size_of(&u->type));
	else if (event != TEXT)
		put(c, shown, strlen(shown) + 1);
	xfree(shown);
}

static void on_user_event(void *ctx, const struct trace_event *e, const struct trace_user_event *u)
{
	struct ctf *c = ctx;
	const struct value v = value_of(u, e);
	const uint64_t number = v.number;
	const uint32_t event = event_of(c, u, v);

	if (!value_is_number(v)) {
		put_text(c, e->tsc, u, v);
		return;
	}
	put_event(c, event, e->tsc, u->n);
	put(c, &number, sizeof(number));
	put(c, &u->level, 1);
	if (event != USER)
		put(c, &number, size_of(&v.type)); /* the lowest byte comes first */
}

static void end_stream(struct ctf *c)
{
	end_packet(c);
	if (c->out)
		export_dir_close(&c->dir, c->out);
	c->out = NULL;
	c->head.discarded = 0;
}

static void on_track(void *ctx, uint32_t lane, uint32_t track)
{
	struct ctf *c = ctx;
	const struct trace_lane *l = &c->t->lanes[lane];
	const struct trace_proc *p = trace_proc_of(c->t, l->proc_uid);

	end_stream(c);
	c->lane = lane;
	c->head.cpu = UINT32_MAX;
	c->head.pid = p ? trace_pid_number(p) : l->proc_uid;
	c->head.tid = trace_lane_task(l);
	c->head.stack = track;
}

static void put_lanes(struct ctf *c)
{
	struct export_nest nest = {.t = c->t,
				   .ctx = c,
				   .track = on_track,
				   .begin = on_begin,
				   .end = on_end,
				   .special = on_special,
				   .user_event = on_user_event};

	export_nest_open(&nest);
	for (uint32_t lane = 0; lane < c->t->nlanes; lane++)
		export_nest_lane(&nest, lane);
	end_stream(c);
	export_nest_close(&nest);
}

/* ---- context switches ---- */

static uint32_t pid_of(const struct export_switches *s, uint32_t tid)
{
	uint32_t lane = export_switches_lane(s, tid);
	const struct trace_proc *p =
		lane == UINT32_MAX ? NULL : trace_proc_of(s->t, s->t->lanes[lane].proc_uid);

	return p && p->known ? trace_pid_number(p) : 0;
}

static void put_switch(struct ctf *c, const struct export_switches *s, const struct trace_switch *r)
{
	uint8_t kind = (uint8_t)r->kind;
	uint32_t pid;

	if (r->kind == TRACE_SWITCH_LOST) {
		lose(c, r->tsc, r->tid);
		return;
	}
	pid = pid_of(s, r->tid);
	put_event(c, SWITCH, r->tsc, r->tid);
	put(c, &pid, 4);
	put(c, &kind, 1);
}

static void put_switches(struct ctf *c)
{
	struct export_switches s;
	struct trace_switch *v;
	size_t n;

	export_switches_open(&s, c->t);
	v = export_switches_by_cpu(&s, &n);
	c->head.stream_id = CPU_STREAM;
	c->head_size = CPU_HEAD;
	for (size_t i = 0; i < n; i++) {
		if (i && v[i].cpu != v[i - 1].cpu)
			end_stream(c);
		c->head.cpu = v[i].cpu;
		put_switch(c, &s, &v[i]);
	}
	end_stream(c);
	xfree(v);
	export_switches_close(&s);
}

/* ---- metadata ---- */

static void put_string(FILE *f, const char *s)
{
	char *shown = NULL;
	size_t size;
	FILE *m = open_memstream(&shown, &size);

	if (!m)
		return;
	text_put(m, s);
	fclose(m);
	putc('"', f);
	for (const char *p = shown; *p; p++) {
		if (*p == '"' || *p == '\\')
			putc('\\', f);
		putc(*p, f);
	}
	putc('"', f);
	free(shown);
}

static void put_functions(struct ctf *c, FILE *f)
{
	char name[32];
	bool first = true;

	fputs("enum function : uint32_t {\n", f);
	for (size_t i = 0; i < c->t->nfunctions; i++) {
		fputs(first ? "\t" : ",\n\t", f);
		put_string(f, c->t->functions[i].name);
		fprintf(f, " = %" PRIu32, c->t->functions[i].n);
		first = false;
	}
	vec_for(&c->unknown_list, n) {
		fputs(first ? "\t" : ",\n\t", f);
		put_string(f, text_function(c->t, *n, name, sizeof(name)));
		fprintf(f, " = %" PRIu32, *n);
		first = false;
	}
	fputs(first ? "\tnone = 0\n};\n" : "\n};\n", f);
}

static void put_user_events(struct ctf *c, FILE *f)
{
	const struct trace *t = c->t;

	fputs("enum user : uint32_t {\n", f);
	for (size_t i = 0; i < t->nuser_events; i++) {
		fputs(i ? ",\n\t" : "\t", f);
		put_string(f, t->user_events[i].name);
		fprintf(f, " = %" PRIu32, t->user_events[i].n);
	}
	fputs(t->nuser_events ? "\n};\n" : "\tnone = 0\n};\n", f);
}

/* As TSDL has names, and keeps its own words: after an underscore, which readers take away. */
static void put_field_name(FILE *f, const char *s)
{
	putc('_', f);
	for (; *s; s++)
		putc(isascii(*s) && isalnum((unsigned char)*s) ? *s : '_', f);
}

static void put_type(FILE *f, const struct trace_value_type *type)
{
	const unsigned bits = 8 * size_of(type);

	if (type->form == VALUE_STRING)
		fputs("string", f);
	else if (type->form == 'd' || type->form == 'f')
		fprintf(f, "floating_point { exp_dig = %d; mant_dig = %d; align = 8; }",
			bits == 64 ? 11 : 8, bits == 64 ? 53 : 24);
	else
		fprintf(f, "integer { size = %u; align = 8; signed = %s; base = %d; }", bits,
			type->form == 's' ? "true" : "false",
			type->form == 's' || type->form == 'u' ? 10 : 16);
}

/* An event with a value; `group` is the struct that it stands in. */
static void put_value_event(FILE *f, const struct trace_user_event *u, uint32_t id,
			    const struct trace_value_type *type, const char *group)
{
	const bool is_text = value_type_is_text(type);

	fprintf(f, "event { name = %s; id = %" PRIu32 "; stream_id = 0; fields := struct {",
		is_text ? "text" : "user", id);
	fputs(is_text ? TEXT_FIELDS : USER_FIELDS, f);
	fputs(" struct { ", f);
	put_type(f, type);
	putc(' ', f);
	put_field_name(f, u->payload);
	if (type->count)
		fprintf(f, "[%u]", type->count);
	fprintf(f, "; } %s; }; };\n", group);
}

static void put_value_events(const struct ctf *c, FILE *f)
{
	const struct trace_value_type half = {VALUE_HALF, 32, 0};

	for (enum variant v = WHOLE; v < VARIANTS; v++)
		for (uint32_t i = 0; i < c->t->nuser_events; i++) {
			const struct trace_user_event *u = &c->t->user_events[i];

			if (c->seen[v][i])
				put_value_event(f, u, event_number(c, i, v),
						v == LOW_HALF ? &half : &u->type,
						v == LOW_HALF ? "low_half" : "value");
		}
}

static void put_uuid(FILE *f, const uint8_t *u)
{
	fputs("\tuuid = \"", f);
	for (int i = 0; i < 16; i++)
		fprintf(f, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
	fputs("\";\n", f);
}

static void put_metadata(struct ctf *c)
{
	static const char *const keys[] = {"hostname", "node",   "boot_id", "clocksource",
					   "command",  "kernel", "cpu",     "clock_every"};
	const char *real = trace_session(c->t, "start_real_ns");
	uint64_t start = real ? strtoull(real, NULL, 10) : 0;
	FILE *f = export_dir_open(&c->dir, "metadata");

	fputs("/* CTF 1.8 */\n", f);
	fputs("typealias integer { size = 8; align = 8; signed = false; } := byte_t;\n"
	      "typealias integer { size = 32; align = 8; signed = false; } := word_t;\n"
	      "trace {\n\tmajor = 1;\n\tminor = 8;\n\tbyte_order = le;\n",
	      f);
	put_uuid(f, c->head.uuid);
	fputs("\tpacket.header := struct { word_t magic; byte_t uuid[16]; word_t stream_id; };\n"
	      "};\nenv {\n\ttracer_name = \"kron\";\n",
	      f);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (!trace_session(c->t, keys[i]))
			continue;
		fprintf(f, "\t%s = ", keys[i]);
		put_string(f, trace_session(c->t, keys[i]));
		fputs(";\n", f);
	}
	fprintf(f,
		"};\nclock {\n\tname = kron;\n\tfreq = 1000000000;\n\toffset_s = %" PRIu64
		";\n\toffset = %" PRIu64 ";\n\tabsolute = TRUE;\n};\n",
		start / 1000000000, start % 1000000000);
	/* the types, up to what needs the functions' names */
	fprintf(f, "%.*s", (int)(strstr(metadata, "stream {") - metadata), metadata);
	put_functions(c, f);
	put_user_events(c, f);
	fputs(strstr(metadata, "stream {"), f);
	put_value_events(c, f);
	export_dir_close(&c->dir, f);
}

/* The same for the same trace. */
static void make_uuid(const struct trace *t, uint8_t *uuid)
{
	const char *words[] = {trace_session(t, "recording"), trace_session(t, "start_real_ns"),
			       trace_session(t, "hostname"), trace_session(t, "command")};
	uint64_t h[2] = {0xcbf29ce484222325u, t->start_tsc};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		for (const char *s = words[i] ? words[i] : ""; *s; s++) {
			h[0] = (h[0] ^ (uint8_t)*s) * 0x100000001b3u;
			h[1] = (h[1] ^ (h[0] >> 32)) * 0x9e3779b97f4a7c15u;
		}
	memcpy(uuid, h, 16);
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x80); /* version 8: of our own making */
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
}

int export_ctf(const struct trace *t, const char *path, struct err *err)
{
	struct ctf *c = xcalloc(1, sizeof(*c));
	int ret;

	c->t = t;
	for (int i = 0; i < VARIANTS; i++)
		c->seen[i] = xcalloc(t->nuser_events + 1, sizeof(*c->seen[i]));
	c->head.magic = MAGIC;
	c->head.stream_id = THREAD_STREAM;
	c->head_size = sizeof(c->head);
	make_uuid(t, c->head.uuid);
	ret = export_dir_begin(&c->dir, path, err);
	if (!ret) {
		put_lanes(c);
		put_switches(c);
		put_metadata(c);
		ret = export_dir_end(&c->dir, err);
	}
	vec_free(&c->unknown_list);
	export_set_free(&c->unknown);
	for (int i = 0; i < VARIANTS; i++)
		xfree(c->seen[i]);
	xfree(c);
	return ret;
}

/* SPDX-License-Identifier: MIT */
/* control_record.c - see control_record.h. */
#include "cmd/record/control_record.h"

#include "base/log.h"
#include "board/bus/object.h"
#include "cmd/record/say.h"

static struct control control;
static bool begun;

static int note(void *ctx, const struct change_note *n)
{
	struct collector *collector = ctx;
	const struct trace_change_line line = {.tsc = collector_now(collector),
					       .comes = n->comes,
					       .places = n->places,
					       .name = n->name,
					       .spec = n->spec};

	return journal_put(&collector->journal, trace_writer_change, &line);
}

static int note_sleep(void *ctx, const struct sleep_note *n)
{
	struct collector *collector = ctx;
	const struct trace_sleep_line line = {n->since, n->until, n->wakes,
					      n->by_budget ? TRACE_SLEEP_BUDGET : TRACE_SLEEP_ASKED,
					      n->functions};

	return journal_put(&collector->journal, trace_writer_sleep, &line);
}

/* Nobody has seen them yet. */
static void begin_asleep(void *ctx, const char *functions)
{
	struct collector *collector = ctx;
	const uint64_t at = collector_now(collector);
	const struct sleep_note n = {at, at, false, false, functions};

	note_sleep(collector, &n);
}

static bool waits_for(void *ctx, const uint32_t *functions, size_t n)
{
	const struct collector *collector = ctx;

	return collector->watch && watch_waits_for(collector->watch, functions, n);
}

static uint64_t now(void *ctx)
{
	return collector_now(ctx);
}

/* Its functions are there from now on. */
static int note_module(void *ctx, const char *path)
{
	struct collector *collector = ctx;
	const struct trace_change_line line = {
		.tsc = collector_now(collector), .comes = true, .name = path, .spec = ""};

	return journal_put(&collector->journal, trace_writer_change, &line);
}

/* Without it all is recorded as it was asked for: nobody need know. */
void control_record_begin(struct collector *c, struct surgeon *surgeon, bool attached,
			  uint8_t default_level)
{
	struct err err;

	control.changes = (struct changes){.server = &c->server,
					   .modules = &c->modules,
					   .surgeon = surgeon,
					   .starts_surgeon = !attached,
					   .default_level = default_level,
					   .begin_ns = c->start.mono_ns,
					   .begin = c->clock_start.tsc,
					   .note = note,
					   .note_sleep = note_sleep,
					   .waits_for = waits_for,
					   .now = now,
					   .note_module = note_module,
					   .note_ctx = c};
	c->modules.waits_for = waits_for;
	c->modules.begin_asleep = begin_asleep;
	c->modules.sleep_ctx = c;
	control.drain = &c->drain;
	control.flight = c->flight;
	begun = true;
	changes_begin(&control.changes);
	if (control_start(&control, object_note(c->seg.ctl)->recording, &err))
		log_info("record", "%s", err.msg);
}

void control_record_stop(void)
{
	if (begun)
		control_stop(&control);
}

static void say_unplaced(const struct change *c, const char *why)
{
	const char *object = c->words ? NULL : c->set.specs.v[0].object.text;

	if (why)
		say("kron: probe add %s: %s", c->text, why);
	else
		say("kron: probe add %s: no process has loaded %s", c->text,
		    object ? object : "what it names");
}

void control_record_end(const struct collector *c)
{
	if (begun && c->all_ended) { /* else a thread still plans with what is there */
		changes_unplaced(&control.changes, say_unplaced);
		changes_end(&control.changes);
	}
	begun = false;
}

uint64_t control_record_longest_stop_ns(void)
{
	return control.changes.stood_ns;
}

struct changes *control_record_changes(void)
{
	return &control.changes;
}

/* SPDX-License-Identifier: MIT */
/*
 * pairs_rig.h - a case is a script, one event a word:
 *   >f@1000   entry of f with S = 0x1000
 *   <f@1000   exit
 *   /f=g@1000 exit of f by a jump to g; /f-g into g's middle; /f?@1000 to wherever
 *   !5        LOST record, 5 triggers
 *   V1@1000   process 1 calls vfork; P1: posix_spawn
 *   E2@1000   child 2 is about to exec; L2: that failed
 *   u@1000    record UNWINDS; U@1000: UNWOUND
 * Each event takes 10 ticks.  What comes out is written the same way, one call a word:
 *   f:total/self   a call that exited; then  j by a jump  ~ inferred  + likewise, at least so long  * open  % spans a loss
 *                  ^ recursive;  f<g: g has called it
 *   ?f             an exit without entry
 */
#ifndef TESTS_PAIRS_RIG_H
#define TESTS_PAIRS_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/vec.h"
#include "trace/analysis/pairs.h"
#include "trace/jumps.h"
#include "trace/reader_impl.h"

struct out {
	char text[4096];
	size_t n;
	bool callers; /* to be said */
	uint32_t depth_of_last;
	uint64_t leaves;
	uint64_t longest, self; /* of one call, of all */
};

static inline void say(struct out *o, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (o->n < sizeof(o->text))
		o->n += (size_t)vsnprintf(o->text + o->n, sizeof(o->text) - o->n, fmt, ap);
	va_end(ap);
}

static inline void on_enter(void *ctx, const struct trace_event *e, uint32_t function,
			    uint32_t depth)
{
	struct out *o = ctx;

	(void)e;
	(void)function;
	o->depth_of_last = depth;
}

static inline void on_leave(void *ctx, const struct trace_event *e, const struct pair_call *c)
{
	struct out *o = ctx;
	uint64_t total = c->exit_tsc - c->entry_tsc;

	(void)e;
	o->leaves++;
	assert_true(c->entry_tsc <= c->exit_tsc);
	assert_true(c->children_tsc <= total);
	o->longest = total > o->longest ? total : o->longest;
	o->self += total - c->children_tsc;
	say(o, "%s%c", o->n ? " " : "", 'a' + (int)c->function % 26);
	if (o->callers && c->caller != UINT32_MAX)
		say(o, "<%c", 'a' + (int)c->caller % 26);
	say(o, ":%d/%d%s%s%s%s%s%s", (int)total, (int)(total - c->children_tsc),
	    c->jumped ? "j" : "", c->inferred && !c->at_least ? "~" : "", c->at_least ? "+" : "",
	    c->open ? "*" : "", c->spans_loss ? "%" : "", c->recursive ? "^" : "");
}

static inline void on_orphan(void *ctx, const struct trace_event *e, uint32_t function)
{
	struct out *o = ctx;

	(void)e;
	say(o, "%s?%c", o->n ? " " : "", 'a' + (int)function);
}

static struct trace_function functions[26];
static struct trace_lane lanes[2];
static struct trace_jump jumps[64];
static struct trace_priv priv;
static struct trace fake = {.functions = functions,
			    .nfunctions = 26,
			    .lanes = lanes,
			    .nlanes = 2,
			    .jumps = jumps,
			    .priv = &priv};

static inline struct pair_sink sink_to(struct out *o)
{
	struct pair_sink s = {
		.ctx = o,
		.enter = on_enter,
		.leave = on_leave,
		.orphan_exit = on_orphan,
		.want_recursive = true,
	};

	for (uint32_t i = 0; i < 26; i++)
		functions[i].n = i;
	return s;
}

static inline struct trace_event event(uint64_t tsc, uint32_t number, uint32_t payload)
{
	struct trace_event e = {.tsc = tsc, .s = {.event = number, .payload = payload}};

	return e;
}

/* /f=g@S: what a cursor makes of it. */
static inline struct trace_event parse_jump(const char *word, uint64_t tsc)
{
	struct trace_jump x = {.function = (uint32_t)(word[1] - 'a'),
			       .to = word[2] == '='   ? JUMP_TO_FUNCTION
				     : word[2] == '-' ? JUMP_TO_INSIDE
						      : JUMP_TO_ANYTHING,
			       .target = (uint32_t)(word[3] - 'a')};
	struct trace_event e = event(tsc, KRON_EVENT_EXIT(x.function),
				     (uint32_t)strtoul(strchr(word, '@') + 1, NULL, 16));

	while (e.jump < fake.njumps && memcmp(&jumps[e.jump], &x, sizeof(x)))
		e.jump++;
	assert_true(e.jump < 64);
	jumps[e.jump] = x;
	if (e.jump == fake.njumps)
		fake.njumps++;
	e.jump++;
	return e;
}

static inline struct trace_event parse_child(const char *word, uint64_t tsc)
{
	struct trace_event e = event(tsc,
				     word[0] == 'V'   ? KRON_EVENT_VFORK
				     : word[0] == 'P' ? KRON_EVENT_SPAWN
				     : word[0] == 'E' ? KRON_EVENT_CHILD_ENDS
						      : KRON_EVENT_CHILD_LIVES,
				     (uint32_t)strtoul(word + 3, NULL, 16));

	e.s.source = KRON_SOURCE(3, word[1] - '0');
	return e;
}

static inline struct trace_event parse(const char *word, uint64_t tsc)
{
	uint32_t function = (uint32_t)(word[1] - 'a');

	if (strchr("VPEL", word[0]))
		return parse_child(word, tsc);
	if (word[0] == '/')
		return parse_jump(word, tsc);

	switch (word[0]) {
	case 'u':
	case 'U':
		return event(tsc, word[0] == 'u' ? KRON_EVENT_UNWINDS : KRON_EVENT_UNWOUND,
			     (uint32_t)strtoul(word + 2, NULL, 16));
	case '!':
		return event(tsc, KRON_EVENT_LOST, (uint32_t)atoi(word + 1));
	case '>':
		return event(tsc, KRON_EVENT_ENTRY(function),
			     (uint32_t)strtoul(word + 3, NULL, 16));
	default:
		assert_int_equal(word[0], '<');
		return event(tsc, KRON_EVENT_EXIT(function), (uint32_t)strtoul(word + 3, NULL, 16));
	}
}

static inline struct pair_counts run(const char *script, struct out *o)
{
	struct pair_sink sink = sink_to(o);
	struct pairs *p = pairs_open(&fake, &sink);
	struct pair_counts counts;
	char *copy = xstrdup(script);
	uint64_t tsc = 1000;

	for (char *w = strtok(copy, " "); w; w = strtok(NULL, " ")) {
		struct trace_event e = parse(w, tsc += 10);

		pairs_feed(p, &e);
	}
	pairs_finish(p);
	counts = *pairs_counts(p);
	pairs_close(p);
	xfree(copy);
	/* A call lasts from the first event to the last: all the time is somebody's, and nobody's twice. */
	if (o->longest == tsc - 1010)
		assert_int_equal(o->self, o->longest);
	/* What must hold whatever the samples say. */
	assert_int_equal(counts.entries, counts.calls);
	assert_int_equal(counts.exits, counts.calls - counts.inferred - counts.open +
					       counts.orphans + counts.jumped + counts.shared);
	return counts;
}

static inline void expect(const char *script, const char *calls)
{
	struct out o = {0};

	run(script, &o);
	assert_string_equal(o.text, calls);
}

/* The same with callers. */
static inline void expect_calls(const char *script, const char *calls)
{
	struct out o = {.callers = true};

	run(script, &o);
	assert_string_equal(o.text, calls);
}

#endif

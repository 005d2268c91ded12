/* SPDX-License-Identifier: MIT */
/*
 * test_tracks.c - tracks of traces that a machine of dice made: threads that call, return, jump,
 * switch stacks, leave them for good, unwind, take signals, have children and lose samples.
 *
 * Whatever it was, on each track calls begin and end like brackets, in order of time; each call of
 * pairs.c is one of them, with the same times; and what is left of each when what lies in it is taken
 * away is what pairs.c calls its own.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/vec.h"
#include "trace/analysis/tracks.h"
#include "trace/writer.h"

#define FUNCTIONS 12u
#define JUMPS 16u /* 0: to anything; 1: elsewhere; the others: to function j - 2 */
#define STACKS 5u
#define LANES 3u
#define EVENTS 1500u
#define CHUNK 500u

static char top[] = "/tmp/kron-test-tracks.XXXXXX";

static int enter_folder(void **state)
{
	(void)state;
	return !mkdtemp(top) || chdir(top);
}

static int leave_folder(void **state)
{
	char *command = xasprintf("rm -rf '%s'", top);
	int ret;

	(void)state;
	ret = chdir("/") || system(command);
	xfree(command);
	return ret;
}

/* ---- dice ---- */

static uint64_t dice;

static uint32_t roll(uint32_t n)
{
	dice = dice * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(dice >> 33) % n;
}

/* ---- the machine ---- */

struct machine {
	struct stack {
		struct {
			uint32_t function, sp;
		} frame[64];
		uint32_t n, base;
	} stack[STACKS];
	uint32_t at, next_base; /* the stack that runs */
	uint64_t tsc;
	struct kron_sample out[CHUNK];
	uint32_t n, seq, lane, silent; /* samples that will be lost */
	struct trace_writer *w;
	bool wild; /* losses, stacks that lie close together */
};

static void flush(struct machine *m)
{
	struct trace_chunk head = {.nbytes = m->n * KRON_SAMPLE_SIZE,
				   .seq = m->lane * 1000 + m->seq++,
				   .proc_uid = 1,
				   .tid = 100 + m->lane};

	if (m->n)
		assert_int_equal(trace_writer_chunk(m->w, &head, m->out), 0);
	m->n = 0;
}

static void put(struct machine *m, uint32_t event, uint32_t payload, uint32_t source)
{
	m->tsc += roll(8) ? 1 + roll(100) : 0; /* some at the same time */
	if (m->silent) {
		if (--m->silent)
			return;
		event = KRON_EVENT_LOST;
		payload = 1 + roll(9);
	}
	if (m->n == CHUNK)
		flush(m);
	m->out[m->n++] = (struct kron_sample){.head = KRON_HEAD_TRACE(0) |
						      (uint32_t)(m->tsc >> 32 & 0xffffff),
					      .time_lo = (uint32_t)m->tsc,
					      .source = source,
					      .payload = payload,
					      .event = event};
}

static void renew(struct machine *m, uint32_t i)
{
	m->next_base += m->wild && !roll(3) ? 0x4000 : 0x100000;
	m->stack[i].n = 0;
	m->stack[i].base = m->next_base;
}

static uint32_t sp_of(const struct stack *s)
{
	return s->n ? s->frame[s->n - 1].sp : s->base;
}

static void enter(struct machine *m, uint32_t function, uint32_t sp)
{
	struct stack *s = &m->stack[m->at];

	put(m, KRON_EVENT_ENTRY(function), sp, 0);
	s->frame[s->n].function = function;
	s->frame[s->n++].sp = sp;
}

static void call(struct machine *m)
{
	struct stack *s = &m->stack[m->at];

	if (s->n < 60)
		enter(m, roll(FUNCTIONS), sp_of(s) - 16 - 8 * roll(12));
}

static void give_back(struct machine *m)
{
	struct stack *s = &m->stack[m->at];

	if (!s->n)
		return;
	s->n--;
	put(m, KRON_EVENT_EXIT(s->frame[s->n].function), s->frame[s->n].sp, 0);
}

/* To a known function, to one that is not traced, through a pointer to either. */
static void jump(struct machine *m)
{
	struct stack *s = &m->stack[m->at];
	uint32_t sp = sp_of(s), to = roll(FUNCTIONS), how = roll(4);
	uint32_t j = how == 0 ? 0 : how == 1 ? 1 : 2 + to;

	if (!s->n)
		return;
	s->n--;
	put(m, KRON_EVENT_JUMP(s->frame[s->n].function * JUMPS + j), sp, 0);
	if (how > 1 || (!how && roll(2)))
		enter(m, to, sp);
	else if (!roll(3)) /* which calls somebody */
		enter(m, roll(FUNCTIONS), sp - 32);
}

/* By an exception, longjmp, or what leaves no record. */
static void unwind(struct machine *m)
{
	struct stack *s = &m->stack[m->at];
	uint32_t from = sp_of(s) - 64, how = roll(3);

	if (!s->n)
		return;
	s->n -= 1 + roll(s->n);
	if (how == 0)
		put(m, KRON_EVENT_UNWINDS, from, 100 + m->lane);
	if (how < 2)
		put(m, KRON_EVENT_UNWOUND, sp_of(s) - 8, 100 + m->lane);
}

static void move(struct machine *m)
{
	m->at = roll(STACKS);
	if (!roll(6))
		renew(m, m->at);
}

/* On the stack that runs or on another one, whatever that was. */
static void take_signal(struct machine *m)
{
	uint32_t was = m->at, handlers = 1 + roll(4), depth;

	if (roll(2)) {
		m->at = (m->at + 1 + roll(STACKS - 1)) % STACKS;
		renew(m, m->at);
	}
	depth = m->stack[m->at].n;
	for (uint32_t i = 0; i < handlers; i++)
		call(m);
	while (m->stack[m->at].n > depth)
		give_back(m);
	m->at = was;
}

static void have_child(struct machine *m)
{
	static uint32_t pids = 7000;
	uint32_t was = m->at, depth = m->stack[m->at].n, sp = sp_of(&m->stack[m->at]), pid = ++pids;
	bool spawn = roll(2), again = roll(2);

	put(m, spawn ? KRON_EVENT_SPAWN : KRON_EVENT_VFORK, sp, 100 + m->lane);
	if (spawn) {
		m->at = (m->at + 1) % STACKS;
		renew(m, m->at);
		depth = 0;
	}
	for (uint32_t i = roll(4); i; i--)
		call(m);
	if (again) {
		put(m, KRON_EVENT_CHILD_ENDS, sp_of(&m->stack[m->at]) - 8, pid);
		put(m, KRON_EVENT_CHILD_LIVES, sp_of(&m->stack[m->at]) - 8, pid);
		call(m);
		give_back(m);
	}
	if (roll(8)) /* else it is killed */
		put(m, KRON_EVENT_CHILD_ENDS, sp_of(&m->stack[m->at]) - 8, pid);
	m->stack[m->at].n = depth;
	m->at = was;
}

static void step(struct machine *m)
{
	uint32_t n = roll(100);

	if (n < 40)
		call(m);
	else if (n < 75)
		give_back(m);
	else if (n < 85)
		jump(m);
	else if (n < 89)
		move(m);
	else if (n < 92)
		unwind(m);
	else if (n < 95)
		take_signal(m);
	else if (n < 97)
		have_child(m);
	else if (n < 98 && m->wild && !m->silent)
		m->silent = 1 + roll(30);
}

static void make_trace(uint64_t seed, bool wild)
{
	struct machine m = {.wild = wild};
	FILE *f;
	struct err err;

	dice = seed;
	assert_int_equal(system("rm -rf t t.old"), 0);
	assert_int_equal(trace_writer_create(&m.w, "t", &err), 0);
	trace_writer_session(m.w, "start_tsc", "1000");
	trace_writer_session(m.w, "tsc_hz", "1000000000");
	trace_writer_module(m.w, &(struct trace_module_line){.nfunctions = FUNCTIONS, .path = "m"});
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		trace_writer_function(m.w,
				      &(struct trace_function_line){.n = i,
								    .vaddr = 0x1000 + 16 * i,
								    .size = 16,
								    .name = (char[]){'a' + i, 0}});
	for (m.lane = 0; m.lane < LANES; m.lane++) {
		m.tsc = 1000;
		m.at = m.n = m.silent = 0;
		for (uint32_t i = 0; i < STACKS; i++)
			renew(&m, i);
		for (uint32_t i = 0; i < EVENTS; i++)
			step(&m);
		flush(&m);
	}
	trace_writer_close(m.w);
	f = fopen("t/jumps", "w");
	assert_non_null(f);
	for (uint32_t i = 0; i < FUNCTIONS * JUMPS; i++) {
		uint32_t j = i % JUMPS;

		if (j == 0)
			fprintf(f, "%u\t%u\tunknown\t\n", i, i / JUMPS);
		else if (j == 1)
			fprintf(f, "%u\t%u\timport\tnobody\n", i, i / JUMPS);
		else if (j - 2 < FUNCTIONS)
			fprintf(f, "%u\t%u\tfunction\t%u\n", i, i / JUMPS, j - 2);
	}
	assert_int_equal(fclose(f), 0);
}

/* ---- what comes out ---- */

struct open_call {
	uint32_t function;
	uint64_t begin, inside; /* inside: of those that lie in it */
};
struct sums {
	uint64_t calls, total, self;
};
struct together { /* all lanes, merged by time */
	struct sums sums[FUNCTIONS];
	struct pair_counts n;
};
struct ended {
	struct track_call c;
	uint64_t self;
	bool is_left;
};

struct check {
	VEC(struct open_call) stack[64]; /* by track; of one lane */
	VEC(struct ended) ended;         /* by node */
	struct sums nested[FUNCTIONS], paired[FUNCTIONS];
	uint64_t now;
	uint64_t begins, ends, leaves, not_alike, paused;
	VEC(bool) payers; /* by pairs.c's number */
	bool is_lazy;
	uint32_t tracks;
};

static uint32_t on_node(void *ctx, uint32_t caller, uint32_t function)
{
	struct check *k = ctx;

	(void)caller, (void)function;
	vec_push(&k->ended);
	return (uint32_t)k->ended.n - 1;
}

static void on_begin(void *ctx, const struct trace_event *e, const struct track_call *c)
{
	struct check *k = ctx;

	assert_true(c->track < 64);
	assert_true(c->entry_tsc == e->tsc);
	assert_true(e->tsc >= k->now);
	k->now = e->tsc;
	assert_int_equal(c->level, k->stack[c->track].n);
	*vec_push(&k->stack[c->track]) = (struct open_call){c->function, c->entry_tsc, 0};
	k->begins++;
	if (c->track >= k->tracks)
		k->tracks = c->track + 1;
}

static void on_end(void *ctx, const struct trace_event *e, const struct track_call *c)
{
	struct check *k = ctx;
	struct open_call o;
	uint64_t duration = c->exit_tsc - c->entry_tsc;

	(void)e;
	assert_true(k->stack[c->track].n > 0);
	o = k->stack[c->track].v[--k->stack[c->track].n];
	assert_int_equal(k->stack[c->track].n, c->level);
	assert_int_equal(o.function, c->function);
	assert_true(o.begin == c->entry_tsc && c->exit_tsc >= c->entry_tsc);
	assert_true(c->exit_tsc >= k->now || k->is_lazy);
	if (c->exit_tsc > k->now)
		k->now = c->exit_tsc;
	assert_true(o.inside <= duration || k->is_lazy);
	if (k->stack[c->track].n)
		k->stack[c->track].v[k->stack[c->track].n - 1].inside += duration;
	k->nested[c->function].calls++;
	k->nested[c->function].total += duration;
	k->ended.v[c->node].c = *c;
	k->ended.v[c->node].self = duration - o.inside;
	k->ends++;
}

static void note_payer(struct check *k, uint32_t slot)
{
	while (k->payers.n <= slot)
		*vec_push(&k->payers) = false;
	k->payers.v[slot] = true;
}

static bool has_paid(struct check *k, uint32_t slot)
{
	bool has = slot < k->payers.n && k->payers.v[slot];

	if (has)
		k->payers.v[slot] = false;
	return has;
}

static void on_leave(void *ctx, const struct trace_event *e, const struct pair_call *p,
		     const struct track_call *c)
{
	struct check *k = ctx;
	const struct ended *end = &k->ended.v[c->node];
	uint64_t duration = p->exit_tsc - p->entry_tsc;

	(void)e;
	assert_false(end->is_left);
	k->ended.v[c->node].is_left = true;
	assert_int_equal(c->function, p->function);
	assert_true(c->entry_tsc == p->entry_tsc);
	if (!k->is_lazy) { /* there a call may have been shown before its end was known */
		assert_true(end->c.exit_tsc == p->exit_tsc);
		assert_int_equal(end->c.inferred, p->inferred);
		assert_int_equal(end->c.open, p->open);
		assert_int_equal(end->c.jumped, p->jumped);
		assert_int_equal(end->c.spans_loss, p->spans_loss);
	}
	k->paired[p->function].calls++;
	k->paired[p->function].total += duration;
	k->paired[p->function].self += duration - p->children_tsc;
	k->leaves++;
	/* The last word on a stack that was left for good may come too late for what lay below. */
	if (p->payer != PAIR_NO_NODE && !c->level)
		note_payer(k, p->payer);
	if (p->paused) { /* what it stood still for lies on other tracks, too */
		k->paused++;
		return;
	}
	if (!has_paid(k, p->node) && !k->is_lazy)
		assert_true(end->self == duration - p->children_tsc);
	k->not_alike += end->self != duration - p->children_tsc;
}

static void add_together(void *ctx, const struct trace_event *e, const struct pair_call *p)
{
	struct sums *s = ctx;

	(void)e;
	s[p->function].calls++;
	s[p->function].total += p->exit_tsc - p->entry_tsc;
	s[p->function].self += p->exit_tsc - p->entry_tsc - p->children_tsc;
}

static void read_together(const struct trace *t, struct together *all)
{
	struct trace_cursor *c = trace_cursor_open(t, -1);
	struct pairs *p =
		pairs_open(t, &(struct pair_sink){.ctx = all->sums, .leave = add_together});
	struct trace_event e;

	while (trace_cursor_next(c, &e))
		pairs_feed(p, &e);
	pairs_finish(p);
	all->n = *pairs_counts(p);
	trace_cursor_close(c);
	pairs_close(p);
}

/* Lane by lane; returns how many tracks one had at most. */
static uint32_t check_trace(bool lazy, struct track_plans *plans, const struct trace *t,
			    const struct together *together)
{
	struct check k = {.is_lazy = lazy};
	struct track_sink sink = {.ctx = &k,
				  .plans = plans,
				  .begin = on_begin,
				  .end = on_end,
				  .leave = on_leave,
				  .node = on_node,
				  .lazy = lazy};
	struct tracks *x = tracks_open(t, &sink);
	const struct pair_counts *n;

	for (uint32_t lane = 0; lane < t->nlanes; lane++) {
		k.now = 0;
		tracks_lane(x, lane);
		for (uint32_t i = 0; i < 64; i++)
			assert_int_equal(k.stack[i].n, 0);
	}
	n = tracks_counts(x);
	assert_true(n->entries > 1000);
	assert_true(k.begins == n->entries && k.ends == n->entries && k.leaves == n->entries);
	assert_true(n->calls == n->entries);
	assert_true(n->exits ==
		    n->calls - n->inferred - n->open + n->orphans + n->jumped + n->shared);
	for (uint32_t f = 0; f < FUNCTIONS; f++) {
		const struct sums *a = &k.nested[f], *b = &k.paired[f];

		assert_true(a->calls == b->calls && (lazy || a->total == b->total));
		assert_true(together->sums[f].calls == b->calls &&
			    together->sums[f].total == b->total &&
			    together->sums[f].self == b->self);
	}
	assert_memory_equal(n, &together->n, sizeof(*n));
	assert_true(lazy || (k.not_alike <= k.leaves / 100 && k.paused <= k.leaves / 10));
	tracks_close(x);
	for (uint32_t i = 0; i < 64; i++)
		vec_free(&k.stack[i]);
	vec_free(&k.ended);
	vec_free(&k.payers);
	return k.tracks;
}

static void check_all(bool wild)
{
	uint32_t most = 0;

	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct together together = {0};
		struct track_plans *plans;
		struct trace *t;
		struct err err;
		uint32_t n;

		make_trace(seed, wild);
		if (trace_open(&t, "t", &err))
			fail_msg("%s", err.msg);
		plans = track_plans_open(t);
		read_together(t, &together);
		n = check_trace(false, NULL, t, &together);
		/* plans are the same for everybody */
		assert_int_equal(check_trace(false, plans, t, &together), n);
		assert_int_equal(check_trace(false, plans, t, &together), n);
		check_trace(true, NULL, t, &together);
		most = n > most ? n : most;
		track_plans_close(plans);
		trace_close(t);
	}
	assert_true(most > 1);
}

static void stacks_nest(void **state)
{
	(void)state;
	check_all(false);
}

static void stacks_nest_whatever_is_lost(void **state)
{
	(void)state;
	check_all(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_nest),
		cmocka_unit_test(stacks_nest_whatever_is_lost),
	};

	return cmocka_run_group_tests_name("tracks", tests, enter_folder, leave_folder);
}

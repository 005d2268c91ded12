/* SPDX-License-Identifier: MIT */
/*
 * make_trace.c - writes synthetic traces: known input for the golden tests, the fuzzer and
 * speed measurements of the readers.
 *
 *   make_trace small DIR               a bit of everything, always the same bytes
 *   make_trace naps DIR                context switches, filter levels, events of users' probes
 *   make_trace ways DIR                exits by jumps, a vfork child, a second stack
 *   make_trace gaps DIR                calls across which samples were lost
 *   make_trace big DIR SAMPLES LANES   calls to random depths on LANES threads
 *   make_trace walk DIR SAMPLES LANES  the same with few functions, on CPUs that change
 *
 * The clock runs at 2 GHz from TSC 10^12.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "trace/jumps.h"
#include "trace/writer.h"

#define START 1000000000000ull

struct lane {
	struct trace_writer *w;
	struct trace_chunk head;
	struct kron_sample s[3276];
	uint32_t n, capacity;
	uint32_t cpu;
};

static uint64_t next_seq = 1;

static void check(int ret)
{
	if (!ret)
		return;
	fprintf(stderr, "make_trace: %s\n", strerror(-ret));
	exit(1);
}

static struct lane *lane_new(struct trace_writer *w, uint32_t uid, uint32_t tid)
{
	struct lane *l = xcalloc(1, sizeof(*l));

	l->w = w;
	l->capacity = 3276;
	l->head.proc_uid = uid;
	l->head.tid = tid;
	l->head.source = KRON_SOURCE(3, tid);
	return l;
}

static void put_raw(struct lane *l, uint64_t tsc, uint32_t event, uint32_t payload, uint32_t flags)
{
	l->s[l->n++] = (struct kron_sample){
		.head = KRON_HEAD_TRACE(l->cpu) | flags |
			(uint32_t)(tsc >> 32 & KRON_HEAD_TIME_MASK),
		.time_lo = (uint32_t)tsc,
		.source = l->head.source,
		.payload = payload,
		.event = event,
	};
}

static void flush(struct lane *l)
{
	if (!l->n)
		return;
	l->head.nbytes = l->n * KRON_SAMPLE_SIZE;
	l->head.seq = next_seq++;
	if (l->head.seq % 8 && trace_writer_stage(l->w, &l->head, l->s))
		check(trace_writer_commit(l->w)); /* packed */
	else
		check(trace_writer_chunk(l->w, &l->head, l->s));
	l->n = 0;
	l->head.holes = 0;
}

static void put(struct lane *l, uint64_t tsc, uint32_t event, uint32_t payload)
{
	if (l->n == l->capacity)
		flush(l);
	if (!l->n && event != KRON_EVENT_CPU)
		put_raw(l, tsc, KRON_EVENT_CPU, l->cpu, 0);
	put_raw(l, tsc, event, payload, 0);
}

static void move(struct lane *l, uint64_t tsc, uint32_t cpu)
{
	l->cpu = cpu;
	put(l, tsc, KRON_EVENT_CPU, cpu);
}

static void lane_free(struct lane *l)
{
	flush(l);
	xfree(l);
}

static void session_start(struct trace_writer *w, const char *command)
{
	trace_writer_session(w, "command", "%s", command);
	trace_writer_session(w, "hostname", "example");
	trace_writer_session(w, "kernel", "Linux 6.1.0");
	trace_writer_session(w, "cpu", "Example CPU");
	trace_writer_session(w, "ncpu", "16");
	trace_writer_session(w, "kron", "kron 0.1");
	trace_writer_session(w, "when_full", "discard");
	trace_writer_session(w, "start_tsc", "%llu", START);
	trace_writer_session(w, "start_mono_ns", "5000000000");
	trace_writer_session(w, "start_real_ns", "1700000000123456789");
	trace_writer_session(w, "tsc_hz", "2000000000");
}

static void session_end(struct trace_writer *w, uint64_t ticks)
{
	trace_writer_session(w, "end_mono_ns", "%llu", 5000000000ull + ticks / 2);
	trace_writer_session(w, "end_tsc", "%llu", START + (unsigned long long)ticks);
}

/* ---- small ---- */

static const char *const names[] = {
	"main",
	"parse",
	"work",
	"leaf",
	"std::vector<int, std::allocator<int>>::push_back(int&&)",
	"on_signal",
	"evil\x1b[31m\n\t\"\\name\xff\xc2\x9b",
	"",
};
enum { MAIN, PARSE, WORK, LEAF, CPP, ON_SIGNAL, EVIL, NAMELESS };

static void tables(struct trace_writer *w)
{
	struct trace_module_line app = {
		.id = 0,
		.event_base = 0,
		.nfunctions = 6,
		.patched_entries = 6,
		.patched_exits = 9,
		.refused_exits = 1,
		.build_id = "0123456789abcdef",
		.path = "/opt/app/bin/app",
	};
	struct trace_module_line lib = {
		.id = 1,
		.event_base = 6,
		.nfunctions = 4,
		.patched_entries = 2,
		.patched_exits = 3,
		.refused_entries = 2,
		.refused_exits = 1,
		.path = "/opt/app/lib/libevil.so.1",
	};

	trace_writer_module(w, &app);
	trace_writer_module(w, &lib);
	for (uint32_t i = 0; i < 8; i++)
		trace_writer_function(w, &(struct trace_function_line){.n = i,
								       .module_id = i >= 6,
								       .vaddr = 0x1000 + 0x40 * i,
								       .size = 0x3c,
								       .name = names[i]});
	trace_writer_refusal(w, &(struct trace_refusal_line){
					.what = TRACE_REFUSED_EXIT,
					.key = "no-room",
					.count = 1,
					.text = "no five bytes that may be displaced together"});
	trace_writer_refusal(w, &(struct trace_refusal_line){
					.module_id = 1,
					.what = TRACE_REFUSED_EXIT,
					.key = "no-room",
					.count = 1,
					.text = "no five bytes that may be displaced together"});
	/* as kron 0.1 wrote it first */
	trace_writer_refusal(w, &(struct trace_refusal_line){.module_id = 1,
							     .what = TRACE_REFUSED_ENTRY,
							     .key = "branch-target",
							     .count = 2});
	trace_writer_proc(w, &(struct trace_proc_line){.uid = 1,
						       .pid = 1000,
						       .start_tsc = START + 1000,
						       .exe = "/opt/app/bin/app",
						       .cmdline = "app --fast 'a b'"});
	trace_writer_proc(w, &(struct trace_proc_line){.uid = 2,
						       .pid = 1002,
						       .parent_uid = 1,
						       .by_fork = true,
						       .start_tsc = START + 60000,
						       .exe = "/opt/app/bin/app",
						       .cmdline = "app --fast 'a b'"});
	trace_writer_thread(w, &(struct trace_thread_line){.uid = 1, .tid = 1000, .name = "app"});
	trace_writer_thread(
		w, &(struct trace_thread_line){.uid = 1, .tid = 1001, .name = "work\x1b]0;er"});
	trace_writer_untraced(
		w, &(struct trace_untraced_line){.pid = 1003,
						 .reason = "/usr/bin/old is a 32-bit program"});
	trace_writer_proc_end(w, &(struct trace_proc_end_line){.uid = 2, .end_tsc = START + 90000});
	trace_writer_proc_end(
		w, &(struct trace_proc_end_line){
			   .uid = 1, .end_tsc = START + 2100000, .lost = 123, .cut_off = 1});
}

#define ENTER(l, at, f, sp) put(l, START + (at), KRON_EVENT_ENTRY(f), sp)
#define EXIT(l, at, f, sp) put(l, START + (at), KRON_EVENT_EXIT(f), sp)

/* Nested calls, recursion, a longjmp, a handler on its own stack, calls open at the end. */
static void first_thread(struct lane *l)
{
	ENTER(l, 2000, MAIN, 0xffffe000);
	ENTER(l, 3000, PARSE, 0xffffdf00);
	ENTER(l, 3400, LEAF, 0xffffde00);
	EXIT(l, 3600, LEAF, 0xffffde00);
	EXIT(l, 4000, PARSE, 0xffffdf00);
	for (uint32_t i = 0; i < 3; i++)
		ENTER(l, 5000 + 100 * i, WORK, 0xffffdf00 - 64 * i);
	for (uint32_t i = 3; i-- > 0;)
		EXIT(l, 7000 - 500 * i, WORK, 0xffffdf00 - 64 * i);
	ENTER(l, 8000, PARSE, 0xffffdf00);
	ENTER(l, 8200, CPP, 0xffffde00); /* throws: neither it nor parse exits */
	move(l, START + 9000, 9);
	ENTER(l, 10000, WORK, 0xffffdf00);
	ENTER(l, 11000, ON_SIGNAL, 0x20001000);
	ENTER(l, 11100, LEAF, 0x20000f00);
	EXIT(l, 11300, LEAF, 0x20000f00);
	EXIT(l, 12000, ON_SIGNAL, 0x20001000);
	EXIT(l, 14000, WORK, 0xffffdf00);
	ENTER(l, 15000, EVIL, 0xffffdf00);
	ENTER(l, 15100, NAMELESS, 0xffffde00);
	EXIT(l, 15300, NAMELESS, 0xffffde00);
	EXIT(l, 16000, EVIL, 0xffffdf00);
	put(l, START + 17000, 4711 * 2, 0xffffdf00); /* no such function */
	put(l, START + 18000, 4711 * 2 + 1, 0xffffdf00);
	ENTER(l, 2000000, PARSE, 0xffffdf00); /* exit() inside */
}

/* Losses, and an overflow flag after them; two chunks; a claim that a kill cut off. */
static void second_thread(struct lane *l)
{
	ENTER(l, 20000, WORK, 0x40001000);
	ENTER(l, 20500, LEAF, 0x40000f00);
	put(l, START + 21000, KRON_EVENT_LOST, 123);
	put_raw(l, START + 30000, KRON_EVENT_EXIT(LEAF), 0x40000f00, KRON_HEAD_FIFO_OVERFLOW);
	flush(l);
	l->cpu = 5;
	l->head.holes = 1;
	ENTER(l, 31000, LEAF, 0x40000f00);
	memset(&l->s[l->n++], 0, KRON_SAMPLE_SIZE);
	EXIT(l, 31200, LEAF, 0x40000f00);
	EXIT(l, 40000, WORK, 0x40001000);
}

/* A forked child: begins inside its parent's frames. */
static void child(struct lane *l)
{
	EXIT(l, 61000, WORK, 0xffffdf00);
	ENTER(l, 62000, LEAF, 0xffffdf00);
	EXIT(l, 62500, LEAF, 0xffffdf00);
	EXIT(l, 63000, MAIN, 0xffffe000);
}

static void make_small(struct trace_writer *w)
{
	struct lane *a = lane_new(w, 1, 1000), *b = lane_new(w, 1, 1001), *c = lane_new(w, 2, 1002);

	session_start(w, "app --fast 'a b'");
	tables(w);
	a->capacity = 16;
	a->cpu = 1;
	first_thread(a);
	second_thread(b);
	child(c);
	lane_free(c); /* chunks lie in no order in the file */
	lane_free(b);
	lane_free(a);
	trace_writer_session(w, "exit", "exited 3");
	trace_writer_session(w, "samples", "36");
	trace_writer_session(w, "lost", "123");
	trace_writer_session(w, "cut_off", "1");
	trace_writer_session(w, "probes", "20");
	trace_writer_session(w, "refused", "4");
	trace_writer_session(w, "processes", "2");
	trace_writer_session(w, "threads", "3");
	trace_writer_session(w, "cpu_ns", "11542");
	trace_writer_session(w, "probe_ns", "9.7");
	trace_writer_session(w, "probe_ns_limit", "8.6");
	trace_writer_session(w, "probe_ns_off", "0.3");
	session_end(w, 2200000);
}

/* ---- gaps ---- */

static void gaps_tables(struct trace_writer *w)
{
	trace_writer_module(w, &(struct trace_module_line){.nfunctions = 4, .path = "/bin/gaps"});
	trace_writer_function(w,
			      &(struct trace_function_line){
				      .n = WORK, .vaddr = 0x1000, .size = 16, .name = names[WORK]});
	trace_writer_function(w,
			      &(struct trace_function_line){
				      .n = LEAF, .vaddr = 0x1010, .size = 16, .name = names[LEAF]});
	for (uint32_t uid = 1; uid <= 2; uid++)
		trace_writer_proc(w, &(struct trace_proc_line){.uid = uid,
							       .pid = 999 + (int)uid,
							       .start_tsc = START,
							       .exe = "/bin/gaps",
							       .cmdline = "gaps"});
	trace_writer_proc_end(
		w, &(struct trace_proc_end_line){.uid = 1, .end_tsc = START + 8500000, .lost = 7});
	trace_writer_proc_end(
		w, &(struct trace_proc_end_line){.uid = 2, .end_tsc = START + 8500000, .lost = 5});
}

/*
 * work() takes 500 us in each thread, one after the other.  Samples were lost
 *   of 1000: from 100 us after its beginning to 400 us after it
 *   of 1001: none
 *   of 1002: from 100 us after its beginning on; no record says so, only its process' count
 */
static void make_gaps(struct trace_writer *w)
{
	struct lane *a = lane_new(w, 1, 1000), *b = lane_new(w, 1, 1001), *c = lane_new(w, 2, 1002);

	session_start(w, "gaps");
	gaps_tables(w);
	ENTER(a, 1000, WORK, 0xffffdf00);
	ENTER(a, 200000, LEAF, 0xffffde00);
	EXIT(a, 201000, LEAF, 0xffffde00);
	flush(a);
	put(a, START + 801000, KRON_EVENT_LOST, 7);
	ENTER(a, 801100, LEAF, 0xffffde00);
	EXIT(a, 801200, LEAF, 0xffffde00);
	EXIT(a, 1001000, WORK, 0xffffdf00);
	ENTER(b, 3001000, WORK, 0x7fffdf00);
	EXIT(b, 4001000, WORK, 0x7fffdf00);
	ENTER(b, 8000000, LEAF, 0x7fffdf00);
	ENTER(c, 6001000, WORK, 0x5fffdf00);
	ENTER(c, 6200000, LEAF, 0x5fffde00);
	EXIT(c, 6201000, LEAF, 0x5fffde00);
	lane_free(a);
	lane_free(b);
	lane_free(c);
	session_end(w, 9000000);
}

/* ---- naps ---- */

enum { NAPS_MAIN, NAPS_NAP, NAPS_MINE = 10, NAPS_OTHER };

static void naps_tables(struct trace_writer *w)
{
	trace_writer_module(w, &(struct trace_module_line){.nfunctions = 2, .path = "/bin/naps"});
	trace_writer_function(w,
			      &(struct trace_function_line){
				      .n = NAPS_MAIN, .vaddr = 0x1000, .size = 60, .name = "main"});
	trace_writer_function(
		w, &(struct trace_function_line){
			   .n = NAPS_NAP, .vaddr = 0x1040, .size = 60, .name = "nap", .level = 3});
	trace_writer_event(w, &(struct trace_event_line){.n = NAPS_MINE,
							 .level = 2,
							 .payload = "size",
							 .vaddr = 0x1044,
							 .name = "mine"});
	trace_writer_event(w, &(struct trace_event_line){
				      .n = NAPS_OTHER, .vaddr = 0x1004, .name = "an; other: one"});
	trace_writer_proc(w, &(struct trace_proc_line){.uid = 1,
						       .pid = 1000,
						       .start_tsc = START + 1000,
						       .exe = "/bin/naps",
						       .cmdline = "naps"});
	trace_writer_thread(w, &(struct trace_thread_line){.uid = 1, .tid = 1000, .name = "naps"});
	trace_writer_thread(w,
			    &(struct trace_thread_line){.uid = 1, .tid = 1001, .name = "second"});
}

static void naps_switches(struct trace_writer *w)
{
	static const struct trace_switch v[] = {
		{START + 1500, 7, 5, TRACE_SWITCH_LOST},
		{START + 3000, 1000, 1, TRACE_SWITCH_OUT},
		{START + 4000, 1001, 1, TRACE_SWITCH_IN},
		{START + 5000, 1005, 5, TRACE_SWITCH_IN}, /* a thread without samples */
		{START + 6000, 1005, 5, TRACE_SWITCH_OUT},
		{START + 13000, 1000, 9, TRACE_SWITCH_IN},
		{START + 14000, 1001, 1, TRACE_SWITCH_OUT}, /* for good */
		{START + 20000, 1000, 9, TRACE_SWITCH_PREEMPTED},
		{START + 26000, 1000, 9, TRACE_SWITCH_IN},
	};

	check(trace_writer_switches(w, v, sizeof(v) / sizeof(v[0])));
}

static void make_naps(struct trace_writer *w)
{
	struct lane *a = lane_new(w, 1, 1000), *b = lane_new(w, 1, 1001);

	session_start(w, "naps");
	trace_writer_session(w, "switches", "yes");
	naps_tables(w);
	naps_switches(w);
	a->cpu = 1;
	ENTER(a, 2000, NAPS_MAIN, 0xffffe000);
	ENTER(a, 2400, NAPS_NAP, 0xffffdf00);
	ENTER(a, 2600, NAPS_MINE, 4096);
	move(a, START + 14000, 9);
	ENTER(a, 14100, NAPS_MINE, 17);
	EXIT(a, 15000, NAPS_NAP, 0xffffdf00);
	ENTER(a, 16000, NAPS_OTHER, 0);
	EXIT(a, 30000, NAPS_MAIN, 0xffffe000);
	ENTER(a, 31000, NAPS_OTHER, 0); /* in no function */
	b->cpu = 1;
	ENTER(b, 4200, NAPS_NAP, 0x40000f00);
	EXIT(b, 13000, NAPS_NAP, 0x40000f00);
	lane_free(a);
	lane_free(b);
	session_end(w, 40000);
}

/* ---- ways ---- */

enum { WAYS_MAIN, WAYS_JUMPER, WAYS_TARGET, WAYS_VFORK, WAYS_BODY };

static void ways_tables(struct trace_writer *w)
{
	static const struct trace_function_line functions[] = {
		{WAYS_MAIN, 0, 0x1000, 60, "main", 0, TRACE_RETURNS, NULL},
		{WAYS_JUMPER, 0, 0x1040, 60, "jumper", 0, TRACE_RETURNS | TRACE_JUMPS,
		 "also\nnamed"},
		{WAYS_TARGET, 0, 0x1080, 60, "target", 0, TRACE_RETURNS | TRACE_UNSEEN, NULL},
		{WAYS_VFORK, 0, 0x10c0, 60, "vfork", 0,
		 TRACE_RETURNS | TRACE_CALLS | TRACE_RESOLVES, NULL},
		{WAYS_BODY, 0, 0x1100, 60, "body", 0, TRACE_RETURNS, NULL},
	};
	static const struct trace_jump_line jumps[] = {
		{0, WAYS_JUMPER, JUMP_TO_FUNCTION, WAYS_TARGET, NULL},
		{1, WAYS_JUMPER, JUMP_TO_NAME, 0, "target"},
		{2, WAYS_JUMPER, JUMP_TO_ANYTHING, 0, NULL},
		{3, WAYS_TARGET, JUMP_TO_INSIDE, WAYS_BODY, NULL}};

	trace_writer_module(w, &(struct trace_module_line){.nfunctions = 5, .path = "/bin/ways"});
	for (size_t i = 0; i < 5; i++)
		trace_writer_function(w, &functions[i]);
	for (size_t i = 0; i < 4; i++)
		trace_writer_jump(w, &jumps[i]);
	trace_writer_proc(w, &(struct trace_proc_line){.uid = 1,
						       .pid = 1000,
						       .start_tsc = START + 1000,
						       .exe = "/bin/ways",
						       .cmdline = "ways"});
	trace_writer_thread(w, &(struct trace_thread_line){.uid = 1, .tid = 1000, .name = "ways"});
}

static void ways_jumps(struct lane *l, uint64_t at)
{
	for (uint32_t j = 0; j < 3; j++, at += 1000) {
		ENTER(l, at, WAYS_JUMPER, 0xffffdf00);
		put(l, START + at + 100, KRON_EVENT_JUMP(j), 0xffffdf00);
		ENTER(l, at + 200, WAYS_TARGET, 0xffffdf00);
		if (j == 2) { /* on into the middle of body */
			put(l, START + at + 300, KRON_EVENT_JUMP(3), 0xffffdf00);
			EXIT(l, at + 400, WAYS_BODY, 0xffffdf00);
		} else {
			EXIT(l, at + 400, WAYS_TARGET, 0xffffdf00);
		}
	}
}

static void ways_child(struct lane *l, uint64_t at)
{
	ENTER(l, at, WAYS_VFORK, 0xffffdf00);
	put(l, START + at + 100, KRON_EVENT_VFORK, 0xffffdf00);
	EXIT(l, at + 200, WAYS_VFORK, 0xffffdf00);
	ENTER(l, at + 300, WAYS_TARGET, 0xffffde00);
	put(l, START + at + 400, KRON_EVENT_CHILD_ENDS, 0xffffdd00);
	put(l, START + at + 500, KRON_EVENT_CHILD_LIVES, 0xffffdd00);
	put(l, START + at + 600, KRON_EVENT_CHILD_ENDS, 0xffffdd00);
	EXIT(l, at + 700, WAYS_VFORK, 0xffffdf00);
}

static void ways_stacks(struct lane *l, uint64_t at)
{
	ENTER(l, at, WAYS_BODY, 0x40000f00);
	for (uint32_t i = 0; i < 4; i++) {
		ENTER(l, at + 100, WAYS_TARGET, i % 2 ? 0x40000e00 : 0xffffdf00);
		EXIT(l, at + 200, WAYS_TARGET, i % 2 ? 0x40000e00 : 0xffffdf00);
		at += 200;
	}
	EXIT(l, at + 100, WAYS_BODY, 0x40000f00);
}

static void make_ways(struct trace_writer *w)
{
	struct lane *l = lane_new(w, 1, 1000);

	session_start(w, "ways");
	ways_tables(w);
	ENTER(l, 1000, WAYS_MAIN, 0xffffe000);
	ways_jumps(l, 2000);
	ways_child(l, 6000);
	put(l, START + 7000, KRON_EVENT_SPAWN, 0xffffdf00);
	ways_stacks(l, 8000);
	EXIT(l, 10000, WAYS_MAIN, 0xffffe000);
	lane_free(l);
	session_end(w, 20000);
}

/* ---- big ---- */

#define BIG_FUNCTIONS 5000
#define WALK_FUNCTIONS 40

struct walk {
	struct lane *l;
	uint32_t depth, functions[64];
	uint64_t tsc, seed;
	uint32_t nfunctions;
	bool moves;
};

static uint32_t random_of(struct walk *k)
{
	k->seed = k->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(k->seed >> 33);
}

static void step(struct walk *k)
{
	uint32_t r = random_of(k), sp;

	k->tsc += 20 + r % 64;
	if (k->moves && !(r % 199))
		move(k->l, START + k->tsc, r % 7);
	if (!k->depth || (k->depth < 64 && r & 0x1000)) {
		sp = 0xfffff000u - 0x100 * k->depth;
		k->functions[k->depth++] = (r >> 14) % k->nfunctions;
		put(k->l, START + k->tsc, KRON_EVENT_ENTRY(k->functions[k->depth - 1]), sp);
	} else {
		sp = 0xfffff000u - 0x100 * --k->depth;
		put(k->l, START + k->tsc, KRON_EVENT_EXIT(k->functions[k->depth]), sp);
	}
}

static void make_big(struct trace_writer *w, uint64_t samples, uint32_t nlanes, bool walk)
{
	struct walk *walks = xcalloc(nlanes, sizeof(*walks));
	uint32_t nfunctions = walk ? WALK_FUNCTIONS : BIG_FUNCTIONS;
	struct trace_module_line app = {.nfunctions = nfunctions, .path = "/opt/app/bin/big"};
	uint64_t last = 0;
	char name[32];

	session_start(w, "big");
	trace_writer_module(w, &app);
	for (uint32_t i = 0; i < nfunctions; i++) {
		snprintf(name, sizeof(name), "function_%u", i);
		trace_writer_function(
			w, &(struct trace_function_line){
				   .n = i, .vaddr = 0x1000 + 0x40 * i, .size = 0x3c, .name = name});
	}
	trace_writer_proc(w, &(struct trace_proc_line){.uid = 1, .pid = 1000, .start_tsc = START});
	for (uint32_t i = 0; i < nlanes; i++)
		walks[i] = (struct walk){.l = lane_new(w, 1, 1000 + i),
					 .seed = i + 1,
					 .nfunctions = nfunctions,
					 .moves = walk};
	for (uint64_t n = 0; n < samples; n++)
		step(&walks[n % nlanes]);
	for (uint32_t i = 0; i < nlanes; i++) {
		last = walks[i].tsc > last ? walks[i].tsc : last;
		lane_free(walks[i].l);
	}
	xfree(walks);
	session_end(w, last);
}

int main(int argc, char **argv)
{
	struct trace_writer *w;
	struct err err;

	if (argc < 3) {
		fputs("usage: make_trace small|naps|ways|gaps DIR | big|walk DIR SAMPLES LANES\n",
		      stderr);
		return 2;
	}
	if (trace_writer_create(&w, argv[2], &err)) {
		fprintf(stderr, "make_trace: %s\n", err.msg);
		return 1;
	}
	if ((!strcmp(argv[1], "big") || !strcmp(argv[1], "walk")) && argc == 5)
		make_big(w, strtoull(argv[3], NULL, 10), (uint32_t)strtoul(argv[4], NULL, 10),
			 !strcmp(argv[1], "walk"));
	else if (!strcmp(argv[1], "naps"))
		make_naps(w);
	else if (!strcmp(argv[1], "gaps"))
		make_gaps(w);
	else if (!strcmp(argv[1], "ways"))
		make_ways(w);
	else
		make_small(w);
	check(trace_writer_close(w));
	return 0;
}

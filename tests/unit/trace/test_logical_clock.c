/* SPDX-License-Identifier: MIT */
/*
 * test_logical_clock.c - clocks of hosts that messages between them mend.
 *
 * Each trace is made of moments whose truth is known, a tick a nanosecond; hosts disagree by what is added to their wall clock.
 */
#define _GNU_SOURCE
#include "tests/unit/trace/trace_rig.h"

#include "trace/analysis/interval_names.h"
#include "trace/analysis/logical_clock.h"

#define START 1000000000000ull

struct moment {
	uint64_t time;
	uint32_t function;
};

/* host: those of one have one clock. */
static void write_node(const char *dir, int node, int host, int64_t wrong_ns,
		       const struct moment *v, size_t n)
{
	struct trace_writer *w = begin(dir);
	struct trace_chunk head = {.proc_uid = 1, .tid = 1};

	trace_writer_session(w, "node", "%d", node);
	trace_writer_session(w, "boot_id", "00000000-0000-4000-8000-%012d", host);
	trace_writer_session(w, "start_tsc", "%llu", START);
	trace_writer_session(w, "start_mono_ns", "5000000000");
	trace_writer_session(w, "start_real_ns", "%lld",
			     1700000000000000000ll + (long long)wrong_ns);
	trace_writer_session(w, "tsc_hz", "1000000000");
	trace_writer_module(w, &(struct trace_module_line){.nfunctions = 6, .path = "/p"});
	for (uint32_t i = 0; i < 6; i++) {
		char name[3] = {'f', (char)('0' + i), 0};

		trace_writer_function(
			w, &(struct trace_function_line){
				   .n = i, .vaddr = 0x1000 + 64 * i, .size = 16, .name = name});
	}
	trace_writer_proc(
		w, &(struct trace_proc_line){.uid = 1, .pid = 1, .exe = "/p", .cmdline = "p"});
	for (size_t i = 0; i < n; i++) {
		struct kron_sample s = sample(START + v[i].time, KRON_EVENT_ENTRY(v[i].function));

		head.nbytes = KRON_SAMPLE_SIZE;
		head.seq++;
		assert_int_equal(trace_writer_chunk(w, &head, &s), 0);
	}
	trace_writer_session(w, "end_tsc", "%llu", START + v[n - 1].time + 1);
	assert_int_equal(trace_writer_close(w), 0);
}
#define NODE(dir, node, host, wrong_ns, ...)                                        \
	write_node(dir, node, host, wrong_ns, (const struct moment[]){__VA_ARGS__}, \
		   sizeof((const struct moment[]){__VA_ARGS__}) / sizeof(struct moment))

/* ---- what becomes of them ---- */

struct result {
	uint64_t reversed, circles; /* as the clock says */
	uint64_t messages, left;    /* of the mended trace: and received before they were sent */
	uint64_t first[3][6];       /* by node and function: where it is first */
};

static void on_interval(void *arg, size_t def, int row, const struct interval *i)
{
	struct result *r = arg;

	(void)def;
	(void)row;
	r->messages++;
	r->left += i->ticks < 0;
}

static void look(const struct trace *t, struct result *r)
{
	struct interval_info info = {0};
	struct trace_cursor *c = trace_cursor_open(t, -1);
	struct trace_event e;
	struct err err;

	if (interval_info_open(&info, t, "info", &err))
		fail_msg("%s", err.msg);
	intervals_of_trace(&info, t, on_interval, r);
	interval_info_free(&info);
	while (trace_cursor_next(c, &e)) {
		const uint32_t f = e.s.event / 2 % 6;

		if (e.s.event < KRON_EVENT_SPECIAL && !r->first[t->lanes[e.lane].node][f])
			r->first[t->lanes[e.lane].node][f] = e.tsc - START;
	}
	trace_cursor_close(c);
}

static struct result mend(const char *info, size_t n)
{
	static const char *const dirs[] = {"a", "b", "c"};
	struct result r = {0};
	struct logical_clock l;
	struct trace *t;
	struct err err;

	write_text("info", info, strlen(info));
	if (trace_open_all(&t, dirs, n, &err) || logical_clock_find(&l, t, "info", &err))
		fail_msg("%s", err.msg);
	r.reversed = l.reversed;
	r.circles = l.circles;
	trace_close(t);
	if (trace_open_moved(&t, dirs, n, l.moves, l.nodes, &err))
		fail_msg("%s", err.msg);
	look(t, &r);
	trace_close(t);
	logical_clock_free(&l);
	return r;
}

/* ---- equal times ---- */

/* Two that arrive at one time, of which the second needs a hundred times the other's move. */
static void receptions_at_one_time(void **state)
{
	struct result r;

	(void)state;
	NODE("a", 1, 1, 10000, {1000, 0});
	NODE("b", 2, 2, 1000000, {1100, 2});
	NODE("c", 3, 3, 0, {500, 5}, {2000, 1}, {2000, 3});
	r = mend("4 f0 f1 \"one\"\n4 f2 f3 \"other\"\n", 3);
	assert_int_equal(r.reversed, 2);
	assert_int_equal(r.messages, 2);
	assert_int_equal(r.left, 0);
	assert_int_equal(r.circles, 0);
	assert_true(r.first[2][3] > r.first[1][2]);
	assert_int_equal(r.first[2][1], r.first[2][3]); /* no truth is between them */
}

/* What is sent at the time of a reception goes on later with it, and so does who receives that. */
static void sending_at_the_time_of_a_reception(void **state)
{
	struct result r;

	(void)state;
	NODE("a", 1, 1, 1000000, {1000, 0});
	NODE("b", 2, 2, 0, {2000, 1}, {2000, 2});
	NODE("c", 3, 3, 0, {2100, 3}, {200000000, 5});
	r = mend("4 f0 f1 \"one\"\n4 f2 f3 \"other\"\n", 3);
	assert_int_equal(r.messages, 2);
	assert_int_equal(r.left, 0);
	assert_true(r.first[1][1] > r.first[0][0] && r.first[2][3] > r.first[1][2]);
	assert_int_equal(r.first[2][5], 199000000); /* long after: its own time, on the line of a */
}

/* Each is sent at the very time of the other's reception: one of them stays the wrong way, and is counted. */
static void circle(void **state)
{
	struct result r;

	(void)state;
	NODE("a", 1, 1, 0, {1000, 0}, {1000, 3});
	NODE("b", 2, 2, 500, {1000, 1}, {1000, 2});
	r = mend("4 f0 f1 \"there\"\n4 f2 f3 \"back\"\n", 2);
	assert_int_equal(r.messages, 2);
	assert_int_equal(r.left, r.circles);
}

/* ---- hosts ---- */

/* Two traces of one host have one clock: both are moved, and stay as they are to each other. */
static void two_traces_of_a_host(void **state)
{
	struct result r;

	(void)state;
	NODE("a", 1, 1, 0, {1000, 1}, {3000, 5});
	NODE("b", 2, 1, 0, {1100, 4}, {200000000, 5});
	NODE("c", 3, 2, 1000000, {900, 0});
	r = mend("4 f0 f1 \"message\"\n", 3);
	assert_int_equal(r.left, 0);
	assert_true(r.first[0][1] > r.first[2][0]);
	assert_true(r.first[1][4] > r.first[0][1]); /* as it was */
	assert_in_range(r.first[1][4] - r.first[0][1], 98, 100);
	assert_int_equal(r.first[1][5], 200000000);
}

/* What they send each other is of one clock: it moves nothing. */
static void messages_inside_a_host(void **state)
{
	struct result r;

	(void)state;
	NODE("a", 1, 1, 0, {1000, 0}, {3000, 1});
	NODE("b", 2, 1, 0, {1100, 1}, {2900, 0});
	NODE("c", 3, 2, 0, {5000, 5});
	r = mend("4 f0 f1 \"message\"\n", 3);
	assert_int_equal(r.messages, 2);
	assert_int_equal(r.reversed + r.left + r.circles, 0);
	assert_int_equal(r.first[1][1], 1100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(receptions_at_one_time),
		T(sending_at_the_time_of_a_reception),
		T(circle),
		T(two_traces_of_a_host),
		T(messages_inside_a_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

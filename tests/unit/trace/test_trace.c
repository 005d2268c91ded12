/* SPDX-License-Identifier: MIT */
/* test_trace.c - trace directories: written, read back, damaged. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/unit/trace/trace_rig.h"
#include "trace/jumps.h"

/* ---- writing ---- */

static void round_trip(void **state)
{
	static const char hostile[] = "a\tb\nc\\d\\t\x1b[0m\xff";
	struct trace_writer *w = begin("t");
	struct trace *t;

	(void)state;
	trace_writer_session(w, "command", "%s", hostile);
	trace_writer_session(w, "exit", "first");
	trace_writer_session(w, "exit", "last=%d", 1);
	trace_writer_module(w, &(struct trace_module_line){.id = 7,
							   .event_base = 3,
							   .nfunctions = 2,
							   .patched_entries = 1,
							   .patched_exits = 1ull << 40,
							   .refused_entries = 3,
							   .refused_exits = 4,
							   .build_id = "abc",
							   .path = hostile});
	trace_writer_function(w, &(struct trace_function_line){.n = 4,
							       .module_id = 7,
							       .vaddr = 0xffffffff81000000,
							       .size = 16,
							       .name = hostile});
	trace_writer_function(
		w, &(struct trace_function_line){
			   .n = 3, .module_id = 7, .vaddr = 0x10, .size = 16, .name = ""});
	trace_writer_refusal(w, &(struct trace_refusal_line){.module_id = 7,
							     .what = TRACE_REFUSED_EXIT,
							     .key = "no-room",
							     .count = 9,
							     .text = hostile});
	trace_writer_proc(w, &(struct trace_proc_line){.uid = 2,
						       .pid = 77,
						       .parent_uid = 1,
						       .by_fork = true,
						       .start_tsc = 1ull << 50,
						       .exe = hostile,
						       .cmdline = ""});
	trace_writer_proc_end(
		w, &(struct trace_proc_end_line){.uid = 2, .end_tsc = 99, .lost = 5, .cut_off = 6});
	trace_writer_thread(w, &(struct trace_thread_line){.uid = 2, .tid = 78, .name = "old"});
	trace_writer_thread(w, &(struct trace_thread_line){.uid = 2, .tid = 78, .name = hostile});
	trace_writer_untraced(w, &(struct trace_untraced_line){.pid = 79, .reason = hostile});
	CHUNK(w, 2, 78, 1, 6, 100);
	assert_int_equal(trace_writer_close(w), 0);

	t = open_trace("t");
	assert_string_equal(trace_session(t, "command"), hostile);
	assert_string_equal(trace_session(t, "exit"), "last=1");
	assert_null(trace_session(t, "absent"));
	assert_int_equal(t->nmodules, 1);
	assert_int_equal(t->modules[0].patched_exits, 1ull << 40);
	assert_int_equal(t->modules[0].refused_exits, 4);
	assert_string_equal(t->modules[0].path, hostile);
	assert_string_equal(t->modules[0].build_id, "abc");
	assert_int_equal(t->nfunctions, 2);
	assert_int_equal(t->functions[0].n, 3);
	assert_string_equal(t->functions[1].name, hostile);
	assert_int_equal(t->functions[1].vaddr, 0xffffffff81000000);
	assert_true(strstr(t->functions[0].name, "+0x10") != NULL);
	assert_ptr_equal(trace_function_of(t, 9), &t->functions[1]);
	assert_null(trace_function_of(t, 10));
	assert_null(trace_function_of(t, 4));
	assert_null(trace_function_of(t, KRON_EVENT_LOST));
	assert_int_equal(t->nrefusals, 1);
	assert_int_equal(t->refusals[0].count, 9);
	assert_string_equal(t->refusals[0].text, hostile);
	assert_int_equal(t->nprocs, 1);
	assert_int_equal(t->procs[0].pid, 77);
	assert_true(t->procs[0].by_fork);
	assert_int_equal(t->procs[0].start_tsc, 1ull << 50);
	assert_int_equal(t->procs[0].lost, 5);
	assert_int_equal(t->lost, 5);
	assert_string_equal(t->procs[0].exe, hostile);
	assert_int_equal(t->nlanes, 1);
	assert_string_equal(t->lanes[0].name, hostile);
	assert_int_equal(t->nuntraced, 1);
	assert_string_equal(t->untraced[0].reason, hostile);
	trace_count(t);
	assert_int_equal(t->samples, 1);
	assert_false(t->complete);
	trace_close(t);
}

static void keeps_the_previous_trace(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct trace_writer *w = begin("t/");

		trace_writer_session(w, "round", "%d", i);
		assert_int_equal(trace_writer_close(w), 0);
	}
	for (int i = 1; i < 3; i++) {
		struct trace *t = open_trace(i == 1 ? "t.old" : "t");

		assert_int_equal(atoi(trace_session(t, "round")), i);
		trace_close(t);
	}
}

static void expect_refusal(const char *dir, int code)
{
	struct trace_writer *w;
	struct err err = {.msg = ""};

	assert_int_equal(trace_writer_create(&w, dir, &err), -code);
	assert_true(err.msg[0] != 0);
}

static void destroys_nothing_else(void **state)
{
	struct trace_writer *w;

	(void)state;
	mkdir("folder", 0777);
	write_text("folder/tasks", "buy milk\n", 9);
	expect_refusal("folder", EEXIST);
	write_text("file", "x", 1);
	expect_refusal("file", EEXIST);
	expect_refusal("", EINVAL);
	expect_refusal("no/such/parent", ENOENT);
	w = begin("t");
	expect_refusal("t", EBUSY);
	trace_writer_close(w);
	mkdir("t.old", 0777);
	write_text("t.old/precious", "x", 1);
	expect_refusal("t", EEXIST);
	assert_int_equal(size_of("t.old/precious"), 1);
	assert_int_equal(size_of("folder/tasks"), 9);
	mkdir("empty", 0777);
	trace_writer_close(begin("empty"));
}

/* A limit on file sizes stands for a full disk: both fail in the middle of a write. */
static void write_to_full_disk(void)
{
	struct rlimit limit = {1000, 1000};
	struct trace_writer *w;
	struct err err;
	int failures = 0;

	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	if (trace_writer_create(&w, "t", &err))
		_exit(2);
	for (uint32_t i = 0; i < 10; i++) {
		struct trace_chunk head = {.nbytes = 200, .seq = i + 1, .tid = 5};
		struct kron_sample s[10];

		for (uint32_t k = 0; k < 10; k++)
			s[k] = sample(100 * i + k + 1, i);
		failures += trace_writer_chunk(w, &head, s) != 0;
	}
	_exit(trace_writer_close(w) == -EFBIG && failures == 6 ? 0 : 1);
}

/* Not even the first line fits. */
static void no_room_has_its_sentence(void **state)
{
	struct rlimit before, limit;
	void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);

	(void)state;
	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	limit.rlim_cur = 1;
	setrlimit(RLIMIT_FSIZE, &limit);
	expect_refusal("t", EFBIG);
	setrlimit(RLIMIT_FSIZE, &before);
	signal(SIGXFSZ, handler);
}

static void full_disk_leaves_whole_chunks(void **state)
{
	struct trace *t;
	int status;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		write_to_full_disk();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(size_of("t/samples"), 4 * 232);
	t = open_trace("t");
	trace_count(t);
	assert_int_equal(t->samples, 40);
	trace_close(t);
}

/* ---- batches ---- */

#define FULL 3276u

/* A full chunk whose samples all have its number as their event. */
static const struct kron_sample *full_chunk(uint32_t number, struct trace_chunk *head)
{
	static struct kron_sample s[FULL];

	for (uint32_t i = 0; i < FULL; i++)
		s[i] = sample(1000 * number + i / 4 + 1, number);
	*head = (struct trace_chunk){.nbytes = sizeof(s), .seq = number + 1, .tid = 5};
	return s;
}

static uint32_t stage_full(struct trace_writer *w, uint32_t first, uint32_t end)
{
	struct trace_chunk head;

	for (; first < end; first++) {
		const struct kron_sample *s = full_chunk(first, &head);

		if (!trace_writer_stage(w, &head, s))
			break;
	}
	return first;
}

/* Numbers from first on: each FULL times, in this order, and nothing is damaged. */
static void expect_full_chunks(struct trace_cursor *c, uint32_t first, uint32_t end)
{
	struct trace_event e;

	for (uint32_t i = first * FULL; i < end * FULL; i++) {
		assert_true(trace_cursor_next(c, &e));
		assert_int_equal(e.s.event, i / FULL);
	}
}

static void batches_and_single_chunks_mix(void **state)
{
	struct trace_writer *w = begin("t");
	struct trace_cursor *c;
	struct trace_event e;
	struct trace *t;
	uint32_t at;

	(void)state;
	assert_int_equal(trace_writer_commit(w), 0); /* nothing is staged */
	CHUNK(w, 0, 5, 1, 0, 1);
	at = stage_full(w, 1, 100);
	assert_in_range(at, 5, 99); /* more than a few fit, not all */
	assert_int_equal(trace_writer_commit(w), 0);
	CHUNK(w, 0, 5, at + 1, at, 1000 * at + 1);
	assert_int_equal(stage_full(w, at + 1, at + 3), at + 3); /* a small batch */
	assert_int_equal(trace_writer_commit(w), 0);
	assert_int_equal(stage_full(w, at + 3, at + 9), at + 9);
	assert_int_equal(trace_writer_commit(w), 0);
	assert_int_equal(trace_writer_close(w), 0);

	t = open_trace("t");
	c = trace_cursor_open(t, 0);
	assert_true(trace_cursor_next(c, &e) && e.s.event == 0);
	expect_full_chunks(c, 1, at);
	assert_true(trace_cursor_next(c, &e) && e.s.event == at);
	expect_full_chunks(c, at + 1, at + 9);
	assert_false(trace_cursor_next(c, &e));
	trace_cursor_close(c);
	trace_count(t);
	assert_int_equal(t->nlanes, 1);
	assert_int_equal(t->samples, 2 + (at + 7) * FULL);
	assert_int_equal(t->damaged, 1); /* no tsc_hz */
	trace_close(t);
}

/* A batch begins after a pad, and too little room for one's header is skipped with a whole block. */
static void a_pad_is_never_smaller_than_its_header(void **state)
{
	const off_t block = 4096;
	static struct kron_sample s[FULL];
	struct trace_chunk head = {.seq = 1, .tid = 5};
	struct trace_writer *w = begin("t");
	struct stat st;
	struct trace *t;
	uint32_t n = 1, end;

	(void)state;
	assert_int_equal(stat("t/samples", &st), 0);
	while ((st.st_size + (off_t)(sizeof(head) + n * sizeof(*s))) % block != block - 8)
		n++;
	assert_in_range(n, 1, FULL);
	for (uint32_t i = 0; i < n; i++)
		s[i] = sample(1 + i / 4, 0);
	head.nbytes = (uint32_t)(n * sizeof(*s));
	assert_int_equal(trace_writer_chunk(w, &head, s), 0);
	end = stage_full(w, 1, 100);
	assert_in_range(end, 5, 99);
	assert_int_equal(trace_writer_commit(w), 0);
	assert_int_equal(trace_writer_close(w), 0);

	t = open_trace("t");
	trace_count(t);
	assert_int_equal(t->samples, n + (end - 1) * FULL);
	assert_int_equal(t->damaged, 1); /* no tsc_hz */
	trace_close(t);
}

/* All of a batch or nothing: its chunks come again one by one, and those that fit are there. */
static void write_batch_to_full_disk(void)
{
	struct rlimit limit = {100000, 100000}; /* a chunk has 3.3 KB packed, 65 as it is */
	struct trace_chunk head;
	struct trace_writer *w;
	struct err err;
	int fit = 0;

	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	if (trace_writer_create(&w, "t", &err) || stage_full(w, 0, 4) != 4 ||
	    trace_writer_commit(w) || stage_full(w, 4, 40) != 40 || !trace_writer_commit(w))
		_exit(2);
	for (uint32_t i = 4; i < 40; i++) {
		const struct kron_sample *s = full_chunk(i, &head);

		fit += trace_writer_chunk(w, &head, s) == 0;
	}
	_exit(trace_writer_close(w) == -EFBIG ? fit : 0);
}

static void full_disk_takes_no_half_batch(void **state)
{
	struct trace_cursor *c;
	struct trace_event e;
	struct trace *t;
	int status;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		write_batch_to_full_disk();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1); /* four packed, one as it is */
	t = open_trace("t");
	c = trace_cursor_open(t, 0);
	expect_full_chunks(c, 0, 4 + (uint32_t)WEXITSTATUS(status));
	assert_false(trace_cursor_next(c, &e));
	assert_int_equal(t->damaged, 1); /* no tsc_hz */
	trace_cursor_close(c);
	trace_close(t);
}

/* Its blocks are freed beside, its name is gone at once. */
static void a_large_old_trace_goes(void **state)
{
	(void)state;
	assert_int_equal(trace_writer_close(begin("large")), 0);
	assert_int_equal(truncate("large/samples", 64 << 20), 0);
	assert_int_equal(trace_writer_close(begin("large")), 0);
	assert_int_equal(size_of("large.old/samples"), 64 << 20);
	assert_int_equal(trace_writer_close(begin("large")), 0);
	assert_int_equal(size_of("large.old/samples"), 0);
	assert_int_equal(size_of("large/samples"), 0);
}

static void reopen_cuts_torn_tails(void **state)
{
	struct trace_writer *w = begin("t");
	struct trace_chunk torn = {.magic = TRACE_CHUNK_MAGIC, .nbytes = 200, .seq = 2};
	off_t whole;
	struct err err;

	(void)state;
	CHUNK(w, 1, 1, 1, 10, 100, 200);
	trace_writer_function(
		w, &(struct trace_function_line){.n = 1, .vaddr = 1, .size = 1, .name = "whole"});
	assert_int_equal(trace_writer_close(w), 0);
	whole = size_of("t/samples");
	append("t/samples", &torn, sizeof(torn));
	append("t/samples", "half of it", 10);
	append("t/functions", "2\t0\t2\t2\tto", 10);
	expect_order("t", "10 11");

	assert_int_equal(trace_writer_reopen(&w, "t", &err), 0);
	assert_int_equal(size_of("t/samples"), whole);
	CHUNK(w, 1, 1, 2, 20, 300);
	trace_writer_function(
		w, &(struct trace_function_line){.n = 2, .vaddr = 2, .size = 2, .name = "again"});
	assert_int_equal(trace_writer_close(w), 0);
	expect_order("t", "10 11 20");
	assert_int_equal(trace_writer_reopen(&w, "nothing", &err), -ENOENT);
}

/* ---- reading what is not a trace ---- */

static void expect_no_trace(const char *dir, int code)
{
	struct trace *t;
	struct err err = {.msg = ""};

	assert_int_equal(trace_open(&t, dir, &err), -code);
	assert_null(t);
	assert_true(strstr(err.msg, dir) != NULL);
}

static void no_traces(void **state)
{
	(void)state;
	expect_no_trace("absent", ENOENT);
	write_text("file", "x", 1);
	expect_no_trace("file", ENOTDIR);
	mkdir("empty", 0777);
	expect_no_trace("empty", EINVAL);
	write_text("empty/session", "", 0);
	expect_no_trace("empty", EINVAL);
	write_text("empty/session", "\0\xff\n\n=\nversion\n", 13);
	expect_no_trace("empty", EINVAL);
	write_text("empty/session", "version=2\n", 10);
	expect_no_trace("empty", EINVAL);
	write_text("empty/session", "version=99\n", 11);
	expect_no_trace("empty", EINVAL);
	write_text("empty/session", "version=1", 9); /* torn */
	expect_no_trace("empty", EINVAL);
	mkdir("pipe", 0777);
	assert_int_equal(mkfifo("pipe/session", 0666), 0);
	expect_no_trace("pipe", EINVAL); /* and does not wait for a writer */
	mkdir("pipe2", 0777);
	write_text("pipe2/session", "version=1\n", 10);
	assert_int_equal(mkfifo("pipe2/samples", 0666), 0);
	expect_no_trace("pipe2", EINVAL);
}

static void session_alone_is_enough(void **state)
{
	struct trace *t;

	(void)state;
	mkdir("t", 0777);
	write_text("t/session", "version=1\n", 10); /* traces of older kron */
	t = open_trace("t");
	trace_count(t);
	assert_int_equal(t->samples + t->nlanes + t->nfunctions + t->nprocs, 0);
	assert_int_equal(trace_ns(t, 1000), 1000);
	trace_close(t);
}

static void tables_that_lie(void **state)
{
	static const char functions[] = "4294967295\t0\t0\t0\ttoo high\n"
					"2147483519\t0\t0\t0\thighest\n"
					"5\t99\t0\t0\tno module\n"
					"5\t99\t0\t0\ttwice\n"
					"x\t0\t0\t0\tno number\n"
					"6\t0\tg\t0\tno hex\n"
					"\n"
					"7\t0\t0\t0\ttorn";
	static const char tasks[] = "P\t1\tx\t0\texec\t5\t\t\t\nQ\t1\nE\t9\t1\t1\t1\nP\t1\nT\t1\n";
	struct trace_writer *w = begin("t");
	struct trace *t;

	(void)state;
	CHUNK(w, 8, 1, 1, 10, 100);
	trace_writer_close(w);
	write_text("t/functions", functions, sizeof(functions) - 1);
	write_text("t/tasks", tasks, sizeof(tasks) - 1);
	t = open_trace("t");
	assert_int_equal(t->nfunctions, 2);
	assert_string_equal(t->functions[0].name, "twice");
	assert_string_equal(t->modules[t->functions[0].module].path, "?");
	assert_ptr_equal(trace_function_of(t, 2 * 2147483519u), &t->functions[1]);
	assert_int_equal(t->nprocs, 2); /* 1, and 8 that only has samples */
	assert_true(t->procs[0].known);
	assert_false(t->procs[1].known);
	assert_true(t->damaged >= 7);
	trace_close(t);
}

/* ---- names that are kept while they are written ---- */

static const struct trace_name *name_of(const struct trace_names *names, uint32_t n,
					const char *module)
{
	for (size_t i = 0; i < names->n; i++)
		if (names->v[i].n == n && !strcmp(names->v[i].module, module))
			return &names->v[i];
	fail_msg("%u has no name", n);
	return NULL;
}

static void is_same_name(const struct trace_name *a, const struct trace_name *b)
{
	assert_int_equal(a->is_event, b->is_event);
	assert_int_equal(a->ways, b->ways);
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->module, b->module);
	assert_string_equal(a->aliases ? a->aliases : "", b->aliases ? b->aliases : "");
}

static void is_same_jump(const struct trace_jumps *a, const struct trace_jumps *b, size_t j)
{
	const struct trace_jump *x = &a->v[j], *y = &b->v[j];

	assert_int_equal(x->function, y->function);
	if (x->function == UINT32_MAX)
		return;
	assert_int_equal(x->to, y->to);
	assert_int_equal(x->by_resolver, y->by_resolver);
	assert_int_equal(x->ntargets, y->ntargets);
	if (x->to != JUMP_TO_NAME)
		assert_int_equal(x->target, y->target);
	for (uint32_t i = 0; i < x->ntargets; i++)
		assert_int_equal(a->targets[x->target + i], b->targets[y->target + i]);
}

/* ctx: what a reader finds. */
static void are_same_names(void *ctx, const struct trace_names *kept)
{
	const struct trace_names *read = ctx;

	assert_int_equal(kept->n, read->n);
	assert_int_equal(kept->limit, read->limit);
	assert_int_equal(kept->jumps.n, read->jumps.n);
	for (size_t i = 0; i < read->n; i++)
		is_same_name(name_of(kept, read->v[i].n, read->v[i].module), &read->v[i]);
	for (size_t j = 0; j < read->jumps.n; j++)
		is_same_jump(&kept->jumps, &read->jumps, j);
}

static void compare_names(struct trace_writer *w, uint64_t *seen)
{
	struct trace_names names;
	struct trace *t;

	assert_int_equal(trace_writer_flush(w), 0);
	t = open_trace("t");
	trace_names_of(&names, t);
	assert_true(trace_writer_show_names(w, seen, are_same_names, &names));
	assert_false(trace_writer_show_names(w, seen, are_same_names, &names));
	trace_names_free(&names);
	trace_close(t);
}

static void names_are_kept(void **state)
{
	static const struct trace_function_line functions[] = {
		{7, 3, 0x10, 4, "f", 0, TRACE_RETURNS | TRACE_JUMPS, NULL},
		{8, 3, 0x20, 4, "cfree", 0, TRACE_RETURNS, "__free\nfree"},
		{9, 3, 0x30, 4, "", 0, TRACE_RETURNS, NULL},
	};
	static const struct trace_jump_line jumps[] = {
		{0, 7, JUMP_TO_FUNCTION, 8, NULL},  {1, 7, JUMP_TO_NAME, 0, "free"},
		{2, 7, JUMP_TO_NAME, 0, "memcpy"},  {4, 8, JUMP_TO_ANYTHING, 0, NULL},
		{5, 8, JUMP_TO_NAME, 0, "nowhere"},
	};
	struct trace_writer *w = begin("t");
	uint64_t seen = 0;

	(void)state;
	assert_false(trace_writer_show_names(w, &seen, are_same_names, NULL));
	trace_writer_keep_names(w);
	compare_names(w, &seen); /* none yet */
	trace_writer_module(w, &(struct trace_module_line){.id = 3, .path = "/lib/a.so"});
	for (size_t i = 0; i < 3; i++)
		trace_writer_function(w, &functions[i]);
	for (size_t i = 0; i < 5; i++)
		trace_writer_jump(w, &jumps[i]);
	trace_writer_event(w, &(struct trace_event_line){.n = 20, .module_id = 3, .name = "mine"});
	compare_names(w, &seen);
	/* lower numbers, what jumps of the other module lead to, and an event that is there, which lies in
	 * both */
	trace_writer_module(w, &(struct trace_module_line){.id = 2, .path = "/lib/b.so"});
	trace_writer_function(
		w, &(struct trace_function_line){
			   .n = 5, .module_id = 2, .name = "memcpy", .ways = TRACE_RESOLVES});
	trace_writer_function(
		w, &(struct trace_function_line){.n = 4, .module_id = 2, .name = "free"});
	trace_writer_event(w, &(struct trace_event_line){.n = 20, .module_id = 2, .name = "ours"});
	compare_names(w, &seen);
	assert_int_equal(trace_writer_close(w), 0);
}

static void exits_by_jumps(void **state)
{
	static const char functions[] = "0\t0\t10\t4\tf\t0\trj\n"
					"1\t0\t20\t4\tcfree\t0\tr\tfree\nx\n"
					"1\t0\t20\t4\tcfree\t0\tr\t__free\\nfree\n"
					"2\t0\t30\t4\tmemcpy\t0\tri\n"
					"3\t0\t40\t4\tg\t0\tc\n";
	static const char jumps[] = "0\t0\tfunction\t3\n"
				    "1\t0\timport\tfree\n"
				    "2\t0\timport\tmemcpy\n"
				    "3\t0\timport\tnowhere\n"
				    "5\t1\tinside\t3\n"
				    "6\t1\tunknown\t\n"
				    "7\t1\tsideways\t3\n"
				    "8\t4294967295\tunknown\t\n"
				    "1073741696\t0\tunknown\t\n"
				    "9\t0\timport\t\n"
				    "10\tx\tunknown\t\n";
	static const struct {
		uint32_t jump, function;
		bool there;   /* surely */
		bool perhaps; /* it is what comes next */
	} known[] = {{1, 3, true, false},  {1, 1, false, false}, {2, 1, true, false},
		     {2, 3, false, false}, {3, 2, false, true},  {3, 3, false, true},
		     {4, 3, false, false}, {6, 3, false, false}, {7, 3, false, true}};
	struct trace_jumps all, x;
	struct trace_writer *w = begin("t");
	struct trace_event e = {0};
	struct trace *t;

	(void)state;
	trace_writer_close(w);
	write_text("t/functions", functions, sizeof(functions) - 1);
	write_text("t/jumps", jumps, sizeof(jumps) - 1);
	t = open_trace("t");
	assert_int_equal(t->functions[0].ways, TRACE_RETURNS | TRACE_JUMPS);
	assert_int_equal(t->functions[3].ways, TRACE_CALLS);
	assert_string_equal(t->functions[1].aliases, "__free\nfree");
	all = trace_jumps_of(t);
	trace_jumps_copy(&x, &all);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		uint32_t jump = known[i].jump, function = known[i].function;
		bool there = known[i].there, perhaps = known[i].perhaps;

		assert_int_equal(trace_jump_goes_on(&x, jump, function, false), there | perhaps);
		assert_int_equal(trace_jump_goes_on(&x, jump, function, true), there);
		jump |= TRACE_JUMP_STALE;
		assert_int_equal(trace_jump_goes_on(&x, jump, function, false), there);
		assert_int_equal(trace_jump_is_uncertain(&x, jump), perhaps);
		jump |= TRACE_JUMP_LOST;
		assert_false(trace_jump_goes_on(&x, jump, function, false));
	}
	assert_true(trace_jump_is_inside(&x, 6, 3));
	assert_false(trace_jump_is_inside(&x, 6, 1));
	trace_jumps_free(&x);
	assert_true(t->damaged >= 6); /* with the line "x" */
	/* to everybody it is the function's exit */
	e.s.event = KRON_EVENT_JUMP(5);
	trace_resolve(t, &e);
	assert_int_equal(e.s.event, KRON_EVENT_EXIT(1));
	assert_int_equal(e.jump, 6);
	t->flat_jumps = true;
	e.s.event = KRON_EVENT_JUMP(5);
	trace_resolve(t, &e);
	assert_int_equal(e.s.event, KRON_EVENT_EXIT(1));
	assert_int_equal(e.jump, 0);
	/* numbers without a row, and others up there */
	for (uint32_t number = KRON_EVENT_JUMP(4); number < KRON_EVENT_JUMP(4) + 2; number++) {
		e.s.event = number;
		trace_resolve(t, &e);
		assert_int_equal(e.s.event, number);
	}
	e.s.event = KRON_EVENT_LOST;
	trace_resolve(t, &e);
	assert_int_equal(e.s.event, KRON_EVENT_LOST);
	trace_close(t);
}

static void garbage_between_chunks(void **state)
{
	struct trace_writer *w = begin("t");
	struct trace *t;

	(void)state;
	CHUNK(w, 1, 1, 1, 10, 100, 200);
	trace_writer_close(w);
	append("t/samples", "garbage, 20 bytes..", 20);
	assert_int_equal(rename("t/samples", "first"), 0);
	write_text("t/samples", "", 0);
	assert_int_equal(trace_writer_reopen(&w, "t", NULL), 0);
	CHUNK(w, 1, 1, 2, 20, 300);
	trace_writer_close(w);
	assert_int_equal(system("cat t/samples >>first && mv first t/samples"), 0);
	expect_order("t", "10 11 20");
	t = open_trace("t");
	assert_int_equal(t->damaged, 20 + 1); /* and no tsc_hz */
	trace_close(t);
}

/* ---- time ---- */

static void nanoseconds_are_exact(void **state)
{
	static const uint64_t ticks[] = {
		0, 1, 2, 3, 1000003, 86400ull * 2899999999ull, 30 * 86400ull * 2899999999ull};
	const uint64_t tsc = 10 * 2899999999ull, ns = 10 * 1000000007ull;
	struct trace_writer *w = begin("t");
	struct trace *t;

	(void)state;
	trace_writer_session(w, "start_tsc", "5000");
	trace_writer_session(w, "start_mono_ns", "77");
	trace_writer_session(w, "end_tsc", "%llu", 5000ull + tsc);
	trace_writer_session(w, "end_mono_ns", "%llu", 77ull + ns);
	trace_writer_close(w);
	t = open_trace("t");
	assert_true(t->complete);
	for (size_t i = 0; i < sizeof(ticks) / sizeof(ticks[0]); i++) {
		uint64_t exact = (uint64_t)((unsigned __int128)ticks[i] * ns / tsc);

		assert_true(exact - trace_ns(t, ticks[i]) <= 1);
	}
	assert_int_equal(trace_time(t, 4999), 0);
	assert_int_equal(trace_time(t, 5029), trace_ns(t, 29));
	trace_close(t);
}

static void times_beyond_56_bits(void **state)
{
	const uint64_t start = (5ull << 56) - 100;
	struct trace_writer *w = begin("t");
	struct trace_cursor *c;
	struct trace_event e;
	struct trace *t;

	(void)state;
	trace_writer_session(w, "start_tsc", "%llu", (unsigned long long)start);
	CHUNK(w, 1, 1, 1, 10, start - 50, start + 50, start + 150);
	trace_writer_close(w);
	t = open_trace("t");
	c = trace_cursor_open(t, 0);
	for (int i = 0; i < 3; i++) {
		assert_true(trace_cursor_next(c, &e));
		assert_int_equal(e.tsc, start - 50 + 100 * (uint64_t)i);
	}
	assert_false(trace_cursor_next(c, &e));
	trace_cursor_close(c);
	trace_close(t);
}

static void cpu_numbers(void **state)
{
	static const uint32_t expected[] = {0, 19, 19, 5};
	struct trace_writer *w = begin("t");
	struct kron_sample s[4];
	struct trace_chunk head = {.nbytes = sizeof(s), .seq = 1};
	struct trace *t;
	struct trace_cursor *c;
	struct trace_event e;

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		s[i] = sample(100 + i, 10 + i);
	s[1].event = KRON_EVENT_CPU;
	s[1].payload = 19;
	s[1].head |= KRON_HEAD_TRACE(19);
	s[2].head |= KRON_HEAD_TRACE(19);
	s[3].head |= KRON_HEAD_TRACE(5); /* its record was lost */
	trace_writer_chunk(w, &head, s);
	trace_writer_close(w);
	t = open_trace("t");
	c = trace_cursor_open(t, 0);
	for (int i = 0; i < 4; i++) {
		assert_true(trace_cursor_next(c, &e));
		assert_int_equal(e.cpu, expected[i]);
	}
	trace_cursor_close(c);
	trace_close(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(round_trip),
		T(keeps_the_previous_trace),
		T(destroys_nothing_else),
		T(full_disk_leaves_whole_chunks),
		T(no_room_has_its_sentence),
		T(batches_and_single_chunks_mix),
		T(a_pad_is_never_smaller_than_its_header),
		T(full_disk_takes_no_half_batch),
		T(a_large_old_trace_goes),
		T(reopen_cuts_torn_tails),
		T(no_traces),
		T(session_alone_is_enough),
		T(tables_that_lie),
		T(names_are_kept),
		T(exits_by_jumps),
		T(garbage_between_chunks),
		T(nanoseconds_are_exact),
		T(times_beyond_56_bits),
		T(cpu_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

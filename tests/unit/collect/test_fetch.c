/* SPDX-License-Identifier: MIT */
/*
 * test_fetch.c - bus exact, the collector's side: from local memory to chunks of the trace.  The
 * test plays the traced threads: it enters them in the source table and triggers the board.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/vec.h"
#include "collect/fetch.h"
#include "tests/unit/collect/base_folder.h"
#include "trace/reader.h"

static struct recording {
	char *dir;
	struct trace_writer *w;
	struct segment seg;
	struct journal journal;
	struct tasks tasks;
	struct drain drain;
	struct fetch fetch;
	struct kron_source *table;
	const struct board *board;
} r;

static void trace_open_new(const char *name)
{
	struct err err = {{0}};

	r.dir = xasprintf("%s/%s", base, name);
	if (trace_writer_create(&r.w, r.dir, &err))
		fail_msg("%s", err.msg);
	journal_init(&r.journal, r.w);
	journal_session(&r.journal, "start_tsc", "%d", 1);
	journal_session(&r.journal, "start_mono_ns", "%d", 1000);
	journal_session(&r.journal, "tsc_hz", "%d", 10000000);
	tasks_init(&r.tasks, &r.seg, &r.journal);
	drain_init(&r.drain, &r.seg, &r.journal, &r.tasks);
}

static void start(const char *name, enum kron_when_full when_full)
{
	const struct board_setup setup = {.when_full = KRON_WHEN_FULL_WAIT, .filter = 0xffff};
	struct segment_options o = {
		.buffer = 1 << 20, .when_full = when_full, .filter = 0xffff, .bus = KRON_BUS_EXACT};
	struct err err = {{0}};

	memset(&r, 0, sizeof(r));
	if (segment_create(&r.seg, &o, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(object_get_pages(r.seg.fd, KRON_SOURCES_OFFSET,
					  KRON_SOURCES_MAX * sizeof(struct kron_source)),
			 0);
	r.board = &r.seg.window.board;
	r.table = (struct kron_source *)(r.seg.window.base + KRON_SOURCES_OFFSET);
	trace_open_new(name);
	fetch_start(&r.fetch, &r.drain, &setup);
	segment_set_sampling(&r.seg, true);
}

static void end_collector(void)
{
	fetch_free(&r.fetch);
	tasks_free(&r.tasks);
	trace_writer_close(r.w);
}

static void end(void)
{
	end_collector();
	segment_unlink(&r.seg);
	segment_close(&r.seg);
	xfree(r.dir);
}

static void nap_ms(long ms)
{
	struct timespec ts = {.tv_nsec = ms * 1000000};

	nanosleep(&ts, NULL);
}

/*
 * A process in the table, and a thread of it.  The counter and the board's clock are compared
 * to a tick or two: what a thread samples is that far from its start, and its start that far
 * from the last sample of one that had its id, as it is where the kernel makes the threads.
 */
static void enter(uint32_t entry, uint32_t slot, uint32_t uid, uint32_t tid)
{
	struct kron_proc *p = &r.seg.procs[slot];

	nap_ms(1);
	p->pid = getpid();
	p->origin = KRON_PROC_EXEC;
	p->start_tsc = clock_tsc();
	p->state = (uint64_t)uid << 8 | KRON_PROC_LIVE;
	r.seg.ctl->next_uid = uid + 1;
	r.table[entry].start_tsc = clock_tsc();
	r.table[entry].word = kron_chunk_word(KRON_CHUNK_FULL, tid, slot, uid);
	nap_ms(1);
}

static void trigger(uint32_t tid, uint32_t event)
{
	assert_true(board_trigger(r.board, KRON_WORD_TRACE, 0, tid, event));
}

static uint64_t fetch_now(void)
{
	nap_ms(1); /* what is in the FIFOs comes out */
	tasks_look(&r.tasks, false, false);
	return fetch_round(&r.fetch, false, false);
}

/* ---- what is in the trace ---- */

struct seen {
	uint32_t uid, tid, event;
};
static struct seen seen[16384];
static size_t nseen;

static void read_back(void)
{
	struct trace_cursor *c;
	struct trace_event e;
	struct trace *t;
	struct err err = {{0}};

	nseen = 0;
	assert_int_equal(journal_flush(&r.journal), 0);
	if (trace_open(&t, r.dir, &err))
		fail_msg("%s", err.msg);
	for (size_t lane = 0; lane < t->nlanes; lane++) {
		c = trace_cursor_open(t, (int)lane);
		while (trace_cursor_next(c, &e) && nseen < sizeof(seen) / sizeof(seen[0]))
			seen[nseen++] = (struct seen){t->lanes[lane].proc_uid, t->lanes[lane].tid,
						      e.s.event};
		trace_cursor_close(c);
	}
	assert_int_equal(t->damaged, 0);
	trace_close(t);
}

/* Of this thread: n events, first, first + step, ... */
static void check_thread(uint32_t uid, uint32_t tid, uint32_t first, uint32_t step, uint32_t n)
{
	for (size_t i = 0; i < nseen; i++) {
		if (seen[i].uid != uid || seen[i].tid != tid)
			continue;
		assert_int_equal(seen[i].event, first);
		first += step;
		n--;
	}
	assert_int_equal(n, 0);
}

/* ---- tests ---- */

static void samples_go_to_their_threads(void **state)
{
	(void)state;
	start("threads", KRON_WHEN_FULL_WAIT);
	enter(0, 0, 1, 501);
	enter(1, 0, 1, 502);
	enter(2, 1, 2, 503);
	for (uint32_t i = 0; i < 900; i++)
		trigger(501 + i % 3, i);
	assert_int_equal(fetch_now(), 900);
	assert_int_equal(fetch_now(), 0);
	for (uint32_t i = 0; i < 90; i++)
		trigger(501 + i % 3, 900 + i);
	trigger(777, 5); /* nobody said who that is */
	assert_int_equal(fetch_now(), 91);
	read_back();
	check_thread(1, 501, 0, 3, 330);
	check_thread(1, 502, 1, 3, 330);
	check_thread(2, 503, 2, 3, 330);
	check_thread(0, 777, 5, 0, 1);
	assert_int_equal(nseen, 991);
	assert_int_equal(r.fetch.damaged, 0);
	assert_int_equal(r.seg.ctl->fetched, 991 * 5);
	end();
}

/* One thread id, three threads one after the other, all in one round. */
static void a_thread_id_comes_again(void **state)
{
	(void)state;
	start("again", KRON_WHEN_FULL_WAIT);
	for (uint32_t i = 0; i < 3; i++) {
		enter(i, i, i + 1, 600);
		for (uint32_t k = 0; k < 20; k++)
			trigger(600, 100 * i + k);
	}
	assert_int_equal(fetch_now(), 60);
	read_back();
	for (uint32_t i = 0; i < 3; i++)
		check_thread(i + 1, 600, 100 * i, 1, 20);
	end();
}

/* Entries of threads that are gone are freed, not before what they had is fetched. */
static void entries_of_the_dead_go(void **state)
{
	(void)state;
	start("dead", KRON_WHEN_FULL_WAIT);
	enter(0, 0, 1, (uint32_t)gettid());
	enter(1, 0, 1, 4000000); /* there is no such thread */
	trigger(4000000, 7);
	for (int i = 0; i < 6; i++) {
		nap_ms(1);
		tasks_look(&r.tasks, true, false);
		fetch_round(&r.fetch, true, false);
	}
	assert_int_equal(kron_chunk_word_state(r.table[0].word), KRON_CHUNK_FULL);
	assert_int_equal(kron_chunk_word_state(r.table[1].word), KRON_CHUNK_ABSENT);
	read_back();
	check_thread(1, 4000000, 7, 1, 1);
	end();
}

static void what_is_no_sample_is_skipped(void **state)
{
	(void)state;
	start("garbage", KRON_WHEN_FULL_WAIT);
	enter(0, 0, 1, 501);
	for (uint32_t i = 0; i < 100; i++)
		trigger(501, i);
	nap_ms(1);
	/* Somebody writes over the heads of samples 10 and 50. */
	board_write32(r.board, KRON_BOARD_MEMORY + 4 * (5 * 10), 0);
	board_write32(r.board, KRON_BOARD_MEMORY + 4 * (5 * 50), 0xffffffff);
	assert_int_equal(fetch_now(), 98);
	assert_int_equal(r.fetch.damaged, 10);
	end();
}

/* Words in the trace: what the reader finds in it, in samples of one size or the other. */
static uint64_t words_in_trace(void)
{
	struct trace_cursor *c;
	struct trace_event e;
	struct err err = {{0}};
	struct trace *t;
	uint64_t n = 0;

	assert_int_equal(journal_flush(&r.journal), 0);
	if (trace_open(&t, r.dir, &err))
		fail_msg("%s", err.msg);
	c = trace_cursor_open(t, -1);
	while (trace_cursor_next(c, &e))
		n += (e.counters ? KRON_RESOURCE_SIZE : KRON_SAMPLE_SIZE) / 4;
	trace_cursor_close(c);
	assert_int_equal(t->damaged, 0);
	trace_close(t);
	return n;
}

static void write_word(uint64_t word, uint32_t value)
{
	board_write32(r.board, KRON_BOARD_MEMORY + 4 * (uint32_t)word, value);
}

/* The end, and every word is a sample's or counted as nobody's. */
static void check_all_words(uint64_t words)
{
	uint64_t from =
		r.fetch.damaged + words_in_trace() - r.fetch.fetched; /* recovered: below 0 */

	segment_set_sampling(&r.seg, false);
	tasks_look(&r.tasks, false, false);
	fetch_all(&r.fetch);
	assert_int_equal(r.seg.ctl->fetched, words);
	assert_int_equal(words_in_trace() + r.fetch.damaged, words + from);
}

/* A program writes over the last word that there is, so that nothing in it begins a sample. */
static void the_last_word_may_be_anything(void **state)
{
	static const uint32_t values[] = {0, 0xffffffff, 1u << 24, 2u << 27, 3u << 27};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		for (uint32_t at = 0; at < 12; at++) {
			start("last", KRON_WHEN_FULL_WAIT);
			enter(0, 0, 1, 501);
			for (uint32_t k = 0; k < 4; k++)
				trigger(501, k);
			nap_ms(1);
			/* the head of the last sample but one, and the words up to the last */
			for (uint32_t k = 10; k <= 10 + at && k < 20; k++)
				write_word(k, values[i]);
			fetch_now();
			check_all_words(20);
			end();
		}
	}
}

static uint32_t random_word(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return (uint32_t)(*x >> 16);
}

/* What a program might write: nothing, noise, what looks like a header, the word before. */
static void write_nonsense(uint64_t *x, uint32_t word)
{
	uint32_t value = random_word(x);

	switch (random_word(x) % 6) {
	case 0:
		value = 0;
		break;
	case 1:
		value = 2u << 27 | (value & 0xff);
		break;
	case 2:
		value = 3u << 27 | (value & 0xff);
		break;
	case 3:
		value |= 1u << 24;
		break;
	}
	write_word(word, value);
}

/* Whatever memory holds, each round comes to its end, and no word gets lost. */
static void any_memory_is_accounted_for(void **state)
{
	uint64_t x = 88172645463325252ull;

	(void)state;
	for (uint32_t round = 0; round < 150; round++) {
		uint32_t n = 1 + random_word(&x) % 40, words = 5 * n;
		uint32_t wrong = random_word(&x) % (round % 3 ? words : 4);

		start("any", KRON_WHEN_FULL_WAIT);
		enter(0, 0, 1, 501);
		for (uint32_t i = 0; i < n; i++)
			trigger(501, i);
		nap_ms(1);
		for (uint32_t i = 0; i < wrong; i++)
			write_nonsense(&x, random_word(&x) % words);
		fetch_now();
		if (round % 4 == 3) { /* the collector is killed, and another one goes on */
			end_collector();
			xfree(r.dir);
			trace_open_new("any2");
			fetch_resume(&r.fetch, &r.drain);
			tasks_look(&r.tasks, false, false);
		}
		for (uint32_t i = 0; i < 10; i++) /* what comes after it is whole again */
			trigger(501, 1000 + i);
		nap_ms(1);
		check_all_words(words + 50);
		end();
	}
}

/* Once a sample's head is destroyed, the samples after it come out as they are. */
static void samples_after_damage_are_whole(void **state)
{
	static const uint32_t heads[] = {0, 1u << 24, 2u << 27 | 0x345678, 3u << 27 | 0x345678};

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		start("after", KRON_WHEN_FULL_WAIT);
		enter(0, 0, 1, 501);
		for (uint32_t k = 0; k < 200; k++)
			trigger(501, k);
		nap_ms(1);
		write_word(5 * 10, heads[i]);
		fetch_now();
		for (uint32_t k = 200; k < 210; k++)
			trigger(501, k);
		nap_ms(1);
		check_all_words(1050);
		read_back();
		assert_int_equal(nseen, 209);
		for (size_t k = 0; k < nseen; k++)
			assert_int_equal(seen[k].event, k + (k >= 10));
		end();
	}
}

static void resource_samples_pass(void **state)
{
	struct model_cycle c = {.offset = KRON_CHIP_BYTE(KRON_WORD_RESOURCE),
				.bytes = 8,
				.write = true,
				.cpu_lines = 1,
				.set_source = true,
				.source = 501,
				.data = 4711};

	(void)state;
	start("resource", KRON_WHEN_FULL_WAIT);
	enter(0, 0, 1, 501);
	trigger(501, 1);
	assert_int_equal(board_cycle(r.board, &c), 0);
	trigger(501, 2);
	assert_int_equal(fetch_now(), 3);
	read_back();
	assert_int_equal(nseen, 3);
	assert_int_equal(seen[1].event, 4711);
	assert_int_equal(seen[2].event, 2);
	end();
}

static void a_reset_of_the_board_is_survived(void **state)
{
	const struct board_setup setup = {.when_full = KRON_WHEN_FULL_WAIT, .filter = 0xffff};
	struct bus bus;

	(void)state;
	start("reset", KRON_WHEN_FULL_WAIT);
	enter(0, 0, 1, 501);
	for (uint32_t i = 0; i < 300; i++)
		trigger(501, i);
	assert_int_equal(fetch_now(), 300);
	bus_use_board(&bus, &r.seg.window.board);
	board_setup_make(&bus, &setup);
	board_setup_sampling(&bus, true);
	for (uint32_t i = 0; i < 50; i++)
		trigger(501, 300 + i);
	assert_int_equal(fetch_now(), 50);
	for (uint32_t i = 0; i < 50; i++)
		trigger(501, 350 + i);
	assert_int_equal(fetch_now(), 50);
	assert_int_equal(r.fetch.overwritten, 0);
	end();
}

static uint32_t
	meanwhile; /* samples that a thread takes whenever the collector looks at the clock */
static uint32_t next_event;

/* In the place of libc's: the collector may be stopped between its look at the board and that at the clock. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
	for (uint32_t i = 0; i < meanwhile; i++)
		trigger(501, next_event++);
	return (int)syscall(SYS_clock_gettime, clock, ts);
}

static void a_stopped_collector_takes_nothing_for_a_reset(void **state)
{
	uint64_t n;

	(void)state;
	start("stopped", KRON_WHEN_FULL_WAIT);
	enter(0, 0, 1, 501);
	for (next_event = 0; next_event < 300;)
		trigger(501, next_event++);
	n = fetch_now();
	meanwhile = 4000; /* more than there is time for between two rounds */
	n += fetch_round(&r.fetch, false, false);
	meanwhile = 0;
	for (int i = 0; i < 3; i++)
		n += fetch_now();
	assert_true(next_event >= 4300);
	assert_int_equal(n, next_event);
	read_back();
	check_thread(1, 501, 0, 1, next_event);
	assert_int_equal(r.fetch.damaged, 0);
	end();
}

/* The collector was killed when it had written the first chunk of a batch, not the second. */
static void a_torn_batch_is_completed(void **state)
{
	uint32_t bytes = 0;

	(void)state;
	start("torn", KRON_WHEN_FULL_WAIT);
	enter(0, 0, 1, 501);
	enter(1, 0, 1, 502);
	for (uint32_t i = 0; i < 40; i++)
		trigger(501 + i % 2, i);
	assert_int_equal(fetch_now(), 40);
	for (uint32_t i = 40; i < 100; i++)
		trigger(501 + i % 2, i);
	nap_ms(1);
	end_collector();
	xfree(r.dir);

	bytes = 30 * KRON_SAMPLE_SIZE; /* of the second batch, thread 501's is there */
	trace_open_new("torn2");
	fetch_resume(&r.fetch, &r.drain);
	fetch_has_already(&r.fetch, 501, bytes);
	tasks_look(&r.tasks, true, true);
	fetch_all(&r.fetch);
	read_back();
	check_thread(1, 502, 41, 2, 30);
	check_thread(1, 501, 0, 0, 0);
	assert_int_equal(nseen, 30);
	assert_int_equal(r.seg.ctl->fetched, 500);
	end();
}

/* Wrap mode: nothing before the end, and then all. */
static void wrap_mode_fetches_at_the_end(void **state)
{
	(void)state;
	start("wrap", KRON_WHEN_FULL_WRAP);
	enter(0, 0, 1, 501);
	for (uint32_t i = 0; i < 100; i++)
		trigger(501, i);
	assert_int_equal(fetch_now(), 0);
	segment_set_sampling(&r.seg, false);
	fetch_all(&r.fetch);
	read_back();
	check_thread(1, 501, 0, 1, 100);
	end();
}

/* What a killed process or a stranger may leave in the table. */
static void nonsense_in_the_table_is_survived(void **state)
{
	uint64_t x = 88172645463325252ull;

	(void)state;
	start("nonsense", KRON_WHEN_FULL_WAIT);
	for (uint32_t i = 0; i < KRON_SOURCES_MAX; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		r.table[i].word = x;
		r.table[i].start_tsc = x << 7;
	}
	for (uint32_t i = 0; i < 100; i++)
		trigger((uint32_t)(x >> i % 40), i);
	for (int i = 0; i < 4; i++) {
		nap_ms(1);
		tasks_look(&r.tasks, true, true);
		fetch_round(&r.fetch, true, true);
	}
	assert_int_equal(r.drain.totals.samples, 100);
	end();
}

static void hangs(int sig)
{
	static const char text[] = "Bail out! a round does not end\n";

	(void)sig;
	if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0)
		_exit(98);
	_exit(99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_go_to_their_threads),
		cmocka_unit_test(a_thread_id_comes_again),
		cmocka_unit_test(entries_of_the_dead_go),
		cmocka_unit_test(what_is_no_sample_is_skipped),
		cmocka_unit_test(the_last_word_may_be_anything),
		cmocka_unit_test(any_memory_is_accounted_for),
		cmocka_unit_test(samples_after_damage_are_whole),
		cmocka_unit_test(resource_samples_pass),
		cmocka_unit_test(a_reset_of_the_board_is_survived),
		cmocka_unit_test(a_stopped_collector_takes_nothing_for_a_reset),
		cmocka_unit_test(a_torn_batch_is_completed),
		cmocka_unit_test(wrap_mode_fetches_at_the_end),
		cmocka_unit_test(nonsense_in_the_table_is_survived),
	};

	if (!mkdtemp(base))
		return 99;
	signal(SIGALRM, hangs);
	alarm(120);
	return cmocka_run_group_tests(tests, NULL, remove_base);
}

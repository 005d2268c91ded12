/* SPDX-License-Identifier: MIT */
/*
 * Unit tests of collect/: segment, drain, tasks, recover.  The test plays the traced processes:
 * it claims slots and chunks in a real segment and fills them by the rules of kron/segment.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#include <cmocka.h>

#include "base/vec.h"
#include "collect/calibrate.h"
#include "collect/drain.h"
#include "collect/grow.h"
#include "collect/lane_counters.h"
#include "collect/recover/recover.h"
#include "trace/reader.h"

static char base[] = "/tmp/kron-drain-XXXXXX";

struct recording { /* everything that a test needs */
	char *dir;
	struct trace_writer *w;
	struct segment seg;
	struct journal journal;
	struct tasks tasks;
	struct drain drain;
};

static void board_open(struct recording *b, const char *name, enum kron_when_full when_full)
{
	struct segment_options o = {.buffer = 4 << 20, .when_full = when_full, .filter = 0xffff};
	struct err err = {{0}};

	memset(b, 0, sizeof(*b));
	b->dir = xasprintf("%s/%s", base, name);
	if (trace_writer_create(&b->w, b->dir, &err) || segment_create(&b->seg, &o, &err))
		fail_msg("%s", err.msg);
	journal_init(&b->journal, b->w);
	journal_session(&b->journal, "segment", "%s", b->seg.name);
	journal_session(&b->journal, "start_tsc", "%d", 1000);
	journal_session(&b->journal, "start_mono_ns", "%d", 1000);
	tasks_init(&b->tasks, &b->seg, &b->journal);
	drain_init(&b->drain, &b->seg, &b->journal, &b->tasks);
	segment_set_sampling(&b->seg, true);
}

/* End of the collector; the segment stays if keep, as when it was killed. */
static void board_close(struct recording *b, bool keep)
{
	tasks_free(&b->tasks);
	trace_writer_close(b->w);
	if (!keep)
		segment_unlink(&b->seg);
	segment_close(&b->seg);
	xfree(b->dir);
}

static void slot_claim(struct recording *b, uint32_t slot, uint32_t uid, pid_t pid, uint32_t flags)
{
	struct kron_proc *p = &b->seg.procs[slot];

	p->pid = pid;
	p->origin = KRON_PROC_EXEC;
	p->start_tsc = 2000;
	p->flags = flags;
	p->lost = 0;
	p->state = (uint64_t)uid << 8 | KRON_PROC_LIVE;
	b->seg.ctl->next_uid = uid + 1;
}

static struct kron_sample *samples_of(struct recording *b, uint32_t i)
{
	return (struct kron_sample *)(segment_chunk(&b->seg, i) + 1);
}

static void fill(struct recording *b, uint32_t i, uint32_t n)
{
	struct kron_chunk *c = segment_chunk(&b->seg, i);

	c->seq = b->seg.ctl->next_seq++;
	c->source = 77;
	for (uint32_t k = 0; k < n; k++) {
		samples_of(b, i)[k] = (struct kron_sample){
			.head = KRON_HEAD_TRACE(0), .time_lo = 3000 + k, .source = 77, .event = k};
	}
}

static void claim(struct recording *b, uint32_t i, unsigned state, uint32_t slot, uint32_t uid,
		  pid_t tid)
{
	assert_int_equal(b->seg.states[i], KRON_CHUNK_FREE);
	b->seg.states[i] = kron_chunk_word(state, (uint32_t)tid, slot, uid);
	b->seg.ctl->free_count--;
}

static unsigned state_of(const struct recording *b, uint32_t i)
{
	return kron_chunk_word_state(b->seg.states[i]);
}

static bool is_zero(struct recording *b, uint32_t i)
{
	const uint64_t *p = (const uint64_t *)segment_chunk(&b->seg, i);

	for (size_t k = 0; k < KRON_CHUNK_SIZE / 8; k++)
		if (p[k])
			return false;
	return true;
}

static pid_t start_sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	return pid;
}

static void end_sleeper(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static uint64_t samples_in(const char *dir)
{
	struct trace *t;
	struct err err;
	uint64_t n;

	assert_int_equal(trace_open(&t, dir, &err), 0);
	trace_count(t);
	n = t->samples;
	trace_close(t);
	return n;
}

/* ---- drain ---- */

static void a_full_chunk_moves(void **state)
{
	struct recording b;
	int32_t before;

	(void)state;
	board_open(&b, "full", KRON_WHEN_FULL_DISCARD);
	before = b.seg.ctl->free_count;
	slot_claim(&b, 0, 1, getpid(), 0);
	fill(&b, 0, KRON_CHUNK_SAMPLES);
	claim(&b, 0, KRON_CHUNK_FULL, 0, 1, getpid());
	assert_int_equal(drain_round(&b.drain, false, false), 1);
	assert_int_equal(state_of(&b, 0), KRON_CHUNK_FREE);
	assert_true(is_zero(&b, 0));
	assert_int_equal(b.seg.ctl->free_count, before);
	assert_int_equal(b.drain.totals.samples, KRON_CHUNK_SAMPLES);
	assert_int_equal(samples_in(b.dir), KRON_CHUNK_SAMPLES);
	board_close(&b, false);
}

static void a_living_threads_chunk_stays(void **state)
{
	struct recording b;

	(void)state;
	board_open(&b, "living", KRON_WHEN_FULL_DISCARD);
	slot_claim(&b, 0, 1, getpid(), 0);
	fill(&b, 0, 10);
	claim(&b, 0, KRON_CHUNK_OWNED, 0, 1, getpid());
	assert_int_equal(drain_round(&b.drain, true, true), 0);
	assert_int_equal(state_of(&b, 0), KRON_CHUNK_OWNED);
	drain_all(&b.drain);
	assert_int_equal(b.drain.totals.samples, 10);
	assert_int_equal(samples_in(b.dir), 10);
	board_close(&b, false);
}

static void a_dead_process_is_drained_and_freed(void **state)
{
	pid_t pid = start_sleeper();
	struct task_totals t;
	struct recording b;

	(void)state;
	board_open(&b, "dead", KRON_WHEN_FULL_DISCARD);
	slot_claim(&b, 3, 1, pid, 0);
	fill(&b, 0, 5);
	claim(&b, 0, KRON_CHUNK_OWNED, 3, 1, pid);
	assert_int_equal(drain_round(&b.drain, true, true), 0);
	end_sleeper(pid);
	b.seg.procs[3].lost = 9;
	assert_int_equal(drain_round(&b.drain, true, false), 1);
	assert_int_equal(b.seg.procs[3].state, KRON_PROC_FREE);
	tasks_totals(&b.tasks, &t);
	assert_int_equal(t.processes, 1);
	assert_int_equal(t.living, 0);
	assert_int_equal(t.samples, 5);
	assert_int_equal(t.lost, 9);
	board_close(&b, false);
}

/* Whoever says that he is uid 1: the kernel knows his pids, here and where he is. */
static void only_a_process_is_itself(void **state)
{
	pid_t pid = start_sleeper(), other = getpid();
	struct recording b;

	(void)state;
	board_open(&b, "itself", KRON_WHEN_FULL_DISCARD);
	slot_claim(&b, 3, 1, pid, 0);
	assert_true(tasks_is_process(&b.tasks, 1, 3, pid, pid)); /* not met yet */
	assert_false(tasks_is_process(&b.tasks, 1, 3, other, other));
	assert_false(tasks_is_process(&b.tasks, 1, 2, pid, pid));
	assert_false(tasks_is_process(&b.tasks, 1, UINT32_MAX, pid, pid));
	assert_false(tasks_is_process(&b.tasks, 0, 0, pid, pid));
	tasks_look(&b.tasks, true, true);
	assert_true(tasks_is_process(&b.tasks, 1, 3, pid, pid));
	assert_false(
		tasks_is_process(&b.tasks, 1, 3, other, pid)); /* its pid elsewhere is the same */
	slot_claim(&b, 2, 1, other, 0); /* a second one of this name comes too late */
	tasks_look(&b.tasks, true, true);
	assert_true(tasks_is_process(&b.tasks, 1, 3, pid, pid));
	assert_false(tasks_is_process(&b.tasks, 1, 2, other, other));
	slot_claim(&b, 4, 2, 7,
		   KRON_PROC_FOREIGN_PIDNS); /* it is called 7 there, and nobody knows what here */
	tasks_look(&b.tasks, false, false);
	assert_true(tasks_is_process(&b.tasks, 2, 4, other, 7));
	assert_false(tasks_is_process(&b.tasks, 2, 4, other, other));
	board_close(&b, false);
	end_sleeper(pid);
}

/* Whoever hears of it late: what it has said is still its own. */
static void who_has_ended_was_itself(void **state)
{
	pid_t pid = start_sleeper();
	struct recording b;

	(void)state;
	board_open(&b, "ended", KRON_WHEN_FULL_DISCARD);
	slot_claim(&b, 3, 1, pid, 0);
	assert_int_equal(drain_round(&b.drain, true, true), 0);
	end_sleeper(pid);
	drain_round(&b.drain, true, true);
	assert_int_equal(b.seg.procs[3].state, KRON_PROC_FREE);
	assert_true(tasks_is_process(&b.tasks, 1, 3, pid, pid));
	assert_false(tasks_is_process(&b.tasks, 1, 3, getpid(), getpid()));
	board_close(&b, false);
}

/* A sample of theirs takes longer, and the cost of a probe is the mean. */
static void samples_of_static_programs_are_told(void **state)
{
	static const struct probe_cost cost = {.on = 10, .on_static = 25};
	static const struct probe_cost unknown = {.on = 10};
	pid_t pid = start_sleeper();
	struct task_totals t;
	struct recording b;

	(void)state;
	board_open(&b, "static", KRON_WHEN_FULL_DISCARD);
	slot_claim(&b, 0, 1, getpid(), 0);
	slot_claim(&b, 1, 2, pid, KRON_PROC_STATIC);
	fill(&b, 0, 10);
	claim(&b, 0, KRON_CHUNK_OWNED, 0, 1, getpid());
	fill(&b, 1, 5);
	claim(&b, 1, KRON_CHUNK_OWNED, 1, 2, pid);
	assert_int_equal(drain_round(&b.drain, true, true), 0);
	end_sleeper(pid);
	drain_all(&b.drain);
	tasks_totals(&b.tasks, &t);
	assert_int_equal(t.samples, 15);
	assert_int_equal(t.samples_static, 5);
	assert_true(probe_cost_mean(&cost, t.samples, t.samples_static) == 15);
	assert_true(probe_cost_mean(&cost, 15, 15) == 25);
	assert_true(probe_cost_mean(&cost, 15, 0) == 10);
	assert_true(probe_cost_mean(&unknown, 15, 15) == 10);
	board_close(&b, false);
}

/* Nobody waits for it: its parent may never do so. */
static void a_zombie_counts_as_dead(void **state)
{
	pid_t pid = start_sleeper();
	siginfo_t info;
	struct recording b;

	(void)state;
	board_open(&b, "zombie", KRON_WHEN_FULL_DISCARD);
	slot_claim(&b, 0, 1, pid, 0);
	fill(&b, 0, 5);
	claim(&b, 0, KRON_CHUNK_OWNED, 0, 1, pid);
	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	assert_int_equal(drain_round(&b.drain, true, false), 0);
	assert_int_equal(drain_round(&b.drain, true, true), 1);
	waitpid(pid, NULL, 0);
	board_close(&b, false);
}

static void a_hole_waits_for_its_owner(void **state)
{
	pid_t pid = start_sleeper();
	struct recording b;

	(void)state;
	board_open(&b, "hole", KRON_WHEN_FULL_DISCARD);
	slot_claim(&b, 0, 1, pid, 0);
	fill(&b, 0, KRON_CHUNK_SAMPLES);
	samples_of(&b, 0)[100].head = 0;
	claim(&b, 0, KRON_CHUNK_FULL, 0, 1, pid);
	fill(&b, 1, KRON_CHUNK_SAMPLES);
	samples_of(&b, 1)[7].head = 0;
	claim(&b, 1, KRON_CHUNK_FULL, 0, 1, pid);
	assert_int_equal(drain_round(&b.drain, true, true), 0);
	samples_of(&b, 0)[100].head = KRON_HEAD_TRACE(0); /* the handler has returned */
	assert_int_equal(drain_round(&b.drain, false, false), 1);
	assert_int_equal(b.drain.totals.cut_off, 0);
	end_sleeper(pid);
	assert_int_equal(drain_round(&b.drain, true, false), 1);
	assert_int_equal(b.drain.totals.cut_off, 1);
	assert_int_equal(b.drain.totals.samples, 2 * KRON_CHUNK_SAMPLES - 1);
	board_close(&b, false);
}

static void an_exec_ends_the_older_slot(void **state)
{
	struct recording b;

	(void)state;
	board_open(&b, "exec", KRON_WHEN_FULL_DISCARD);
	slot_claim(&b, 0, 1, getpid(), 0);
	slot_claim(&b, 1, 2, getpid(), 0);
	fill(&b, 0, 4);
	claim(&b, 0, KRON_CHUNK_OWNED, 0, 1, getpid());
	fill(&b, 1, 6);
	claim(&b, 1, KRON_CHUNK_OWNED, 1, 2, getpid());
	assert_int_equal(drain_round(&b.drain, true, false), 1);
	assert_int_equal(state_of(&b, 0), KRON_CHUNK_FREE);
	assert_int_equal(state_of(&b, 1), KRON_CHUNK_OWNED);
	assert_int_equal(b.seg.procs[0].state, KRON_PROC_FREE);
	assert_int_equal(b.seg.procs[1].state & 0xff, KRON_PROC_LIVE);
	board_close(&b, false);
}

static uint64_t end_in_trace(struct recording *b, uint32_t uid)
{
	const struct trace_proc *p;
	struct trace *t;
	struct err err;
	uint64_t end;

	assert_int_equal(journal_flush(&b->journal), 0);
	assert_int_equal(trace_open(&t, b->dir, &err), 0);
	p = trace_proc_of(t, uid);
	assert_non_null(p);
	end = p->end_tsc;
	trace_close(t);
	return end;
}

/* However late the collector looks. */
static void a_program_ends_when_the_next_begins(void **state)
{
	struct recording b;

	(void)state;
	board_open(&b, "next", KRON_WHEN_FULL_DISCARD);
	slot_claim(&b, 0, 1, getpid(), 0);
	slot_claim(&b, 1, 2, getpid(), 0);
	b.seg.procs[1].start_tsc = 7000;
	drain_round(&b.drain, true, true);
	assert_int_equal(end_in_trace(&b, 1), 7000);
	assert_int_equal(end_in_trace(&b, 2), 0);
	board_close(&b, false);
}

/* Its end was noted when it came, by whoever looked first, not when its slot was freed. */
static void an_end_is_when_it_was_noted(void **state)
{
	pid_t pid = start_sleeper();
	struct recording b;
	struct pollfd p;
	uint64_t noted;

	(void)state;
	board_open(&b, "noted", KRON_WHEN_FULL_DISCARD);
	slot_claim(&b, 0, 1, pid, 0);
	drain_round(&b.drain, true, true);
	end_sleeper(pid);
	p = (struct pollfd){.fd = tasks_ends_fd(&b.tasks), .events = POLLIN};
	assert_int_equal(poll(&p, 1, -1), 1);
	tasks_note_ends(&b.tasks);
	noted = __rdtsc();
	assert_int_equal(poll(&p, 1, 0), 0);
	drain_round(&b.drain, true, false);
	assert_in_range(end_in_trace(&b, 1), 1, noted);
	board_close(&b, false);
}

/* The kernel's record of it is better; E records wait for one round of them. */
static void the_kernels_record_of_an_end_is_taken(void **state)
{
	pid_t pid = start_sleeper();
	struct recording b;

	(void)state;
	board_open(&b, "kernel", KRON_WHEN_FULL_DISCARD);
	tasks_expect_exits(&b.tasks);
	slot_claim(&b, 0, 1, pid, 0);
	drain_round(&b.drain, true, true);
	end_sleeper(pid);
	drain_round(&b.drain, true, false);
	assert_int_equal(end_in_trace(&b, 1), 0);
	tasks_note_exit(&b.tasks, pid, pid, 5000);
	tasks_note_exit(&b.tasks, pid, pid + 2, 5003); /* the last thread */
	tasks_note_exit(&b.tasks, pid, pid, 5002);
	tasks_note_exit(&b.tasks, pid + 1, pid, 6000);
	drain_round(&b.drain, true, false);
	assert_int_equal(end_in_trace(&b, 1), 5003);
	board_close(&b, false);
}

static uint64_t thread_end_in_trace(struct recording *b, uint32_t uid, pid_t tid)
{
	struct trace *t;
	struct err err;
	uint64_t end = 0;

	assert_int_equal(journal_flush(&b->journal), 0);
	assert_int_equal(trace_open(&t, b->dir, &err), 0);
	for (size_t i = 0; i < t->nlanes; i++)
		if (t->lanes[i].proc_uid == uid && t->lanes[i].tid == (uint32_t)tid)
			end = t->lanes[i].end_tsc;
	trace_close(t);
	return end;
}

static void *tell_own_tid(void *arg)
{
	*(pid_t *)arg = gettid();
	return NULL;
}

/* Until it is gone for the kernel, too: pthread_join() is content a little earlier. */
static pid_t thread_that_has_ended(void)
{
	pthread_t thread;
	pid_t tid;

	assert_int_equal(pthread_create(&thread, NULL, tell_own_tid, &tid), 0);
	pthread_join(thread, NULL);
	while (!syscall(SYS_tgkill, getpid(), tid, 0))
		usleep(100);
	return tid;
}

static void the_end_of_a_thread_is_noted(void **state)
{
	pid_t first = thread_that_has_ended(), second = thread_that_has_ended();
	uint64_t before = __rdtsc();
	struct recording b;

	(void)state;
	board_open(&b, "thread", KRON_WHEN_FULL_DISCARD);
	slot_claim(&b, 0, 1, getpid(), 0);
	fill(&b, 0, 8);
	claim(&b, 0, KRON_CHUNK_OWNED, 0, 1, first);
	fill(&b, 1, 8);
	claim(&b, 1, KRON_CHUNK_OWNED, 0, 1, getpid());
	drain_round(&b.drain, true, true);
	assert_in_range(thread_end_in_trace(&b, 1, first), before, __rdtsc());
	assert_int_equal(thread_end_in_trace(&b, 1, getpid()), 0);
	/* the kernel's record is better, and is waited for */
	tasks_expect_exits(&b.tasks);
	fill(&b, 2, 8);
	claim(&b, 2, KRON_CHUNK_OWNED, 0, 1, second);
	drain_round(&b.drain, true, true);
	assert_int_equal(thread_end_in_trace(&b, 1, second), 0);
	tasks_note_exit(&b.tasks, getpid(), second, before - 5);
	drain_round(&b.drain, true, true);
	assert_int_equal(thread_end_in_trace(&b, 1, second), before - 5);
	board_close(&b, false);
}

static bool is_noted_as_closed(struct recording *b)
{
	struct trace *t;
	struct err err;
	bool noted;

	assert_int_equal(journal_flush(&b->journal), 0);
	assert_int_equal(trace_open(&t, b->dir, &err), 0);
	noted = trace_session(t, "closed_tsc") != NULL;
	trace_close(t);
	return noted;
}

/* But not that the recording ends. */
static void a_gate_that_is_closed_is_noted(void **state)
{
	struct recording b;

	(void)state;
	board_open(&b, "gates", KRON_WHEN_FULL_DISCARD);
	segment_set_sampling(&b.seg, true);
	drain_round(&b.drain, true, true);
	assert_false(is_noted_as_closed(&b));
	drain_notice_gates(&b.drain, true);
	segment_set_sampling(&b.seg, false);
	drain_round(&b.drain, true, true);
	assert_false(is_noted_as_closed(&b));
	board_close(&b, false);
	board_open(&b, "gates2", KRON_WHEN_FULL_DISCARD);
	segment_set_sampling(&b.seg, true);
	drain_round(&b.drain, true, true);
	segment_set_sampling(&b.seg, false);
	drain_round(&b.drain, true, true);
	assert_true(is_noted_as_closed(&b));
	board_close(&b, false);
}

static void foreign_pids_are_not_asked(void **state)
{
	struct recording b;

	(void)state;
	board_open(&b, "foreign", KRON_WHEN_FULL_DISCARD);
	slot_claim(&b, 0, 1, 0x3ffff0, KRON_PROC_FOREIGN_PIDNS); /* no such process here */
	fill(&b, 0, 8);
	claim(&b, 0, KRON_CHUNK_OWNED, 0, 1, 0x3ffff0);
	assert_int_equal(drain_round(&b.drain, true, true), 0);
	drain_all(&b.drain);
	assert_int_equal(b.drain.totals.samples, 8);
	board_close(&b, false);
}

static void special_records_are_no_samples(void **state)
{
	struct chunk_count n;
	struct recording b;

	(void)state;
	board_open(&b, "special", KRON_WHEN_FULL_DISCARD);
	slot_claim(&b, 0, 1, getpid(), 0);
	fill(&b, 0, 10);
	samples_of(&b, 0)[0].event = KRON_EVENT_CPU;
	samples_of(&b, 0)[5].event = KRON_EVENT_LOST;
	samples_of(&b, 0)[8].head = 0;
	chunk_count(segment_chunk(&b.seg, 0), &n);
	assert_int_equal(n.samples, 7);
	assert_int_equal(n.specials, 2);
	assert_int_equal(n.holes, 1);
	assert_int_equal(n.tail, KRON_CHUNK_SAMPLES - 10);
	assert_int_equal(n.nbytes, 200);
	board_close(&b, false);
}

/* A trigger and its counters, as the runtime puts them: 100, 101, ... */
static void put_resource(struct kron_sample *s, uint32_t time, uint32_t event)
{
	for (uint32_t k = 0; k < KRON_RESOURCE_SLOTS; k++)
		s[k] = (struct kron_sample){.head = KRON_HEAD_TRACE(0), .time_lo = time};
	s[0].event = event;
	s[0].source = 77;
	for (uint32_t k = 0; k < KRON_COUNTERS; k++) {
		struct kron_sample *c = &s[1 + k / 2];

		c->event = KRON_EVENT_COUNTERS + k / 2;
		*(k % 2 ? &c->payload : &c->source) = 100 + k;
	}
}

/* Whole ones are folded; of those that a kill cut off a hole is left, or nothing. */
static void counters_join_their_sample(void **state)
{
	struct kron_sample s[64] = {0};
	struct kron_resource_sample r;
	uint8_t out[sizeof(s)];
	size_t n;

	(void)state;
	s[0] = (struct kron_sample){.head = KRON_HEAD_TRACE(0), .event = 5};
	assert_false(lane_counters_are_there(s, sizeof(s)));
	put_resource(s + 1, 3000, 6);
	put_resource(s + 10, 3001, 8);
	s[10].head = 0; /* cut off before its sample was there */
	put_resource(s + 19, 3002, 10);
	memset(s + 24, 0, 4 * sizeof(*s)); /* its counters were not all there: no sample */
	s[19].head = 0;
	s[28] = (struct kron_sample){.head = KRON_HEAD_TRACE(0), .event = 12};
	put_resource(s + 29, 3003, KRON_EVENT_COUNTERS); /* a claim in vain */
	put_resource(s + 38, 3004, 14);
	assert_true(lane_counters_are_there(s, sizeof(s)));
	n = lane_counters_fold(out, s, 47 * sizeof(*s));
	/* two samples, two Resource samples, the holes: one, one, four */
	assert_int_equal(n, 2 * KRON_SAMPLE_SIZE + 2 * KRON_RESOURCE_SIZE + 6 * KRON_SAMPLE_SIZE);
	memcpy(&r, out + KRON_SAMPLE_SIZE, sizeof(r));
	assert_int_equal(r.sample.event, 6);
	assert_int_equal(r.sample.source, 77);
	assert_int_equal(r.sample.head >> KRON_HEAD_TYPE_SHIFT & KRON_HEAD_TYPE_MASK,
			 KRON_HEAD_TYPE_RESOURCE);
	for (uint32_t k = 0; k < KRON_COUNTERS; k++)
		assert_int_equal(r.counter[k], 100 + k);
	memcpy(&r, out + n - sizeof(r), sizeof(r));
	assert_int_equal(r.sample.event, 14);
	/* an end between them: what is there is a Trace sample */
	assert_int_equal(lane_counters_fold(out, s + 38, 5 * sizeof(*s)), KRON_SAMPLE_SIZE);
}

static void a_chunk_in_preparation_counts_nothing(void **state)
{
	pid_t pid = start_sleeper();
	struct recording b;

	(void)state;
	board_open(&b, "prepared", KRON_WHEN_FULL_DISCARD);
	slot_claim(&b, 0, 1, pid, 0);
	fill(&b, 0, 10);
	segment_chunk(&b.seg, 0)->seq = 0;
	claim(&b, 0, KRON_CHUNK_OWNED, 0, 1, pid);
	end_sleeper(pid);
	assert_int_equal(drain_round(&b.drain, true, false), 1);
	assert_true(is_zero(&b, 0));
	assert_int_equal(b.drain.totals.samples, 0);
	assert_int_equal(samples_in(b.dir), 0);
	board_close(&b, false);
}

static void wrap_takes_all_at_the_end(void **state)
{
	pid_t pid = start_sleeper();
	struct recording b;

	(void)state;
	board_open(&b, "wrap", KRON_WHEN_FULL_WRAP);
	slot_claim(&b, 0, 1, pid, 0);
	fill(&b, 0, KRON_CHUNK_SAMPLES);
	claim(&b, 0, KRON_CHUNK_FULL, 0, 1, pid);
	fill(&b, 1, 3);
	claim(&b, 1, KRON_CHUNK_OWNED, 0, 1, pid);
	end_sleeper(pid);
	assert_int_equal(drain_round(&b.drain, true, true), 0);
	assert_int_equal(state_of(&b, 0), KRON_CHUNK_FULL);
	assert_int_equal(state_of(&b, 1), KRON_CHUNK_FULL); /* free for the taking */
	drain_all(&b.drain);
	assert_int_equal(b.drain.totals.samples, KRON_CHUNK_SAMPLES + 3);
	board_close(&b, false);
}

/* Many processes and chunks, all kinds mixed: not one sample more or less. */
static void accounting_is_exact(void **state)
{
	uint64_t want = 0, holes = 0;
	unsigned seed = 42;
	struct recording b;
	pid_t pid[8];

	(void)state;
	board_open(&b, "exact", KRON_WHEN_FULL_DISCARD);
	assert_true(segment_grow(&b.seg, 40) > 0);
	for (uint32_t i = 0; i < 8; i++) {
		pid[i] = start_sleeper();
		slot_claim(&b, i, i + 1, pid[i], 0);
	}
	for (int round = 0; round < 60; round++) {
		uint32_t ready = segment_ready(&b.seg);

		for (uint32_t i = 0; i < ready; i++) {
			uint32_t slot = (uint32_t)rand_r(&seed) % 8, n;
			bool full = rand_r(&seed) % 2;

			if (b.seg.states[i] != KRON_CHUNK_FREE || rand_r(&seed) % 3)
				continue;
			n = full ? KRON_CHUNK_SAMPLES
				 : (uint32_t)rand_r(&seed) % KRON_CHUNK_SAMPLES;
			fill(&b, i, n);
			if (n > 2 && rand_r(&seed) % 4 == 0) {
				samples_of(&b, i)[n - 2].head = 0;
				n--;
				holes++;
			}
			want += n;
			claim(&b, i, full ? KRON_CHUNK_FULL : KRON_CHUNK_OWNED, slot, slot + 1,
			      pid[slot]);
		}
		drain_round(&b.drain, round % 3 == 0, round % 9 == 0);
	}
	for (uint32_t i = 0; i < 8; i++)
		end_sleeper(pid[i]);
	drain_round(&b.drain, true, true);
	drain_all(&b.drain);
	assert_int_equal(b.drain.totals.samples, want);
	assert_int_equal(b.drain.totals.cut_off, holes);
	assert_int_equal(b.drain.totals.stranded, 0);
	assert_int_equal(samples_in(b.dir), want);
	board_close(&b, false);
}

static void the_pool_grows_and_stops(void **state)
{
	struct recording b;
	struct grow g;
	struct err err;

	(void)state;
	board_open(&b, "grow", KRON_WHEN_FULL_DISCARD);
	assert_int_equal(segment_ready(&b.seg), SEGMENT_CHUNKS_START);
	assert_int_equal(grow_start(&g, &b.seg, &err), 0);
	for (int i = 0; i < 2000 && segment_ready(&b.seg) < SEGMENT_CHUNKS_FIRST; i++)
		usleep(1000);
	grow_stop(&g);
	assert_int_equal(segment_ready(&b.seg), SEGMENT_CHUNKS_FIRST); /* = 4 MiB, the limit */
	assert_int_equal(segment_grow(&b.seg, 1), 0);
	assert_int_equal(b.seg.ctl->free_count, SEGMENT_CHUNKS_FIRST);
	board_close(&b, false);
}

/* The pool is OWNED by a thread that sleeps, all but `free` chunks; others wait. */
static void own_all_but(struct recording *b, uint32_t free, uint32_t waiters)
{
	uint64_t owned = kron_chunk_word(KRON_CHUNK_OWNED, (uint32_t)gettid(), 0, 1);
	uint32_t ready = segment_ready(&b->seg);

	__atomic_store_n(&b->seg.ctl->waiters, 0, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < ready; i++)
		__atomic_store_n(&b->seg.states[i], i < free ? KRON_CHUNK_FREE : owned,
				 __ATOMIC_RELEASE);
	__atomic_store_n(&b->seg.ctl->free_count, (int32_t)free, __ATOMIC_RELEASE);
	__atomic_store_n(&b->seg.ctl->waiters, waiters, __ATOMIC_SEQ_CST);
	segment_wake_collector(&b->seg);
}

static bool grows_to(struct recording *b, uint32_t chunks)
{
	for (int i = 0; i < 5000 && segment_ready(&b->seg) < chunks; i++)
		usleep(1000);
	return segment_ready(&b->seg) == chunks;
}

/* Farther than --buffer only for threads that wait while nothing is free, nor can be freed. */
static void the_pool_grows_for_who_waits(void **state)
{
	struct recording b;
	struct grow g;
	struct err err;

	(void)state;
	board_open(&b, "waiters", KRON_WHEN_FULL_WAIT);
	slot_claim(&b, 0, 1, getpid(), 0); /* else its chunks were a dead one's */
	assert_int_equal(grow_start(&g, &b.seg, &err), 0);
	assert_int_equal(drain_start(&b.drain, &err), 0);
	assert_true(grows_to(&b, SEGMENT_CHUNKS_FIRST));
	own_all_but(&b, 0, 3);
	assert_true(grows_to(&b, SEGMENT_CHUNKS_FIRST + 3));
	/* One of them was killed while it waited, and is counted for ever. */
	own_all_but(&b, 1, 1);
	usleep(100000);
	assert_int_equal(segment_ready(&b.seg), SEGMENT_CHUNKS_FIRST + 3);
	own_all_but(&b, 0, 0);
	usleep(100000);
	assert_int_equal(segment_ready(&b.seg), SEGMENT_CHUNKS_FIRST + 3);
	own_all_but(&b, 0, UINT32_MAX); /* a program wrote there */
	assert_true(grows_to(&b, SEGMENT_CHUNKS_FIRST + 67));
	grow_stop(&g);
	drain_stop(&b.drain);
	board_close(&b, false);
}

/* Its last free chunks; what a chunk in use holds, and all below it, stays. */
static void the_pool_gives_back_what_is_free(void **state)
{
	struct recording b;
	struct stat before, after;

	(void)state;
	board_open(&b, "back", KRON_WHEN_FULL_DISCARD);
	assert_true(segment_grow(&b.seg, 32) > 0);
	fill(&b, 3, KRON_CHUNK_SAMPLES);
	claim(&b, 3, KRON_CHUNK_OWNED, 0, 1, getpid());
	assert_int_equal(fstat(b.seg.fd, &before), 0);
	segment_give_back(&b.seg);
	assert_int_equal(fstat(b.seg.fd, &after), 0);
	assert_int_equal((before.st_blocks - after.st_blocks) * 512,
			 (off_t)(segment_ready(&b.seg) - 4) * KRON_CHUNK_SIZE);
	drain_all(&b.drain);
	assert_int_equal(b.drain.totals.samples, KRON_CHUNK_SAMPLES);
	board_close(&b, false);
}

/* A process takes its uid before it takes a slot; others may be faster. */
static void processes_come_late_to_their_slots(void **state)
{
	struct recording b;

	(void)state;
	board_open(&b, "late", KRON_WHEN_FULL_DISCARD);
	b.seg.ctl->next_uid = 4; /* 2, 3 and 4 are given out */
	drain_round(&b.drain, false, false);
	slot_claim(&b, 0, 3, getpid(), 0);
	b.seg.ctl->next_uid = 4;
	drain_round(&b.drain, false, false);
	assert_int_equal(b.tasks.slot[0].uid, 3);
	slot_claim(&b, 1, 4, getpid(), 0);
	slot_claim(&b, 2, 2, getpid(), 0);
	b.seg.ctl->next_uid = 4;
	drain_round(&b.drain, false, false);
	assert_int_equal(b.tasks.slot[1].uid, 4);
	assert_int_equal(b.tasks.slot[2].uid, 2);
	board_close(&b, false);
}

/* ---- a full disk, and recover ---- */

static void limit_files(rlim_t bytes)
{
	struct rlimit r;

	getrlimit(RLIMIT_FSIZE, &r);
	r.rlim_cur = bytes;
	setrlimit(RLIMIT_FSIZE, &r);
}

static void a_full_disk_loses_nothing(void **state)
{
	pid_t pid = start_sleeper();
	struct recovery r;
	struct err err = {{0}};
	struct recording b;
	char *dir;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	board_open(&b, "disk", KRON_WHEN_FULL_DISCARD);
	dir = xstrdup(b.dir);
	slot_claim(&b, 0, 1, pid, 0);
	for (uint32_t i = 0; i < 4; i++) {
		fill(&b, i, KRON_CHUNK_SAMPLES);
		claim(&b, i, KRON_CHUNK_FULL, 0, 1, pid);
	}
	fill(&b, 4, 11);
	claim(&b, 4, KRON_CHUNK_OWNED, 0, 1, pid);
	assert_int_equal(b.seg.ctl->gate[0], 1);
	limit_files(40000); /* two chunks, packed, and a bit */
	assert_int_equal(drain_round(&b.drain, true, true), 2);
	assert_int_equal(b.seg.ctl->gate[0], 0);
	assert_int_equal(b.drain.totals.samples, 2 * KRON_CHUNK_SAMPLES);
	end_sleeper(pid);
	drain_all(&b.drain);
	assert_int_equal(b.drain.totals.stranded, 2 * KRON_CHUNK_SAMPLES + 11);
	limit_files(RLIM_INFINITY);
	board_close(&b, true);
	assert_int_equal(samples_in(dir), 2 * KRON_CHUNK_SAMPLES);
	if (recover_trace(dir, &r, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(r.recovered, 2 * KRON_CHUNK_SAMPLES + 11);
	assert_int_equal(samples_in(dir), 4 * KRON_CHUNK_SAMPLES + 11);
	assert_int_equal(recover_trace(dir, &r, &err), -EALREADY);
	xfree(dir);
}

static void recover_adds_no_chunk_twice(void **state)
{
	struct kron_chunk *copy = xmalloc(KRON_CHUNK_SIZE);
	struct recovery r;
	struct err err = {{0}};
	struct recording b;
	char *dir;

	(void)state;
	board_open(&b, "twice", KRON_WHEN_FULL_DISCARD);
	dir = xstrdup(b.dir);
	slot_claim(&b, 0, 1, getpid(), 0);
	b.seg.procs[0].lost = 5;
	fill(&b, 0, KRON_CHUNK_SAMPLES);
	memcpy(copy, segment_chunk(&b.seg, 0), KRON_CHUNK_SIZE);
	claim(&b, 0, KRON_CHUNK_FULL, 0, 1, getpid());
	assert_int_equal(drain_round(&b.drain, false, false), 1);
	/* Killed between the write and the zeroing, so to speak. */
	memcpy(segment_chunk(&b.seg, 0), copy, KRON_CHUNK_SIZE);
	claim(&b, 0, KRON_CHUNK_FULL, 0, 1, getpid());
	fill(&b, 1, 20);
	claim(&b, 1, KRON_CHUNK_OWNED, 0, 1, getpid());
	assert_int_equal(recover_trace(dir, &r, &err), -EBUSY); /* the collector lives */
	board_close(&b, true);
	if (recover_trace(dir, &r, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(r.living, 1); /* that is us */
	assert_int_equal(r.recovered, 20);
	assert_int_equal(r.in_file, KRON_CHUNK_SAMPLES);
	assert_int_equal(r.lost, 5);
	assert_int_equal(r.processes, 1);
	assert_int_equal(samples_in(dir), KRON_CHUNK_SAMPLES + 20);
	xfree(copy);
	xfree(dir);
}

static void recover_without_a_segment_says_so(void **state)
{
	struct recovery r;
	struct err err = {{0}};
	struct recording b;
	char *dir;

	(void)state;
	board_open(&b, "gone", KRON_WHEN_FULL_DISCARD);
	dir = xstrdup(b.dir);
	board_close(&b, false);
	assert_int_equal(recover_trace(dir, &r, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "gone"));
	assert_true(recover_trace("/nonexistent", &r, &err) < 0);
	xfree(dir);
}

/* Whatever the traced processes wrote into the segment, recover ends. */
static void a_hostile_segment_is_survived(void **state)
{
	unsigned seed = 7;

	(void)state;
	for (int round = 0; round < 12; round++) {
		struct recovery r;
		struct err err = {{0}};
		struct recording b;
		char name[40];
		uint8_t *p;
		char *dir;

		board_open(&b, "hostile", KRON_WHEN_FULL_DISCARD);
		dir = xstrdup(b.dir);
		strcpy(name, b.seg.name);
		for (uint32_t i = 0; i < segment_ready(&b.seg); i++) {
			b.seg.states[i] = (uint64_t)rand_r(&seed) << 33 ^
					  (uint64_t)rand_r(&seed) << 4 ^
					  (unsigned)rand_r(&seed) % 6;
			p = (uint8_t *)segment_chunk(&b.seg, i);
			for (int k = 0; k < 4000; k++)
				p[(unsigned)rand_r(&seed) % KRON_CHUNK_SIZE] =
					(uint8_t)rand_r(&seed);
		}
		segment_grow_procs(&b.seg);
		p = (uint8_t *)b.seg.procs;
		for (int k = 0; k < 20000; k++) /* no pid of anybody: kill(pid, 0) harms none */
			p[(unsigned)rand_r(&seed) % (64 * 300)] = (uint8_t)rand_r(&seed);
		if (round % 2) {
			b.seg.ctl->chunks_ready = 0xffffffff;
			b.seg.ctl->chunks_max = 0xffffffff;
			b.seg.ctl->next_uid = (uint32_t)rand_r(&seed);
		}
		if (round % 3 == 0)
			drain_round(&b.drain, true, true);
		if (round == 11)
			b.seg.ctl->magic = 0;
		board_close(&b, true);
		if (round == 11)
			assert_int_equal(recover_trace(dir, &r, &err), -EINVAL);
		else
			recover_trace(dir, &r, &err);
		samples_in(dir);
		shm_unlink(name); /* still there when it could not be recovered */
		xfree(dir);
	}
}

static void a_segment_is_checked(void **state)
{
	struct segment seg;
	struct err err;

	(void)state;
	assert_int_equal(segment_open(&seg, "/etc/passwd", -1, &err), -EINVAL);
	assert_int_equal(segment_open(&seg, "/kron-../../../etc", -1, &err), -EINVAL);
	assert_int_equal(segment_open(&seg, "/kron-0123456789abcdef", -1, &err), -ENOENT);
}

/* ---- a table full of processes ---- */

struct asking {
	struct tasks *tasks;
	uint32_t answered; /* atomic */
	bool end;          /* atomic */
};

static void *ask_on(void *arg)
{
	struct asking *a = arg;

	while (!__atomic_load_n(&a->end, __ATOMIC_RELAXED)) {
		tasks_note_ends(a->tasks);
		__atomic_add_fetch(&a->answered, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Traced processes can claim all slots, again and again.  Whoever starts meanwhile must not wait
 * until the drain has looked at each. */
static void who_asks_waits_for_no_table(void **state)
{
	struct recording b;
	struct asking a = {.tasks = &b.tasks};
	uint32_t before, during;
	pthread_t thread;

	(void)state;
	board_open(&b, "table", KRON_WHEN_FULL_DISCARD);
	segment_grow_procs(&b.seg);
	for (uint32_t i = 0; i < KRON_PROCS_MAX; i++)
		slot_claim(&b, i, i + 1, getpid(), 0);
	assert_int_equal(pthread_create(&thread, NULL, ask_on, &a), 0);
	while (!__atomic_load_n(&a.answered, __ATOMIC_RELAXED))
		usleep(100);
	before = __atomic_load_n(&a.answered, __ATOMIC_RELAXED);
	tasks_look(&b.tasks, true, true);
	during = __atomic_load_n(&a.answered, __ATOMIC_RELAXED) - before;
	__atomic_store_n(&a.end, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(b.tasks.met, KRON_PROCS_MAX);
	assert_true(during > 100);
	board_close(&b, false);
}

/* ---- main ---- */

static int make_base(void **state)
{
	(void)state;
	return mkdtemp(base) ? 0 : -1;
}

static int remove_base(void **state)
{
	char *command = xasprintf("rm -rf %s", base);
	int code = system(command);

	(void)state;
	xfree(command);
	return code;
}

/* Its rate is measured while the program starts. */
static void the_clock_of_a_recording_of_lanes(void **state)
{
	struct timespec nap = {.tv_nsec = 50000000};
	struct time_point from;
	struct recording b;
	const struct board *board = &b.seg.window.board;
	uint64_t hz, tick, second;

	(void)state;
	board_open(&b, "clock", KRON_WHEN_FULL_DISCARD);
	board_set_rate(board, 1000000); /* as wrong as it gets */
	segment_settle_clock(&b.seg);
	time_point_take(&from);
	nanosleep(&nap, NULL);
	hz = tsc_hz_since(&from, 0);
	tick = board_now(board);
	second = board_tsc_of_tick(board, tick + 40000000) - board_tsc_of_tick(board, tick);
	assert_in_range(second, hz - hz / 500, hz + hz / 500);
	board_close(&b, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_chunk_moves),
		cmocka_unit_test(a_living_threads_chunk_stays),
		cmocka_unit_test(a_dead_process_is_drained_and_freed),
		cmocka_unit_test(only_a_process_is_itself),
		cmocka_unit_test(who_has_ended_was_itself),
		cmocka_unit_test(samples_of_static_programs_are_told),
		cmocka_unit_test(a_zombie_counts_as_dead),
		cmocka_unit_test(the_clock_of_a_recording_of_lanes),
		cmocka_unit_test(a_hole_waits_for_its_owner),
		cmocka_unit_test(an_exec_ends_the_older_slot),
		cmocka_unit_test(a_program_ends_when_the_next_begins),
		cmocka_unit_test(an_end_is_when_it_was_noted),
		cmocka_unit_test(the_kernels_record_of_an_end_is_taken),
		cmocka_unit_test(the_end_of_a_thread_is_noted),
		cmocka_unit_test(a_gate_that_is_closed_is_noted),
		cmocka_unit_test(foreign_pids_are_not_asked),
		cmocka_unit_test(special_records_are_no_samples),
		cmocka_unit_test(counters_join_their_sample),
		cmocka_unit_test(a_chunk_in_preparation_counts_nothing),
		cmocka_unit_test(wrap_takes_all_at_the_end),
		cmocka_unit_test(accounting_is_exact),
		cmocka_unit_test(the_pool_grows_and_stops),
		cmocka_unit_test(the_pool_grows_for_who_waits),
		cmocka_unit_test(the_pool_gives_back_what_is_free),
		cmocka_unit_test(processes_come_late_to_their_slots),
		cmocka_unit_test(a_full_disk_loses_nothing),
		cmocka_unit_test(recover_adds_no_chunk_twice),
		cmocka_unit_test(recover_without_a_segment_says_so),
		cmocka_unit_test(a_hostile_segment_is_survived),
		cmocka_unit_test(a_segment_is_checked),
		cmocka_unit_test(who_asks_waits_for_no_table),
	};

	return cmocka_run_group_tests(tests, make_base, remove_base);
}

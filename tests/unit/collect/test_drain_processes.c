/* SPDX-License-Identifier: MIT */
/* test_drain_processes.c - drain and the table of processes: who is alive, who has ended and when. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "tests/unit/collect/drain_rig.h"
#include "trace/text.h"

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
	b.seg.ctl->next_uid = 0; /* whatever they make of it */
	assert_int_equal(tasks_new_uid(&b.tasks), 3);
	assert_int_equal(tasks_new_uid(&b.tasks), 4);
	board_close(&b, false);
	end_sleeper(pid);
}

/* In two pid namespaces, and both asked before either had its slot. */
static void two_of_one_number_are_told_apart(void **state)
{
	pid_t one = start_sleeper(), two = start_sleeper();
	uint32_t ticket[2];
	struct recording b;

	(void)state;
	board_open(&b, "tickets", KRON_WHEN_FULL_DISCARD);
	ticket[0] = tasks_announce(&b.tasks, one, 7);
	ticket[1] = tasks_announce(&b.tasks, two, 7);
	slot_claim(&b, 0, 1, 7, 0);
	slot_claim(&b, 1, 2, 7, 0);
	b.seg.procs[0].ticket = ticket[0];
	b.seg.procs[1].ticket = ticket[1];
	drain_round(&b.drain, true, true);
	assert_true(tasks_is_process(&b.tasks, 1, 0, one, 7));
	assert_true(tasks_is_process(&b.tasks, 2, 1, two, 7));
	assert_false(tasks_is_process(&b.tasks, 1, 0, two, 7));
	end_sleeper(one);
	end_sleeper(two);
	drain_all(&b.drain);
	board_close(&b, false);
}

/* Nor does who writes another's ticket into its slot become that one. */
static void a_ticket_is_of_one_number(void **state)
{
	pid_t one = start_sleeper(), other = start_sleeper();
	struct recording b;
	uint32_t ticket;

	(void)state;
	board_open(&b, "stolen", KRON_WHEN_FULL_DISCARD);
	ticket = tasks_announce(&b.tasks, one, one);
	slot_claim(&b, 0, 1, other, 0);
	slot_claim(&b, 1, 2, one, 0);
	b.seg.procs[0].ticket = b.seg.procs[1].ticket = ticket;
	drain_round(&b.drain, true, true);
	assert_true(tasks_is_process(&b.tasks, 1, 0, other, other));
	assert_true(tasks_is_process(&b.tasks, 2, 1, one, one));
	end_sleeper(one);
	end_sleeper(other);
	drain_all(&b.drain);
	board_close(&b, false);
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
	b.seg.procs[1].start_tsc = b.start_tsc + 7000;
	drain_round(&b.drain, true, true);
	assert_int_equal(end_in_trace(&b, 1), b.start_tsc + 7000);
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
	noted = clock_tsc();
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
	tasks_note_exit(&b.tasks, pid, pid, b.start_tsc + 5000);
	tasks_note_exit(&b.tasks, pid, pid + 2, b.start_tsc + 5003); /* the last thread */
	tasks_note_exit(&b.tasks, pid, pid, b.start_tsc + 5002);
	tasks_note_exit(&b.tasks, pid + 1, pid, b.start_tsc + 6000);
	drain_round(&b.drain, true, false);
	assert_int_equal(end_in_trace(&b, 1), b.start_tsc + 5003);
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
	uint64_t before = clock_tsc();
	struct recording b;

	(void)state;
	board_open(&b, "thread", KRON_WHEN_FULL_DISCARD);
	slot_claim(&b, 0, 1, getpid(), 0);
	fill(&b, 0, 8);
	claim(&b, 0, KRON_CHUNK_OWNED, 0, 1, first);
	fill(&b, 1, 8);
	claim(&b, 1, KRON_CHUNK_OWNED, 0, 1, getpid());
	drain_round(&b.drain, true, true);
	assert_in_range(thread_end_in_trace(&b, 1, first), before, clock_tsc());
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

/* The rows of groups in the trace: "-0 -3-15 +0". */
static void gates_in_trace(struct recording *b, char *out, size_t size)
{
	char groups[TEXT_GROUPS];
	struct trace *t;
	struct err err;
	size_t n = 0;

	out[0] = 0;
	assert_int_equal(journal_flush(&b->journal), 0);
	assert_int_equal(trace_open(&t, b->dir, &err), 0);
	assert_null(trace_session(t, "closed_tsc"));
	for (size_t i = 0; i < t->nsleeps; i++) {
		const struct trace_sleep *s = &t->sleeps[i];
		uint32_t mask = 0;

		assert_true(s->of_groups && s->since && s->since <= s->until);
		assert_true(!i || s[-1].until <= s->until);
		assert_true(s->until <= board_clock_ticks(b->tasks.clock, __builtin_ia32_rdtsc()));
		for (size_t k = 0; k < s->n; k++)
			for (uint32_t g = s->numbers[k].first; g <= s->numbers[k].last; g++)
				mask |= 1u << g;
		n += (size_t)snprintf(out + n, size - n, "%s%c%s", n ? " " : "",
				      s->wakes ? '+' : '-',
				      text_groups(groups, sizeof(groups), mask));
	}
	trace_close(t);
}

static void expect_gates(struct recording *b, const char *expected)
{
	char found[512];

	gates_in_trace(b, found, sizeof(found));
	assert_string_equal(found, expected);
}

/* But not that the recording begins, or ends. */
static void gates_that_turn_are_noted(void **state)
{
	struct recording b;

	(void)state;
	board_open(&b, "gates", KRON_WHEN_FULL_DISCARD);
	segment_set_sampling(&b.seg, true);
	drain_round(&b.drain, true, true);
	expect_gates(&b, "");
	drain_notice_gates(&b.drain, true);
	segment_set_sampling(&b.seg, false);
	drain_round(&b.drain, true, true);
	expect_gates(&b, "");
	board_close(&b, false);
	board_open(&b, "gates2", KRON_WHEN_FULL_DISCARD);
	segment_set_sampling(&b.seg, true);
	drain_round(&b.drain, true, true);
	b.seg.ctl->filter = 0xfff6;
	drain_round(&b.drain, true, true);
	b.seg.ctl->filter = 0xfffc;
	drain_round(&b.drain, true, true);
	segment_set_sampling(&b.seg, false);
	drain_round(&b.drain, true, true);
	segment_set_sampling(&b.seg, true);
	b.seg.ctl->filter = 0xffff;
	drain_notice_gates(&b.drain, true);
	expect_gates(&b, "-0, 3 -1 +3 -2-15 +0-15");
	board_close(&b, false);
}

/* Traced programs can write there whatever they like: no row is of a time to come, and the last ones say what is open. */
static void gates_are_not_believed(void **state)
{
	enum { ROUNDS = 400 };
	static char found[1 << 20];
	struct recording b;
	struct kron_ctl *ctl;
	uint64_t x = 88172645463325252;
	char *last;

	(void)state;
	board_open(&b, "hostile gates", KRON_WHEN_FULL_DISCARD);
	ctl = b.seg.ctl;
	segment_set_sampling(&b.seg, true);
	drain_round(&b.drain, true, true);
	for (int round = 0; round < ROUNDS; round++) {
		const uint64_t now = __builtin_ia32_rdtsc();
		const uint32_t had = ctl->gate_changes;

		for (uint32_t i = 0; i < KRON_GATE_CHANGES; i++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			ctl->gate_change[i] = (struct kron_gate_change){
				.number = x & 64 ? (uint32_t)x : had + i % 4,
				.from = x & 1 ? now + (x >> 8) % 100000 - 50000 : x,
				.until = x & 2 ? now + (x >> 9) % 100000 - 50000 : ~x,
				.open = (uint32_t)(x >> 32),
			};
		}
		ctl->gate_changes = x & 4 ? (uint32_t)x : had + (uint32_t)(x >> 8) % 4;
		ctl->gates_were = x & 8 ? (uint32_t)(x >> 16) : 0;
		ctl->filter = x & 16 ? (uint32_t)(x >> 20) & 0xffff : 0xffff;
		drain_notice_gates(&b.drain, false);
	}
	ctl->filter = 0xfffe;
	drain_notice_gates(&b.drain, false);
	ctl->filter = 0xfff6;
	drain_notice_gates(&b.drain, true);
	gates_in_trace(&b, found, sizeof(found));
	last = strrchr(found, ' ');
	assert_non_null(last);
	assert_true(last - found > ROUNDS);
	assert_string_equal(last, " -3");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dead_process_is_drained_and_freed),
		cmocka_unit_test(only_a_process_is_itself),
		cmocka_unit_test(two_of_one_number_are_told_apart),
		cmocka_unit_test(a_ticket_is_of_one_number),
		cmocka_unit_test(who_has_ended_was_itself),
		cmocka_unit_test(samples_of_static_programs_are_told),
		cmocka_unit_test(a_zombie_counts_as_dead),
		cmocka_unit_test(an_exec_ends_the_older_slot),
		cmocka_unit_test(a_program_ends_when_the_next_begins),
		cmocka_unit_test(an_end_is_when_it_was_noted),
		cmocka_unit_test(the_kernels_record_of_an_end_is_taken),
		cmocka_unit_test(the_end_of_a_thread_is_noted),
		cmocka_unit_test(gates_that_turn_are_noted),
		cmocka_unit_test(gates_are_not_believed),
		cmocka_unit_test(foreign_pids_are_not_asked),
		cmocka_unit_test(processes_come_late_to_their_slots),
		cmocka_unit_test(who_asks_waits_for_no_table),
	};

	return cmocka_run_group_tests(tests, make_base, remove_base);
}

/* SPDX-License-Identifier: MIT */
/*
 * test_slow.c - the slow path of a probe, cut off at each of its instructions.
 *
 * A probe whose chunk is full is executed step by step (TF).  At one of its instructions, and in the
 * next run at the next one, the handler of the step does what handlers do: it has probes of its own,
 * which fill the lane and take the slow path themselves; it leaves by siglongjmp; it forks.
 *
 * Ground truth: the test counts its triggers.  samples + lost = triggers, and each chunk of the pool
 * is free, full, or the one that the lane is at.
 *
 * A signal that is blocked meanwhile goes to another thread, if it is the process's.  So the slow
 * path may not block any, and the steps show that, too: who is stepped with SIGTRAP blocked dies.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "runtime/core/rt.h"
#include "runtime/dynamic/dynamic.h"
#include "tests/unit/runtime/rt_board.h"
#include "tests/unit/runtime/tap_fork.h"

#define CHUNKS 12u
#define STEPS_MAX 100000u

static struct rig board;
static stub_fn probe, handler_probe;
static struct tally drained;
static uint64_t triggers;

static struct {
	unsigned at;   /* the step to act on */
	unsigned step; /* how many there were */
	void (*act)(void);
	int acted;
} cut;

static sigjmp_buf back;

static pid_t child = -1;

static void on_step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig;
	(void)info;
	if (cut.step++ == cut.at) {
		cut.acted = 1;
		cut.act();
		/* nothing more is to be done in this probe, and a child registers itself, with signals blocked */
		uc->uc_mcontext.gregs[REG_EFL] &= ~0x100;
	}
}

static void single_steps(bool on)
{
	__asm__ volatile("pushfq\n\t"
			 "andq $~0x100, (%%rsp)\n\t"
			 "orq %0, (%%rsp)\n\t"
			 "popfq"
			 :
			 : "r"(on ? 0x100ul : 0ul)
			 : "memory", "cc");
}

static void set_up(void)
{
	struct sigaction sa = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};

	rig_make(&board, CHUNKS, CHUNKS, KRON_WHEN_FULL_DISCARD);
	rig_attach(&board);
	probe = rig_stub(2, 0);
	handler_probe = rig_stub(4, 0);
	CHECK(sigaction(SIGTRAP, &sa, NULL) == 0);
	probe(); /* registers the thread */
	triggers = 1;
	drained = (struct tally){0};
}

/* Up to the last slot: the next one takes the slow path. */
static void fill_chunk(stub_fn stub)
{
	while (rt_claim_has_room(kron_rt_lane->claim)) {
		stub();
		triggers++;
	}
}

static void drain(void)
{
	rig_drain(&board, &drained);
}

/* False: the probe has fewer instructions. */
static bool probe_cut_at(unsigned at, void (*act)(void))
{
	alarm(TAP_LIMIT_SECONDS); /* for each cut: the machine may have other work */
	cut.at = at;
	cut.step = 0;
	cut.act = act;
	cut.acted = 0;
	triggers++;
	single_steps(true);
	probe();
	single_steps(false);
	return cut.acted;
}

static uint64_t accounted(void)
{
	struct tally t = drained;

	rig_tally(&board, &t);
	CHECK_EQ(t.holes, 0);
	return t.samples + rig_lost(&board);
}

/* Each chunk is free or full, but for the one that is in use. */
static void check_chunks(void)
{
	unsigned owned = 0;

	for (unsigned i = 0; i < CHUNKS; i++) {
		unsigned state = kron_chunk_word_state(board.states[i]);

		owned += state == KRON_CHUNK_OWNED;
		CHECK(state == KRON_CHUNK_OWNED || state == KRON_CHUNK_FULL ||
		      state == KRON_CHUNK_FREE);
		if (state != KRON_CHUNK_FREE)
			continue;
		for (unsigned k = 0; k < KRON_CHUNK_SIZE / 8; k++)
			CHECK_EQ(((uint64_t *)rig_chunk(&board, i))[k], 0);
	}
	CHECK(owned <= 1);
}

/* At every instruction, until there is none left. */
static void cut_everywhere(void (*act)(void), unsigned stride)
{
	unsigned at = 0;
	bool more;

	do {
		fill_chunk(probe);
		drain();
		more = probe_cut_at(at, act);
		CHECK_EQ(accounted(), triggers);
		CHECK_EQ(rig_lost(&board), 0);
		check_chunks();
		at += stride;
		CHECK(at < STEPS_MAX);
	} while (more);
	printf("# %u instructions\n", cut.step);
	CHECK(cut.step > 100);
}

/* ---- a handler with probes ---- */

static void one_probe(void)
{
	handler_probe();
	triggers++;
}

/* It fills chunks, so that it takes the slow path twice at least, and ends with little room. */
static void many_probes(void)
{
	for (unsigned i = 0; i < 2; i++) {
		fill_chunk(handler_probe);
		drain();
		one_probe();
	}
	fill_chunk(handler_probe);
}

static void handler_has_a_probe(void)
{
	set_up();
	cut_everywhere(one_probe, 1);
}

static void handler_has_many_probes(void)
{
	set_up();
	cut_everywhere(many_probes, 3);
}

/* The pool is full as far as the handler left nothing. */
static void take_all(void)
{
	for (unsigned i = 0; i < CHUNKS; i++) {
		if (board.states[i] != KRON_CHUNK_FREE)
			continue;
		board.states[i] = KRON_CHUNK_OWNED;
		board.ctl->free_count--;
	}
}

static void give_all(void)
{
	for (unsigned i = 0; i < CHUNKS; i++) {
		if (board.states[i] != KRON_CHUNK_OWNED)
			continue;
		board.states[i] = KRON_CHUNK_FREE;
		board.ctl->free_count++;
	}
}

static void handler_finds_no_room(void)
{
	unsigned at = 0;
	bool more;

	set_up();
	do {
		fill_chunk(probe);
		drain();
		take_all();
		more = probe_cut_at(at++, one_probe);
		give_all();
		CHECK_EQ(accounted(), triggers);
		check_chunks();
	} while (more);
	CHECK(rig_lost(&board) > 0);
}

/* ---- a handler that comes back on another CPU ---- */

static cpu_set_t all_cpus;

static void move(void)
{
	cpu_set_t one;
	int cpu = sched_getcpu();

	do
		cpu = (cpu + 1) % CPU_SETSIZE;
	while (!CPU_ISSET(cpu, &all_cpus));
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
}

static void probe_and_move(void)
{
	move();
	one_probe();
	move();
	one_probe();
	move();
}

static void probe_twice_and_move(void)
{
	many_probes();
	probe_and_move();
}

/* The CPU that the lane's chunk says its last sample is of. */
static uint32_t last_cpu(void)
{
	uint32_t chunk, cpu = UINT32_MAX;
	const struct kron_sample *s;

	chunk = (uint32_t)((rt_claim_end(kron_rt_lane->claim) - (uint64_t)kron_rt.pool) /
			   KRON_CHUNK_SIZE) -
		1;
	s = rig_samples(&board, chunk);
	for (unsigned i = 0; i < KRON_CHUNK_SAMPLES && s[i].head; i++) {
		if (s[i].event == KRON_EVENT_CPU)
			cpu = s[i].payload;
		else if (!s[i + 1].head)
			CHECK_EQ(s[i].head >> KRON_HEAD_CPU_SHIFT, cpu % KRON_SOURCES);
	}
	return cpu;
}

static void move_everywhere(void (*act)(void), unsigned at)
{
	bool more;

	set_up();
	sched_getaffinity(0, sizeof(all_cpus), &all_cpus);
	if (CPU_COUNT(&all_cpus) < 2)
		_exit(TAP_SKIP);
	move();
	do {
		fill_chunk(probe);
		drain();
		more = probe_cut_at(at, act);
		at += 2;
		one_probe();
		CHECK_EQ(last_cpu(), sched_getcpu());
	} while (more);
}

static void handler_moves_the_thread(void)
{
	move_everywhere(probe_and_move, 0);
	CHECK_EQ(accounted(), triggers);
}

static void handler_takes_a_chunk_and_moves(void)
{
	move_everywhere(probe_twice_and_move, 1);
	CHECK_EQ(accounted(), triggers);
}

/* ---- a handler that leaves ---- */

static void leave(void)
{
	siglongjmp(back, 1);
}

static void probe_and_leave(void)
{
	one_probe();
	siglongjmp(back, 1);
}

/* Deep and shallow: what it left behind on the stack is overwritten, or only partly so. */
static __attribute__((noinline)) void call_probe(unsigned depth)
{
	char frame[64];

	__asm__ volatile("" : : "r"(frame) : "memory");
	if (depth)
		call_probe(depth - 1);
	else
		probe();
	__asm__ volatile("" : : "r"(frame) : "memory");
}

static __attribute__((noinline)) void use_stack(void)
{
	char frame[8192];

	memset(frame, 0, sizeof(frame));
	__asm__ volatile("" : : "r"(frame) : "memory");
}

static void go_on(unsigned depth)
{
	fill_chunk(probe);
	drain();
	call_probe(depth);
	triggers++;
}

/*
 * The trigger that was cut off has become a sample, or has not taken place.  Chunks that were in hand
 * come back as soon as the lane can tell that nobody comes back for them.
 */
static void leave_everywhere(void (*act)(void), unsigned stride)
{
	static volatile unsigned at;
	static volatile uint64_t cut_off;

	set_up();
	for (at = 0;; at += stride) {
		uint64_t counted;

		fill_chunk(probe);
		drain();
		if (sigsetjmp(back, 1) == 0 && !probe_cut_at(at, act))
			break;
		go_on(at % 5);
		go_on(0);
		use_stack();
		go_on(0);
		drain();
		counted = accounted() + cut_off;
		CHECK(counted == triggers || counted + 1 == triggers);
		cut_off += triggers - counted;
		CHECK_EQ(rig_lost(&board), 0);
		check_chunks();
		CHECK(at < STEPS_MAX);
	}
	printf("# %u instructions, %llu triggers did not take place\n", at,
	       (unsigned long long)cut_off);
}

static void handler_leaves(void)
{
	leave_everywhere(leave, 1);
}

static void handler_has_a_probe_and_leaves(void)
{
	leave_everywhere(probe_and_leave, 1);
}

/* ---- a handler that forks ---- */

static void fork_in_handler(void)
{
	child = fork();
	CHECK(child >= 0);
}

/*
 * A child that was forked right in front of the claim of a free chunk, and is there before its parent,
 * claims it in the parent's name (runtime/core/chunks.c).  Nothing is in it.
 */
static unsigned give_back_strays(void)
{
	unsigned strays = 0;

	for (unsigned i = 0; i < CHUNKS; i++) {
		uint64_t word = board.states[i];

		if (kron_chunk_word_state(word) != KRON_CHUNK_OWNED || rig_chunk(&board, i)->seq)
			continue;
		CHECK(kron_chunk_word_tid(word) == (uint32_t)syscall(SYS_gettid));
		board.states[i] = KRON_CHUNK_FREE;
		board.ctl->free_count++;
		strays++;
	}
	return strays;
}

/*
 * Parent and child both come back from the handler.  The parent's books are as if nothing had been;
 * the child has a lane of its own, and its probe is a sample there, or has not taken place.
 */
static void handler_forks(void)
{
	enum { STRAYS_MAX = 4 }; /* there are so few instructions for it */
	uint64_t of_children = 0;
	unsigned at = 0, strays = 0;
	int status;
	bool more;

	set_up();
	do {
		fill_chunk(probe);
		drain();
		child = -1;
		more = probe_cut_at(at, fork_in_handler);
		if (child == 0) {
			rig_trigger(probe, 10);
			_exit(0);
		}
		if (child > 0) {
			CHECK(waitpid(child, &status, 0) == child);
			CHECK_EQ(status, 0);
			of_children += 10;
			for (unsigned i = 0; i < CHUNKS;
			     i++) { /* as the collector does for the dead */
				uint64_t word = board.states[i];

				if (kron_chunk_word_state(word) == KRON_CHUNK_OWNED &&
				    kron_chunk_word_tid(word) == (uint32_t)child)
					board.states[i] ^= KRON_CHUNK_OWNED ^ KRON_CHUNK_FULL;
			}
			for (unsigned i = 0; i < CHUNKS; i++) {
				uint64_t word = board.states[i];

				if (kron_chunk_word_state(word) != KRON_CHUNK_FULL ||
				    kron_chunk_word_tid(word) != (uint32_t)child)
					continue;
				rig_tally_chunk(&board, i, &drained);
				memset(rig_chunk(&board, i), 0, KRON_CHUNK_SIZE);
				board.states[i] = KRON_CHUNK_FREE;
				board.ctl->free_count++;
			}
		}
		strays += give_back_strays();
		CHECK(strays <= STRAYS_MAX);
		check_chunks();
		CHECK(accounted() >= triggers + of_children);
		CHECK(accounted() <= triggers + of_children + (child > 0));
		of_children += accounted() - (triggers + of_children);
		at += 5;
	} while (more);
	CHECK_EQ(rig_lost(&board), 0);
}

static const struct tap_test tests[] = {
	{"handler_has_a_probe", handler_has_a_probe},
	{"handler_has_many_probes", handler_has_many_probes},
	{"handler_finds_no_room", handler_finds_no_room},
	{"handler_moves_the_thread", handler_moves_the_thread},
	{"handler_takes_a_chunk_and_moves", handler_takes_a_chunk_and_moves},
	{"handler_leaves", handler_leaves},
	{"handler_has_a_probe_and_leaves", handler_has_a_probe_and_leaves},
	{"handler_forks", handler_forks},
};

int main(int argc, char **argv)
{
	return tap_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}

/* SPDX-License-Identifier: MIT */
/*
 * test_bus.c - probes that go to a board: whose samples are they, and is every trigger accounted
 * for?
 *
 * Ground truth: each thread triggers events of its own, and knows its own number.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>

#include <kron/live.h>
#include "runtime/bus/bus.h"
#include "runtime/core/rt.h"
#include "runtime/sys/processor.h"
#include "tests/unit/runtime/rt_board.h"
#include "tests/unit/runtime/tap_fork.h"

static struct rig rig;

static uint32_t my_source(void)
{
	return KRON_SOURCE(5, syscall(SYS_gettid));
}

static int nth_cpu(const cpu_set_t *set, unsigned n)
{
	int cpu;

	n %= (unsigned)CPU_COUNT(set);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, set) && n-- == 0)
			break;
	return cpu;
}

static int pin(const cpu_set_t *set, unsigned n)
{
	cpu_set_t one;
	int cpu = nth_cpu(set, n);

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
	return cpu;
}

static void nap(long us)
{
	struct timespec ts = {.tv_nsec = us * 1000};

	nanosleep(&ts, NULL);
}

/* ---- exact: what is in local memory ---- */

static struct kron_sample *sample;
static uint32_t nsamples;

static void read_samples(void)
{
	uint32_t words;

	nap(2000); /* the FIFOs */
	board_tick(&rig.board, 0);
	words = board_read32(&rig.board, KRON_BOARD_MAP) & KRON_MAP_MASK;
	CHECK(words < KRON_BOARD_MEMORY_WORDS);
	CHECK_EQ(words % 5, 0);
	free(sample);
	sample = calloc(words / 5 + 1, sizeof(*sample));
	board_read_memory(&rig.board, 0, words, (uint32_t *)sample);
	nsamples = words / 5;
}

static uint64_t time_of(const struct kron_sample *s)
{
	return (uint64_t)(s->head & KRON_HEAD_TIME_MASK) << 32 | s->time_lo;
}

static uint64_t board_time(void)
{
	return board_read64(&rig.board, KRON_CHIP_BYTE(KRON_WORD_TIMESTAMP)) & 0xffffffffffffffull;
}

static void exact_sample_fields(void)
{
	uint64_t before, after = 0;
	cpu_set_t set;
	unsigned i;
	int cpu;

	sched_getaffinity(0, sizeof(set), &set);
	cpu = pin(&set, 0);
	rig_make_exact(&rig, KRON_WHEN_FULL_DISCARD);
	rig_attach(&rig);
	before = board_time();
	for (i = 0; i < 64; i++) {
		rig_stub(1000 + i, i % KRON_LEVELS)();
		nap(20);
	}
	after = board_time();
	read_samples();
	CHECK_EQ(nsamples, 64);
	for (i = 0; i < nsamples; i++) {
		CHECK_EQ(sample[i].event, 1000 + i);
		CHECK_EQ(sample[i].source, my_source());
		CHECK_EQ(sample[i].head & ~KRON_HEAD_TIME_MASK, KRON_HEAD_TRACE(cpu));
		CHECK(time_of(&sample[i]) >= before && time_of(&sample[i]) <= after);
		before = time_of(&sample[i]);
	}
	CHECK_EQ(rig_lost(&rig), 0);
}

/* The window belongs to the program. */
static void exact_leaves_the_window_alone(void)
{
	void *want = (void *)(uintptr_t)KRON_WINDOW_ADDR;

	rig_make_exact(&rig, KRON_WHEN_FULL_DISCARD);
	rig_attach(&rig);
	CHECK(mmap(want, KRON_BOARD_SIZE, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
		   0) == want);
}

static void exact_obeys_the_filter(void)
{
	unsigned level;

	rig_make_exact(&rig, KRON_WHEN_FULL_WAIT);
	rig_attach(&rig);
	board_write32(&rig.board, KRON_CHIP_BYTE(KRON_WORD_FILTER), 0x8421);
	for (level = 0; level < KRON_LEVELS; level++) {
		CHECK_EQ(rig.ctl->gate[level],
			 level % 5 ? KRON_GATE_CLOSED : KRON_GATE(KRON_GATE_TAKE, level));
		rig_stub(level, level)();
	}
	read_samples();
	CHECK_EQ(nsamples, 4);
	/* Constant time: all go to the board, which takes the same ones. */
	rig.ctl->constant_time = 1;
	board_repair_gates(&rig.board);
	for (level = 0; level < KRON_LEVELS; level++) {
		CHECK_EQ(rig.ctl->gate[level], KRON_GATE(KRON_GATE_TAKE, level));
		rig_stub(level, level)();
	}
	read_samples();
	CHECK_EQ(nsamples, 8);
	CHECK_EQ(board_read32(&rig.board, KRON_CHIP_BYTE(KRON_WORD_OVERRUN)), 0);
}

/* Discard: what the FIFO has no room for is in the Overrun Counter. */
static void exact_counts_overruns(void)
{
	stub_fn stub;

	rig_make_exact(&rig, KRON_WHEN_FULL_DISCARD);
	rig_attach(&rig);
	stub = rig_stub(7, 0);
	rig_trigger(stub, 50000);
	read_samples();
	CHECK(nsamples >= 51 && nsamples < 50000);
	CHECK_EQ(nsamples + board_read32(&rig.board, KRON_CHIP_BYTE(KRON_WORD_OVERRUN)), 50000);
}

/* ---- exact: more threads than CPUs, moving ---- */

#define TEAM 12u
#define TEAM_CALLS 2000u

static struct member {
	pthread_t thread;
	uint32_t source;
	stub_fn stub;
	cpu_set_t set;
} team[TEAM];

static void *hop(void *arg)
{
	struct member *m = arg;
	unsigned i;

	m->source = my_source();
	for (i = 0; i < TEAM_CALLS; i++) {
		if (i % 16 == 0)
			pin(&m->set, (unsigned)(m - team) + i / 16);
		m->stub();
		if (i % 64 == 7)
			sched_yield();
	}
	return NULL;
}

static uint64_t entry_of(uint32_t source)
{
	uint64_t found = 0;
	uint32_t i;

	for (i = 0; i < KRON_SOURCES_MAX; i++)
		if (rig.sources[i].word &&
		    kron_chunk_word_tid(rig.sources[i].word) == (source & KRON_SOURCE_TID_MASK)) {
			CHECK_EQ(kron_chunk_word_state(rig.sources[i].word), KRON_CHUNK_FULL);
			CHECK_EQ(found, 0); /* one entry a thread */
			found = rig.sources[i].word;
		}
	return found;
}

static void exact_sources_follow_threads(void)
{
	uint32_t count[TEAM] = {0}, lines = 0, i;
	uint64_t last = 0;
	cpu_set_t set;

	rig_make_exact(&rig, KRON_WHEN_FULL_WAIT);
	rig_attach(&rig);
	sched_getaffinity(0, sizeof(set), &set);
	for (i = 0; i < TEAM; i++) {
		team[i].set = set;
		team[i].stub = rig_stub(i, i % KRON_LEVELS);
	}
	for (i = 0; i < TEAM; i++)
		CHECK(pthread_create(&team[i].thread, NULL, hop, &team[i]) == 0);
	for (i = 0; i < TEAM; i++)
		pthread_join(team[i].thread, NULL);
	read_samples();
	CHECK_EQ(nsamples, TEAM * TEAM_CALLS);
	for (i = 0; i < nsamples; i++) {
		CHECK(sample[i].event < TEAM);
		CHECK_EQ(sample[i].source, team[sample[i].event].source);
		CHECK(time_of(&sample[i]) >= last);
		last = time_of(&sample[i]);
		count[sample[i].event]++;
		lines |= 1u << (sample[i].head >> KRON_HEAD_CPU_SHIFT);
	}
	for (i = 0; i < TEAM; i++) {
		CHECK_EQ(count[i], TEAM_CALLS);
		CHECK_EQ(kron_chunk_word_uid(entry_of(team[i].source)), kron_rt.proc->uid);
	}
	CHECK_EQ(__builtin_popcount(lines), CPU_COUNT(&set) < 8 ? CPU_COUNT(&set) : 8);
}

/* ---- exact: processes ---- */

static void check_source_of(uint32_t event, uint32_t source, uint32_t times)
{
	uint32_t i;

	for (i = 0; i < nsamples; i++)
		if (sample[i].event == event) {
			CHECK_EQ(sample[i].source, source);
			times--;
		}
	CHECK_EQ(times, 0);
}

static void exact_forks_have_their_own(void)
{
	stub_fn parent, child, borrowed;
	uint32_t uid, source = my_source();
	pid_t pid, v;

	rig_make_exact(&rig, KRON_WHEN_FULL_WAIT);
	rig_attach(&rig);
	parent = rig_stub(1, 0);
	child = rig_stub(2, 0);
	borrowed = rig_stub(3, 0);
	uid = kron_rt.proc->uid;
	parent();
	pid = fork();
	if (pid == 0) {
		child();
		child();
		_exit(kron_rt.proc->uid == uid);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	parent();
	v = vfork();
	if (v == 0) {
		borrowed();
		_exit(0);
	}
	CHECK(waitpid(v, NULL, 0) == v);
	read_samples();
	CHECK_EQ(nsamples, 5);
	check_source_of(1, source, 2);
	check_source_of(2, KRON_SOURCE(5, pid), 2);
	check_source_of(3, source, 1); /* on its parent's thread data */
	CHECK_EQ(kron_chunk_word_uid(entry_of(source)), uid);
	CHECK(kron_chunk_word_uid(entry_of(KRON_SOURCE(5, pid))) != uid);
	CHECK_EQ(rig_lost(&rig), 0);
}

static void full_source_table_loses(void)
{
	stub_fn stub;
	uint32_t i;

	rig_make_exact(&rig, KRON_WHEN_FULL_WAIT);
	rig_attach(&rig);
	stub = rig_stub(1, 0);
	for (i = 0; i < KRON_SOURCES_MAX; i++)
		rig.sources[i].word = KRON_CHUNK_OWNED;
	rig_trigger(stub, 10);
	rig.sources[777].word = KRON_CHUNK_ABSENT;
	rig_trigger(stub, 10);
	read_samples();
	CHECK_EQ(nsamples, 10);
	CHECK_EQ(rig_lost(&rig), 10);
	CHECK_EQ(kron_chunk_word_state(rig.sources[777].word), KRON_CHUNK_FULL);
}

/* ---- device ---- */

static volatile uint32_t *chip(unsigned word)
{
	return (volatile uint32_t *)(rig.window + KRON_CHIP_BYTE(word));
}

static void hardware_gets_stores(void)
{
	cpu_set_t set;
	unsigned level, cpu;
	pid_t pid;

	sched_getaffinity(0, sizeof(set), &set);
	rig_make_hardware(&rig);
	rig_attach(&rig);
	for (level = 0; level < KRON_LEVELS; level++) {
		cpu = (unsigned)pin(&set, level) % KRON_SOURCES;
		rig_stub(100 + level, level)();
		CHECK_EQ(*chip(KRON_WORD_TRACE + level), 100 + level);
		CHECK_EQ(*chip(KRON_WORD_SOURCE + cpu), my_source());
		CHECK_EQ(rig.ctl->line[cpu].owner, my_source());
	}
	CHECK_EQ(*chip(KRON_WORD_RESOURCE), 0); /* four bytes a store */
	pid = fork();
	if (pid == 0) {
		cpu = (unsigned)pin(&set, 0) % KRON_SOURCES;
		rig_stub(7, 3)();
		CHECK_EQ(*chip(KRON_WORD_SOURCE + cpu), my_source());
		_exit(*chip(KRON_WORD_TRACE + 3) != 7);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(kron_chunk_word_uid(entry_of(KRON_SOURCE(5, pid))) != kron_rt.proc->uid);
	CHECK_EQ(rig_lost(&rig), 0);
}

/*
 * The critical section, cut off at each of its instructions by a trap, in whose handler another
 * thread has this CPU: one that does all of its own probe, or only a part of it.
 */
#define MINE 11u
#define THEIRS 22u
#define OTHER 0x01234567u
#define STEPS_MAX 64u
#define WHOLE 5

static struct {
	struct kron_line *line;
	volatile uint32_t *source, *trace;
	const uint8_t *at[STEPS_MAX]; /* instructions, in the order in which they run */
	unsigned n;
	const uint8_t *trap; /* where the int3 is */
	uint8_t byte;        /* what was there */
	int intruder;        /* 0: only the trap; 1-3: this many stores of the other thread; 4: all;
			      * WHOLE: its whole probe, which looks whose the register is first */
	unsigned traps;
} section;

static void text_write(const uint8_t *at, uint8_t byte)
{
	uint8_t *page = (uint8_t *)((uintptr_t)at & ~4095ul);

	CHECK(mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
	*(volatile uint8_t *)(uintptr_t)at = byte;
}

static void note_step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	const uint8_t *ip = (const uint8_t *)u->uc_mcontext.gregs[REG_RIP];

	(void)sig;
	(void)info;
	if (ip >= kron_rt_hardware_start && ip <= kron_rt_hardware_end && section.n < STEPS_MAX)
		section.at[section.n++] = ip;
}

/* The other thread's probe: it may be stopped after each store. */
static void intrude(void)
{
	int left = section.intruder;

	if (left == WHOLE) {
		left = section.line->owner == OTHER ? 0 : 3;
		*section.trace = THEIRS;
	}
	if (left-- > 0)
		section.line->owner = 0;
	if (left-- > 0)
		*section.source = OTHER;
	if (left-- > 0)
		section.line->owner = OTHER;
	if (left-- > 0)
		*section.trace = THEIRS;
	/* What its sample would have for a source. */
	if (section.intruder == WHOLE)
		CHECK_EQ(*section.source, OTHER);
}

static void take_over(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	text_write(section.trap, section.byte);
	if (section.trap == kron_rt_hardware_end) /* not in the section: run what was there */
		((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP]--;
	section.traps++;
	intrude();
}

static void handle_traps(void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};

	CHECK(sigaction(SIGTRAP, &sa, NULL) == 0);
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

/*
 * Which instructions there are.  A trap in the section starts it again, so for this run the
 * kernel must not know of it: rseq is unregistered.
 */
static void find_instructions(stub_fn stub)
{
	struct rseq *rs = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
	uint32_t cpu = rs->cpu_id;

	CHECK(syscall(SYS_rseq, rs, 32, 1 /* unregister */, RSEQ_SIG) == 0);
	rs->cpu_id = cpu;
	handle_traps(note_step);
	section.line->owner = OTHER;
	single_steps(true);
	stub();
	single_steps(false);
	CHECK(section.n >= 12 && section.n < STEPS_MAX);
	CHECK(section.at[0] == kron_rt_hardware_start);
	CHECK(section.at[section.n - 1] == kron_rt_hardware_end);
	rs->rseq_cs = 0;
	CHECK(syscall(SYS_rseq, rs, 32, 0, RSEQ_SIG) == 0);
}

static void check_interruption(stub_fn stub, unsigned step, uint32_t owner, int intruder)
{
	bool behind = section.at[step] == kron_rt_hardware_end;

	*section.trace = 0;
	*section.source = owner ? owner : OTHER;
	section.line->owner = owner;
	section.intruder = intruder;
	section.trap = section.at[step];
	section.byte = *section.trap;
	section.traps = 0;
	text_write(section.trap, 0xcc);
	stub();
	text_write(section.trap, section.byte);
	/* With the register ours already, the change of it is left out. */
	CHECK(section.traps == 1 || (section.traps == 0 && owner == my_source()));
	if (behind && intruder) {
		/* We were first: our trigger is not made once more. */
		CHECK_EQ(*section.trace, intruder >= 4 ? THEIRS : MINE);
		CHECK_EQ(*section.source, intruder >= 2 ? OTHER : my_source());
		return;
	}
	CHECK_EQ(*section.trace, MINE);
	CHECK_EQ(*section.source, my_source());
	CHECK_EQ(section.line->owner, my_source());
}

/* The way in which the thunk asks for its CPU is chosen by `rdpid`. */
static void section_survives(bool rdpid)
{
	cpu_set_t set;
	stub_fn stub;
	unsigned step, line;
	int intruder;

	if (__rseq_size == 0)
		_exit(TAP_SKIP);
	sched_getaffinity(0, sizeof(set), &set);
	line = (unsigned)pin(&set, 0) % KRON_SOURCES;
	rig_make_hardware(&rig);
	rig_attach(&rig);
	CHECK_EQ(kron_rt_has_rdpid, kron_live_has_rdpid());
	if (rdpid && !kron_rt_has_rdpid)
		_exit(TAP_SKIP);
	kron_rt_has_rdpid = rdpid;
	section.line = &rig.ctl->line[line];
	section.source = chip(KRON_WORD_SOURCE + line);
	section.trace = chip(KRON_WORD_TRACE + 6);
	stub = rig_stub(MINE, 6);
	stub();
	find_instructions(stub);
	handle_traps(take_over);
	for (step = 0; step < section.n; step++)
		for (intruder = 0; intruder <= WHOLE; intruder++) {
			check_interruption(stub, step, my_source(), intruder);
			check_interruption(stub, step, OTHER, intruder);
			check_interruption(stub, step, 0, intruder);
		}
	CHECK_EQ(rig_lost(&rig), 0);
	printf("# %u instructions\n", section.n);
}

static void hardware_section_survives_interruption(void)
{
	section_survives(true);
}

static void likewise_without_rdpid(void)
{
	section_survives(false);
}

/* Threads without rseq cannot be kept apart: the program is not traced at all. */
static void no_rseq_inside(void)
{
	struct rt_segment seg;
	uint64_t detail = 0;

	CHECK_EQ(__rseq_size, 0);
	rig_make_hardware(&rig);
	seg = (struct rt_segment){.fd = rig.fd,
				  .hardware = rig.hardware,
				  .size = rig.size,
				  .session = rig.session,
				  .bus = KRON_BUS_HARDWARE};
	CHECK_EQ(rt_attach(&seg, &detail), KRON_RESULT_NO_RSEQ);
}

static void hardware_needs_rseq(void)
{
	setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
	execl("/proc/self/exe", "test_bus", "no_rseq_inside", NULL);
	_exit(99);
}

static const struct tap_test tests[] = {
	{"exact_sample_fields", exact_sample_fields},
	{"exact_leaves_the_window_alone", exact_leaves_the_window_alone},
	{"exact_obeys_the_filter", exact_obeys_the_filter},
	{"exact_counts_overruns", exact_counts_overruns},
	{"exact_sources_follow_threads", exact_sources_follow_threads},
	{"exact_forks_have_their_own", exact_forks_have_their_own},
	{"full_source_table_loses", full_source_table_loses},
	{"hardware_gets_stores", hardware_gets_stores},
	{"hardware_section_survives_interruption", hardware_section_survives_interruption},
	{"likewise_without_rdpid", likewise_without_rdpid},
	{"hardware_needs_rseq", hardware_needs_rseq},
};

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "no_rseq_inside") == 0) {
		no_rseq_inside();
		return 0;
	}
	return tap_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}

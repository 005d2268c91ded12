/* SPDX-License-Identifier: MIT */
/*
 * probe.c - what one probe costs, measured with the runtime's own thunk.
 *
 *     bench/probe [--json] [--rounds N]
 *
 * Functions that are called in a loop through a pointer, in rounds that take turns so that a
 * disturbance hits all of them:
 *
 *   call     a function that sets a register and returns
 *   rdtsc    the same with rdtsc and one store in it: the least that a timestamp can cost
 *   on       the same as `call`, its entry patched: jump to a stub, probe, jump back
 *   off      likewise, with the probe's group switched off
 *   sparse   likewise, with the thunk of --clock every:16
 *   taken    likewise, with the thunk of --constant-time, the group on
 *   dropped  and off: the sample goes nowhere, at the same price
 *   exact    likewise, on the exact bus: a bus cycle each, most of which find the FIFO full
 *   device   likewise, on the device bus, the device being memory
 *   one      `on`, by a thread of its own
 *   two      `on`, by two threads at once, each on its own lane: calls per second of both
 *
 * Samples are really taken.  The pool is so large that a round fits in it, and is emptied
 * between rounds: a drainer at work on the same two CPUs would be measured with the second
 * thread.  The runtime's slow path, one in 3,275 samples, is in the figures.  Time is the
 * thread's own processor time, so that other work on the machine disturbs less.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/median.h"
#include "runtime/core/rt.h"
#include "runtime/core/thread.h"
#include "tests/unit/runtime/rt_board.h"

#define CALLS 1000000u /* a round of one function */
#define ROUNDS_DEFAULT 31u
#define ROUNDS_MAX 1001u
#define CLOCK_EVERY 16
enum { ON, OFF, SPARSE, TAKEN, DROPPED, PROBES }; /* levels */

uint64_t bench_sink __attribute__((visibility("hidden")));
void bench_call(void);
void bench_rdtsc(void);

__asm__(".text\n"
	".p2align 5\n"
	".globl bench_call\n"
	"bench_call:\n"
	"	mov $1, %eax\n"
	"	ret\n"
	".p2align 5\n"
	".globl bench_rdtsc\n"
	"bench_rdtsc:\n"
	"	rdtsc\n"
	"	mov %eax, bench_sink(%rip)\n"
	"	ret\n");

/* ---- patched functions ---- */

/*
 * As the planner does it: five bytes of jump where "mov $1, %eax" stood, a stub with the probe
 * and the displaced instruction, and a jump back.
 */
static stub_fn patched_function(unsigned level)
{
	static const uint8_t displaced[] = {0xb8, 1, 0, 0, 0};
	uint8_t *stub = (uint8_t *)(uintptr_t)rig_stub(2, level);
	uint8_t *page = (uint8_t *)((uintptr_t)stub & ~4095ul);
	uint8_t *function = stub + 512;
	int32_t there = (int32_t)(stub - (function + 5));
	int32_t back = (int32_t)(function + 5 - (stub + 37 + 5 + 5));

	if (mprotect(page, 8192, PROT_READ | PROT_WRITE)) {
		perror("mprotect");
		exit(1);
	}
	memcpy(stub + 37, displaced, 5); /* over the "ret" */
	stub[42] = 0xe9;
	memcpy(stub + 43, &back, 4);
	function[0] = 0xe9;
	memcpy(function + 1, &there, 4);
	function[5] = 0xc3;
	if (mprotect(page, 8192, PROT_READ | PROT_EXEC)) {
		perror("mprotect");
		exit(1);
	}
	return (stub_fn)(uintptr_t)function;
}

/* ---- time ---- */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double __attribute__((noinline)) time_some(stub_fn f, unsigned calls)
{
	double begin = now();
	unsigned i;

	for (i = 0; i < calls; i++)
		f();
	return (now() - begin) / calls;
}

static double time_calls(stub_fn f)
{
	return time_some(f, CALLS);
}

static void *thread_calls(void *arg)
{
	time_calls((stub_fn)(uintptr_t)arg);
	return NULL;
}

static struct {
	pthread_barrier_t barrier;
	stub_fn f;
	double ns[2];
} team;

static void *team_member(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(me, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set); /* best effort */
	time_calls(team.f);                                        /* lane, pages */
	pthread_barrier_wait(&team.barrier);
	team.ns[me] = time_calls(team.f);
	return NULL;
}

/* Nanoseconds a call that `n` threads at once make together: time of one / n if they do not
 * disturb each other. */
static double time_team(stub_fn f, unsigned n)
{
	pthread_t t[2];
	double per_second = 0;
	unsigned i;

	team.f = f;
	pthread_barrier_init(&team.barrier, NULL, n);
	for (i = 0; i < n; i++)
		pthread_create(&t[i], NULL, team_member, (void *)(uintptr_t)i);
	for (i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	pthread_barrier_destroy(&team.barrier);
	for (i = 0; i < n; i++)
		per_second += 1 / team.ns[i];
	return 1 / per_second;
}

/* ---- the board ---- */

#define POOL_CHUNKS 2048u

static struct rig board;

/* Everything back to FREE, but for the chunks that living threads (this one) are writing. */
static void pool_empty(void)
{
	struct tally t = {0};
	uint32_t i;

	rig_drain(&board, &t);
	for (i = 0; i < POOL_CHUNKS; i++) {
		uint64_t word = board.states[i];

		if (kron_chunk_word_state(word) != KRON_CHUNK_OWNED ||
		    kron_chunk_word_tid(word) == (uint32_t)gettid())
			continue;
		memset(rig_chunk(&board, i), 0, KRON_CHUNK_SIZE);
		board.states[i] = KRON_CHUNK_FREE;
		board.ctl->free_count++;
	}
}

/* ---- the other buses, each in a process of its own ---- */

static double exact_ns(void)
{
	static struct rig exact;
	stub_fn f;

	rig_make_exact(&exact, KRON_WHEN_FULL_DISCARD);
	rig_attach(&exact);
	f = patched_function(ON);
	f();
	return time_some(f, CALLS / 10);
}

static double hardware_ns(void)
{
	static struct rig hardware;
	stub_fn f;

	rig_make_hardware(&hardware);
	rig_attach(&hardware);
	f = patched_function(ON);
	f();
	return time_some(f, CALLS);
}

/* 0: it could not be measured. */
static double in_child(double (*measure)(void))
{
	double ns = 0;
	int fd[2];
	pid_t pid;

	if (pipe(fd))
		return 0;
	pid = fork();
	if (pid == 0) {
		ns = measure();
		_exit(write(fd[1], &ns, sizeof(ns)) != sizeof(ns));
	}
	close(fd[1]);
	if (pid < 0 || read(fd[0], &ns, sizeof(ns)) != sizeof(ns))
		ns = 0;
	close(fd[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return ns;
}

/* ---- rounds ---- */

enum series {
	S_CALL,
	S_RDTSC,
	S_ON,
	S_OFF,
	S_SPARSE,
	S_TAKEN,
	S_DROPPED,
	S_EXACT,
	S_HARDWARE,
	S_ONE,
	S_TWO,
	S_COUNT
};
static double series[S_COUNT][ROUNDS_MAX];
static double median[S_COUNT];

static void run_round(unsigned r, const stub_fn *probe, bool two_cpus)
{
	series[S_CALL][r] = time_calls(bench_call);
	series[S_RDTSC][r] = time_calls(bench_rdtsc);
	series[S_ON][r] = time_calls(probe[ON]);
	series[S_OFF][r] = time_calls(probe[OFF]);
	pool_empty();
	series[S_SPARSE][r] = time_calls(probe[SPARSE]);
	pool_empty();
	series[S_TAKEN][r] = time_calls(probe[TAKEN]);
	series[S_DROPPED][r] = time_calls(probe[DROPPED]);
	pool_empty();
	series[S_ONE][r] = time_team(probe[ON], 1);
	pool_empty();
	series[S_TWO][r] = two_cpus ? time_team(probe[ON], 2) : 0;
	pool_empty();
}

static double ratio_of_medians(enum series a, enum series b)
{
	return median[b] > 0 ? median[a] / median[b] : 0;
}

static void print(bool json, unsigned rounds, uint64_t lost)
{
	double on_ratio = ratio_of_medians(S_ON, S_RDTSC);
	double off_cost = median[S_OFF] - median[S_CALL];
	double scaling = ratio_of_medians(S_ONE, S_TWO);

	if (json) {
		printf("{\"empty_ns\": %.3f, \"limit_ns\": %.3f, \"enabled_ns\": %.3f, "
		       "\"disabled_ns\": %.3f, \"taken_ns\": %.3f, \"dropped_ns\": %.3f, "
		       "\"exact_ns\": %.3f, \"hardware_ns\": %.3f, \"sparse_ns\": %.3f, "
		       "\"two_threads_ratio\": %.3f, \"rounds\": %u, \"lost\": %llu}\n",
		       median[S_CALL], median[S_RDTSC], median[S_ON], median[S_OFF],
		       median[S_TAKEN], median[S_DROPPED], median[S_EXACT], median[S_HARDWARE],
		       median[S_SPARSE], scaling, rounds, (unsigned long long)lost);
		return;
	}
	printf("an empty call                  %7.2f ns\n", median[S_CALL]);
	printf("rdtsc and one store            %7.2f ns\n", median[S_RDTSC]);
	printf("probe on                       %7.2f ns  %.2f x rdtsc (at most 1.15)\n",
	       median[S_ON], on_ratio);
	printf("probe off                      %7.2f ns  %.2f ns over the call (at most 1.0)\n",
	       median[S_OFF], off_cost);
	printf("a reading for %d samples       %7.2f ns  %.2f x rdtsc (at most 0.22)\n",
	       CLOCK_EVERY, median[S_SPARSE], ratio_of_medians(S_SPARSE, S_RDTSC));
	printf("constant time, sample taken    %7.2f ns\n", median[S_TAKEN]);
	printf("constant time, sample dropped  %7.2f ns  taken / dropped %.3f (at most 1.05)\n",
	       median[S_DROPPED], ratio_of_medians(S_TAKEN, S_DROPPED));
	printf("probe on the exact bus         %7.2f ns\n", median[S_EXACT]);
	printf("probe on the device bus        %7.2f ns\n", median[S_HARDWARE]);
	printf("probe on, a thread             %7.2f ns\n", median[S_ONE]);
	printf("probe on, two threads together %7.2f ns  %.2f x the rate of one (at least 1.9)\n",
	       median[S_TWO], scaling);
	if (lost)
		printf("%llu samples lost: the pool was too small\n", (unsigned long long)lost);
}

int main(int argc, char **argv)
{
	unsigned rounds = ROUNDS_DEFAULT;
	bool json = false;
	stub_fn probe[PROBES];
	unsigned i, r;

	for (i = 1; i < (unsigned)argc; i++) {
		if (strcmp(argv[i], "--json") == 0) {
			json = true;
		} else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < (unsigned)argc) {
			rounds = (unsigned)atoi(argv[++i]);
		} else {
			fprintf(stderr, "usage: probe [--json] [--rounds N]\n");
			return 2;
		}
	}
	if (rounds < 1 || rounds > ROUNDS_MAX)
		rounds = ROUNDS_DEFAULT;

	for (r = 0; r < rounds; r++) {
		series[S_EXACT][r] = in_child(exact_ns);
		series[S_HARDWARE][r] = in_child(hardware_ns);
	}
	rig_make(&board, POOL_CHUNKS, POOL_CHUNKS, KRON_WHEN_FULL_DISCARD);
	rig_attach(&board);
	rt_threads_clock(CLOCK_EVERY);
	for (i = 0; i < PROBES; i++) {
		if (i == SPARSE)
			rig_use_thunk(KRON_THUNK_LANE_SPARSE);
		if (i == TAKEN)
			rig_use_thunk(KRON_THUNK_LANE_CONSTANT);
		probe[i] = patched_function(i);
	}
	board.ctl->gate[OFF] = KRON_GATE_CLOSED;
	board.ctl->gate[DROPPED] = KRON_GATE(KRON_GATE_DROP, DROPPED);
	thread_calls((void *)(uintptr_t)probe[ON]); /* warm */
	pool_empty();
	for (r = 0; r < rounds; r++)
		run_round(r, probe, sysconf(_SC_NPROCESSORS_ONLN) > 1);
	for (i = 0; i < S_COUNT; i++)
		median[i] = median_of(series[i], rounds);
	print(json, rounds, rig_lost(&board));
	return 0;
}

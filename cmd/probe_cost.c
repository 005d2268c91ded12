/* SPDX-License-Identifier: MIT */
/*
 * probe_cost.c - see probe_cost.h.
 *
 *   probe sequence of kron/wire.h ─┬─► runtime/core/thunk.S ───────► a lane of ours
 *                                  ├─► runtime/dynamic/thunk_sparse.S ► likewise, with --clock every:N
 *                                  └─► runtime/static/thunk_static.S ─► by the word at %fs:0
 *
 * The thunk is linked in, alone: what it wants from the rest of the runtime is below.  Its slow
 * path cannot come, because the lane has room for every sample; should it, the sample is
 * missing afterwards and the measurement is void.  Nothing here touches a board.
 */
#define _GNU_SOURCE
#include "cmd/probe_cost.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cpuid.h>

#include <kron/board.h>
#include <kron/segment.h>
#include "base/clock.h"
#include "base/vec.h"
#include "runtime/static/static.h"

#define ROUNDS 2
#define SAMPLES 1024u
#define SPARE 64u /* records of moves to another CPU */
#define EVENT 77u
#define CPUID_RDPID (1u << 22)

/* ---- what thunk.S knows by name ---- */

#define HIDDEN __attribute__((visibility("hidden")))

extern __thread struct rt_lane *kron_rt_lane HIDDEN __attribute__((tls_model("initial-exec")));
__thread struct rt_lane *kron_rt_lane;
uint32_t kron_rt_strange;
uint64_t kron_rt_lanes_start, kron_rt_lanes_size;
extern long kron_rt_cpu_offset HIDDEN;
long kron_rt_cpu_offset;
extern long kron_rt_mark_offset HIDDEN;
long kron_rt_mark_offset;
struct rt_threads kron_rt_threads;
long kron_rt_tid_offset;
bool kron_rt_has_rdpid;
bool kron_rt_can_read_base;
void kron_rt_probe_static(void) HIDDEN;
void kron_rt_probe_sparse_static(void) HIDDEN;
uint8_t *kron_rt_stacks HIDDEN;
uint64_t kron_rt_stacks_taken HIDDEN;
void kron_rt_slow(uint32_t event, uint32_t payload) HIDDEN;
void kron_rt_slow_wide(uint32_t event, uint64_t payload, uint64_t claim) HIDDEN;
void kron_rt_hook(uint32_t hook, struct rt_regs *regs) HIDDEN;
void kron_rt_probe(void) HIDDEN;
void kron_rt_probe_sparse(void) HIDDEN;
extern uint32_t kron_rt_clock_mask HIDDEN;
uint32_t kron_rt_clock_mask;

void kron_rt_slow(uint32_t event, uint32_t payload)
{
	(void)event;
	(void)payload;
}

void kron_rt_slow_wide(uint32_t event, uint64_t payload, uint64_t claim)
{
	(void)event;
	(void)payload;
	(void)claim;
}

void kron_rt_hook(uint32_t hook, struct rt_regs *regs)
{
	(void)hook;
	(void)regs;
}

/* ---- the lane ---- */

/* As in runtime/core/lane.c: the CPU's number is in rseq's area, or in a word in its place. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));
static __thread uint32_t no_rseq_cpu __attribute__((tls_model("initial-exec")));
static __thread uint64_t no_rseq_mark __attribute__((tls_model("initial-exec")));

static uint32_t read_cpu(void)
{
	const char *self = __builtin_thread_pointer();
	const bool has = &__rseq_offset && &__rseq_size && __rseq_size;
	uint32_t cpu;

	kron_rt_cpu_offset = has ? __rseq_offset + RT_RSEQ_CPU : (char *)&no_rseq_cpu - self;
	kron_rt_mark_offset = has ? __rseq_offset + RT_RSEQ_CS : (char *)&no_rseq_mark - self;
	__asm__ volatile("movl %%fs:(%1), %0" : "=r"(cpu) : "r"(kron_rt_cpu_offset));
	return cpu;
}

static void lane_fresh(struct rt_lane *lane, struct kron_sample *samples)
{
	memset(samples, 0, (SAMPLES + SPARE) * sizeof(*samples));
	memset(lane, 0, sizeof(*lane));
	lane->cpu = read_cpu();
	lane->head = KRON_HEAD_TRACE(lane->cpu);
	lane->claim = rt_claim_word((uintptr_t)samples, SAMPLES + SPARE);
	kron_rt_lane = lane;
	kron_rt_lanes_start = (uintptr_t)lane;
	kron_rt_lanes_size = sizeof(*lane);
}

static bool has_all(const struct kron_sample *samples)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < SAMPLES + SPARE; i++)
		n += samples[i].head && samples[i].event == EVENT;
	return n == SAMPLES;
}

/* ---- the loops ---- */

/* What cannot be undercut: the clock and one store. */
static double limit_loop(struct kron_sample *samples)
{
	uint64_t start = clock_tsc();

	for (uint32_t i = 0; i < SAMPLES; i++)
		*(volatile uint32_t *)&samples[i].time_lo = (uint32_t)clock_tsc();
	return (double)(clock_tsc() - start) / SAMPLES;
}

#define PROBE(thunk)                                  \
	__asm__ volatile("lea	-128(%%rsp), %%rsp\n\t" \
			 "push	%%rcx\n\t"             \
			 "movzbl (%0), %%ecx\n\t"     \
			 "jrcxz	1f\n\t"               \
			 "push	%%rax\n\t"             \
			 "mov	%1, %%eax\n\t"          \
			 "call	" thunk "\n\t"        \
			 "pop	%%rax\n"                \
			 "1:	pop	%%rcx\n\t"           \
			 "lea	128(%%rsp), %%rsp"      \
			 :                            \
			 : "r"(gate), "i"(EVENT)      \
			 : "memory", "cc")

static double probe_loop(const uint8_t *gate)
{
	uint64_t start = clock_tsc();

	for (uint32_t i = 0; i < SAMPLES; i++)
		PROBE("kron_rt_probe");
	return (double)(clock_tsc() - start) / SAMPLES;
}

static double sparse_loop(const uint8_t *gate)
{
	uint64_t start = clock_tsc();

	for (uint32_t i = 0; i < SAMPLES; i++)
		PROBE("kron_rt_probe_sparse");
	return (double)(clock_tsc() - start) / SAMPLES;
}

static double static_loop(const uint8_t *gate)
{
	uint64_t start = clock_tsc();

	for (uint32_t i = 0; i < SAMPLES; i++)
		PROBE("kron_rt_probe_static");
	return (double)(clock_tsc() - start) / SAMPLES;
}

static double static_sparse_loop(const uint8_t *gate)
{
	uint64_t start = clock_tsc();

	for (uint32_t i = 0; i < SAMPLES; i++)
		PROBE("kron_rt_probe_sparse_static");
	return (double)(clock_tsc() - start) / SAMPLES;
}

/* ---- static programs: the word at %fs:0 leads to the lane, and a number near it is compared ---- */

static __thread uint32_t own_number __attribute__((tls_model("initial-exec")));

static bool has_rdpid(void)
{
	unsigned a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && c & CPUID_RDPID;
}

static void enter_thread(struct rt_lane *lane)
{
	const uint64_t base = (uint64_t)(uintptr_t)__builtin_thread_pointer();
	const uint32_t i = (uint32_t)base >> RT_SELF_SHIFT & RT_THREADS_MASK;

	own_number = lane->tid = 1;
	kron_rt_has_rdpid = has_rdpid();
	kron_rt_tid_offset = (char *)&own_number - (char *)__builtin_thread_pointer();
	kron_rt_threads.self[0].word = RT_SELF_NONE;
	kron_rt_threads.self[i] = (struct rt_self){base, lane};
}

static void keep_least(double *least, double v)
{
	if (*least == 0 || v < *least)
		*least = v;
}

/* statics: that of static programs, or NULL. */
static void measure(struct probe_cost *c, double hz, unsigned every,
		    double (*statics)(const uint8_t *gate))
{
	double (*const loop)(const uint8_t *gate) = every > 1 ? sparse_loop : probe_loop;
	static const uint8_t open = KRON_GATE(KRON_GATE_TAKE, 0), closed = KRON_GATE_CLOSED;
	double per_ns = hz / 1e9;
	struct kron_sample *samples;
	struct rt_lane lane;
	bool taken = true;

	memset(c, 0, sizeof(*c));
	if (per_ns <= 0)
		return;
	kron_rt_clock_mask = every ? every - 1 : 0;
	samples = xcalloc(SAMPLES + SPARE, sizeof(*samples));
	for (int i = 0; i < ROUNDS; i++) {
		lane_fresh(&lane, samples);
		keep_least(&c->limit, limit_loop(samples) / per_ns);
		keep_least(&c->off, probe_loop(&closed) / per_ns);
		lane_fresh(&lane, samples);
		keep_least(&c->on, loop(&open) / per_ns);
		taken = taken && has_all(samples);
		if (!statics)
			continue;
		lane_fresh(&lane, samples);
		enter_thread(&lane);
		keep_least(&c->on_static, statics(&open) / per_ns);
		taken = taken && has_all(samples);
	}
	kron_rt_lane = NULL;
	xfree(samples);
	if (!taken)
		memset(c, 0, sizeof(*c));
}

void probe_cost_measure(struct probe_cost *c, double hz, unsigned every, bool with_static)
{
	measure(c, hz, every, with_static ? static_loop : NULL);
}

void probe_cost_measure_attached(struct probe_cost *c, double hz, unsigned every, bool with_static)
{
	(void)with_static;
	measure(c, hz, every, every > 1 ? static_sparse_loop : static_loop);
}

/* SPDX-License-Identifier: MIT */
/*
 * calibrate.c - see calibrate.h.
 *
 * The probe that is measured is a copy: the sequence of kron/wire.h in front of a thunk that
 * does what the runtime's does (save flags, claim by xadd, rdtsc, five stores).  It differs in
 * where the lane pointer and the CPU number come from: a register here, %fs there.
 */
#define _GNU_SOURCE
#include "collect/calibrate.h"

#include <string.h>
#include <time.h>
#include <x86intrin.h>

#include <kron/board.h>
#include "base/vec.h"

#define SECOND 1000000000ull

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

void time_point_take(struct time_point *t)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 8; i++) {
		uint64_t before = __rdtsc();
		uint64_t mono = clock_ns(CLOCK_MONOTONIC);
		uint64_t after = __rdtsc();

		if (after - before >= best)
			continue;
		best = after - before;
		t->tsc = before + best / 2;
		t->mono_ns = mono;
		t->real_ns = clock_ns(CLOCK_REALTIME);
	}
}

double tsc_hz(const struct time_point *start, const struct time_point *end)
{
	uint64_t ns = end->mono_ns - start->mono_ns;

	return ns ? (double)(end->tsc - start->tsc) * (double)SECOND / (double)ns : 0;
}

/* ---- the cost of a probe ---- */

#define ROUNDS 2
#define LANE_SAMPLES 1024u

static double limit_loop(uint32_t *lane)
{
	uint64_t start = __rdtsc();

	for (uint32_t i = 0; i < LANE_SAMPLES; i++)
		*(volatile uint32_t *)&lane[i] = (uint32_t)__rdtsc();
	return (double)(__rdtsc() - start) / LANE_SAMPLES;
}

struct fake_lane {
	uint64_t next; /* offset of the next free slot */
	uint8_t *base;
	uint32_t source, header, cpu;
	uint32_t cpu_now;
};

/* void measured_thunk(void): %r11 = lane, %eax = event; keeps all registers but %rax, %rcx */
__asm__(".text\n"
	".p2align 4\n"
	"kron_measured_thunk:\n"
	"	lahf\n"
	"	seto	%al\n"
	"	push	%rax\n"
	"	push	%rdx\n"
	"	push	%rdi\n"
	"	mov	24(%r11), %ecx\n" /* the lane's CPU */
	"	cmp	28(%r11), %ecx\n" /* the one we are on */
	"	jne	1f\n"
	"	mov	$20, %ecx\n"
	"	xadd	%rcx, (%r11)\n"
	"	mov	8(%r11), %rdi\n"
	"	add	%rcx, %rdi\n"
	"	rdtsc\n"
	"	mov	%eax, 4(%rdi)\n"
	"	mov	16(%r11), %eax\n"
	"	mov	%eax, 8(%rdi)\n"
	"	lea	152(%rsp), %rax\n"
	"	mov	%eax, 12(%rdi)\n"
	"	mov	%ecx, 16(%rdi)\n"
	"	or	20(%r11), %edx\n"
	"	mov	%edx, (%rdi)\n"
	"1:	pop	%rdi\n"
	"	pop	%rdx\n"
	"	pop	%rax\n"
	"	add	$127, %al\n"
	"	sahf\n"
	"	ret\n");

static double probe_loop(struct fake_lane *lane, const uint8_t *gate)
{
	uint64_t start;

	lane->next = 0;
	start = __rdtsc();
	for (uint32_t i = 0; i < LANE_SAMPLES; i++)
		__asm__ volatile("mov	%0, %%r11\n\t"
				 "lea	-128(%%rsp), %%rsp\n\t"
				 "push	%%rcx\n\t"
				 "movzbl (%1), %%ecx\n\t"
				 "jrcxz	1f\n\t"
				 "push	%%rax\n\t"
				 "mov	$77, %%eax\n\t"
				 "call	kron_measured_thunk\n\t"
				 "pop	%%rax\n"
				 "1:	pop	%%rcx\n\t"
				 "lea	128(%%rsp), %%rsp"
				 :
				 : "r"(lane), "r"(gate)
				 : "r11", "memory", "cc");
	return (double)(__rdtsc() - start) / LANE_SAMPLES;
}

static void keep_least(double *least, double v)
{
	if (*least == 0 || v < *least)
		*least = v;
}

void probe_cost_measure(struct probe_cost *c, double hz)
{
	struct fake_lane lane = {.header = KRON_HEAD_TRACE(0)};
	static volatile uint8_t open = 1, closed;
	double per_ns = hz / (double)SECOND;

	memset(c, 0, sizeof(*c));
	lane.base = xcalloc(LANE_SAMPLES, KRON_SAMPLE_SIZE);
	for (int i = 0; i < ROUNDS && per_ns > 0; i++) {
		keep_least(&c->limit, limit_loop((uint32_t *)lane.base) / per_ns);
		keep_least(&c->on, probe_loop(&lane, (const uint8_t *)&open) / per_ns);
		keep_least(&c->off, probe_loop(&lane, (const uint8_t *)&closed) / per_ns);
	}
	xfree(lane.base);
}

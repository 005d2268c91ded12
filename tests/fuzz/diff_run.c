/* SPDX-License-Identifier: MIT */
/*
 * diff_run.c - runs one function from a random state and keeps all that it left.
 *
 * It runs on a stack of its own; faults come in on another one, are part of the outcome, and end
 * the run.  The memory that pointers lead to, the data that instructions name and the stack are
 * filled anew before each run, from the state's seed alone.
 */
#define _GNU_SOURCE
#include "tests/fuzz/diff.h"

#include <asm/prctl.h>
#include <cpuid.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include <kron/segment.h>
#include <kron/wire.h>

#include "inject/code/insn.h"

#define FLAGS_MASK 0xcd5u /* CF PF AF ZF SF DF OF */
#define TRACE_FLAG 0x100u
#define RED_ZONE 128u
_Static_assert(KRON_THUNK_SP == 152, "diff_enter.S");

/* diff_enter.S reads and writes these */
struct regs run_in, run_out;
uint64_t run_at, run_host_sp, run_host_fs, run_guest_fs, run_guest_fs_now;
uint32_t run_fp_mask;
bool run_has_fs, run_has_avx512;
_Alignas(64) uint8_t run_fp_in[FP_SIZE], run_fp_out[FP_SIZE];
/* Where the processor has the registers of AVX-512, and where all ends. */
static uint32_t fp_upper = 832, fp_end = 832;
struct event *run_next_event;
uint64_t run_count;
void run_enter(void);
void run_return(void);
void run_leave(void);
void run_on_signal(int);
extern char diff_thunks_end[];
bool run_has_counters, run_hands_on_no_flags;
bool run_handle_signal(int signal, siginfo_t *info, void *context);

/*
 * Where functions return to: the middle of a page of its own, at the same address in every
 * process.  Random code changes return addresses, and next to run_return itself there is the
 * fuzzer's code.
 */
#define RETURN_PAGE 0x320000000000ull
#define RETURN_ADDR (RETURN_PAGE + 2048)

static struct trail trail;
static volatile bool running, stepping;
static const struct image *running_image;
static struct outcome *result;
static volatile uint64_t last_ticked;
static uint64_t random_bytes[4096];

static uint8_t *const scratch = (uint8_t *)SCRATCH_ADDR;
static uint8_t *const shown = (uint8_t *)(STACK_TOP - STACK_SHOWN);

const struct trail *run_trail(void)
{
	return &trail;
}

/* ---- signals ---- */

static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
			      REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
			      REG_R12, REG_R13, REG_R14, REG_R15};

static void keep_fault(int signal, const siginfo_t *info, const ucontext_t *uc)
{
	for (int i = 0; i < 16; i++)
		run_out.r[i] = uc->uc_mcontext.gregs[order[i]];
	run_out.flags = uc->uc_mcontext.gregs[REG_EFL];
	result->rip = uc->uc_mcontext.gregs[REG_RIP];
	result->signal = signal == SIGPROF ? SIGNAL_TIMEOUT : signal;
	result->code = info->si_code;
	result->fault_addr = (uint64_t)info->si_addr;
	result->trap = uc->uc_mcontext.gregs[REG_TRAPNO];
	result->error = uc->uc_mcontext.gregs[REG_ERR];
	memcpy(run_fp_out, uc->uc_mcontext.fpregs, fp_end);
}

/* pushf has just shown the trace flag to the program.  Its stack may be anywhere, ASan's own memory too. */
__attribute__((no_sanitize("address"))) static void hide_trace_flag(const struct step *last,
								    uint64_t rsp)
{
	const uint8_t *code = (const uint8_t *)last->rip;
	uint8_t *high = (uint8_t *)(rsp + 1); /* the stack need not be aligned */

	while (*code == 0x66 || (*code & 0xf0) == 0x40)
		code++;
	if (*code == 0x9c && rsp < last->r[RSP])
		*high &= (uint8_t) ~(TRACE_FLAG >> 8);
}

/* Below the red zone, to the byte, anybody may write at any time: nothing, ones, anything. */
static void scribble(uint64_t rsp)
{
	uint64_t to = rsp - RED_ZONE, with = run_count * 0x9e3779b97f4a7c15u;

	if (rsp > STACK_TOP || rsp < STACK_TOP - STACK_MAPPED / 2)
		return;
	for (uint64_t at = to - 768; at < to; at += 8) {
		with += 0x7f4a7c159e3779b9u;
		memcpy((void *)at,
		       &(uint64_t){run_count % 4 == 0   ? 0
				   : run_count % 4 == 1 ? UINT64_MAX
							: with},
		       8);
	}
}

static bool is_near_text(uint64_t addr)
{
	return addr - running_image->text + 256 < TEXT_SIZE + 256;
}

/* Bytes of the stack that hold what the program put there, and nobody else may have changed. */
#define WATCHED 8192u
static bool is_kept[WATCHED];

static void set_kept(uint64_t from, uint64_t to, bool kept)
{
	uint64_t lo = STACK_TOP - WATCHED;

	for (uint64_t at = from < lo ? lo : from; at < to && at < STACK_TOP; at++)
		is_kept[at - lo] = kept;
}

static bool is_lost(uint64_t addr, unsigned n)
{
	bool lost = false;

	for (uint64_t at = addr; at < addr + n; at++)
		lost |= at - (STACK_TOP - WATCHED) < WATCHED &&
			!is_kept[at - (STACK_TOP - WATCHED)];
	return lost;
}

static void watch_stack(const struct insn *in, uint64_t addr, bool has_addr, uint64_t rsp)
{
	static uint64_t last;

	if (trail.nsteps == 1)
		set_kept(0, STACK_TOP, true);
	else if (last - rsp <= 8) /* something was pushed */
		set_kept(rsp, last, true);
	set_kept(0, rsp - RED_ZONE, false);
	last = rsp;
	if (in->kind == INSN_RET || (in->regs_written & 1u << RSP && !in->has_mem))
		trail.reads_lost |= is_lost(rsp, 8);
	if (!has_addr)
		return;
	if (in->reads_memory)
		trail.reads_lost |= is_lost(addr, 16);
	else
		set_kept(addr, addr + in->op_size, true);
}

static void watch_memory(const greg_t *g)
{
	struct insn in;
	uint64_t at = 0;
	bool has_addr;

	if (!insn_decode(&in, (uint8_t *)g[REG_RIP], 15, g[REG_RIP]))
		return;
	trail.reads_text |= is_near_text(g[REG_RSP]);
	has_addr = in.has_mem && in.op != INSN_OP_LEA && !in.rip_relative;
	if (has_addr) {
		at = in.mem_disp;
		if (in.mem_base >= 0)
			at += g[order[in.mem_base]];
		if (in.mem_index >= 0)
			at += (uint64_t)g[order[in.mem_index]] * in.mem_scale;
		trail.reads_text |= is_near_text(at) || is_near_text((uint32_t)at);
	} else {
		/* strings and xlat */
		trail.reads_text |= is_near_text(g[REG_RSI]) || is_near_text(g[REG_RDI]) ||
				    is_near_text(g[REG_RBX]);
	}
	watch_stack(&in, at, has_addr, g[REG_RSP]);
}

static bool is_call(uint64_t at)
{
	struct insn in;

	return insn_decode(&in, (uint8_t *)at, 15, at) &&
	       (in.kind == INSN_CALL || in.kind == INSN_CALL_INDIRECT);
}

/* One more instruction is about to run: should it? */
static bool keep_step(ucontext_t *uc)
{
	greg_t *g = uc->uc_mcontext.gregs;
	uint64_t rip = g[REG_RIP], rsp = g[REG_RSP];

	if (rip == RETURN_ADDR) {
		g[REG_EFL] &= ~(greg_t)TRACE_FLAG;
		return true;
	}
	g[REG_EFL] |= TRACE_FLAG;
	if (rip - running_image->text >= TEXT_SIZE) { /* our own, before the first */
		trail.reads_text |= trail.nsteps;
		return true;
	}
	if (trail.nsteps)
		hide_trace_flag(&trail.steps[trail.nsteps - 1], rsp);
	if (trail.nsteps == STEPS_MAX)
		return false;
	trail.steps[trail.nsteps].rip = rip;
	for (int i = 0; i < 16; i++)
		trail.steps[trail.nsteps].r[i] = g[order[i]];
	trail.nsteps++;
	scribble(rsp);
	if (run_hands_on_no_flags && trail.nsteps > 1 && is_call(trail.steps[trail.nsteps - 2].rip))
		g[REG_EFL] ^= (greg_t)((run_count * 64 + trail.nsteps) * 0x9e3779b97f4a7c15u >> 40 &
				       (FLAGS_MASK & ~0x400u));
	watch_memory(g);
	return true;
}

static _Noreturn void die(int signal, const ucontext_t *uc)
{
	char text[96];
	int n = snprintf(text, sizeof(text), "# the fuzzer itself: signal %d at %#llx\n", signal,
			 uc->uc_mcontext.gregs[REG_RIP]);

	if (write(2, text, n) < 0)
		_exit(97);
	_exit(98);
}

/* True: the function goes on. */
bool run_handle_signal(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	bool in_thunk;

	if (signal == SIGPROF) {
		if (!running || last_ticked != run_count) {
			last_ticked = run_count;
			return running;
		}
	} else if (!running && signal == SIGTRAP && info->si_code == TRAP_TRACE) {
		uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRACE_FLAG; /* left by popf */
		return false;
	} else if (!running) {
		die(signal, uc);
	}
	if (signal == SIGTRAP && info->si_code == TRAP_TRACE && stepping) {
		if (keep_step(uc))
			return true;
		signal = SIGPROF;
	}
	in_thunk = (uint64_t)uc->uc_mcontext.gregs[REG_RIP] - (uint64_t)diff_thunk <
		   (uint64_t)diff_thunks_end - (uint64_t)diff_thunk;
	keep_fault(in_thunk ? SIGPROF : signal, info, uc);
	running = false;
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)run_leave;
	uc->uc_mcontext.gregs[REG_RSP] = (greg_t)run_host_sp;
	uc->uc_mcontext.gregs[REG_EFL] = 0x202;
	return false;
}

/* ---- once ---- */

static void map(uint64_t addr, size_t size)
{
	if (mmap((void *)addr, size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (void *)addr) {
		printf("Bail out! no memory at %#lx\n", addr);
		exit(1);
	}
}

static void make_return_page(void)
{
	uint64_t to = (uint64_t)run_return;

	map(RETURN_PAGE, 4096);
	memset((void *)RETURN_PAGE, 0xcc, 4096);
	memcpy((void *)RETURN_ADDR, "\xff\x25\0\0\0\0", 6); /* jmp *0(%rip) */
	memcpy((void *)(RETURN_ADDR + 6), &to, 8);
	if (mprotect((void *)RETURN_PAGE, 4096, PROT_READ | PROT_EXEC))
		abort();
}

static void look_at_processor(void)
{
	unsigned a, b, c, d, lo, hi;

	__cpuid(1, a, b, c, d);
	if (!(c & bit_OSXSAVE) || !(c & bit_AVX)) {
		printf("1..0 # SKIP the processor has no AVX\n");
		exit(0);
	}
	__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
	run_has_avx512 = (lo & 0xe6) == 0xe6;
	run_fp_mask = run_has_avx512 ? 0xe7 : 7;
	if (run_has_avx512) {
		__cpuid_count(0xd, 5, a, fp_upper, c, d);
		__cpuid_count(0xd, 7, a, b, c, d);
		fp_end = b + a;
	}
	if (fp_end > FP_SIZE)
		abort();
	run_has_fs = getauxval(AT_HWCAP2) & 2;
}

static void set_signals(void)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGPROF};
	static uint8_t other_stack[65536];
	stack_t ss = {.ss_sp = other_stack, .ss_size = sizeof(other_stack)};
	struct itimerval every = {{0, 8000}, {0, 8000}};

	if (sigaltstack(&ss, NULL))
		abort();
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		struct sigaction sa = {.sa_flags = SA_SIGINFO | SA_ONSTACK};

		sa.sa_handler = run_on_signal;
		sigfillset(&sa.sa_mask);
		sigaction(signals[i], &sa, NULL);
	}
	setitimer(ITIMER_PROF, &every, NULL);
}

void run_setup(void)
{
	struct rng r = {1};

	if (!trail.steps) {
		look_at_processor();
		map(SCRATCH_ADDR, SCRATCH_SIZE);
		map(STACK_TOP - STACK_MAPPED, STACK_MAPPED);
		map(COUNTS_ADDR & -4096ull, 8192);
		make_return_page();
		trail.steps = xmalloc(STEPS_MAX * sizeof(*trail.steps));
		trail.events = mmap(NULL, EVENTS_MAX * sizeof(struct event) + 4096,
				    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		mprotect(trail.events + EVENTS_MAX, 4096, PROT_NONE);
		for (size_t i = 0; i < sizeof(random_bytes) / 8; i++)
			random_bytes[i] =
				below(&r, 3) ? rnd(&r) : SCRATCH_ADDR + 512 + 8ull * below(&r, 300);
	}
	if (syscall(SYS_arch_prctl, ARCH_SET_GS, SCRATCH_ADDR + 2048))
		abort();
	run_guest_fs = SCRATCH_ADDR + 1024;
	syscall(SYS_arch_prctl, ARCH_GET_FS, &run_host_fs);
	set_signals();
}

/* ---- one run ---- */

static void fill(struct rng *r, void *to, size_t n)
{
	size_t room = sizeof(random_bytes) - n;

	memcpy(to, (uint8_t *)random_bytes + (rnd(r) % room & -8ull), n);
}

/* Small and large numbers, so that branches go both ways. */
static uint64_t random_value(struct rng *r)
{
	uint64_t v = rnd(r);

	switch (below(r, 8)) {
	case 0:
	case 1:
		return v % 4;
	case 2:
		return v >> 32;
	case 3:
		return -(v % 4);
	case 4:
		return 1ull << v % 64;
	default:
		return v;
	}
}

static void fill_registers(struct rng *r, const struct image *im)
{
	for (int i = 0; i < 16; i++) {
		run_in.r[i] = random_value(r);
		if (im->pointers >> i & 1)
			run_in.r[i] = SCRATCH_ADDR + 1024 + 64ull * below(r, 32) +
				      (chance(r, 8) ? below(r, 64) : 0);
	}
	run_in.r[im->index] = below(r, 32);
	run_in.r[RSP] = STACK_TOP - 1024 - 8ull * below(r, 16);
	if (!(im->pointers >> RBP & 1) && im->index != RBP && chance(r, 2))
		run_in.r[RBP] = run_in.r[RSP] + 8ull * below(r, 32);
	run_in.flags = (rnd(r) & FLAGS_MASK) | 0x202;
}

static void fill_vectors(struct rng *r)
{
	uint32_t mxcsr = 0x1f80 | (below(r, 4) << 13) | (chance(r, 4) ? 0x8040 : 0);

	memset(run_fp_in, 0, FP_SIZE);
	memcpy(run_fp_in, "\x7f\x03", 2); /* x87: empty, all masked */
	memcpy(run_fp_in + 24, &mxcsr, 4);
	fill(r, run_fp_in + 160, 256);
	fill(r, run_fp_in + 576, 256);
	if (run_has_avx512)
		fill(r, run_fp_in + fp_upper, fp_end - fp_upper);
	memcpy(run_fp_in + 512, &(uint64_t){run_fp_mask}, 8);
}

static void fill_world(const struct state *st)
{
	uint64_t *counts = (uint64_t *)COUNTS_ADDR;
	struct rng r = {st->seed};

	fill_registers(&r, st->im);
	fill_vectors(&r);
	fill(&r, scratch, SCRATCH_SIZE);
	fill(&r, (void *)(st->im->text + DATA_OFF - TEXT_OFF), DATA_RANDOM);
	fill(&r, shown, STACK_SHOWN);
	memset(shown - 2048, 0, 2048);
	memcpy(scratch + 1024, &run_guest_fs, 8); /* as thread data begins */
	counts[0] = COUNTS_ADDR + 8;
	counts[1] = run_has_counters ? (uint64_t)run_counters()->n[KRON_COUNT_BANK] : 0;
	memset(run_counters(), 0, sizeof(*run_counters()));
	*(uint64_t *)run_in.r[RSP] = RETURN_ADDR;
}

/* The last x87 instruction's address and its operand's: nobody can move those. */
static void keep_vectors(struct outcome *out)
{
	memcpy(out->fp, run_fp_out, FP_SIZE);
	memset(out->fp + 6, 0, 18);
	memset(out->fp + 28, 0, 4); /* MXCSR_MASK */
	memset(out->fp + 416, 0, 576 - 416);
	for (int i = 0; i < 8; i++)
		memset(out->fp + 32 + 16 * i + 10, 0, 6);
	memset(out->fp + 832, 0, fp_upper - 832);
	memset(out->fp + fp_end, 0, FP_SIZE - fp_end);
}

static void keep_memory(struct outcome *out)
{
	uint64_t rsp = out->regs.r[RSP], end = run_in.r[RSP] - RED_ZONE;

	/* what was below the red zone once is nobody's until it is written */
	if (end > rsp)
		end = rsp;
	if (end < rsp - RED_ZONE)
		end = rsp - RED_ZONE;

	memcpy(out->data, (void *)(running_image->text + DATA_OFF - TEXT_OFF), DATA_RANDOM);
	memcpy(out->scratch, scratch, SCRATCH_SIZE);
	memcpy(out->stack, shown, STACK_SHOWN);
	if (rsp > STACK_TOP || rsp < STACK_TOP - STACK_MAPPED)
		return;
	if (end > (uint64_t)shown)
		memset(out->stack, 0, end - (uint64_t)shown);
}

void run_function(uint64_t addr, const struct state *st, bool step, struct outcome *out)
{
	fill_world(st);
	run_at = addr;
	running_image = st->im;
	result = out;
	out->rip = out->signal = out->code = out->fault_addr = out->trap = out->error = 0;
	trail.nsteps = 0;
	trail.reads_text = trail.reads_lost = false;
	run_next_event = trail.events;
	stepping = step;
	if (step)
		run_in.flags |= TRACE_FLAG;
	run_count++;
	running = true;
	run_enter();
	running = false;
	out->regs = run_out;
	out->regs.flags &= FLAGS_MASK;
	trail.nevents = run_next_event - trail.events;
	keep_vectors(out);
	keep_memory(out);
}

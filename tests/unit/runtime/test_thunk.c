/* SPDX-License-Identifier: MIT */
/*
 * test_thunk.c - what a probe does to the program: nothing, and to the board: one sample.
 *
 * Ground truth: registers, flags and red zone are set and read by the assembly below, sample
 * fields by the test itself.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "board/model/gate.h"
#include "runtime/core/rt.h"
#include "runtime/dynamic/dynamic.h"
#include "tests/unit/runtime/rt_board.h"
#include "tests/unit/runtime/tap_fork.h"

/* ---- the whole machine state around a call ---- */

#define RED_ZONE 16 /* words */

struct machine {
	uint64_t gpr[15]; /* rax rbx rcx rdx rsi rdi rbp r8-r15 */
	uint64_t flags;
	uint8_t xmm[16][16];
	uint32_t mxcsr;
	uint16_t x87_control;
	uint16_t x87_status;
	uint64_t red_zone[RED_ZONE];
	uint64_t sp; /* as the stub saw it, pointing to the return address */
};

/* In: loads everything from *in, calls, stores everything to *out. */
void machine_call(stub_fn stub, const struct machine *in, struct machine *out);
#define O(field) __builtin_offsetof(struct machine, field)
_Static_assert(O(flags) == 120 && O(xmm) == 128 && O(mxcsr) == 384 && O(x87_control) == 388 &&
		       O(x87_status) == 390 && O(red_zone) == 392 && O(sp) == 520,
	       "the assembly knows these offsets");

/*
 * The stub is entered by a jump, as from a patched site, so that the words below its stack
 * pointer are a red zone in use.
 */
__asm__(".text\n"
	".globl machine_call\n"
	"machine_call:\n"
	"	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"	sub $24, %rsp\n"
	"	mov %rdi, target(%rip); mov %rsi, input(%rip); mov %rdx, output(%rip)\n"
	"	mov %rsp, saved_sp(%rip)\n"
	"	mov input(%rip), %rax\n"
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	movups 128+16*\\n(%rax), %xmm\\n\n"
	".endr\n"
	"	lea 1f(%rip), %rcx\n"
	"	push %rcx\n"
	"	mov %rsp, %rcx\n"
	"	mov output(%rip), %rdx\n"
	"	mov %rcx, 520(%rdx)\n"
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	mov 392+8*\\n(%rax), %rcx\n"
	"	mov %rcx, -128+8*\\n(%rsp)\n"
	".endr\n"
	/* The flags by way of the word above the return address, below nothing. */
	"	mov 120(%rax), %rcx\n"
	"	mov %rcx, flags_in(%rip)\n"
	"	mov 8(%rax), %rbx; mov 16(%rax), %rcx; mov 24(%rax), %rdx; mov 32(%rax), %rsi\n"
	"	mov 40(%rax), %rdi; mov 48(%rax), %rbp; mov 56(%rax), %r8; mov 64(%rax), %r9\n"
	"	mov 72(%rax), %r10; mov 80(%rax), %r11; mov 88(%rax), %r12; mov 96(%rax), %r13\n"
	"	mov 104(%rax), %r14; mov 112(%rax), %r15\n"
	"	mov 0(%rax), %rax\n"
	"	mov %rsp, stub_sp(%rip)\n"
	"	lea flags_in(%rip), %rsp\n"
	"	popfq\n"
	"	mov stub_sp(%rip), %rsp\n"
	"	jmp *target(%rip)\n"
	"1:\n"
	/* After the stub's ret: red zone of the stub is 8 bytes further down. */
	"	mov %rsp, stub_sp(%rip)\n"
	"	lea flags_in+8(%rip), %rsp\n"
	"	pushfq\n"
	"	mov stub_sp(%rip), %rsp\n"
	"	cld\n"
	"	mov %rax, rax_out(%rip)\n"
	"	mov output(%rip), %rax\n"
	"	mov %rbx, 8(%rax); mov %rcx, 16(%rax); mov %rdx, 24(%rax); mov %rsi, 32(%rax)\n"
	"	mov %rdi, 40(%rax); mov %rbp, 48(%rax); mov %r8, 56(%rax); mov %r9, 64(%rax)\n"
	"	mov %r10, 72(%rax); mov %r11, 80(%rax); mov %r12, 88(%rax); mov %r13, 96(%rax)\n"
	"	mov %r14, 104(%rax); mov %r15, 112(%rax)\n"
	"	mov rax_out(%rip), %rcx; mov %rcx, 0(%rax)\n"
	"	mov flags_in(%rip), %rcx; mov %rcx, 120(%rax)\n"
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	movups %xmm\\n, 128+16*\\n(%rax)\n"
	".endr\n"
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	mov -136+8*\\n(%rsp), %rcx\n"
	"	mov %rcx, 392+8*\\n(%rax)\n"
	".endr\n"
	"	stmxcsr 384(%rax)\n"
	"	fnstcw 388(%rax)\n"
	"	fnstsw 390(%rax)\n"
	"	mov saved_sp(%rip), %rsp\n"
	"	add $24, %rsp\n"
	"	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"	ret\n"
	".bss\n"
	".p2align 4\n"
	"target: .quad 0\n"
	"input: .quad 0\n"
	"output: .quad 0\n"
	"saved_sp: .quad 0\n"
	"stub_sp: .quad 0\n"
	"rax_out: .quad 0\n"
	"flags_in: .quad 0\n"
	".text\n");

static uint64_t random_state = 88172645463325252ull;

static uint64_t random64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

#define FLAGS_TESTED 0xcd5u /* CF PF AF ZF SF DF OF */

static void machine_random(struct machine *m)
{
	size_t i, j;

	memset(m, 0, sizeof(*m));
	for (i = 0; i < 15; i++)
		m->gpr[i] = random64();
	m->flags = (random64() & FLAGS_TESTED) | 0x202;
	for (i = 0; i < 16; i++)
		for (j = 0; j < 16; j++)
			m->xmm[i][j] = (uint8_t)random64();
	for (i = 0; i < RED_ZONE; i++)
		m->red_zone[i] = random64();
	__asm__("stmxcsr %0; fnstcw %1; fnstsw %2"
		: "=m"(m->mxcsr), "=m"(m->x87_control), "=m"(m->x87_status));
}

static void machine_same(const struct machine *in, const struct machine *out)
{
	size_t i;

	for (i = 0; i < 15; i++)
		CHECK_EQ(out->gpr[i], in->gpr[i]);
	CHECK_EQ(out->flags & FLAGS_TESTED, in->flags & FLAGS_TESTED);
	for (i = 0; i < RED_ZONE; i++)
		CHECK_EQ(out->red_zone[i], in->red_zone[i]);
	CHECK(memcmp(in->xmm, out->xmm, sizeof(in->xmm)) == 0);
	CHECK_EQ(out->mxcsr, in->mxcsr);
	CHECK_EQ(out->x87_control, in->x87_control);
	CHECK_EQ(out->x87_status, in->x87_status);
}

/* n calls with random state; the sample's payload is the stack pointer.  Drains on the way. */
static void check_calls(const struct rig *b, stub_fn stub, unsigned n)
{
	struct machine in, out;
	struct tally t = {0};
	unsigned i;

	for (i = 0; i < n; i++) {
		machine_random(&in);
		machine_call(stub, &in, &out);
		machine_same(&in, &out);
		if (i % 1000 == 0)
			rig_drain(b, &t);
	}
}

static void state_survives_enabled(void)
{
	struct rig b;

	rig_make(&b, 8, 8, KRON_WHEN_FULL_DISCARD);
	rig_attach(&b);
	check_calls(&b, rig_stub(7, 0), 40000); /* registration, some chunks, fast path */
}

static void state_survives_loss(void)
{
	struct rig b;

	rig_make(&b, 1, 1, KRON_WHEN_FULL_DISCARD);
	rig_attach(&b);
	rig_trigger(rig_stub(7, 0), 4000);
	b.states[0] = KRON_CHUNK_OWNED; /* nothing to drain */
	check_calls(&b, rig_stub(8, 0), 2000);
	CHECK(rig_lost(&b) >= 2000);
}

static void state_survives_slow_path(void)
{
	struct machine in, out;
	struct rig b;
	stub_fn stub;
	unsigned i;

	rig_make(&b, 4, 4, KRON_WHEN_FULL_DISCARD);
	rig_attach(&b);
	stub = rig_stub(7, 0);
	for (i = 0; i < 2000; i++) {
		struct kron_sample *s = (struct kron_sample *)rig_samples(&b, i % 2);

		machine_random(&in);
		if (kron_rt_lane) /* full: the next one is slow */
			kron_rt_lane->claim = rt_claim_end(kron_rt_lane->claim);
		machine_call(stub, &in, &out);
		machine_same(&in, &out);
		CHECK_EQ(s[1].event, 7);
		memset(rig_chunk(&b, 1 - i % 2), 0, KRON_CHUNK_SIZE);
		b.states[1 - i % 2] = KRON_CHUNK_FREE;
		b.ctl->free_count++;
	}
}

static void state_survives_off(void)
{
	struct rig b;

	rig_make(&b, 1, 1, KRON_WHEN_FULL_DISCARD);
	rig_attach(&b);
	b.ctl->filter = 0xfffe;
	kron_gate_recompute(b.ctl);
	check_calls(&b, rig_stub(7, 0), 5000);
	CHECK_EQ(b.states[0], KRON_CHUNK_FREE);
}

static void state_survives_other_cpu(void)
{
	struct machine in, out;
	struct tally t = {0};
	struct rig b;
	stub_fn stub;
	unsigned i;

	rig_make(&b, 4, 4, KRON_WHEN_FULL_DISCARD);
	rig_attach(&b);
	stub = rig_stub(7, 0);
	stub();
	for (i = 0; i < 1000; i++) {
		machine_random(&in);
		kron_rt_lane->cpu ^= 0x55; /* as if we had been elsewhere */
		machine_call(stub, &in, &out);
		machine_same(&in, &out);
	}
	rig_tally(&b, &t);
	CHECK_EQ(t.samples, 1001);
	CHECK(t.cpu_records >= 1001);
}

static void state_survives_hook(void)
{
	struct machine in, out;
	struct rig b;
	stub_fn stub;
	unsigned i;

	rig_make(&b, 1, 1, KRON_WHEN_FULL_DISCARD);
	rig_attach(&b);
	stub = rig_hook_stub(KRON_HOOK_COUNT); /* one that does nothing */
	for (i = 0; i < 1000; i++) {
		machine_random(&in);
		machine_call(stub, &in, &out);
		machine_same(&in, &out);
	}
	CHECK_EQ(b.states[0], KRON_CHUNK_FREE);
}

/* ---- constant time ---- */

static void set_filter(const struct rig *b, uint32_t filter)
{
	b->ctl->filter = filter;
	kron_gate_recompute(b->ctl);
}

static void rig_make_constant(struct rig *b, uint32_t chunks)
{
	rig_make(b, chunks, chunks, KRON_WHEN_FULL_DISCARD);
	b->ctl->constant_time = 1;
	rig_attach(b);
	rig_use_thunk(KRON_THUNK_LANE_CONSTANT);
}

static void constant_state_survives(void)
{
	struct rig b;
	stub_fn stub;

	rig_make_constant(&b, 8);
	stub = rig_stub(7, 0);
	set_filter(&b, 0); /* before there is a lane */
	CHECK_EQ(b.ctl->gate[0], KRON_GATE(KRON_GATE_DROP, 0));
	check_calls(&b, stub, 2000);
	set_filter(&b, 1);
	check_calls(&b, stub, 20000);
	set_filter(&b, 0);
	check_calls(&b, stub, 2000);
	kron_rt_lane->claim = rt_claim_end(kron_rt_lane->claim); /* no room: none is needed */
	check_calls(&b, stub, 2000);
	CHECK_EQ(rig_lost(&b), 0);
}

/* What is dropped is neither sample nor loss, and says nothing of where the thread is. */
static void constant_time_drops(void)
{
	struct tally t = {0};
	struct rig b;
	uint64_t on = 0;
	unsigned i;
	stub_fn stub;

	rig_make_constant(&b, 8);
	stub = rig_stub(7, 3);
	for (i = 0; i < 20000; i++) {
		bool take = random64() & 1;

		set_filter(&b, take ? 0xffff : 0xfff7);
		if (i % 97 == 5 && kron_rt_lane)
			kron_rt_lane->cpu ^= 0x55; /* as if we had been elsewhere */
		stub();
		on += take;
	}
	rig_tally(&b, &t);
	CHECK_EQ(t.samples, on);
	CHECK_EQ(rig_lost(&b), 0);
	CHECK(t.cpu_records >= 20000 / 97 / 2);
	CHECK(t.cpu_records <= 20000 / 97 + 16); /* one a move, whatever was dropped before it */
	CHECK_EQ(t.holes, 0);
}

/* ---- the buses to a board ---- */

static void exact_state_survives(void)
{
	struct rig b;

	rig_make_exact(&b, KRON_WHEN_FULL_DISCARD);
	rig_attach(&b);
	check_calls(&b, rig_stub(7, 5), 20000);
	board_write32(&b.board, KRON_CHIP_BYTE(KRON_WORD_CSR), KRON_CSR_WAIT);
	check_calls(&b, rig_stub(7, 5), 5000);
	CHECK_EQ(rig_lost(&b), 0);
}

static void hardware_state_survives(void)
{
	struct rig b;
	stub_fn stub;
	unsigned i;

	rig_make_hardware(&b);
	rig_attach(&b);
	stub = rig_stub(7, 5);
	check_calls(&b, stub, 10000);
	for (i = 0; i < 1000; i++) {
		b.ctl->line[i % KRON_SOURCES].owner = 99; /* as if another had been there */
		check_calls(&b, stub, 1);
	}
	CHECK_EQ(rig_lost(&b), 0);
	for (i = 0; i < KRON_SOURCES; i++)
		b.ctl->line[i].cpu = KRON_LINE_UNUSED; /* as if we had come to a ninth CPU */
	check_calls(&b, stub, 1000);
	CHECK_EQ(rig_lost(&b), 1000);
}

/* ---- what is in a sample ---- */

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	CHECK(sched_setaffinity(0, sizeof(set), &set) == 0);
}

static int nth_cpu(unsigned n)
{
	cpu_set_t set;
	int cpu;

	CHECK(sched_getaffinity(0, sizeof(set), &set) == 0);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &set) && n-- == 0)
			return cpu;
	}
	return -1;
}

static uint64_t time_of(const struct kron_sample *s)
{
	return (uint64_t)(s->head & KRON_HEAD_TIME_MASK) << 32 | s->time_lo;
}

#define TIME_MASK 0x00ffffffffffffffull

static void sample_fields(void)
{
	const struct kron_sample *s;
	struct machine in, out;
	uint64_t before, after;
	struct rig b;
	unsigned i;
	int cpu = nth_cpu(0);

	pin(cpu);
	rig_make(&b, 1, 1, KRON_WHEN_FULL_DISCARD);
	rig_attach(&b);
	s = rig_samples(&b, 0);
	for (i = 0; i < 100; i++) {
		machine_random(&in);
		before = clock_tsc() & TIME_MASK;
		machine_call(rig_stub(1000 + i, 0), &in, &out);
		after = clock_tsc() & TIME_MASK;
		CHECK_EQ(s[i + 1].event, 1000 + i);
		CHECK_EQ(s[i + 1].payload, (uint32_t)out.sp);
		CHECK_EQ(s[i + 1].source, KRON_SOURCE(5, syscall(SYS_gettid)));
		CHECK_EQ(s[i + 1].head & ~KRON_HEAD_TIME_MASK, KRON_HEAD_TRACE(cpu));
		CHECK(time_of(&s[i + 1]) >= before && time_of(&s[i + 1]) <= after);
	}
	CHECK_EQ(s[0].event, KRON_EVENT_CPU);
	CHECK_EQ(s[0].payload, cpu);
	CHECK_EQ(s[101].head, 0);
	CHECK_EQ(rig_chunk(&b, 0)->source, KRON_SOURCE(5, syscall(SYS_gettid)));
	CHECK(rig_chunk(&b, 0)->seq != 0);
	CHECK_EQ(b.states[0], kron_chunk_word(KRON_CHUNK_OWNED, (uint32_t)getpid(),
					      kron_rt.proc->slot, kron_rt.proc->uid));
}

static void migration_is_recorded(void)
{
	const struct kron_sample *s;
	struct rig b;
	stub_fn stub;
	int cpu[2] = {nth_cpu(0), nth_cpu(1)};
	unsigned i;

	if (cpu[1] < 0)
		_exit(TAP_SKIP);
	pin(cpu[0]);
	rig_make(&b, 1, 1, KRON_WHEN_FULL_DISCARD);
	rig_attach(&b);
	stub = rig_stub(3, 0);
	s = rig_samples(&b, 0);
	stub();
	for (i = 1; i <= 50; i++) {
		pin(cpu[i % 2]);
		stub();
		stub();
		CHECK_EQ(s[3 * i - 1].event, KRON_EVENT_CPU);
		CHECK_EQ(s[3 * i - 1].payload, cpu[i % 2]);
		CHECK_EQ(s[3 * i].event, 3);
		CHECK_EQ(s[3 * i].head >> KRON_HEAD_CPU_SHIFT, cpu[i % 2] & 7);
		CHECK_EQ(s[3 * i + 1].head >> KRON_HEAD_CPU_SHIFT, cpu[i % 2] & 7);
		CHECK(time_of(&s[3 * i - 1]) <= time_of(&s[3 * i]));
	}
}

static void gates_follow_registers(void)
{
	struct rig b;
	unsigned level;

	rig_make(&b, 1, 1, KRON_WHEN_FULL_DISCARD);
	rig_attach(&b);
	for (level = 0; level < KRON_LEVELS; level++) {
		struct tally t = {0};
		unsigned other;

		b.ctl->filter = 1u << level;
		kron_gate_recompute(b.ctl);
		for (other = 0; other < KRON_LEVELS; other++)
			rig_stub(other, other)();
		rig_tally(&b, &t);
		CHECK_EQ(t.samples, level + 1);
	}
	b.ctl->filter = 0xffff;
	b.ctl->csr = 0;
	kron_gate_recompute(b.ctl);
	for (level = 0; level < KRON_LEVELS; level++)
		CHECK_EQ(b.ctl->gate[level], 0);
}

/* ---- without rseq ---- */

static const char *program;

static void works_without_rseq(void)
{
	setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
	execl(program, program, "sample_fields_inside", NULL);
	_exit(99);
}

static const struct tap_test tests[] = {
	{"state_survives_enabled", state_survives_enabled},
	{"state_survives_loss", state_survives_loss},
	{"state_survives_slow_path", state_survives_slow_path},
	{"state_survives_off", state_survives_off},
	{"state_survives_other_cpu", state_survives_other_cpu},
	{"state_survives_hook", state_survives_hook},
	{"constant_state_survives", constant_state_survives},
	{"constant_time_drops", constant_time_drops},
	{"exact_state_survives", exact_state_survives},
	{"hardware_state_survives", hardware_state_survives},
	{"sample_fields", sample_fields},
	{"migration_is_recorded", migration_is_recorded},
	{"gates_follow_registers", gates_follow_registers},
	{"works_without_rseq", works_without_rseq},
};

int main(int argc, char **argv)
{
	program = "/proc/self/exe";
	if (argc > 1 && strcmp(argv[1], "sample_fields_inside") == 0) {
		sample_fields();
		return 0;
	}
	return tap_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}

/* SPDX-License-Identifier: MIT */
/*
 * registers.c - every register and flag, checked across probes.
 *
 *   load(in) ---> call target ---> [entry probe] body [exit probe] ---> store(out)
 *
 * load fills all general registers, the arithmetic flags and DF, and by XRSTOR everything
 * that the processor has of x87, MXCSR, xmm, ymm, zmm and mask registers, with random bits.
 * The targets change nothing.  What store finds must be what it finds without the call; one
 * target also writes down what it sees after its entry.
 *
 * Build: O2 O2,no-pie
 * Flags: -mgeneral-regs-only
 * Calls: ret_only=30000 nop_ret=30000 leas=30000 framed=30000 ret_imm=30000 snapshot=30000
 * Calls: tail=30000 branches=30000 calls_on=30000
 * Exits: nop_ret=30000 leas=30000 framed=30000 snapshot=30000
 */
#include "torture.h"
#include <cpuid.h>

enum { RAX, RBX, RCX, RDX, RSI, RDI, RBP, R8, R9, R10, R11, R12, R13, R14, R15, GPRS };
struct state {
	uint64_t gpr[GPRS];
	uint64_t flags;
	uint64_t rsp;
};

/* The asm reaches these by name; nothing else can be addressed when all registers are set. */
struct state in_state, out_state, snap_state;
void *target_of_call;
unsigned char *in_area, *out_area;
uint64_t xsave_mask;
static uint64_t saved_rsp __attribute__((used));

#define STORE(reg, n, where) "	mov %" reg "," #n "*8+" where "(%rip)\n"
#define LOAD(reg, n, where) "	mov " #n "*8+" where "(%rip),%" reg "\n"
/* clang-format off */
#define EACH(X, where)                                                        \
	X("rax", 0, where) X("rbx", 1, where) X("rcx", 2, where) X("rdx", 3, where)   \
	X("rsi", 4, where) X("rdi", 5, where) X("rbp", 6, where) X("r8", 7, where)    \
	X("r9", 8, where) X("r10", 9, where) X("r11", 10, where) X("r12", 11, where)  \
	X("r13", 12, where) X("r14", 13, where) X("r15", 14, where)
/* clang-format on */
#define STORE_ALL(where)                         \
	EACH(STORE, where)                       \
	"	mov %rsp,16*8+" where "(%rip)\n" \
	"	pushf\n"                               \
	"	popq 15*8+" where "(%rip)\n"

void run_with_state(void);
__asm__(".text\n"
	".p2align 4\n"
	".type run_with_state,@function\n"
	"run_with_state:\n"
	"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n"
	"	push %r14\n	push %r15\n	sub $8,%rsp\n"
	"	mov xsave_mask(%rip),%eax\n"
	"	mov 4+xsave_mask(%rip),%edx\n"
	"	mov in_area(%rip),%rdi\n"
	"	xrstor64 (%rdi)\n"
	"	pushq 15*8+in_state(%rip)\n"
	"	popf\n" EACH(
		LOAD,
		"in_state") "	mov %rsp,saved_rsp(%rip)\n"
			    "	call *target_of_call(%rip)\n" STORE_ALL(
				    "out_state") "	cld\n"
						 "	mov saved_rsp(%rip),%rsp\n"
						 "	mov xsave_mask(%rip),%eax\n"
						 "	mov 4+xsave_mask(%rip),%edx\n"
						 "	mov out_area(%rip),%rdi\n"
						 "	xsave64 (%rdi)\n"
						 "	fninit\n"
						 "	ldmxcsr default_mxcsr(%rip)\n"
						 "	add $8,%rsp\n"
						 "	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n"
						 "	pop %rbp\n	pop %rbx\n"
						 "	ret\n"
						 ".size run_with_state,.-run_with_state\n"
						 ".section .rodata\n"
						 "default_mxcsr: .long 0x1f80\n"
						 ".text\n");

#define TARGET(name, body)                                                               \
	void name(void);                                                                 \
	__asm__(".text\n.p2align 5\n.globl " #name "\n.type " #name ",@function\n" #name \
		":\n" body "\n.size " #name ",.-" #name "\n.p2align 5\n")

TARGET(ret_only, "ret");
TARGET(nop_ret, "nopl 0(%rax,%rax,1)\nret");
TARGET(leas, "lea (%rax),%rax\nlea 0(%rbx),%rbx\nlea (%rdi),%rdi\nmov %r8,%r8\nret");
TARGET(framed, "push %rbp\nmov %rsp,%rbp\npop %rbp\nret");
TARGET(ret_imm, "mov %rsi,%rsi\nmov %rdi,%rdi\nret $0");
TARGET(snapshot, "nopw 0(%rax,%rax,1)\n" STORE_ALL("snap_state") "ret");
TARGET(tail, "mov %rax,%rax\nmov %rbx,%rbx\njmp not_probed_end");
TARGET(branches, "jc 1f\nmov %rax,%rax\njo 2f\nmov %rcx,%rcx\nret\n"
		 "1: mov %rdx,%rdx\njp 2f\nmov %rbx,%rbx\nret\n"
		 "2: mov %r9,%r9\nmov %r10,%r10\nret");
TARGET(calls_on, "call not_probed_end\nmov %rax,%rax\nmov %rax,%rax\nret");
/* A label, not a function: what tail and calls_on reach without another probe. */
__asm__(".text\n.p2align 5\nnot_probed_end:\n	nop\n	ret\n.p2align 5\n");
/* Without the call: what the processor itself makes of the loaded state. */
void no_call(void);
__asm__(".globl no_call\nno_call:\n	ret\n.p2align 5\n");

static uint64_t seed = 88172645463325252ull;
static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static size_t area_size;

static void setup_areas(void)
{
	unsigned a, b, c, d, lo, hi;

	CHECK(__get_cpuid_count(1, 0, &a, &b, &c, &d));
	CHECK(c & bit_OSXSAVE);
	__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
	/* x87, SSE, AVX, and the three parts of AVX-512 */
	xsave_mask = lo & 0xe7;
	CHECK(__get_cpuid_count(0xd, 0, &a, &b, &c, &d));
	area_size = (b + 63) & ~63u;
	in_area = aligned_alloc(64, area_size);
	out_area = aligned_alloc(64, area_size);
	CHECK(in_area && out_area);
}

/* A state that XRSTOR accepts: random registers after a valid control part. */
static void fill_area(void)
{
	uint64_t mask = xsave_mask;

	for (size_t i = 0; i < area_size; i += 8) {
		uint64_t r = rnd();

		memcpy(in_area + i, &r, 8);
	}
	memset(in_area, 0, 32);
	*(uint16_t *)(in_area + 0) = (uint16_t)(0x37f & ~(rnd() & 0x0c00)); /* FCW: rounding */
	*(uint16_t *)(in_area + 2) = (uint16_t)(rnd() & 0x7f00) & 0x7f00;   /* FSW: no exception */
	*(uint8_t *)(in_area + 4) = 0xff;                                   /* all of x87 in use */
	*(uint32_t *)(in_area + 24) = 0x1f80 | (rnd() & 0xe03f);            /* MXCSR */
	memset(in_area + 512, 0, 64);
	memcpy(in_area + 512, &mask, 8);
}

static void check_state(const struct state *s, uint64_t rsp, const char *where, const char *what)
{
	/* all arithmetic flags and DF; not TF, IF, RF and the like */
	const uint64_t flags = 0xcd5;
	char text[128];

	for (int i = 0; i < GPRS; i++)
		if (s->gpr[i] != in_state.gpr[i]) {
			snprintf(text, sizeof(text), "%s: register %d %s", what, i, where);
			check_failed(text, __FILE__, __LINE__);
		}
	if ((s->flags ^ in_state.flags) & flags) {
		snprintf(text, sizeof(text), "%s: flags %lx, not %lx, %s", what,
			 (unsigned long)(s->flags & flags), (unsigned long)(in_state.flags & flags),
			 where);
		check_failed(text, __FILE__, __LINE__);
	}
	if (s->rsp != rsp) {
		snprintf(text, sizeof(text), "%s: stack pointer %s", what, where);
		check_failed(text, __FILE__, __LINE__);
	}
}

int main(void)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} t[] = {{"ret_only", ret_only}, {"nop_ret", nop_ret},   {"leas", leas},
		 {"framed", framed},     {"ret_imm", ret_imm},   {"snapshot", snapshot},
		 {"tail", tail},         {"branches", branches}, {"calls_on", calls_on}};
	unsigned char *reference;

	setup_areas();
	reference = aligned_alloc(64, area_size);
	CHECK(reference);
	memset(out_area, 0, area_size);
	for (int round = 0; round < 30000; round++) {
		for (int i = 0; i < GPRS; i++)
			in_state.gpr[i] = rnd();
		in_state.flags = 0x202 | (rnd() & 0xcd5);
		/* The large part seldom: filling it takes most of the time. */
		if (round % 16 == 0)
			fill_area();
		target_of_call = (void *)no_call;
		run_with_state();
		check_state(&out_state, saved_rsp, "without a call", "no_call");
		memcpy(reference, out_area, area_size);
		for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
			target_of_call = (void *)t[i].fn;
			run_with_state();
			check_state(&out_state, saved_rsp, "after the return", t[i].name);
			if (t[i].fn == snapshot)
				check_state(&snap_state, saved_rsp - 8, "after the entry",
					    t[i].name);
			if (memcmp(reference, out_area, area_size))
				check_failed("vector or x87 state", t[i].name, round);
		}
	}
	printf("registers kept\n");
	return 0;
}

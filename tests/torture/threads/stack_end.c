/* SPDX-License-Identifier: MIT */
/*
 * stack_end.c - functions that call themselves until the stack ends, and a handler on another stack
 * that looks where that was, as runtimes of functional languages do: the program counter must lie in
 * the function, the fault close below the stack pointer, and every register must be what it was.  Then
 * it goes on elsewhere by changing RIP and RSP; or it gives the stack another page and returns.
 *
 * The stack ends at each possible distance from the function's frame.
 *
 * With SHOW_CALLS in its environment it prints how many calls of deep and leaf there were, which is what
 * probes at their entries must have counted; where the stack ends a probe may end it a call earlier.
 *
 *   stack_end         as above
 *   stack_end once    the handler is for one signal (SA_RESETHAND), and installed anew each time
 *   stack_end die     there is no handler
 *
 * Build: O2 O2,no-pie
 * Flags: -fcf-protection=none
 */
#define _GNU_SOURCE
#include "torture.h"
#include <sys/mman.h>
#include <ucontext.h>

#define PAGE 4096
#define STACK (16 * PAGE)
#define STEP 8
#define SPAN 1040 /* more than a frame */
#define NEAR 256

extern char deep[], deep_end[], keep[], keep_end[], leaf[], leaf_end[];
extern char strings[], strings_end[], strings_rep[];
void run_on(void *function, char *stack, unsigned long *escape);
extern char escaped[];

/*
 * deep: its frame is large.  keep: nothing in it changes a register or a flag.  leaf: what it calls
 * needs no stack but the call.  strings: a string instruction with a prefix.
 */
__asm__(".text\n"
	".macro FUNCTION name\n"
	"	.p2align 4\n"
	"	.globl \\name, \\name\\()_end\n"
	"	.type \\name, @function\n"
	"\\name:\n"
	"	.cfi_startproc\n"
	".endm\n"
	".macro END name\n"
	"	.cfi_endproc\n"
	"\\name\\()_end:\n"
	"	.size \\name, . - \\name\n"
	".endm\n"
	"FUNCTION deep\n"
	"	incq calls(%rip)\n"
	"	sub $1000,%rsp\n"
	"	call deep\n"
	"	add $1000,%rsp\n"
	"	ret\n"
	"END deep\n"
	"FUNCTION keep\n"
	"	push %rbx\n"
	"	push %rcx\n"
	"	lea -520(%rsp),%rsp\n"
	"	call keep\n"
	"	lea 520(%rsp),%rsp\n"
	"	pop %rcx\n"
	"	pop %rbx\n"
	"	ret\n"
	"END keep\n"
	"FUNCTION leaf\n"
	"	incq calls+8(%rip)\n"
	"	call leaf\n"
	"	ret\n"
	"END leaf\n"
	"FUNCTION strings\n"
	"	sub $1000,%rsp\n"
	"	lea room(%rip),%rdi\n"
	"	.globl strings_rep\n"
	"strings_rep:\n"
	"	rep stosb\n"
	"	mov $0x103,%ecx\n"
	"	mov $0x106,%edi\n"
	"	call strings\n"
	"	add $1000,%rsp\n"
	"	ret\n"
	"END strings\n"
	/* run_on(function, stack, escape): every register has a value of its own, and so have flags */
	"	.globl run_on, escaped\n"
	"	.type run_on, @function\n"
	"run_on:\n"
	"	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"	mov %rsp,(%rdx)\n"
	"	mov %rdi,%rax\n"
	"	mov %rsi,%rsp\n"
	"	push %rax\n"
	"	mov $0x8000,%eax\n"
	"	sub $0x7f01,%ax\n"
	"	mov $0x101,%eax; mov $0x102,%ebx; mov $0x103,%ecx; mov $0x104,%edx\n"
	"	mov $0x105,%esi; mov $0x106,%edi; mov $0x107,%ebp; mov $0x108,%r8d\n"
	"	mov $0x109,%r9d; mov $0x10a,%r10d; mov $0x10b,%r11d; mov $0x10c,%r12d\n"
	"	mov $0x10d,%r13d; mov $0x10e,%r14d; mov $0x10f,%r15d\n"
	"	call *(%rsp)\n"
	"	ud2\n"
	"escaped:\n" /* with the stack pointer of run_on again */
	"	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"	ret\n"
	"	.size run_on, . - run_on\n");

unsigned long calls[2] __attribute__((visibility("hidden")));
char room[0x103] __attribute__((visibility("hidden")));
static unsigned long escape, flags_wanted;
static char *start, *end, *guard;
static volatile int faults, gives;

/* In handlers: no library. */
static void wrong(const char *what, unsigned long is)
{
	char text[160];
	int n = snprintf(text, sizeof(text), "%s: %#lx, in %#lx-%#lx\n", what, is,
			 (unsigned long)start, (unsigned long)end);

	if (write(2, text, (size_t)n) < 0)
		_exit(98);
	_exit(97);
}

/* What its instruction wants of it, until it has got it back. */
static int is_for_strings(const greg_t *g, int reg)
{
	const char *at = (char *)g[REG_RIP];

	if (start != strings || at < strings_rep)
		return 0;
	if (reg == REG_RDI)
		return (char *)g[reg] == (at == strings_rep ? room : room + sizeof(room));
	return reg == REG_RCX && !g[reg] && at > strings_rep;
}

static void check_registers(const greg_t *g)
{
	const int regs[] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_R8,
			    REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

	for (int i = 0; i < 15; i++)
		if (g[regs[i]] != 0x101 + i && !is_for_strings(g, regs[i]))
			wrong("a register", (unsigned long)g[regs[i]] | (unsigned long)i << 32);
	if (start == keep && ((unsigned long)g[REG_EFL] & 0x8d5) != flags_wanted)
		wrong("flags", (unsigned long)g[REG_EFL]);
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	unsigned long sp = (unsigned long)g[REG_RSP], at = (unsigned long)info->si_addr;

	(void)sig;
	if ((char *)g[REG_RIP] < start || (char *)g[REG_RIP] >= end)
		wrong("program counter", (unsigned long)g[REG_RIP]);
	if (at % 8 || at >= sp || at < sp - NEAR)
		wrong("fault, below the stack pointer", sp - at);
	if (at < (unsigned long)guard || at >= (unsigned long)guard + PAGE)
		wrong("fault, above the guard", at - (unsigned long)guard);
	check_registers(g);
	faults++;
	if (gives > 0) {
		gives--;
		guard -= PAGE;
		if (mprotect(guard + PAGE, PAGE, PROT_READ | PROT_WRITE))
			_exit(96);
		return;
	}
	g[REG_RIP] = (greg_t)escaped;
	g[REG_RSP] = (greg_t)escape;
}

/* The stack's last page before the guard is used up to `offset` bytes. */
static void overflow(char *stack, char *function, char *function_end, int offset, int pages)
{
	start = function;
	end = function_end;
	guard = stack + 2 * PAGE;
	CHECK(!mprotect(stack, 3 * PAGE, PROT_NONE));
	gives = pages;
	faults = 0;
	run_on(function, stack + STACK - 64 - offset, &escape);
	CHECK(faults == pages + 1);
}

int main(int argc, char **argv)
{
	int once = argc > 1 && !strcmp(argv[1], "once"), die = argc > 1 && !strcmp(argv[1], "die");
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *signal_stack = malloc(32768);
	stack_t ss = {.ss_sp = signal_stack, .ss_size = 32768};
	struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	CHECK(stack != MAP_FAILED && signal_stack);
	sa.sa_flags |= once ? (int)SA_RESETHAND : 0;
	CHECK(!sigaltstack(&ss, NULL) && (die || !sigaction(SIGSEGV, &sa, NULL)));
	__asm__ volatile("mov $0x8000,%%eax\n\tsub $0x7f01,%%ax\n\tpushfq\n\tpop %0"
			 : "=r"(flags_wanted)
			 :
			 : "rax", "cc");
	flags_wanted &= 0x8d5;
	for (int offset = 0; offset < SPAN; offset += STEP) {
		const int pages = once ? 0 : 2;

		overflow(stack, deep, deep_end, offset, 0);
		CHECK(!once || !sigaction(SIGSEGV, &sa, NULL));
		overflow(stack, keep, keep_end, offset, 0);
		CHECK(!once || !sigaction(SIGSEGV, &sa, NULL));
		overflow(stack, deep, deep_end, offset, pages);
		CHECK(!once || !sigaction(SIGSEGV, &sa, NULL));
		overflow(stack, keep, keep_end, offset, pages);
		CHECK(!once || !sigaction(SIGSEGV, &sa, NULL));
		overflow(stack, strings, strings_end, offset, 0);
		CHECK(!once || !sigaction(SIGSEGV, &sa, NULL));
		overflow(stack, strings, strings_end, offset, pages);
		CHECK(!once || !sigaction(SIGSEGV, &sa, NULL));
		if (offset % (16 * STEP) == 0 || offset < 4 * STEP)
			overflow(stack, leaf, leaf_end, offset, offset % 3 ? 0 : pages);
		CHECK(!once || !sigaction(SIGSEGV, &sa, NULL));
	}
	if (getenv("SHOW_CALLS"))
		printf("%lu %lu\n", calls[0], calls[1]);
	printf("done\n");
	return 0;
}

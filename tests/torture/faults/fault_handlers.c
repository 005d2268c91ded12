/* SPDX-License-Identifier: MIT */
/*
 * fault_handlers.c - faults in the first and last instructions of functions, which tracers
 * displace, and handlers that look where it was, mend it, step over it, or leave.
 *
 * Everything is printed as offsets in the functions, so that it is the same in every run.
 *
 * Build: O2, no-pie
 * Flags: -rdynamic
 * Calls: load_first=9 load_last=4 divide=3 call_through=2 monitor=1 halt=1 undefined=2 forbidden=1 breakpoint=1 main=1
 */
#define _GNU_SOURCE
#include "torture.h"
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define HAS_BACKTRACE 1
#endif
#include <setjmp.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

__asm__(".text\n"
	".macro FUNCTION name\n"
	"	.p2align 4\n"
	"	.globl \\name\n"
	"	.type \\name, @function\n"
	"\\name:\n"
	"	.cfi_startproc\n"
	".endm\n"
	".macro END name\n"
	"	.cfi_endproc\n"
	"	.size \\name, . - \\name\n"
	".endm\n"
	"FUNCTION load_first\n"
	"	mov (%rdi),%rax\n"
	"	add $1,%rax\n"
	"	nopl 0(%rax,%rax)\n"
	"	ret\n"
	"END load_first\n"
	"FUNCTION load_last\n"
	"	mov $7,%eax\n"
	"	xor %ecx,%ecx\n"
	"	test %rsi,%rsi\n"
	"	je 1f\n"
	"	mov $9,%eax\n"
	"1:	add $8,%rax\n"
	"	add (%rdi),%rax\n"
	"	ret\n"
	"END load_last\n"
	"FUNCTION divide\n"
	"	mov %edi,%eax\n"
	"	cltd\n"
	"	idivl %esi\n"
	"	ret\n"
	"END divide\n"
	"FUNCTION call_through\n"
	"	push %rbx\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	mov %rdi,%rbx\n"
	"	call *8(%rdi)\n"
	"	pop %rbx\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	"END call_through\n"
	"FUNCTION monitor\n"
	"	xor %eax,%eax\n"
	"	monitor\n"
	"	ret\n"
	"END monitor\n"
	"FUNCTION halt\n"
	"	mov $3,%eax\n"
	"	hlt\n"
	"	ret\n"
	"END halt\n"
	"FUNCTION undefined\n"
	"	ud2\n"
	"END undefined\n"
	"FUNCTION forbidden\n"
	"	ud2\n"
	"	nop\n"
	"	mov $5,%eax\n"
	"	ret\n"
	"END forbidden\n"
	"FUNCTION breakpoint\n"
	"	mov $3,%al\n"
	"	int3\n"
	"	movzbl %al,%eax\n"
	"	ret\n"
	"END breakpoint\n");
long load_first(const long *p);
long load_last(const long *p, long flag);
int divide(int a, int b);
long call_through(const void *p);
int monitor(void);
int halt(void);
int undefined(void);
int forbidden(void);
int breakpoint(void);

static const struct {
	const char *name;
	uintptr_t start;
} functions[] = {{"load_first", (uintptr_t)load_first}, {"load_last", (uintptr_t)load_last},
		 {"divide", (uintptr_t)divide},         {"call_through", (uintptr_t)call_through},
		 {"monitor", (uintptr_t)monitor},       {"halt", (uintptr_t)halt},
		 {"undefined", (uintptr_t)undefined},   {"forbidden", (uintptr_t)forbidden},
		 {"breakpoint", (uintptr_t)breakpoint}};
static const char *where(uintptr_t pc)
{
	static char text[64] = "somewhere";
	size_t best = 0;

	for (size_t i = 1; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (pc - functions[i].start < pc - functions[best].start)
			best = i;
	if (pc - functions[best].start < 48)
		snprintf(text, sizeof(text), "%s+%d", functions[best].name,
			 (int)(pc - functions[best].start));
	return text;
}

static const long good[2] = {40, (long)(uintptr_t)getpid};
static sigjmp_buf way_out;
static enum { MEND, SKIP, LEAVE, RETURN_ADDRESS } what;
static int skip;
static uintptr_t stack_at, seen_stack;

static int frames_to_main(void)
{
#ifdef HAS_BACKTRACE
	void *frame[40];
	int n = backtrace(frame, 40), named = 0;
	char **names = backtrace_symbols(frame, n);

	CHECK(names);
	for (int i = 0; i < n; i++)
		named = strstr(names[i], "(main+") ? i : named;
	free(names);
	return named;
#else
	return 0;
#endif
}

static void report(int sig, siginfo_t *info, ucontext_t *uc)
{
	greg_t *g = uc->uc_mcontext.gregs;

	printf("signal %d code %d at %s", sig, info ? info->si_code : 0, where(g[REG_RIP]));
	if (info && (sig == SIGFPE || sig == SIGILL || sig == SIGTRAP))
		printf(" address %s", where((uintptr_t)info->si_addr));
	else if (info)
		printf(" address %p", info->si_addr);
	printf(" frames %d\n", frames_to_main());
	fflush(stdout);
	seen_stack = (uintptr_t)g[REG_RSP];
}

static void act(greg_t *g)
{
	switch (what) {
	case MEND:
		g[REG_RDI] = (greg_t)(uintptr_t)good;
		g[REG_RSI] = 5;
		break;
	case SKIP:
		g[REG_RIP] += skip;
		break;
	case LEAVE:
		siglongjmp(way_out, 1);
	case RETURN_ADDRESS: /* as if the function returned 77 */
		g[REG_RIP] = *(greg_t *)g[REG_RSP];
		g[REG_RSP] += 8;
		g[REG_RAX] = 77;
		break;
	}
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	report(sig, info, uc);
	act(uc->uc_mcontext.gregs);
}

/* Without SA_SIGINFO the kernel leaves a context all the same, but nothing said so. */
static void on_plain(int sig)
{
	printf("plain handler of %d\n", sig);
	fflush(stdout);
	siglongjmp(way_out, 1);
}

static void install(int sig, int flags)
{
	struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | flags};

	sigaddset(&sa.sa_mask, SIGUSR1);
	CHECK(!sigaction(sig, &sa, NULL));
}

static void test_faults(void)
{
	const long *bad = (const long *)0x1000;

	what = MEND;
	printf("load_first mended: %ld\n", load_first(bad));
	printf("load_last mended: %ld\n", load_last(bad, 0));
	printf("divide mended: %d\n", divide(100, 0));
	what = SKIP;
	skip = 3;
	printf("load_first skipped: %d\n", load_first(bad) != 41);
	printf("load_last skipped: %ld\n", load_last(bad, 0));
	skip = 2;
	printf("divide skipped: %d\n", divide(100, 0));
	skip = 3;
	printf("monitor skipped: %d\n", monitor());
	skip = 1;
	printf("halt skipped: %d\n", halt());
	skip = 2;
	printf("forbidden skipped: %d\n", forbidden());
	skip = 0;
	printf("breakpoint passed: %d\n", breakpoint());
	what = RETURN_ADDRESS;
	printf("undefined answered: %d\n", undefined());
	printf("load_first answered: %ld\n", load_first(bad));
	printf("load_last answered: %ld\n", load_last(bad, 0));
	what = LEAVE;
	if (!sigsetjmp(way_out, 1))
		printf("load_first: %ld\n", load_first(bad));
	if (!sigsetjmp(way_out, 1))
		printf("load_last: %ld\n", load_last(bad, 0));
	if (!sigsetjmp(way_out, 1))
		printf("divide: %d\n", divide(3, 0));
	if (!sigsetjmp(way_out, 1))
		printf("undefined: %d\n", undefined());
}

static long note_stack(void)
{
	stack_at = (uintptr_t)__builtin_frame_address(0);
	return 3;
}

static void test_call(void)
{
	static const uintptr_t through[2] = {0, (uintptr_t)note_stack};

	what = MEND;
	CHECK(call_through(through) == 3);
	printf("call_through mended: %d\n", call_through((void *)0x2000) == getpid());
	/* the stack pointer in front of the call: the callee's frame lies right below */
	printf("stack in front of the call: %ld\n", (long)(seen_stack - stack_at));
}

static void show_action(const char *when, int sig)
{
	struct sigaction sa;

	CHECK(!sigaction(sig, NULL, &sa));
	printf("%s: %s, flags %#x, blocks %d%d\n", when,
	       sa.sa_sigaction == on_fault ? "on_fault"
	       : sa.sa_handler == on_plain ? "on_plain"
	       : sa.sa_handler == SIG_DFL  ? "default"
	       : sa.sa_handler == SIG_IGN  ? "ignored"
					   : "another",
	       (unsigned)sa.sa_flags, sigismember(&sa.sa_mask, SIGUSR1),
	       sigismember(&sa.sa_mask, SIGUSR2));
}

static void test_actions(void)
{
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		unsigned long mask;
	} k;
	struct sigaction sa = {.sa_handler = on_plain}, old;

	show_action("installed", SIGSEGV);
	CHECK(signal(SIGSEGV, on_plain) == (sighandler_t)(void *)on_fault);
	show_action("signal()", SIGSEGV);
	if (!sigsetjmp(way_out, 1))
		load_first(NULL);
	CHECK(signal(SIGSEGV, SIG_IGN) == on_plain);
	show_action("ignored", SIGSEGV);
	CHECK(!sigaction(SIGSEGV, &sa, &old) && old.sa_handler == SIG_IGN);
	CHECK(!sigaction(SIGSEGV, &old, &old) && old.sa_handler == on_plain);
	install(SIGSEGV, SA_RESETHAND | SA_NODEFER);
	CHECK(!syscall(SYS_rt_sigaction, SIGSEGV, NULL, &k, 8));
	printf("raw: %d, flags %#lx\n", k.handler == (void *)on_fault, k.flags);
	CHECK(syscall(SYS_rt_sigaction, SIGSEGV, (void *)8, NULL, 8) == -1 && errno == EFAULT);
	what = LEAVE;
	if (!sigsetjmp(way_out, 1))
		load_first(NULL);
	show_action("once", SIGSEGV);
	k.handler = (void *)on_fault;
	CHECK(!syscall(SYS_rt_sigaction, SIGSEGV, &k, NULL, 8));
	k.flags &= ~(unsigned long)SA_RESETHAND;
	CHECK(!syscall(SYS_rt_sigaction, SIGSEGV, &k, &k, 8) && k.handler == (void *)on_fault);
	show_action("raw", SIGSEGV);
	what = MEND;
	printf("load_first mended: %ld\n", load_first(NULL));
	fflush(stdout);
}

/* The child's actions are its own, although its memory is ours. */
static void test_vfork(void)
{
	pid_t child = vfork();
	int status;

	if (child == 0) {
		signal(SIGSEGV, SIG_DFL);
		signal(SIGFPE, on_plain);
		_exit(0);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	show_action("after vfork", SIGSEGV);
	show_action("after vfork", SIGFPE);
	what = MEND;
	printf("load_first mended: %ld\n", load_first(NULL));
}

static void test_death(void)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		signal(SIGSEGV, SIG_DFL);
		load_first(NULL);
		_exit(1);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	printf("child died of %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

int main(void)
{
	const int signals[] = {SIGSEGV, SIGFPE, SIGILL, SIGTRAP};

	frames_to_main(); /* it may load a library */
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		install(signals[i], 0);
	test_faults();
	test_call();
	test_actions();
	test_vfork();
	test_death();
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * own_traps.c - a debugger of itself: writes int3 into a function of its own, counts how often it is
 * met, and steps over it; and puts a jump at the start of another one.
 *
 * Build: O2 O0
 * Calls: before=10
 */
#include "torture.h"
#include <sys/mman.h>
#include <ucontext.h>

static volatile int met;
static unsigned char saved;

OPAQUE static int leaf(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 3 + 1;
}
OPAQUE static int middle(int x)
{
	return leaf(x) + leaf(x + 1);
}
/* Long enough for a jump. */
OPAQUE static int replaced(int x)
{
	__asm__ volatile("nop; nop; nop; nop" : "+r"(x));
	return x + 1000;
}
OPAQUE static int replacement(int x)
{
	return x + 1;
}
OPAQUE static int call_replaced(int x)
{
	return replaced(x) + replaced(x);
}
OPAQUE static int before(int x)
{
	return x + 2;
}

static unsigned char *code(int (*f)(int))
{
	unsigned char *at = (unsigned char *)(uintptr_t)f;

	if (!memcmp(at, "\xf3\x0f\x1e\xfa", 4)) /* endbr64 */
		at += 4;
	return at;
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	unsigned char *at = code(leaf);

	(void)sig;
	if (info->si_code != TRAP_TRACE) {
		CHECK(regs[REG_RIP] == (greg_t)(uintptr_t)(at + 1));
		met++;
		*at = saved;
		regs[REG_RIP]--;
		regs[REG_EFL] |= 0x100; /* one step */
	} else {
		*at = 0xcc;
		regs[REG_EFL] &= ~0x100;
	}
}

static void open_code(int prot)
{
	uintptr_t lo = (uintptr_t)code(leaf) & -4096ul,
		  hi = (uintptr_t)code(call_replaced) & -4096ul;

	if (lo > hi) {
		uintptr_t t = lo;

		lo = hi;
		hi = t;
	}
	CHECK(!mprotect((void *)lo, hi - lo + 8192, prot));
}

int main(void)
{
	struct sigaction sa = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	unsigned char *at = code(replaced);
	int32_t distance = (int32_t)(code(replacement) - (at + 5));
	int sum = 0;

	for (int i = 0; i < 10; i++)
		sum += before(i) + middle(i) + call_replaced(i);
	CHECK(sum == 45 + 20 + 6 * 45 + 50 + 2 * 45 + 20000);
	CHECK(!sigaction(SIGTRAP, &sa, NULL));
	open_code(PROT_READ | PROT_WRITE | PROT_EXEC);
	saved = *code(leaf);
	*code(leaf) = 0xcc;
	for (int i = 0; i < 100; i++)
		sum += middle(i);
	printf("met %d times\n", met);
	*code(leaf) = saved;
	*at = 0xe9;
	memcpy(at + 1, &distance, 4);
	open_code(PROT_READ | PROT_EXEC);
	printf("%d\n", call_replaced(1));
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * unwinding.cc - calls that end without returning, on several stacks, in known numbers:
 *
 *   thrower 300 (100 of them throw, through thrower, middle and guard destructors)
 *   jumper 50, each longjmps to its caller      handler 40, half of them siglongjmp out
 *   yields 60, on three coroutines              dive 20,000 deep, twice
 */
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <ucontext.h>

#define FUNCTION extern "C" __attribute__((noinline))
#define BARRIER() __asm__ volatile("nop; nop; nop; nop; nop" ::: "memory")

FUNCTION int leaf(int x)
{
	BARRIER();
	return x + 1;
}

struct guard {
	~guard()
	{
		leaf(0);
	}
};

FUNCTION int thrower(int x)
{
	{
		guard g;

		if (x % 3 == 0)
			throw std::runtime_error("thrown");
		x = leaf(x);
	}
	BARRIER(); /* room for a probe at the exit */
	return x;
}

FUNCTION int middle(int x)
{
	{
		guard g;

		x = thrower(x);
	}
	BARRIER();
	return x;
}

FUNCTION int catcher(int x)
{
	try {
		x = middle(x);
	} catch (const std::exception &) {
		x = leaf(x);
	}
	BARRIER();
	return x;
}

static jmp_buf jump;
static sigjmp_buf signal_jump;

FUNCTION void jumper(int x)
{
	leaf(x);
	BARRIER();
	longjmp(jump, 1);
}

FUNCTION void jump_target(int x)
{
	if (!setjmp(jump))
		jumper(x);
	leaf(x);
	BARRIER();
}

FUNCTION void handler(int number)
{
	leaf(number);
	BARRIER();
	if (number == SIGUSR2)
		siglongjmp(signal_jump, 1);
	BARRIER();
}

FUNCTION void raiser(int number)
{
	leaf(number);
	if (!sigsetjmp(signal_jump, 1))
		raise(number);
	leaf(number);
	BARRIER();
}

static ucontext_t main_context, coroutine[3];

FUNCTION void yields(int i)
{
	leaf(i);
	swapcontext(&coroutine[i], &main_context);
	leaf(i);
	BARRIER();
}

FUNCTION void body(int i)
{
	for (int k = 0; k < 20; k++)
		yields(i);
	BARRIER();
}

FUNCTION void resume(int i)
{
	swapcontext(&main_context, &coroutine[i]);
	BARRIER();
}

FUNCTION int dive(int depth)
{
	int x = depth ? dive(depth - 1) : leaf(0);

	BARRIER();
	return x + 1;
}

int main()
{
	static char stacks[3][65536], signal_stack[65536];
	stack_t ss = {};
	struct sigaction sa = {};

	for (int i = 0; i < 300; i++)
		catcher(i);
	for (int i = 0; i < 50; i++)
		jump_target(i);
	ss.ss_sp = signal_stack;
	ss.ss_size = sizeof(signal_stack);
	sigaltstack(&ss, nullptr);
	sa.sa_handler = handler;
	sa.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &sa, nullptr);
	sigaction(SIGUSR2, &sa, nullptr);
	for (int i = 0; i < 20; i++) {
		raiser(SIGUSR1);
		raiser(SIGUSR2);
	}
	for (int i = 0; i < 3; i++) {
		getcontext(&coroutine[i]);
		coroutine[i].uc_stack.ss_sp = stacks[i];
		coroutine[i].uc_stack.ss_size = sizeof(stacks[i]);
		coroutine[i].uc_link = &main_context;
		makecontext(&coroutine[i], (void (*)())body, 1, i);
	}
	for (int k = 0; k < 21; k++)
		for (int i = 0; i < 3; i++)
			resume(i);
	printf("%d\n", dive(20000) + dive(19999));
	return 0;
}

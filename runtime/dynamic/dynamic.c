/* SPDX-License-Identifier: MIT */
/*
 * dynamic.c - the runtime in a program that ld.so has loaded it into: its start, and what is done there
 * and not in static programs (static.c).
 */
#include <link.h>
#include <signal.h>
#include "runtime/core/rt.h"
#include "runtime/faults/change.h"
#include "runtime/faults/faults.h"
#include "runtime/hooks/hooks.h"

/* Before the constructors of all other libraries: start.c. */
static void __attribute__((constructor)) rt_init(int argc, char **argv, char **envp)
{
	uint32_t more;

	(void)argc;
	(void)argv;
	more = rt_start(envp);
	if (more)
		rt_modules_ask((struct rt_question){.kind = KRON_HELLO_MODULES, .more = more});
}

bool rt_has_data(void)
{
	return true;
}

uint64_t rt_live_entry(void)
{
	return (uint64_t)kron_live_entry;
}

uint32_t rt_hello_flags(void)
{
	return 0;
}

extern struct r_debug rt_r_debug __asm__("_r_debug") __attribute__((weak, visibility("default")));

bool rt_modules_are_settled(void)
{
	return !&rt_r_debug || rt_r_debug.r_state == RT_CONSISTENT;
}

/* ---- change.h ---- */

void kron_rt_live(struct kron_live_call *call)
{
	if (call->op == KRON_LIVE_CHANGE)
		rt_change(call);
	__atomic_store_n(&call->done, 1, __ATOMIC_RELEASE);
}

/* ---- faults.h ---- */

void rt_faults_board(void)
{
	rt_faults_take_cut();
}

bool rt_signal_is_wrapped(int signal)
{
	(void)signal;
	return false;
}

enum rt_signal_way rt_signal_way(int *signal, siginfo_t *info, ucontext_t *uc, uint32_t *number)
{
	(void)signal, (void)info, (void)uc, (void)number;
	return RT_SIGNAL_SHOW;
}

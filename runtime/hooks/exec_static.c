/* SPDX-License-Identifier: MIT */
/*
 * exec_static.c - a program is about to be executed that nobody brings the runtime into: a static one, or
 * any, where it is to be left again (hook_exec.c).
 *
 *   here ──EXECUTES──► collector: has this thread traced     execve ──► it stands in front of its first
 *        ◄──AWAITED──                                                   instruction, and is attached to
 *
 * So the program gets the environment that it was given, and the kernel executes what it was told to.
 * A thread that is traced runs on as it did; if the execve fails, nobody traces it when the program learns of it.
 */
#include <errno.h>
#include <linux/prctl.h>
#include "runtime/hooks/exec_static.h"
#include "runtime/core/rt.h"
#include "runtime/hooks/hooks.h"
#include "runtime/sys/signals.h"
#include "runtime/sys/sys.h"

/* -errno, or the flags of the answer. */
static int ask(uint32_t kind, uint32_t again)
{
	const struct rt_question q = {
		.kind = kind, .again = again, .range = (uint32_t)sys_gettid()};
	struct rt_answer a;
	int ret = rt_ask(&a, &q);

	if (ret)
		return ret;
	rt_ask_end(&a, NULL);
	return (int)a.reply.flags;
}

/* Only when it is needed: it replaces what the program may have set itself (PR_SET_PTRACER). */
static int allow_and_ask(uint32_t loads)
{
	if (kron_rt.collector_pid <= 0 ||
	    sys5(__NR_prctl, PR_SET_PTRACER, kron_rt.collector_pid, 0, 0, 0) != 0)
		return -EPERM;
	return ask(KRON_HELLO_EXECUTES, loads | 1);
}

enum rt_exec_answer rt_exec_announce(bool may_load)
{
	const uint32_t loads = may_load ? KRON_AGAIN_LOADS : 0;
	int flags = ask(KRON_HELLO_EXECUTES, loads);

	if (flags > 0 && flags & KRON_REPLY_ALLOW)
		flags = allow_and_ask(loads);
	if (flags < 0)
		rt_start_untraced(kron_rt.leaves ? KRON_UNTRACED_UNAWAITED : KRON_UNTRACED_STATIC);
	if (flags > 0 && flags & KRON_REPLY_LOADS)
		return RT_EXEC_LOADS;
	return flags > 0 && flags & KRON_REPLY_AWAITED ? RT_EXEC_AWAITED : RT_EXEC_NOT;
}

void rt_exec_take_back(void)
{
	uint64_t mask = rt_signals_block();

	ask(KRON_HELLO_STAYS, 0);
	rt_signals_restore(mask);
}

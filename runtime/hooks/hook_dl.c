/* SPDX-License-Identifier: MIT */
/*
 * hook_dl.c - modules came or went: ask the collector what to do about them.
 *
 * ld.so calls _dl_debug_state() under its own lock, when new modules are mapped and before
 * anything in them runs (not even their relocation has been done), and again when modules are
 * gone.  So the text that is patched here belongs to modules that no thread can be in.
 *
 * hook_map.c asks in the same way, under no lock of others: one thread of a process at a time.
 */
#include <errno.h>
#include "runtime/core/rt.h"
#include "runtime/hooks/hooks.h"
#include "runtime/sys/signals.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

/* The next question; false: there is none.  Again: other threads have mapped memory where a block was to go. */
static bool ask_once(struct rt_question *q)
{
	struct kron_result res;
	struct rt_answer a;
	int ret;

	ret = rt_ask(&a, q);
	if (ret == -ECONNREFUSED)
		kron_rt.cut_off = true;
	if (ret == -EAGAIN) /* it may not have heard of us */
		rt_start_untraced(KRON_UNTRACED_UNHEARD);
	if (ret)
		return false;
	mini_zero(&res, sizeof(res));
	res.magic = KRON_WIRE_MAGIC;
	res.kind = KRON_RESULT_END;
	res.pid = kron_rt.proc->pid;
	res.proc_uid = kron_rt.proc->uid;
	res.proc_slot = kron_rt.proc->slot;
	if (a.reply.version != KRON_WIRE_VERSION)
		res.code = KRON_RESULT_VERSION;
	else if (a.reply.ncommands)
		rt_apply(&a, a.fd[0], &res);
	if (q->again == KRON_AGAIN_MAX)
		res.flags &= ~KRON_RESULT_AGAIN;
	rt_ask_end(&a, &res);
	if (res.flags & KRON_RESULT_AGAIN) {
		q->again++;
		return true;
	}
	*q = (struct rt_question){.kind = KRON_HELLO_MODULES, .more = a.reply.more};
	return q->more;
}

/* Signals are blocked, so nobody waits for himself. */
static void take_turn(struct rt_proc *p)
{
	/* Acquire: what the one before has changed; partner: the release at the end. */
	while (__atomic_exchange_n(&p->asks, 1, __ATOMIC_ACQUIRE))
		sys0(__NR_sched_yield);
}

void rt_modules_ask(struct rt_question q)
{
	uint64_t mask;

	if (kron_rt.quiet || kron_rt.cut_off ||
	    __atomic_load_n(&kron_rt.ctl->closing, __ATOMIC_ACQUIRE))
		return;
	if (rt_collector_is_gone()) {
		rt_start_untraced(KRON_UNTRACED_GONE_LOADS);
		return;
	}
	mask = rt_signals_block();
	if (rt_proc_ensure() && rt_proc_is_ours()) {
		take_turn(kron_rt.proc);
		while (ask_once(&q))
			;
		__atomic_store_n(&kron_rt.proc->asks, 0, __ATOMIC_RELEASE);
	}
	rt_signals_restore(mask);
}

void rt_hook_dl_state(void)
{
	if (rt_modules_are_settled())
		rt_modules_ask((struct rt_question){.kind = KRON_HELLO_MODULES});
}

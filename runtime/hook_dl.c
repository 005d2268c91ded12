/* SPDX-License-Identifier: MIT */
/*
 * hook_dl.c - modules came or went: ask the collector what to do about them.
 *
 * ld.so calls _dl_debug_state() under its own lock, when new modules are mapped and before
 * anything in them runs (not even their relocation has been done), and again when modules are
 * gone.  So the text that is patched here belongs to modules that no thread can be in.
 */
#include <link.h>
#include "runtime/rt.h"
#include "runtime/sys.h"
#include "runtime/mini.h"

extern struct r_debug rt_r_debug __asm__("_r_debug") __attribute__((weak, visibility("default")));

static bool is_consistent(void)
{
	return !&rt_r_debug || rt_r_debug.r_state == RT_CONSISTENT;
}

static void ask_about_modules(void)
{
	struct kron_result res;
	struct rt_answer a;

	if (!rt_proc_ensure() || !rt_proc_is_ours() || rt_ask(&a, KRON_HELLO_MODULES) != 0)
		return;
	mini_zero(&res, sizeof(res));
	res.magic = KRON_WIRE_MAGIC;
	res.pid = kron_rt.proc->pid;
	res.proc_uid = kron_rt.proc->uid;
	res.proc_slot = kron_rt.proc->slot;
	if (a.reply.version != KRON_WIRE_VERSION)
		res.code = KRON_RESULT_VERSION;
	else if (a.reply.ncommands)
		rt_apply(a.fd[0], a.reply.commands_size, a.reply.ncommands, &res);
	rt_ask_end(&a, &res);
}

void rt_hook_dl_state(void)
{
	uint64_t mask;

	if (!kron_rt.live || kron_rt.quiet || !is_consistent() ||
	    __atomic_load_n(&kron_rt.ctl->closing, __ATOMIC_ACQUIRE) || rt_collector_is_gone())
		return;
	mask = rt_signals_block();
	ask_about_modules();
	rt_signals_restore(mask);
}

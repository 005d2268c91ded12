/* SPDX-License-Identifier: MIT */
/*
 * static_go.c - signals that Go's runtime sends to its own threads (faults.h: enum rt_signal_way).
 *
 * It stops a goroutine by a signal (SIGURG) that asks where it is, and when nobody can tell from the
 * address it tries again: for ever, if a loop runs in stubs.  There the signal waits: we step on (TF) to
 * where a stub begins, which is as good as being in front of the jump that leads there, and then it
 * comes.  Its profiler's signal (SIGPROF) is told of the instruction that a probe belongs to.
 *
 * Async-signal-safe; no state but the waiting signal.
 */
#define _GNU_SOURCE
#include <signal.h>
#include "runtime/core/rt.h"
#include "runtime/faults/faults.h"
#include "runtime/faults/spots.h"
#include "runtime/faults/unwind.h"
#include "runtime/static/static.h"
#include "runtime/sys/mini.h"

#define EFLAGS_TF 0x100
#define STEPS_MAX 20000u

static uint64_t *reg(ucontext_t *uc, int which)
{
	return (uint64_t *)&uc->uc_mcontext.gregs[which];
}

static uint32_t waiting; /* number of the handler for it; 0: none was ever waiting */
static uint32_t steps;   /* of all threads: it is a limit, no count */

/* Is pc an address that Go may see: the module's, the start of a stub, or neither module's nor ours? */
static bool is_home(uint64_t pc)
{
	const struct kron_tables *t = rt_block_at(pc);
	struct rt_spot s;

	if (t)
		return rt_spot_at(t, pc, &s) && pc == s.start &&
		       (rt_patch_leads_to(t, s.insn, true) == pc ||
			/* a loop that enters after the probe never passes its stub's start */
			(steps > STEPS_MAX && s.shape == KRON_SHAPE_INSN && rt_is_site(t, s.insn)));
	t = rt_block_of_text(pc);
	if (rt_is_own_code(pc) || !t)
		return !t && !rt_is_own_code(pc);
	return rt_is_site(t, pc) || *(const uint8_t *)pc != 0xe9 ||
	       !rt_patch_leads_to(t, pc, false);
}

/* After a system call SIGTRAP may be blocked, and then a step kills. */
static bool may_step(const ucontext_t *uc, uint64_t pc)
{
	const uint8_t *p = (const uint8_t *)pc;

	return rt_faults_trap() && !(uc->uc_sigmask.__val[0] & 1ul << (SIGTRAP - 1)) &&
	       (rt_block_at(pc) || rt_block_of_text(pc) || rt_is_own_code(pc)) &&
	       !(p[0] == 0x0f && p[1] == 0x05);
}

static bool waits(ucontext_t *uc)
{
	if (is_home(*reg(uc, REG_RIP)) || !may_step(uc, *reg(uc, REG_RIP)))
		return false;
	*reg(uc, REG_EFL) |= EFLAGS_TF;
	return true;
}

/*
 * SIGURG and the steps of ours that follow it.  True: not now.  A step that has come home is turned
 * into what was waiting for it.
 */
static bool put_off(int *signal, siginfo_t *info, ucontext_t *uc, uint32_t *number)
{
	if (*signal == SIGURG) {
		steps = 0;
		waiting = *number;
		return waits(uc);
	}
	/* after a popf TF is what it was before; and what a pushf has kept may come later */
	if (*signal != SIGTRAP || !waiting || info->si_code != TRAP_TRACE)
		return false;
	if (steps++ < 2 * STEPS_MAX && waits(uc))
		return true;
	*reg(uc, REG_EFL) &= ~(uint64_t)EFLAGS_TF;
	mini_zero(info, sizeof(*info));
	info->si_signo = *signal = SIGURG;
	info->si_code = SI_TKILL;
	*number = waiting;
	return false;
}

static bool is_go(void)
{
	return kron_rt_stacks != NULL;
}

bool rt_signal_is_wrapped(int signal)
{
	return is_go() && (signal == SIGURG || signal == SIGPROF);
}

enum rt_signal_way rt_signal_way(int *signal, siginfo_t *info, ucontext_t *uc, uint32_t *number)
{
	if (is_go() && put_off(signal, info, uc, number))
		return RT_SIGNAL_LATER;
	/* it will be tried again */
	return *signal == SIGURG && !is_home(*reg(uc, REG_RIP)) ? RT_SIGNAL_AS_IS : RT_SIGNAL_SHOW;
}

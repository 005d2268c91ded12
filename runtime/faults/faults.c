/* SPDX-License-Identifier: MIT */
/*
 * faults.c - what the program's handlers see of a signal that stopped it in a stub.
 *
 *   RIP   the instruction's own address, when the signal stopped it in its new place
 *   RSP   as it is in front of the instruction (a displaced call has pushed already)
 *   si_addr of SIGILL, SIGFPE, SIGTRAP: the instruction's own address
 *
 * When the handler returns, RIP unchanged means: on in the stub.  Another RIP that lies in a
 * displaced window goes to the instruction's new place, probes in front of it included.  What
 * was shown and where to go back to stand in the signal frame, in words of the context that
 * the kernel reserves and never reads; so nothing is kept here, and handlers that leave by
 * siglongjmp leave nothing behind.
 *
 * A fault in code of ours, a probe's push where the stack ends, is shown as one of the instruction
 * that the probe stands in front of, or not at all (own_faults.c).  Any other signal that stops the
 * program in the middle of a probe (somebody's kill) is shown as it is.
 *
 * Steps (TF): a program that steps itself must see each of its instructions once: at its own
 * address.  Steps through probes, and through the jumps between module and stub, are ours.
 *
 * Async-signal-safe; no state but `stepped`.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <ucontext.h>
#include <kron/live.h>
#include "runtime/core/rt.h"
#include "runtime/core/thread.h"
#include "runtime/faults/faults.h"
#include "runtime/sys/memory.h"
#include "runtime/faults/spots.h"
#include "runtime/sys/sys.h"
#include "runtime/faults/unwind.h"
#include "runtime/sys/mini.h"

#define EFLAGS_TF 0x100
#define TRAP_STEP 1 /* the processor's number of a debug exception */

/* Reserved words of the context: sigcontext.reserved1.  The surgeon reads them, too (signal_frames.c). */
enum { NOTE_COOKIE, NOTE_SHOWN, NOTE_BACK, NOTE_DEPTH };

/* The window's first instruction was shown in the module; it comes once more in the stub.  Where threads
 * have no word of their own, those that step themselves must do so one at a time. */
static uint64_t *stepped_word(void)
{
	static uint64_t common;
	struct rt_own *own = rt_thread_own();

	return own ? &own->stepped : &common;
}

static uint64_t *reg(ucontext_t *uc, int which)
{
	return (uint64_t *)&uc->uc_mcontext.gregs[which];
}

static uint64_t *notes(ucontext_t *uc)
{
	return (uint64_t *)uc->uc_mcontext.__reserved1;
}

/* ---- sites ---- */

uint64_t rt_patch_leads_to(const struct kron_tables *t, uint64_t addr, bool prefix)
{
	for (unsigned jumps = 0; jumps < KRON_RELAYS_MAX + 2; jumps++) {
		const uint8_t *p = (const uint8_t *)addr;
		int32_t far;

		if (prefix && *p != 0xe9 && *p != 0xeb)
			p++;
		prefix = false;
		if (*p == 0xe9) {
			mini_copy(&far, p + 1, sizeof(far));
			addr = (uint64_t)(p + 5) + (uint64_t)(int64_t)far;
			return addr - rt_block_start(t) < t->offset ? addr : 0;
		}
		if (*p != 0xeb)
			return 0;
		addr = (uint64_t)(p + 2) + (uint64_t)(int64_t)(int8_t)p[1];
		if (addr - t->lo - kron_tables_bias(t) >= t->hi - t->lo)
			return 0;
	}
	return 0;
}

bool rt_is_site(const struct kron_tables *t, uint64_t insn)
{
	uint64_t stub =
		rt_trap_at(t, insn) ? rt_trap_at(t, insn)->stub : rt_patch_leads_to(t, insn, true);
	struct rt_spot s;

	return stub && rt_spot_at(t, stub, &s) && s.insn == insn;
}

/* ---- showing, and back ---- */

static void mark_shown(ucontext_t *uc, uint64_t insn, uint64_t back, uint64_t depth)
{
	uint64_t *note = notes(uc);

	note[NOTE_COOKIE] = KRON_LIVE_COOKIE ^ (uint64_t)uc;
	note[NOTE_SHOWN] = insn;
	note[NOTE_BACK] = back;
	note[NOTE_DEPTH] = depth;
}

static bool is_fault(int signal, const siginfo_t *info)
{
	return info->si_code > 0 && (signal == SIGSEGV || signal == SIGBUS);
}

static void show(int signal, siginfo_t *info, ucontext_t *uc)
{
	uint64_t *rip = reg(uc, REG_RIP), stub = *rip, depth;
	const struct kron_tables *t = rt_block_at(stub);
	struct rt_own_fault own;
	struct rt_spot s;
	uint64_t pos;

	if (is_fault(signal, info) && rt_own_fault_undo(uc, &own)) {
		mark_shown(uc, own.insn, own.begin, 0);
		return;
	}
	if (!t || !rt_spot_at(t, stub, &s))
		return;
	pos = stub - s.start;
	depth = rt_spot_depth(t, &s, pos);
	if (signal == SIGPROF) { /* a profiler takes any place near it */
		mark_shown(uc, s.insn, stub, depth);
	} else if (rt_spot_is_insn(s.shape) ? depth > 8 || (pos && !depth) : pos || depth) {
		return;
	} else {
		mark_shown(uc, s.insn, s.start, 0);
	}
	*rip = s.insn;
	*reg(uc, REG_RSP) += depth;
	if (info->si_code > 0 && signal != SIGSEGV && signal != SIGBUS &&
	    (uint64_t)info->si_addr == stub)
		info->si_addr = (void *)*rip;
}

void kron_rt_resume(ucontext_t *uc) __attribute__((visibility("hidden")));

void kron_rt_resume(ucontext_t *uc)
{
	uint64_t *rip = reg(uc, REG_RIP), *note = notes(uc);
	bool shown = note[NOTE_COOKIE] == (KRON_LIVE_COOKIE ^ (uint64_t)uc);
	const struct kron_tables *t = NULL;
	struct rt_spot s;

	note[NOTE_COOKIE] = 0;
	if (shown && *rip == note[NOTE_SHOWN]) {
		*rip = note[NOTE_BACK];
		*reg(uc, REG_RSP) -= note[NOTE_DEPTH];
		return;
	}
	while ((t = rt_block_of_text_next(t, *rip)))
		if (rt_spot_of(t, *rip, &s)) {
			*rip = rt_is_site(t, *rip) ? *rip : s.start;
			return;
		}
}

bool rt_is_displaced(uint64_t insn)
{
	const struct kron_tables *t = NULL;
	struct rt_spot s;

	while ((t = rt_block_of_text_next(t, insn)))
		if (rt_spot_of(t, insn, &s))
			return true;
	return false;
}

/* ---- steps ---- */

/* A landing or relay on the way from the site that was shown to its stub? */
static bool is_on_way(const struct kron_tables *t, uint64_t pc, uint64_t site)
{
	uint64_t stub = site && pc != site ? rt_patch_leads_to(t, pc, false) : 0;
	struct rt_spot s;

	return stub && rt_spot_at(t, stub, &s) && s.insn == site;
}

/* A step that ended where the program has no instruction, or one that it has seen. */
static bool is_own_step(uint64_t pc)
{
	const struct kron_tables *t = rt_block_at(pc);
	uint64_t *last = stepped_word(), seen = *last;
	struct rt_spot s;

	if (rt_is_own_code(pc))
		return true;
	if (!t) {
		t = rt_block_of_text(pc);
		if (t && is_on_way(t, pc, seen))
			return true;
		*last = 0;
		if (!t)
			return false;
		if (rt_is_site(t, pc)) {
			*last = pc;
			return false;
		}
		return *(const uint8_t *)pc == 0xe9 &&
		       rt_patch_leads_to(t, pc, false); /* a landing */
	}
	if (!rt_spot_at(t, pc, &s) || !rt_spot_is_insn(s.shape) || pc != s.start)
		return true;
	*last = 0;
	return s.insn == seen;
}

/* ---- SIGTRAP ---- */

/* As the kernel does it: the default action, with what it has told us. */
static void die(int signal, siginfo_t *info)
{
	static const struct rt_action dfl;

	sys4(__NR_rt_sigaction, signal, (long)&dfl, 0, 8);
	/* It is blocked here: it comes when we return, in front of the next instruction. */
	sys4(__NR_rt_tgsigqueueinfo, sys_getpid(), sys_gettid(), signal, (long)info);
}

static bool take_trap(siginfo_t *info, ucontext_t *uc)
{
	uint64_t *rip = reg(uc, REG_RIP);
	const struct kron_tables *t = rt_block_of_text(*rip - 1);
	const struct kron_trap *trap = t && info->si_code > 0 ? rt_trap_at(t, *rip - 1) : NULL;

	if (trap && !(*reg(uc, REG_EFL) & EFLAGS_TF && *reg(uc, REG_TRAPNO) == TRAP_STEP)) {
		*rip = trap->stub;
		return true;
	}
	return *reg(uc, REG_EFL) & EFLAGS_TF && *reg(uc, REG_TRAPNO) == TRAP_STEP &&
	       is_own_step(*rip);
}

/* The handler to go to, 0 = back to where we came from. */
uint64_t kron_rt_fault(int signal, siginfo_t *info, ucontext_t *uc, uint32_t number,
		       struct rt_handler_args *args) __attribute__((visibility("hidden")));

uint64_t kron_rt_fault(int signal, siginfo_t *info, ucontext_t *uc, uint32_t number,
		       struct rt_handler_args *args)
{
	enum rt_signal_way way;

	notes(uc)[NOTE_COOKIE] = 0;
	way = rt_signal_way(&signal, info, uc, &number);
	if (way == RT_SIGNAL_LATER)
		return 0;
	args->signal = (uint64_t)signal;
	if (way == RT_SIGNAL_AS_IS)
		return rt_fault_handler(number);
	if (signal == SIGTRAP && take_trap(info, uc))
		return 0;
	if (signal == SIGBUS && info->si_code == BUS_ADRERR && kron_rt.cuttable &&
	    rt_memory_replace((uint64_t)info->si_addr)) {
		rt_fault_again(signal, number);
		return 0;
	}
	if (is_fault(signal, info) && rt_own_fault_serve(uc)) {
		rt_fault_again(signal, number);
		return 0;
	}
	if (number < RT_HANDLERS_FIXED) {
		/* the kernel forces its own traps on whoever ignores them */
		if (number != RT_HANDLER_IGNORE || info->si_code > 0)
			die(signal, info);
		return 0;
	}
	show(signal, info, uc);
	return rt_fault_handler(number);
}

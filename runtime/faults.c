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
 * A signal that stops the program in the middle of a probe (somebody's kill) is shown as it is.
 *
 * Steps (TF): a program that steps itself must see each of its instructions once: at its own
 * address.  Steps through probes, and through the jumps between module and stub, are ours.
 *
 * Go's runtime stops a goroutine by a signal (SIGURG) that asks where it is, and when nobody can tell
 * from the address it tries again: for ever, if a loop runs in stubs.  There the signal waits: we
 * step on (TF) to where a stub begins, which is as good as being in front of the jump that leads
 * there, and then it comes.  Its profiler's signal (SIGPROF) is told of the instruction that a probe
 * belongs to.
 *
 * Async-signal-safe; no state but `stepped` and the waiting signal.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <ucontext.h>
#include "runtime/rt.h"
#include "runtime/faults.h"
#include "runtime/sys.h"
#include "runtime/unwind.h"
#ifdef RT_STATIC
#include "runtime/static.h"
#endif
#include "runtime/mini.h"

#define COOKIE 0x6b726f6e66617531ull
#define EFLAGS_TF 0x100
#define TRAP_STEP 1 /* the processor's number of a debug exception */

/* Reserved words of the context: sigcontext.reserved1. */
enum { NOTE_COOKIE, NOTE_SHOWN, NOTE_BACK, NOTE_DEPTH };

/* The window's first instruction was shown in the module; it comes once more in the stub.  Without
 * thread data threads that step themselves must do so one at a time. */
static RT_THREAD uint64_t stepped;

static uint64_t *stepped_word(void)
{
	static uint64_t strange; /* of all threads, as without thread data */

	return rt_is_strange() ? &strange : &stepped;
}

extern const uint8_t own_start[] __asm__("__ehdr_start") __attribute__((visibility("hidden")));
extern const uint8_t own_end[] __asm__("_end") __attribute__((visibility("hidden")));

static uint64_t *reg(ucontext_t *uc, int which)
{
	return (uint64_t *)&uc->uc_mcontext.gregs[which];
}

static uint64_t *notes(ucontext_t *uc)
{
	return (uint64_t *)uc->uc_mcontext.__reserved1;
}

/* ---- the tables ---- */

static uint64_t block_of(const struct kron_tables *t)
{
	return (uint64_t)t - t->offset;
}

/* What instructions count from. */
static uint64_t text_of(const struct kron_tables *t)
{
	return t->lo + kron_tables_bias(t);
}

struct spot {
	uint64_t start; /* in the stub */
	uint64_t insn;  /* in the module */
	enum kron_shape shape;
};

static const uint32_t *spots(const struct kron_tables *t)
{
	return (const uint32_t *)((const uint8_t *)t + t->spot_at);
}

static const struct kron_granule *granules(const struct kron_tables *t)
{
	return (const struct kron_granule *)((const uint8_t *)t + t->granule_at);
}

/* Spot i, of granule g.  The first one may go on from the granule before. */
static struct spot spot_of_granule(const struct kron_tables *t, uint32_t g, uint32_t i)
{
	const struct kron_granule *granule = granules(t) + g;
	uint32_t spot = spots(t)[i], off = KRON_SPOT_OFFSET(spot);
	uint64_t start = block_of(t) + (uint64_t)g * KRON_GRANULE + off;

	if (i == granule->first && off && (uint64_t)g * KRON_GRANULE > t->stubs_at)
		start -= KRON_GRANULE;
	return (struct spot){
		.start = start,
		.insn = text_of(t) + granule->insn + KRON_SPOT_INSN(spot),
		.shape = KRON_SPOT_SHAPE(spot),
	};
}

static uint64_t depth_of(const struct kron_tables *t, const struct spot *s, uint64_t pos)
{
	const uint8_t *depth = (const uint8_t *)t + t->depth_at + s->shape * KRON_SHAPE_BYTES;

	return 8ull * depth[pos < KRON_SHAPE_BYTES ? pos : KRON_SHAPE_BYTES - 1];
}

static bool is_insn(enum kron_shape shape)
{
	return shape == KRON_SHAPE_INSN || shape == KRON_SHAPE_CALL ||
	       shape == KRON_SHAPE_CALL_RELATIVE || shape == KRON_SHAPE_RESULT;
}

/* The spot that holds pc; false in the block's head and behind its stubs. */
static bool spot_at(const struct kron_tables *t, uint64_t pc, struct spot *out)
{
	uint64_t x = pc - block_of(t);
	uint32_t g = (uint32_t)(x / KRON_GRANULE), i, end;

	if (x < t->stubs_at || x / KRON_GRANULE >= t->ngranules)
		return false;
	i = granules(t)[g].first;
	end = granules(t)[g + 1].first;
	if (i == end)
		return false;
	while (i + 1 < end && KRON_SPOT_OFFSET(spots(t)[i + 1]) <= x % KRON_GRANULE)
		i++;
	*out = spot_of_granule(t, g, i);
	return true;
}

/* A granule that comes before the instruction's first spot. */
static uint32_t granule_before(const struct kron_tables *t, uint64_t insn)
{
	uint32_t lo = 0, hi = t->ngranules;

	if (!(t->flags & KRON_TABLES_SORTED))
		return 0;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (text_of(t) + granules(t)[mid].insn < insn)
			lo = mid + 1;
		else
			hi = mid;
	}
	/* its site may be longer than a granule, and its instructions lie behind the site's start */
	while (lo && text_of(t) + granules(t)[lo - 1].insn + KRON_WINDOW_MAX >= insn)
		lo--;
	return lo ? lo - 1 : 0;
}

/* The first spot of the instruction, false when it was not displaced. */
static bool spot_of(const struct kron_tables *t, uint64_t insn, struct spot *out)
{
	for (uint32_t g = granule_before(t, insn); g < t->ngranules; g++) {
		if (t->flags & KRON_TABLES_SORTED && text_of(t) + granules(t)[g].insn > insn)
			return false;
		for (uint32_t i = granules(t)[g].first; i < granules(t)[g + 1].first; i++) {
			*out = spot_of_granule(t, g, i);
			/* what only leads back to it is not the instruction */
			if (out->insn == insn && out->shape != KRON_SHAPE_BACK)
				return true;
		}
	}
	return false;
}

static const struct kron_trap *trap_at(const struct kron_tables *t, uint64_t addr)
{
	const struct kron_trap *trap = (const struct kron_trap *)((const uint8_t *)t + t->traps_at);
	uint32_t lo = 0, hi = t->ntraps;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (trap[mid].addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->ntraps && trap[lo].addr == addr ? &trap[lo] : NULL;
}

/*
 * Where the module's code at addr leads into the block, or 0: the jump that stands at a site or
 * a landing, behind a prefix if there may be one.  A short one goes by way of a landing, and
 * of relays before it.
 */
static uint64_t patch_leads_to(const struct kron_tables *t, uint64_t addr, bool prefix)
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
			return addr - block_of(t) < t->offset ? addr : 0;
		}
		if (*p != 0xeb)
			return 0;
		addr = (uint64_t)(p + 2) + (uint64_t)(int64_t)(int8_t)p[1];
		if (addr - text_of(t) >= t->hi - t->lo)
			return 0;
	}
	return 0;
}

/* Does a patch stand at the instruction?  It was displaced, so its bytes may be read. */
static bool is_site(const struct kron_tables *t, uint64_t insn)
{
	uint64_t stub = trap_at(t, insn) ? trap_at(t, insn)->stub : patch_leads_to(t, insn, true);
	struct spot s;

	return stub && spot_at(t, stub, &s) && s.insn == insn;
}

/* ---- showing, and back ---- */

static void show(int signal, siginfo_t *info, ucontext_t *uc)
{
	uint64_t *rip = reg(uc, REG_RIP), stub = *rip, depth;
	const struct kron_tables *t = rt_block_at(stub);
	struct spot s;
	uint64_t pos;

	if (!t || !spot_at(t, stub, &s))
		return;
	pos = stub - s.start;
	depth = depth_of(t, &s, pos);
	notes(uc)[NOTE_BACK] = s.start;
	notes(uc)[NOTE_DEPTH] = 0;
	if (signal == SIGPROF) { /* who only looks may see more */
		notes(uc)[NOTE_BACK] = stub;
		notes(uc)[NOTE_DEPTH] = depth;
	} else if (is_insn(s.shape) ? depth > 8 || (pos && !depth) : pos || depth) {
		return;
	}
	notes(uc)[NOTE_COOKIE] = COOKIE ^ (uint64_t)uc;
	notes(uc)[NOTE_SHOWN] = s.insn;
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
	bool shown = note[NOTE_COOKIE] == (COOKIE ^ (uint64_t)uc);
	const struct kron_tables *t;
	struct spot s;

	note[NOTE_COOKIE] = 0;
	if (shown && *rip == note[NOTE_SHOWN]) {
		*rip = note[NOTE_BACK];
		*reg(uc, REG_RSP) -= note[NOTE_DEPTH];
		return;
	}
	t = rt_block_of_text(*rip);
	if (t && spot_of(t, *rip, &s) && !is_site(t, *rip))
		*rip = s.start;
}

/* ---- steps ---- */

static bool is_own_code(uint64_t pc)
{
	return pc >= (uint64_t)own_start && pc < (uint64_t)own_end;
}

/* A landing or relay on the way from the site that was shown to its stub? */
static bool is_on_way(const struct kron_tables *t, uint64_t pc, uint64_t site)
{
	uint64_t stub = site && pc != site ? patch_leads_to(t, pc, false) : 0;
	struct spot s;

	return stub && spot_at(t, stub, &s) && s.insn == site;
}

/* A step that ended where the program has no instruction, or one that it has seen. */
static bool is_own_step(uint64_t pc)
{
	const struct kron_tables *t = rt_block_at(pc);
	uint64_t *last = stepped_word(), seen = *last;
	struct spot s;

	if (is_own_code(pc))
		return true;
	if (!t) {
		t = rt_block_of_text(pc);
		if (t && is_on_way(t, pc, seen))
			return true;
		*last = 0;
		if (!t)
			return false;
		if (is_site(t, pc)) {
			*last = pc;
			return false;
		}
		return *(const uint8_t *)pc == 0xe9 && patch_leads_to(t, pc, false); /* a landing */
	}
	if (!spot_at(t, pc, &s) || !is_insn(s.shape) || pc != s.start)
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
	const struct kron_trap *trap = t && info->si_code > 0 ? trap_at(t, *rip - 1) : NULL;

	if (trap && !(*reg(uc, REG_EFL) & EFLAGS_TF && *reg(uc, REG_TRAPNO) == TRAP_STEP)) {
		*rip = trap->stub;
		return true;
	}
	return *reg(uc, REG_EFL) & EFLAGS_TF && *reg(uc, REG_TRAPNO) == TRAP_STEP &&
	       is_own_step(*rip);
}

/* ---- Go's SIGURG ---- */

#ifdef RT_STATIC
#define STEPS_MAX 20000u

static uint32_t waiting; /* number of the handler for it; 0: none was ever waiting */
static uint32_t steps;   /* of all threads: it is a limit, no count */

/* For Go to see as an address of the module, or of nobody's. */
static bool is_home(uint64_t pc)
{
	const struct kron_tables *t = rt_block_at(pc);
	struct spot s;

	if (t)
		return spot_at(t, pc, &s) && pc == s.start &&
		       (patch_leads_to(t, s.insn, true) == pc ||
			/* a loop that comes in behind the probe never passes its stub's start */
			(steps > STEPS_MAX && s.shape == KRON_SHAPE_INSN && is_site(t, s.insn)));
	t = rt_block_of_text(pc);
	if (is_own_code(pc) || !t)
		return !t && !is_own_code(pc);
	return is_site(t, pc) || *(const uint8_t *)pc != 0xe9 || !patch_leads_to(t, pc, false);
}

/* After a system call SIGTRAP may be blocked, and then a step kills. */
static bool may_step(const ucontext_t *uc, uint64_t pc)
{
	const uint8_t *p = (const uint8_t *)pc;

	return rt_faults_trap() && !(uc->uc_sigmask.__val[0] & 1ul << (SIGTRAP - 1)) &&
	       (rt_block_at(pc) || rt_block_of_text(pc) || is_own_code(pc)) &&
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
	/* behind a popf TF is what it was before; and what a pushf has kept may come later */
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
#endif

/* The handler to go to, 0 = back to where we came from. */
uint64_t kron_rt_fault(int signal, siginfo_t *info, ucontext_t *uc, uint32_t number,
		       struct rt_handler_args *args) __attribute__((visibility("hidden")));

uint64_t kron_rt_fault(int signal, siginfo_t *info, ucontext_t *uc, uint32_t number,
		       struct rt_handler_args *args)
{
	notes(uc)[NOTE_COOKIE] = 0;
#ifdef RT_STATIC
	if (kron_start.flags & KRON_START_SMALL_STACKS && put_off(&signal, info, uc, &number))
		return 0;
	args->signal = (uint64_t)signal;
	if (signal == SIGURG && !is_home(*reg(uc, REG_RIP)))
		return rt_fault_handler(number); /* as it is: it will be tried again */
#else
	(void)args;
#endif
	if (signal == SIGTRAP && take_trap(info, uc))
		return 0;
	if (number < RT_HANDLERS_FIXED) {
		/* the kernel forces its own traps on whoever ignores them */
		if (number == RT_HANDLER_DEFAULT || info->si_code > 0)
			die(signal, info);
		return 0;
	}
	show(signal, info, uc);
	return rt_fault_handler(number);
}

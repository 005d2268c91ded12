/* SPDX-License-Identifier: MIT */
/*
 * hook_signals.c - the program installs a handler: the kernel gets one of our entries for it.
 *
 *   program ─ sigaction(SIGSEGV, {h}) ─► libc ─ rt_sigaction(SIGSEGV, {entry[n]}) ─► kernel
 *                                                         handlers[n] = h
 *
 * In static programs the hook stands in front of the system call (hook_system_call()).  In others it
 * is a hook at the code of libc's sigaction() rather than a function in its place: signal(), sigset()
 * and their kin inside libc go there too, and callers that found it by dlsym() or a version.
 * libc still makes the call, with its own restorer, and is traced as ever.  A file from kron patch
 * that is woken by KRON_BOARD has no hooks in libc: there it is where the file calls sigaction().
 *
 * Which handler is the program's stands in the kernel and nowhere else: by the number of the
 * entry.  So vfork children, who share our memory but not their actions, and threads that set
 * actions at the same time need nothing from us, and exec resets what it resets.
 *
 * Masks, SA_NODEFER, SA_RESETHAND, SA_ONSTACK and SA_RESTART are the kernel's business as ever.
 * SA_SIGINFO we always set, so that the entry is told what happened, and take out of what the
 * program asks back.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include "runtime/core/rt.h"
#include "runtime/core/thread.h"
#include "runtime/faults/faults.h"
#include "runtime/sys/signals.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

#define ENTRY_SIZE 16u
#define SIGINFO_FLAG 4u       /* SA_SIGINFO */
#define ONCE_FLAG 0x80000000u /* SA_RESETHAND */
#define COMMON_SCRATCH 64u    /* where threads have none of their own */

void kron_rt_return(void) __attribute__((visibility("hidden")));
extern const uint8_t kron_rt_fault_entries[] __attribute__((visibility("hidden")));

struct handler {
	uint32_t state;       /* atomic: 0 free, 1 being written, 2 there for ever */
	uint32_t had_siginfo; /* SA_SIGINFO as the program gave it */
	uint64_t handler;
};
enum { FREE, WRITING, THERE };

static struct handler handlers[RT_FAULT_ENTRIES]; /* without the fixed ones */
static bool takes_traps;                          /* rt_faults_take(SIGTRAP); only set; atomic */
static bool wraps_trap;                           /* SIGTRAP's action is one of ours; atomic */

bool rt_faults_trap(void)
{
	return __atomic_load_n(&wraps_trap, __ATOMIC_RELAXED);
}

uint64_t rt_fault_handler(uint32_t number)
{
	if (number < RT_HANDLERS_FIXED || number >= RT_FAULT_ENTRIES)
		return number == RT_HANDLER_IGNORE;
	return handlers[number].handler;
}

static bool is_fault(int signal)
{
	return rt_signal_is_wrapped(signal) || signal == SIGSEGV || signal == SIGBUS ||
	       signal == SIGFPE || signal == SIGILL || signal == SIGTRAP;
}

static long ask(int signal, struct rt_action *old)
{
	return sys4(__NR_rt_sigaction, signal, 0, (long)old, 8);
}

/* ---- entries ---- */

static uint64_t entry_of(uint32_t number)
{
	return (uint64_t)kron_rt_fault_entries + (uint64_t)number * ENTRY_SIZE;
}

/* RT_FAULT_ENTRIES: it is none of ours. */
static uint32_t number_of(uint64_t handler)
{
	uint64_t off = handler - (uint64_t)kron_rt_fault_entries;

	return off < RT_FAULT_ENTRIES * ENTRY_SIZE ? (uint32_t)(off / ENTRY_SIZE)
						   : RT_FAULT_ENTRIES;
}

/* The number of this handler, a new one if need be; RT_FAULT_ENTRIES when there is none. */
static uint32_t number_for(uint64_t handler, uint32_t had_siginfo)
{
	for (uint32_t i = RT_HANDLERS_FIXED; i < RT_FAULT_ENTRIES; i++) {
		struct handler *h = &handlers[i];
		uint32_t state = __atomic_load_n(&h->state, __ATOMIC_ACQUIRE);

		if (state == THERE && h->handler == handler && h->had_siginfo == had_siginfo)
			return i;
		if (state != FREE ||
		    !__atomic_compare_exchange_n(&h->state, &state, WRITING, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		h->handler = handler;
		h->had_siginfo = had_siginfo;
		__atomic_store_n(&h->state, THERE, __ATOMIC_RELEASE);
		return i;
	}
	return RT_FAULT_ENTRIES;
}

/* Do we need an entry where the program has no handler?  A trap of ours must come even if the program ignores
 * SIGTRAP.  A program that ignores SIGBUS must not have its system calls interrupted by it. */
static bool is_ours(int signal, uint64_t handler)
{
	return (signal == SIGTRAP && __atomic_load_n(&takes_traps, __ATOMIC_RELAXED)) ||
	       (signal == SIGBUS && kron_rt.cuttable && !handler);
}

/* The program's handler and flags become those for the kernel.  False: they stay. */
static bool wrap(int signal, uint64_t *handler, uint64_t *flags)
{
	uint32_t n;

	if (number_of(*handler) != RT_FAULT_ENTRIES)
		return false; /* another hook on the way has done it */
	if (*handler <= 1)    /* SIG_DFL, SIG_IGN */
		n = is_ours(signal, *handler) ? (uint32_t)*handler : RT_FAULT_ENTRIES;
	else
		n = number_for(*handler, *flags & SIGINFO_FLAG);
	if (n == RT_FAULT_ENTRIES)
		return false;
	*handler = entry_of(n);
	*flags |= SIGINFO_FLAG;
	return true;
}

void rt_fault_again(int signal, uint32_t number)
{
	struct rt_action k;

	/* the kernel leaves all but the handler */
	if (ask(signal, &k) || !(k.flags & ONCE_FLAG) || k.handler != 0)
		return;
	k.handler = entry_of(number);
	sys4(__NR_rt_sigaction, signal, (long)&k, 0, 8);
}

static void unwrap(struct rt_action *k)
{
	uint32_t n = number_of(k->handler);

	if (n == RT_FAULT_ENTRIES)
		return;
	k->handler = rt_fault_handler(n);
	k->flags = (k->flags & ~(uint64_t)SIGINFO_FLAG) | handlers[n].had_siginfo;
	if (n == RT_HANDLER_UNSET)
		k->flags = k->restorer = 0;
}

/* ---- rt_sigaction, as the kernel has it ---- */

/* Can the kernel read an action there?  Of SIGKILL it takes none. */
static bool is_action(const void *set)
{
	return sys4(__NR_rt_sigaction, SIGKILL, (long)set, 0, 8) == -EINVAL;
}

/*
 * We make the call; what is left of the program's own changes nothing.  Memory that the kernel
 * would find bad must not be our fault: then the program's call goes on as it is.
 */
void rt_hook_rt_sigaction(int signal, uint64_t *set, uint64_t *old, uint64_t size)
{
	struct rt_action copy, was;

	if (!is_fault(signal) || size != 8 || (*set && !is_action((const void *)*set)))
		return;
	if (*set)
		copy = *(const struct rt_action *)*set;
	if (*old && ask(signal, (struct rt_action *)*old))
		return;
	if (*set)
		wrap(signal, &copy.handler, &copy.flags);
	if (sys4(__NR_rt_sigaction, signal, *set ? (long)&copy : 0, (long)&was, 8))
		return;
	if (signal == SIGTRAP && *set)
		__atomic_store_n(&wraps_trap, number_of(copy.handler) != RT_FAULT_ENTRIES,
				 __ATOMIC_RELAXED);
	unwrap(&was);
	if (*old)
		*(struct rt_action *)*old = was;
	*set = *old = 0;
}

/* ---- libc's sigaction(signal, set, old) ---- */

/* libc's struct sigaction. */
struct user_action {
	uint64_t handler;
	uint64_t mask[16];
	int32_t flags;
	uint64_t restorer;
};
_Static_assert(sizeof(struct user_action) == RT_OWN_SCRATCH, "thread.h");

/* Until libc has looked, some instructions later. */
static struct user_action *new_scratch(void)
{
	static struct user_action common[COMMON_SCRATCH];
	static uint32_t next;
	struct rt_own *own = rt_thread_own();

	if (own)
		return (struct user_action *)(void *)
			own->scratch[own->next_scratch++ % RT_OWN_SCRATCHES];
	return &common[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % COMMON_SCRATCH];
}

static void answer(int signal, struct user_action *old)
{
	struct rt_action k;

	if (ask(signal, &k))
		return;
	unwrap(&k);
	mini_zero(old, sizeof(*old));
	old->handler = k.handler;
	old->mask[0] = k.mask;
	old->flags = (int32_t)k.flags;
	old->restorer = k.restorer;
}

void rt_hook_sigaction(struct rt_regs *r)
{
	const int signal = (int)r->rdi;
	struct user_action *copy;
	uint64_t flags;

	if (!is_fault(signal))
		return;
	copy = new_scratch();
	if (r->rsi) {
		mini_copy(copy, (const void *)r->rsi, sizeof(*copy));
		flags = (uint32_t)copy->flags;
		if (wrap(signal, &copy->handler, &flags)) {
			copy->flags = (int32_t)flags;
			r->rsi = (uint64_t)copy;
		}
	}
	/* the call cannot fail any more: `old` may have its answer before it */
	if (r->rdx) {
		answer(signal, (struct user_action *)r->rdx);
		r->rdx = 0;
	}
}

/* ---- traps and faults of ours ---- */

static void take(int signal)
{
	struct rt_action k;
	bool is_unset;

	if (ask(signal, &k) || number_of(k.handler) != RT_FAULT_ENTRIES)
		return;
	if (k.handler > 1 && !k.restorer)
		return; /* made by somebody who knows better */
	is_unset = !k.handler && !k.flags;
	if (!wrap(signal, &k.handler, &k.flags))
		return;
	if (is_unset)
		k.handler = entry_of(RT_HANDLER_UNSET);
	k.flags |= 0x04000000u; /* SA_RESTORER */
	if (!k.restorer)
		k.restorer = (uint64_t)kron_rt_return;
	sys4(__NR_rt_sigaction, signal, (long)&k, 0, 8);
}

void rt_faults_take(int signal)
{
	if (signal == SIGTRAP)
		__atomic_store_n(&takes_traps, true, __ATOMIC_RELAXED);
	take(signal);
}

void rt_faults_block(const struct kron_tables *t)
{
	if (t->ntraps)
		rt_faults_take(SIGTRAP);
}

void rt_faults_take_cut(void)
{
	kron_rt.cuttable = true;
	kron_rt_faults_open = 1ull << (SIGBUS - 1);
	rt_faults_take(SIGBUS);
}

void rt_faults_take_all(void)
{
	for (int signal = 1; signal < 32; signal++)
		if (is_fault(signal))
			take(signal);
}

void rt_faults_give_all(void)
{
	struct rt_action k;

	for (int signal = 1; signal < 32; signal++) {
		if (!is_fault(signal) || ask(signal, &k) ||
		    number_of(k.handler) == RT_FAULT_ENTRIES)
			continue;
		unwrap(&k);
		sys4(__NR_rt_sigaction, signal, (long)&k, 0, 8);
	}
}

void rt_faults_restorers(uint64_t *restorer, uint32_t n)
{
	struct rt_action k;

	for (uint32_t signal = 1; signal < n; signal++)
		restorer[signal] = ask((int)signal, &k) || k.handler <= 1 ||
						   k.restorer == (uint64_t)kron_rt_return
					   ? 0
					   : k.restorer;
}

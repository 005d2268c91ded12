/* SPDX-License-Identifier: MIT */
/*
 * trap.c - see trap.h.
 *
 * The handler runs with all signals blocked but the four that a fault of its own would raise:
 * to the program an access to the board is one instruction, and no handler of it sees the
 * inside.  SA_ONSTACK and SA_RESTART are as the program's own action has them.
 *
 * The program's action is published by one pointer to an entry that nobody changes any more;
 * the entries are a ring, so that sigaction() works in handlers and in any number of threads
 * without a lock.  (A reader copies 32 bytes; only 63 calls of sigaction() meanwhile would
 * give it a later action's.)
 *
 * May not: touch errno, allocate, lock.
 */
#define _GNU_SOURCE
#include "board/libmk/trap.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "board/libmk/cycle.h"
#include "board/libmk/emulate.h"
#include "board/libmk/guard.h"
#include "board/libmk/vector.h"

#define STAND_IN SIGSTKFLT
#define DEFERRED 0x6b6d0b0b /* si_errno of a SIGSEGV that waits as a SIGSTKFLT */
#define SA_RESTORER_ 0x04000000u
#define RING 64u

/* What glibc calls __restore_rt: unwinders and debuggers know a signal frame by these bytes. */
__asm__(".text\n"
	".p2align 4\n"
	"	nop\n" /* unwinders look up the caller at its return address - 1 */
	".globl mk_restore_rt\n"
	".hidden mk_restore_rt\n"
	".type mk_restore_rt,@function\n"
	"mk_restore_rt:\n"
	"	mov $15,%rax\n"
	"	syscall\n"
	".size mk_restore_rt,.-mk_restore_rt\n");
void mk_restore_rt(void) __attribute__((visibility("hidden")));

static bool on;
static struct sys_action ring[RING];
static unsigned ring_next;
static const struct sys_action *program; /* its SIGSEGV action */
static bool has_stand_in[_NSIG];         /* its sa_mask of that signal has SIGSTKFLT in it */
static bool has_explained;

static void on_fault(int signal, siginfo_t *info, void *context);
static void on_deferred(int signal, siginfo_t *info, void *context);

bool trap_is_on(void)
{
	return __atomic_load_n(&on, __ATOMIC_ACQUIRE);
}

/* ---- masks ---- */

sys_mask trap_mask_in(sys_mask m)
{
	if (!trap_is_on())
		return m;
	if (m & SYS_BIT(SIGSEGV))
		return (m & ~SYS_BIT(SIGSEGV)) | SYS_BIT(STAND_IN);
	return m & ~SYS_BIT(STAND_IN);
}

sys_mask trap_mask_out(sys_mask m)
{
	if (!trap_is_on())
		return m;
	if (m & SYS_BIT(STAND_IN))
		return (m & ~SYS_BIT(STAND_IN)) | SYS_BIT(SIGSEGV);
	return m;
}

/* ---- actions ---- */

static bool is_handler(const struct sys_action *a)
{
	return a->handler != (void *)SIG_DFL && a->handler != (void *)SIG_IGN;
}

static void install(const struct sys_action *wanted)
{
	struct sys_action a = {
		.handler = on_fault,
		.flags = SA_SIGINFO | SA_NODEFER | SA_RESTORER_ |
			 (wanted->flags & (SA_ONSTACK | SA_RESTART)),
		.restorer = mk_restore_rt,
		.mask = ~(SYS_BIT(SIGSEGV) | SYS_BIT(SIGBUS) | SYS_BIT(SIGILL) | SYS_BIT(SIGTRAP)),
	};

	sys_sigaction(SIGSEGV, &a, NULL);
}

static const struct sys_action *keep(const struct sys_action *a)
{
	unsigned n = __atomic_fetch_add(&ring_next, 1, __ATOMIC_RELAXED);

	ring[n % RING] = *a;
	return &ring[n % RING];
}

/* The stand-in's own handler is not the program's business. */
static void hide_stand_in(struct sys_action *old)
{
	if (old->handler == on_deferred)
		*old = (struct sys_action){0};
}

static long set_other(int signal, const struct sys_action *set, struct sys_action *old)
{
	bool had = has_stand_in[signal];
	struct sys_action a;
	long ret;

	if (set) {
		a = *set;
		a.mask = trap_mask_in(a.mask);
		has_stand_in[signal] = set->mask & SYS_BIT(STAND_IN);
	}
	ret = sys_sigaction(signal, set ? &a : NULL, old);
	if (ret == 0 && old) {
		old->mask = trap_mask_out(old->mask);
		if (had && trap_is_on())
			old->mask |= SYS_BIT(STAND_IN);
		hide_stand_in(old);
	}
	return ret;
}

long trap_sigaction(int signal, const struct sys_action *set, struct sys_action *old)
{
	const struct sys_action *was;
	struct sys_action a;

	if (signal <= 0 || signal >= _NSIG)
		return -EINVAL;
	if (set) {
		a = *set;
		a.flags |= SA_RESTORER_;
		a.restorer = mk_restore_rt;
		set = &a;
	}
	if (signal != SIGSEGV || !trap_is_on())
		return set_other(signal, set, old);
	was = __atomic_load_n(&program, __ATOMIC_ACQUIRE);
	if (set) {
		was = __atomic_exchange_n(&program, keep(set), __ATOMIC_ACQ_REL);
		install(set);
	}
	if (old)
		*old = *was;
	return 0;
}

/* ---- handing on ---- */

static bool is_sent(const siginfo_t *info)
{
	return info->si_code <= 0; /* by a process; the kernel's own are above */
}

static sys_mask *frame_mask(ucontext_t *uc)
{
	return (sys_mask *)(void *)&uc->uc_sigmask; /* the kernel's frame has no more than these */
}

/* As the kernel does it: the default action, and the same signal once more. */
static void die(int signal, const siginfo_t *info)
{
	static const struct sys_action dfl;
	const sys_mask this = SYS_BIT(signal);

	sys_sigaction(signal, &dfl, NULL);
	if (!is_sent(info))
		return;                      /* the instruction faults again */
	sys_sigmask(SIG_BLOCK, &this, NULL); /* until we are out of here */
	sys_queue_to_self(signal, info);
}

static void defer(siginfo_t *info)
{
	info->si_errno = DEFERRED;
	sys_queue_to_self(STAND_IN, info);
}

static void call_program(const struct sys_action *a, siginfo_t *info, ucontext_t *uc)
{
	sys_mask *frame = frame_mask(uc);
	sys_mask during = *frame | trap_mask_in(a->mask);

	if (!(a->flags & SA_NODEFER))
		during |= SYS_BIT(STAND_IN);
	*frame = trap_mask_out(*frame);
	sys_sigmask(SIG_SETMASK, &during, NULL);
	a->handler(SIGSEGV, info, uc);
	*frame = trap_mask_in(*frame);
}

static void hand_on(siginfo_t *info, ucontext_t *uc)
{
	static const struct sys_action dfl;
	const struct sys_action *current = __atomic_load_n(&program, __ATOMIC_ACQUIRE);
	struct sys_action a = *current;
	bool blocked = *frame_mask(uc) & SYS_BIT(STAND_IN);

	if (is_sent(info) && blocked) {
		defer(info);
		return;
	}
	if (is_sent(info) && a.handler == (void *)SIG_IGN)
		return;
	if (!is_handler(&a) || blocked) {
		die(SIGSEGV, info);
		return;
	}
	if ((a.flags & SA_RESETHAND) &&
	    __atomic_compare_exchange_n(&program, &current, keep(&dfl), false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED))
		install(&dfl);
	call_program(&a, info, uc);
}

static void on_deferred(int signal, siginfo_t *info, void *context)
{
	if (info->si_errno != DEFERRED) {
		die(signal, info);
		return;
	}
	info->si_errno = 0;
	info->si_signo = SIGSEGV;
	hand_on(info, context);
}

/* ---- saying why ---- */

static char *add_text(char *to, const char *text)
{
	while (*text)
		*to++ = *text++;
	return to;
}

static char *add_hex(char *to, uint64_t v)
{
	int shift = 60;

	to = add_text(to, "0x");
	while (shift > 0 && !(v >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		*to++ = "0123456789abcdef"[v >> shift & 15];
	return to;
}

/* Once in a process: whoever comes here mostly dies of it. */
static void explain(const char *what, const siginfo_t *info, const ucontext_t *uc)
{
	char line[256], *p = line;

	if (__atomic_exchange_n(&has_explained, true, __ATOMIC_RELAXED))
		return;
	p = add_text(p, "libmk: ");
	p = add_text(p, what);
	p = add_text(p, " (board offset ");
	p = add_hex(p, (uint64_t)(uintptr_t)info->si_addr - KRON_WINDOW_ADDR);
	p = add_text(p, ", instruction at ");
	p = add_hex(p, (uint64_t)uc->uc_mcontext.gregs[REG_RIP]);
	p = add_text(p, ")\n");
	sys4(__NR_write, 2, (long)line, p - line, 0);
}

/* ---- the handler ---- */

static bool is_access_to_window(const siginfo_t *info, const ucontext_t *uc)
{
	return !is_sent(info) && cycle_is_window((uint64_t)(uintptr_t)info->si_addr, 1) &&
	       !cycle_is_window((uint64_t)uc->uc_mcontext.gregs[REG_RIP], 1);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)signal;
	if (!is_sent(info) && guard_caught(info, uc))
		return;
	if (trap_is_on() && is_access_to_window(info, uc)) {
		switch (emulate(uc, info)) {
		case EMULATE_DONE:
			return;
		case EMULATE_REFUSED:
			explain("the board takes stores of whole 32- and 64-bit words alone", info,
				uc);
			break;
		case EMULATE_NOT_OURS:
			explain("an access that the emulated board cannot carry out", info, uc);
			break;
		case EMULATE_FAULT:
			break;
		}
	}
	hand_on(info, uc);
}

/* ---- on and off ---- */

/* Actions that were set before now: SIGSEGV out of their masks. */
static void translate_actions(void)
{
	struct sys_action a;
	int i;

	for (i = 1; i < _NSIG; i++) {
		if (i == SIGSEGV || sys_sigaction(i, NULL, &a) || !is_handler(&a))
			continue;
		has_stand_in[i] = a.mask & SYS_BIT(STAND_IN);
		if (!(a.mask & SYS_BIT(SIGSEGV)))
			continue;
		a.mask = trap_mask_in(a.mask);
		sys_sigaction(i, &a, NULL);
	}
}

static void translate_mask(void)
{
	sys_mask m;

	sys_sigmask(SIG_SETMASK, NULL, &m);
	m = trap_mask_in(m);
	sys_sigmask(SIG_SETMASK, &m, NULL);
}

static void take_stand_in(void)
{
	struct sys_action a;

	if (sys_sigaction(STAND_IN, NULL, &a) || a.handler != (void *)SIG_DFL)
		return;
	a.handler = on_deferred;
	a.flags = SA_SIGINFO | SA_RESTORER_;
	a.restorer = mk_restore_rt;
	a.mask = 0;
	sys_sigaction(STAND_IN, &a, NULL);
}

void trap_on(void)
{
	struct sys_action was;

	if (trap_is_on())
		return;
	vector_init();
	sys_sigaction(SIGSEGV, NULL, &was);
	__atomic_store_n(&program, keep(&was), __ATOMIC_RELEASE);
	__atomic_store_n(&on, true, __ATOMIC_RELEASE);
	install(&was);
	translate_actions();
	translate_mask();
	take_stand_in();
}

void trap_off(void)
{
	sys_mask m;

	if (!trap_is_on())
		return;
	sys_sigmask(SIG_SETMASK, NULL, &m);
	m = trap_mask_out(m);
	__atomic_store_n(&on, false, __ATOMIC_RELEASE);
	sys_sigaction(SIGSEGV, __atomic_load_n(&program, __ATOMIC_ACQUIRE), NULL);
	sys_sigmask(SIG_SETMASK, &m, NULL);
}

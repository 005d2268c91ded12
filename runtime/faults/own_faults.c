/* SPDX-License-Identifier: MIT */
/*
 * own_faults.c - a fault in code of ours, for the program's handlers.
 *
 * Probes need some stack, and where the program's ends it is the probe that faults first, where the
 * program would have faulted a little later.  Programs look at such faults: runtimes of languages
 * tell the end of the stack by where it was and by the registers.  So they see the fault where it
 * would have been: at the instruction that the probe belongs to, with all registers as they are there.
 *
 *   a thunk's first instruction ── return address ──┐
 *   a push in the block's commons ── return address ┴─► the call in the stub ─┐
 *   a push in a stub ─────────────────────────────────────────────────────────┴─► what was saved is
 *       taken back: of a sample, by its depth in the stack; of a count or store, by carrying out
 *       the instructions that the stub itself has for that
 *
 * When the handler returns the probe begins again, so it makes one sample.
 *
 * In front of C the registers are the thunk's.  There C is called from here, on the handlers' stack,
 * and the program sees nothing.
 *
 * Async-signal-safe; no state.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <ucontext.h>
#include "runtime/core/rt.h"
#include "runtime/faults/faults.h"
#include "runtime/faults/spots.h"
#include "runtime/sys/sys.h"
#include "runtime/faults/unwind.h"
#include "runtime/sys/mini.h"

extern const uint8_t own_start[] __asm__("__ehdr_start") __attribute__((visibility("hidden")));
extern const uint8_t own_end[] __asm__("_end") __attribute__((visibility("hidden")));

bool rt_is_own_code(uint64_t pc)
{
	return pc >= (uint64_t)own_start && pc < (uint64_t)own_end;
}

static uint64_t *reg(ucontext_t *uc, int which)
{
	return (uint64_t *)&uc->uc_mcontext.gregs[which];
}

/* ---- where thunks touch the stack: thunk.inc ---- */

struct rt_touch {
	int32_t at, function,
		done; /* each from its own place; no function: the first instruction */
};
extern const struct rt_touch touches[] __asm__("__start_kron_rt_touches")
	__attribute__((visibility("hidden")));
extern const struct rt_touch touches_end[] __asm__("__stop_kron_rt_touches")
	__attribute__((visibility("hidden")));

static uint64_t place(const int32_t *from)
{
	return (uint64_t)from + (uint64_t)(int64_t)*from;
}

static const struct rt_touch *touch_at(uint64_t pc)
{
	const struct rt_touch *t;

	for (t = touches; rt_is_own_code(pc) && (uint64_t)t < (uint64_t)touches_end; t++)
		if (place(&t->at) == pc)
			return t;
	return NULL;
}

/* ---- a fault in a thunk, in front of its call of C ---- */

#define MOV_DISP 3 /* mov disp32(%rsp),%eax: where the displacement is */
#define ROOM_LEFT 512u

/* On the handlers' stack, which may be a small one. */
static bool has_room(const ucontext_t *uc, uint64_t pc)
{
	uint64_t here = (uint64_t)__builtin_frame_address(0);
	uint64_t start = (uint64_t)uc->uc_stack.ss_sp;
	int32_t disp;

	mini_copy(&disp, (const void *)(pc + MOV_DISP), sizeof(disp));
	return here - start >= uc->uc_stack.ss_size ||
	       here - start >= (uint64_t) - (int64_t)disp + ROOM_LEFT;
}

bool rt_own_fault_serve(ucontext_t *uc)
{
	const struct rt_touch *t = touch_at(*reg(uc, REG_RIP));
	uint64_t (*function)(uint64_t, uint64_t, uint64_t);

	if (!t || !t->function)
		return false;
	*reg(uc, REG_RAX) = 0;
	if (has_room(uc, *reg(uc, REG_RIP))) {
		function = (uint64_t(*)(uint64_t, uint64_t, uint64_t))place(&t->function);
		*reg(uc, REG_RAX) =
			function(*reg(uc, REG_RDI), *reg(uc, REG_RSI), *reg(uc, REG_RDX));
	} else {
		rt_proc_count_lost(1);
	}
	*reg(uc, REG_RIP) = place(&t->done);
	return true;
}

/* ---- what was saved ---- */

#define CALL_LEN 5u
#define EFLAGS_SAHF 0xd5u
#define EFLAGS_OF 0x800u

/* The program as it would be if the pieces of ours down to pc were undone. */
struct undo {
	const struct kron_tables *t;
	uint64_t pc, sp, rax, rcx, flags;
	struct rt_spot spot;
	uint64_t begin;
};

static uint64_t word_at(uint64_t addr)
{
	return *(const uint64_t *)addr;
}

/* As if it had been the call. */
static void undo_thunk(struct undo *u)
{
	const struct rt_touch *touch = touch_at(u->pc);

	if (!touch || touch->function)
		return;
	u->pc = word_at(u->sp) - CALL_LEN;
	u->sp += 8;
}

/* inject/plan/action.h: push %rax; push value; mov $code,%eax; call; ... */
static bool undo_common(struct undo *u)
{
	enum { LEN = 32, PUSH_RAX = 0, PUSH_VALUE = 1, CALL = 11 };
	const uint64_t at = u->pc - rt_block_start(u->t);
	uint64_t below = 0;

	if (at < KRON_BLOCK_HEAD || at >= u->t->stubs_at)
		return true;
	switch ((at - KRON_BLOCK_HEAD) % LEN) {
	case PUSH_RAX:
		break;
	case PUSH_VALUE:
		below = 8;
		break;
	case CALL:
		below = 16;
		u->rax = word_at(u->sp + 8);
		break;
	default:
		return false;
	}
	u->pc = word_at(u->sp + below) - CALL_LEN;
	u->sp += below + 8;
	return true;
}

static uint64_t depth_here(const struct undo *u)
{
	return rt_spot_depth(u->t, &u->spot, u->pc - u->spot.start);
}

/* A probe, a hook, or a piece of a place's sample: rcx was saved, then rax. */
static bool undo_sample(struct undo *u)
{
	const uint64_t depth = depth_here(u);

	if (depth >= 144)
		u->rax = word_at(u->sp + depth - 144);
	if (depth >= 136)
		u->rcx = word_at(u->sp + depth - 136);
	u->sp += depth;
	for (u->begin = u->spot.start;
	     u->spot.shape >= KRON_SHAPE_128 && u->spot.shape <= KRON_SHAPE_152;
	     u->begin = u->spot.start)
		if (!rt_spot_at(u->t, u->spot.start - 1, &u->spot))
			return false;
	return true;
}

static bool is_push(uint64_t pc)
{
	uint8_t code = *(const uint8_t *)pc;

	return code >= 0x50 && code <= 0x57;
}

/* In front of what is saved there: nothing has changed but the stack pointer. */
static bool undo_save(struct undo *u)
{
	if (!is_push(u->pc))
		return false;
	u->sp += depth_here(u);
	u->begin = u->spot.start;
	return true;
}

static bool is_code(uint64_t pc, const char *bytes, size_t n)
{
	return mini_mismatch((const void *)pc, bytes, n) == n;
}

/* One of the instructions that a count or store ends with.  False: it is none. */
static bool carry_out(struct undo *u)
{
	if (is_code(u->pc, "\x04\x7f\x9e", 3)) { /* add $127,%al, and the flags from %ah */
		u->flags &= ~(uint64_t)(EFLAGS_SAHF | EFLAGS_OF);
		u->flags |= (u->rax >> 8 & EFLAGS_SAHF) | (u->rax & 1 ? EFLAGS_OF : 0);
		u->pc += 3;
	} else if (is_code(u->pc, "\x59", 1)) {
		u->rcx = word_at(u->sp);
		u->sp += 8;
		u->pc += 1;
	} else if (is_code(u->pc, "\x58", 1)) {
		u->rax = word_at(u->sp);
		u->sp += 8;
		u->pc += 1;
	} else if (is_code(u->pc, "\x48\x83\xec\x80", 4)) { /* sub $-128,%rsp */
		u->sp += 128;
		u->pc += 4;
	} else if (is_code(u->pc, "\x48\x8d\xa4\x24\x80\0\0\0", 8)) { /* lea 128(%rsp),%rsp */
		u->sp += 128;
		u->pc += 8;
	} else {
		return false;
	}
	return true;
}

/* Has pc left the hot part?  It ends where another piece begins; REST_1 and REST_2 belong to it. */
static bool is_behind_hot(const struct undo *u)
{
	struct rt_spot s;

	return !rt_spot_at(u->t, u->pc, &s) ||
	       (s.start == u->pc && s.shape != KRON_SHAPE_REST_1 && s.shape != KRON_SHAPE_REST_2);
}

/* [lea -128(%rsp),%rsp;] push $times; call common; jmp back */
static bool undo_cold(struct undo *u)
{
	const bool moves = u->spot.shape == KRON_SHAPE_COLD;
	const uint64_t end = u->spot.start + (moves ? 17 : 12);
	struct rt_spot hot;
	int32_t back;

	mini_copy(&back, (const void *)(end - 4), sizeof(back));
	u->sp += depth_here(u) - rt_spot_depth(u->t, &u->spot, 0);
	u->pc = end + (uint64_t)(int64_t)back;
	if (!rt_spot_at(u->t, u->pc - 1, &hot))
		return false;
	u->begin = hot.start;
	while (!is_behind_hot(u))
		if (!carry_out(u))
			return false;
	return true;
}

static bool undo_piece(struct undo *u)
{
	switch (u->spot.shape) {
	case KRON_SHAPE_PROBE:
	case KRON_SHAPE_HOOK:
	case KRON_SHAPE_128 ... KRON_SHAPE_152:
		return undo_sample(u);
	case KRON_SHAPE_COLD:
	case KRON_SHAPE_COLD_136:
	case KRON_SHAPE_COLD_144:
		return undo_cold(u);
	case KRON_SHAPE_SAVE_1:
	case KRON_SHAPE_SAVE_1_SHORT:
	case KRON_SHAPE_SAVE_2:
		return undo_save(u);
	case KRON_SHAPE_CALL_RELATIVE: /* after the call, which is undone, too */
		return depth_here(u) > 8 && undo_save(u);
	default:
		return false;
	}
}

bool rt_own_fault_undo(ucontext_t *uc, struct rt_own_fault *out)
{
	struct undo u = {
		.pc = *reg(uc, REG_RIP),
		.sp = *reg(uc, REG_RSP),
		.rax = *reg(uc, REG_RAX),
		.rcx = *reg(uc, REG_RCX),
		.flags = *reg(uc, REG_EFL),
	};
	uint64_t insn;

	undo_thunk(&u);
	u.t = rt_block_at(u.pc);
	if (!u.t || !undo_common(&u) || !rt_spot_at(u.t, u.pc, &u.spot))
		return false;
	insn = u.spot.insn;
	if (!undo_piece(&u))
		return false;
	*out = (struct rt_own_fault){.insn = insn, .begin = u.begin};
	*reg(uc, REG_RIP) = insn;
	*reg(uc, REG_RSP) = u.sp;
	*reg(uc, REG_RAX) = u.rax;
	*reg(uc, REG_RCX) = u.rcx;
	*reg(uc, REG_EFL) = u.flags;
	return true;
}

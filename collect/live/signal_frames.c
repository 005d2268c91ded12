/* SPDX-License-Identifier: MIT */
/*
 * signal_frames.c - see signal_frames.h.
 *
 *   restorer's address │ struct ucontext: flags, link, stack, registers …
 *
 * The stack is searched for such a frame, rather than unwound: unwinding takes tables that not all code
 * has, and stops where they are wrong.  A frame is believed if the word before it leads to code that calls
 * rt_sigreturn and its registers are those of a program.  One that is left over from a handler that has
 * returned is found, too, but on a stack for signals; nobody reads it any more.
 */
#define _GNU_SOURCE
#include "collect/live/signal_frames.h"

#include <string.h>
#include <ucontext.h>

#include <kron/live.h>

#include "base/vec.h"

#define SEARCH_MAX (512u * 1024) /* bytes of a stack */
#define STACKS_MAX 8u            /* handlers in handlers, each on a stack of its own */
#define USER_CS 0x33
#define EFLAGS_TF 0x100

/* As the kernel has it. */
struct frame {
	uint64_t restorer;
	uint64_t flags, link;
	uint64_t stack[3]; /* the thread's own for signals: where, flags, size */
	uint64_t regs[NGREG], fpstate;
	uint64_t cookie, shown, back, reserved[5]; /* the runtime's: faults.c */
	uint64_t mask;
	int32_t signal; /* begin of its siginfo */
};

enum restorer { RESTORER_NONE, RESTORER_LIBC, RESTORER_OURS };

#define RESTORER_BYTES 17u

static enum restorer restorer_in(const uint8_t code[RESTORER_BYTES])
{
	/* mov %rsp,%rdi; call: runtime/faults/fault_entry.S */
	static const uint8_t ours[] = {0x48, 0x89, 0xe7, 0xe8};
	/* mov $15,%rax; syscall: as glibc, musl and Go have it, with a 7- or a 5-byte mov */
	static const uint8_t seven[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t five[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};

	_Static_assert(RESTORER_BYTES == 8 + sizeof(seven), "ours: mov, call, and as libc's");
	if (!memcmp(code, ours, sizeof(ours)) && !memcmp(code + 8, seven, sizeof(seven)))
		return RESTORER_OURS;
	return !memcmp(code, seven, sizeof(seven)) || !memcmp(code, five, sizeof(five))
		       ? RESTORER_LIBC
		       : RESTORER_NONE;
}

static enum restorer restorer_at(const struct live_threads *t, const struct process_maps *maps,
				 uint64_t pc)
{
	const struct process_mapping *m = process_maps_at(maps, pc);
	uint8_t code[RESTORER_BYTES] = {0};

	/* nine bytes are all that libc's has */
	if (!m || !process_mapping_is_exec(m) || threads_read(t, code, pc, sizeof(code)) < 9)
		return RESTORER_NONE;
	return restorer_in(code);
}

static enum restorer restorer_of(const struct live_threads *t, const struct process_maps *maps,
				 const struct frame *f)
{
	if (f->flags >= 16 || !process_maps_at(maps, f->regs[REG_RIP]))
		return RESTORER_NONE;
	return restorer_at(t, maps, f->restorer);
}

/*
 * Its handler has returned, and it stands in the restorer: the address of that has been taken off the stack.
 * One look at each thread's code, because all of them stand still meanwhile.
 */
static bool is_in_restorer(const struct live_threads *t, const struct process_maps *maps,
			   uint64_t pc)
{
	static const uint8_t passed[] = {0, 3, 5, 7}; /* bytes of its first instruction */
	const struct process_mapping *m = process_maps_at(maps, pc);
	uint8_t code[7 + RESTORER_BYTES] = {0};
	uint64_t from;

	if (!m || !process_mapping_is_exec(m))
		return false;
	from = pc - m->start < 7 ? m->start : pc - 7;
	if (threads_read(t, code, from, sizeof(code)) < (ssize_t)(pc - from) + 2)
		return false;
	for (unsigned i = 0; i < sizeof(passed) && passed[i] <= pc - from; i++)
		if (restorer_in(code + (pc - from - passed[i])) != RESTORER_NONE)
			return true;
	return false;
}

/* It lies on a stack for signals that the thread has left: its handler has returned. */
static bool is_left_over(const struct frame *f, uint64_t at, uint64_t sp)
{
	const uint64_t from = f->stack[0], len = f->stack[2];

	return at - from < len && sp - from >= len;
}

/* What was shown and left as it is means: on where it was (faults.c). */
static void add_wrapped(struct signal_frames *out, const struct frame *f, uint64_t at)
{
	const uint64_t cookie = KRON_LIVE_COOKIE ^ (at + offsetof(struct frame, flags));
	const uint64_t pc = f->regs[REG_RIP];

	*vec_push(&out->wrapped) =
		(struct wrapped_frame){.at = at,
				       .pc = f->cookie == cookie && f->shown == pc ? f->back : pc,
				       .pc_at = at + offsetof(struct frame, regs[REG_RIP]),
				       .signal = (unsigned)f->signal};
}

static void add_frame(struct signal_frames *out, const struct frame *f, uint64_t at)
{
	*vec_push(&out->v) =
		(struct signal_frame){at + offsetof(struct frame, regs[REG_RIP]), f->regs[REG_RIP],
				      f->regs[REG_RSP], f->regs[REG_RBP]};
}

struct stacks {
	uint64_t sp[STACKS_MAX];
	unsigned n;
};

/* Those in the rest of the stack that holds sp; the stacks that were left for this one are added. */
static void search(struct signal_frames *out, const struct live_threads *t,
		   const struct process_maps *maps, uint64_t sp, struct stacks *stacks)
{
	const struct process_mapping *m = process_maps_at(maps, sp);
	uint64_t len = m ? m->end - sp : 0;
	bool first = true, is_elsewhere;
	uint8_t *bytes;
	ssize_t n;

	if (!m || m->perms[1] != 'w')
		return;
	len = len < SEARCH_MAX ? len : SEARCH_MAX;
	bytes = xcalloc(1, len);
	n = threads_read(t, bytes, sp, len);
	for (ssize_t at = (ssize_t)(-sp & 7); at + (ssize_t)sizeof(struct frame) <= n; at += 8) {
		enum restorer restorer;
		struct frame f;
		uint16_t cs;

		/* most words are none: the copy of a frame takes longer than all else here */
		memcpy(&cs, bytes + at + offsetof(struct frame, regs[REG_CSGSFS]), sizeof(cs));
		if (cs != USER_CS)
			continue;
		memcpy(&f, bytes + at, sizeof(f));
		restorer = restorer_of(t, maps, &f);
		if (restorer == RESTORER_NONE || is_left_over(&f, sp + (uint64_t)at, sp))
			continue;
		out->steps |= f.regs[REG_EFL] & EFLAGS_TF;
		if (restorer == RESTORER_OURS)
			add_wrapped(out, &f, sp + (uint64_t)at);
		else
			add_frame(out, &f, sp + (uint64_t)at);
		/* the first one's: the rest of this mapping may be another thread's */
		is_elsewhere = first ? f.regs[REG_RSP] - sp >= len
				     : process_maps_at(maps, f.regs[REG_RSP]) != m;
		if (is_elsewhere && stacks->n < STACKS_MAX)
			stacks->sp[stacks->n++] = f.regs[REG_RSP];
		first = false;
	}
	xfree(bytes);
}

void signal_frames_find(struct signal_frames *f, struct live_threads *t,
			const struct process_maps *maps)
{
	bool in_restorer = false;
	uint64_t pc = 0; /* most sleep at one place */

	vec_for(&t->v, k) {
		struct stacks stacks = {.sp = {k->regs.rsp}, .n = k->stopped};

		if (k->stopped && k->regs.rip != pc) {
			pc = k->regs.rip;
			in_restorer = is_in_restorer(t, maps, pc);
		}
		if (k->stopped && in_restorer)
			stacks.sp[0] -= sizeof(uint64_t);
		for (unsigned i = 0; i < stacks.n; i++)
			search(f, t, maps, stacks.sp[i], &stacks);
	}
}

void signal_frames_free(struct signal_frames *f)
{
	vec_free(&f->v);
	vec_free(&f->wrapped);
}

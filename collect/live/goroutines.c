/* SPDX-License-Identifier: MIT */
/*
 * goroutines.c - see goroutines.h.
 *
 *   asyncPreempt:  push %rbp; mov %rsp,%rbp; pushf; sub $size,%rsp; …; call asyncPreempt2; …
 *
 *   on the stack   …│ back into asyncPreempt │ size bytes │ flags │ %rbp │ where it goes on │
 *
 * Stacks of goroutines lie anywhere in Go's heap.  All of its pages that are there are searched for
 * addresses inside asyncPreempt, which nothing else has.
 */
#define _GNU_SOURCE
#include "collect/live/goroutines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"

#define PAGE 4096ull
#define CODE_MAX 1024u
#define PIECE 512u           /* pages */
#define PRESENT (3ull << 62) /* or swapped out */
#define RET 0xc3

/* How far above the return address the place lies; 0: it is not known. */
static uint64_t distance_of(const struct live_threads *t, uint64_t lo, uint64_t hi)
{
	static const uint8_t begin[] = {0x55, 0x48, 0x89, 0xe5, 0x9c};
	uint8_t code[16];
	uint32_t size;

	if (hi - lo > CODE_MAX || threads_read(t, code, lo, sizeof(code)) != sizeof(code) ||
	    memcmp(code, begin, sizeof(begin)))
		return 0;
	if (code[5] == 0x48 && code[6] == 0x81 && code[7] == 0xec) {
		memcpy(&size, code + 8, sizeof(size));
		return 8 + size + 16;
	}
	return 0;
}

static bool is_code(const struct process_maps *maps, uint64_t pc)
{
	const struct process_mapping *m = process_maps_at(maps, pc);

	return m && process_mapping_is_exec(m);
}

struct search {
	struct signal_frames *out;
	struct live_threads *t;
	const struct process_maps *maps;
	uint64_t lo, hi, distance;
	int pagemap;
};

static void take(struct search *s, uint64_t at)
{
	uint64_t pc = 0;

	at += s->distance;
	if (threads_read(s->t, &pc, at, sizeof(pc)) == sizeof(pc) && is_code(s->maps, pc))
		*vec_push(&s->out->v) = (struct signal_frame){.at = at, .pc = pc};
}

/* One that has not come to that call, or is back from it; asyncPreempt leaves %rbp alone in between. */
static void take_early(struct search *s, uint64_t pc, uint64_t sp, uint64_t bp)
{
	uint64_t at = bp + 8;
	uint8_t insn = 0;

	if (pc - s->lo >= s->hi - s->lo)
		return;
	threads_read(s->t, &insn, pc, sizeof(insn));
	if (pc == s->lo || insn == RET)
		at = sp;
	else if (pc == s->lo + 1)
		at = sp + 8;
	take(s, at - s->distance);
}

/* Who is in asyncPreempt itself, or goes there when the handler that has made the call returns. */
static void take_threads(struct search *s)
{
	const size_t n = s->out->v.n;

	vec_for(&s->t->v, k)
		if (k->stopped)
			take_early(s, k->regs.rip, k->regs.rsp, k->regs.rbp);
	for (size_t i = 0; i < n; i++) {
		const struct signal_frame f = s->out->v.v[i];

		take_early(s, f.pc, f.sp, f.bp);
	}
}

static void search_page(struct search *s, uint64_t addr)
{
	uint64_t words[PAGE / 8];

	if (threads_read(s->t, words, addr, PAGE) != (ssize_t)PAGE)
		return;
	for (size_t i = 0; i < PAGE / 8; i++)
		if (words[i] - s->lo < s->hi - s->lo)
			take(s, addr + 8 * i);
}

static void search_mapping(struct search *s, const struct process_mapping *m)
{
	for (uint64_t at = m->start; at < m->end; at += PIECE * PAGE) {
		uint64_t there[PIECE];
		ssize_t n = pread(s->pagemap, there, sizeof(there), (off_t)(at / PAGE * 8));

		for (ssize_t i = 0; i < n / 8 && at + (uint64_t)i * PAGE < m->end; i++)
			if (there[i] & PRESENT)
				search_page(s, at + (uint64_t)i * PAGE);
	}
}

int goroutines_find(struct signal_frames *f, struct live_threads *t,
		    const struct process_maps *maps, uint64_t lo, uint64_t hi, struct err *err)
{
	struct search s = {.out = f, .t = t, .maps = maps, .lo = lo, .hi = hi};
	char path[64];

	s.distance = distance_of(t, lo, hi);
	if (!s.distance)
		return err_set(
			err, ENOTSUP,
			"process %d is of a version of Go whose stopped goroutines kron cannot find: "
			"start it with `kron record -- CMD`",
			t->pid);
	take_threads(&s);
	snprintf(path, sizeof(path), "/proc/%d/pagemap", process_memory_thread(t->pid));
	s.pagemap = open(path, O_RDONLY | O_CLOEXEC);
	if (s.pagemap < 0)
		return err_set(err, errno, "cannot read %s: %s", path, strerror(errno));
	for (size_t i = 0; i < maps->n; i++)
		if (!strncmp(maps->v[i].perms, "rw-p", 4) && !maps->v[i].ino)
			search_mapping(&s, &maps->v[i]);
	close(s.pagemap);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * diff_cut.c - functions made of what stands in real programs: a run of instructions from
 * somewhere in a function, with what leads out of it led back in.
 */
#include <string.h>

#include "inject/code/functions.h"
#include "inject/code/insn.h"
#include "tests/fuzz/diff.h"

#define CUT_MAX 40u

struct source {
	struct elf_image *img;
	struct functions f;
};
static VEC(struct source) sources;

bool cut_open(void)
{
	static const char *const paths[] = {
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/usr/bin/perl",
		"/lib/x86_64-linux-gnu/libm.so.6",
		"/usr/bin/bash",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/usr/bin/python3.11",
	};
	static const struct functions_options opt = {
		.sources = FUNCTION_ALL_SOURCES & ~FUNCTION_DEBUG_FILE,
	};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct source s;

		if (elf_image_open(&s.img, paths[i], NULL))
			continue;
		if (functions_find_with(&s.f, s.img, &opt, NULL) || !s.f.n) {
			elf_image_close(s.img);
			continue;
		}
		*vec_push(&sources) = s;
	}
	return sources.n;
}

struct cut {
	struct image *im;
	struct code *c;
	struct rng *r;
	unsigned n;
	struct insn in[CUT_MAX];
	const uint8_t *code;
	int depth;
	bool is_tracked;
};

/* Some instructions of some function. */
static bool choose(struct cut *t)
{
	const struct source *s = &sources.v[below(t->r, sources.n)];
	const struct function *f = &s->f.v[below(t->r, s->f.n)];
	unsigned want = 1 + below(t->r, CUT_MAX), skip;
	uint64_t at = f->start;

	t->n = 0;
	skip = chance(t->r, 3) ? 0
			       : below(t->r, (unsigned)(f->end - f->start < 2000
								? (f->end - f->start) / 4 + 1
								: 500));
	while (at < f->end && t->n < want) {
		struct insn *in = &t->in[t->n];

		t->code = elf_image_at(s->img, at, 1);
		if (!insn_decode(in, t->code, f->end - at, at))
			break;
		at += in->len;
		if (skip)
			skip--;
		else
			t->n++;
	}
	if (t->n)
		t->code = elf_image_at(s->img, t->in[0].addr, 1);
	return t->n;
}

static int callee(const struct cut *t)
{
	for (int i = 0; i < 4 && t->im->nfn; i++) {
		unsigned fn = below(t->r, t->im->nfn);

		if (t->im->fn[fn].calls < 2 && !t->im->fn[fn].pops)
			return fn;
	}
	return -1;
}

static void open_displacement(struct item *it, const struct insn *in, enum item_kind kind,
			      uint32_t to)
{
	it->kind = kind;
	it->field = in->disp_off;
	it->size = in->disp_size;
	it->to = to;
}

/* Forward only, so that it ends.  The item is the one with the same number. */
static void add_jump(struct cut *t, unsigned i, const uint8_t *code)
{
	uint32_t to = i + 1 + below(t->r, t->n - i);

	for (unsigned k = i + 1; k < t->n; k++)
		if (t->in[k].addr == t->in[i].target)
			to = k;
	open_displacement(add_item(t->c, code, t->in[i].len), &t->in[i], ITEM_JUMP, to);
}

static void add_call(struct cut *t, const struct insn *in, const uint8_t *code)
{
	int fn = callee(t);
	static const uint8_t through[] = {0xff, 0x15, 0, 0, 0, 0};
	struct item *it;

	if (fn < 0) {
		add_item(t->c, "\x90", 1);
		return;
	}
	if (t->c->calls <= t->im->fn[fn].calls)
		t->c->calls = t->im->fn[fn].calls + 1;
	if (in->kind == INSN_CALL) {
		it = add_item(t->c, code, in->len);
		open_displacement(it, in, ITEM_FN, fn);
		return;
	}
	it = add_item(t->c, through, 6);
	it->kind = ITEM_POINTER;
	it->field = 2;
	it->size = 4;
	it->to = fn;
}

/* What pushes, pops and arithmetic do to the stack pointer; no more than is common. */
static void follow_stack(struct cut *t, const struct insn *in, const uint8_t *code)
{
	unsigned i = (code[0] & 0xf0) == 0x40;
	uint8_t op = code[i];

	if ((op >= 0x50 && op <= 0x57) || op == 0x68 || op == 0x6a || op == 0x9c)
		t->depth += 8;
	else if (op >= 0x58 && op <= 0x5f && (code[i] != 0x5c || (code[0] & 1 && i)))
		t->depth -= 8;
	else if (i && (op == 0x83 || op == 0x81) && code[i + 1] == 0xec)
		t->depth += (int)in->imm;
	else if (i && (op == 0x83 || op == 0x81) && code[i + 1] == 0xc4)
		t->depth -= (int)in->imm;
	else if (in->regs_written & 1u << RSP)
		t->is_tracked = false;
}

static void add_one(struct cut *t, unsigned i)
{
	const struct insn *in = &t->in[i];
	const uint8_t *code = t->code + (in->addr - t->in[0].addr);
	struct item *it;

	switch ((enum insn_kind)in->kind) {
	case INSN_CALL:
	case INSN_CALL_INDIRECT:
		add_call(t, in, code);
		return;
	case INSN_JMP:
	case INSN_JCC:
		add_jump(t, i, code);
		return;
	case INSN_RET:
		if (t->is_tracked && t->depth > -64 && t->depth < 700 && !chance(t->r, 4)) {
			add_item(t->c, "\x66\x90", 2);
			return;
		}
		add_item(t->c, code, in->len);
		return;
	case INSN_PLAIN:
	case INSN_PADDING:
		break;
	case INSN_TRAP:
		if (chance(t->r, 4) && code[0] != 0xf4) {
			add_item(t->c, code, in->len);
			return;
		}
		/* fallthrough */
	case INSN_JMP_INDIRECT:
	case INSN_SYSCALL:
	case INSN_OTHER_TRANSFER:
		add_item(t->c, "\x66\x90", 2);
		return;
	}
	if (!is_harmless(in, code) || in->len > 15) {
		add_item(t->c, "\x66\x90", 2);
		return;
	}
	it = add_item(t->c, code, in->len);
	if (in->rip_relative)
		open_displacement(it, in, ITEM_DATA,
				  (in->target & 63) + 64 * below(t->r, (DATA_RANDOM - 128) / 64));
	follow_stack(t, in, code);
}

void cut_function(struct image *im, struct rng *r)
{
	struct cut t = {.im = im, .c = &im->fn[im->nfn], .r = r, .is_tracked = true};

	while (!choose(&t))
		;
	for (unsigned i = 0; i < t.n; i++)
		add_one(&t, i);
	add_return(t.c, r, t.is_tracked && t.depth > -512 && t.depth < 1500 ? t.depth : 0);
	im->nfn++;
}

/* SPDX-License-Identifier: MIT */
/*
 * insn.c - each instruction of a table, on ordinary memory by the processor and on the board's
 * local memory by libmk: registers, flags, vectors and memory must come out the same.
 *
 *   ordinary   0x4c000000 + A      window   0x6c000000 + A (local memory)
 *
 * The table and the code are made by tests/e2e/board/libmk_insn.py.  insn SEED ROUNDS; prints what
 * differs, exits 1 then.
 */
#define _GNU_SOURCE
#include <mk.h>
#include <string.h>
#include <sys/mman.h>

#define ORDINARY 0x4c000000ul
#define DELTA (MK_BASE + MK_MEMORY - ORDINARY)
#define A 0x300u
#define B 0xb00u
#define AREA 0x1000u
#define ALL_FLAGS 0x8d5u

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 };

struct state {
	uint64_t reg[16];
	uint64_t flags;
	uint64_t pad[15];
	uint8_t zmm[32][64];
};

struct insn_case {
	void *code;
	const char *text;
	uint64_t kind; /* 0: memory operand; 1-3: string, bit 0: rdi, bit 1: rsi in the window */
};
extern const struct insn_case insn_table[];
extern const uint64_t insn_count;
void insn_run(void *code, struct state *s);

static uint64_t seed;

static uint64_t next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Mostly random, often with the values where flags change. */
static uint64_t value(void)
{
	static const uint64_t edge[] = {0,          1,          0x7f,   0x80,
					0xff,       0x7fff,     0x8000, 0x7fffffff,
					0x80000000, 0xffffffff, ~0ull,  1ull << 63};

	return next() % 3 ? next() : edge[next() % (sizeof(edge) / sizeof(*edge))];
}

static void fill(void *to, size_t n)
{
	uint64_t *p = to;
	size_t i;

	for (i = 0; i < n / 8; i++)
		p[i] = value();
}

static void make_state(struct state *s, const struct insn_case *c)
{
	unsigned i;

	fill(s, sizeof(*s));
	s->flags = (next() & ALL_FLAGS) | 0x202;
	s->reg[R10] = next() % 8 * 8;
	if (c->kind) {
		s->reg[RCX] = next() % 60;
		s->reg[RDI] = ORDINARY + A + 0x100 + next() % 8;
		s->reg[RSI] = ORDINARY + B + 0x100 + next() % 8;
		return;
	}
	for (i = 0; i < 16; i++) {
		if (i == RDI || i == RSI || i == R12 || i == R13 || i == RBP || i == R9)
			s->reg[i] = ORDINARY + A;
	}
}

static void to_window(struct state *s, const struct insn_case *c, uint64_t delta)
{
	unsigned i;

	if (c->kind) {
		s->reg[RDI] += c->kind & 1 ? delta : 0;
		s->reg[RSI] += c->kind & 2 ? delta : 0;
		return;
	}
	for (i = 0; i < 16; i++) {
		if (i == RDI || i == RSI || i == R12 || i == R13 || i == RBP || i == R9)
			s->reg[i] += delta;
	}
}

static int differs(const struct insn_case *c, const struct state *n, const struct state *e,
		   unsigned vectors)
{
	int bad = 0;
	unsigned i;

	for (i = 0; i < 16; i++) {
		if (i != RSP && n->reg[i] != e->reg[i]) {
			printf("# %s: register %u is %#lx, should be %#lx\n", c->text, i, e->reg[i],
			       n->reg[i]);
			bad = 1;
		}
	}
	if ((n->flags ^ e->flags) & (ALL_FLAGS | 0x400)) {
		printf("# %s: flags %#lx, should be %#lx\n", c->text, e->flags, n->flags);
		bad = 1;
	}
	for (i = 0; i < vectors; i++) {
		if (memcmp(n->zmm[i], e->zmm[i], 64)) {
			printf("# %s: vector register %u\n", c->text, i);
			bad = 1;
		}
	}
	return bad;
}

static int run_case(const struct insn_case *c, unsigned vectors)
{
	static uint64_t before[AREA / 8], after[AREA / 8], board[AREA / 8];
	static struct state start, native, emulated;
	int bad = 0;

	make_state(&start, c);
	fill(before, sizeof(before));
	native = start;
	memcpy((void *)ORDINARY, before, AREA);
	insn_run(c->code, &native);
	memcpy(after, (void *)ORDINARY, AREA);

	memcpy((void *)ORDINARY, before, AREA);
	memcpy((void *)(uintptr_t)(ORDINARY + DELTA), before, AREA);
	emulated = start;
	to_window(&emulated, c, DELTA);
	insn_run(c->code, &emulated);
	to_window(&emulated, c, -(uint64_t)DELTA);
	bad = differs(c, &native, &emulated, vectors);
	memcpy(board, (void *)(uintptr_t)(ORDINARY + DELTA), AREA);
	/* What a string instruction reads or writes outside the window is in the other one. */
	if (c->kind == 2)
		memcpy(board, (void *)ORDINARY, AREA);
	if (memcmp(board, after, AREA)) {
		printf("# %s: memory\n", c->text);
		bad = 1;
	}
	return bad;
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 2 ? strtoull(argv[2], 0, 0) : 1;
	unsigned vectors = argc > 3 ? (unsigned)atoi(argv[3]) : 16;
	uint64_t i, r;
	int bad = 0;

	seed = argc > 1 ? strtoull(argv[1], 0, 0) | 1 : 1;
	MK_DEFAULT_MAP();
	if (mmap((void *)ORDINARY, 0x10000, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (void *)ORDINARY)
		return 99;
	for (i = 0; i < insn_count; i++) {
		for (r = 0; r < rounds; r++) {
			if (run_case(&insn_table[i], vectors)) {
				bad++;
				break;
			}
		}
	}
	printf("# %lu instructions, %lu rounds of each, %d differ\n", insn_count, rounds, bad);
	return bad != 0;
}

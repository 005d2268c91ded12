/* SPDX-License-Identifier: MIT */
/*
 * diff.h - the parts of the differential fuzzer (differential.c).
 *
 *   generate, cut  --> struct image: functions, lists of items, labels still open
 *   build          --> an ELF file in memory, and the same bytes where they run
 *   run            --> a run of one function from a random state, and all that it left
 *   differential   --> plans, binds, patches; runs in place and displaced; compares; shrinks
 */
#ifndef TESTS_FUZZ_DIFF_H
#define TESTS_FUZZ_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kron/segment.h>

#include "base/vec.h"

/* ---- chance ---- */

struct rng {
	uint64_t s;
};

static inline uint64_t rnd(struct rng *r)
{
	uint64_t z = r->s += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}
static inline unsigned below(struct rng *r, unsigned n)
{
	return (rnd(r) >> 32) * n >> 32;
}
static inline bool chance(struct rng *r, unsigned in)
{
	return below(r, in) == 0;
}

/* ---- where things lie in the process ---- */

#define SCRATCH_ADDR 0x50001000ull /* below 4 GiB: addresses of 32 bits reach it */
#define SCRATCH_SIZE 4096u
#define STACK_TOP 0x310000010000ull
#define STACK_MAPPED 0x8000u
#define STACK_SHOWN 3072u /* the upper part, compared */

/* The module: the file's offsets are its vaddrs, less the base. */
#define TEXT_OFF 0x1000u
#define TEXT_SIZE 0x20000u
#define RODATA_OFF (TEXT_OFF + TEXT_SIZE)
#define RODATA_SIZE 0x2000u
#define DATA_OFF (RODATA_OFF + RODATA_SIZE)
#define DATA_SIZE 0x1000u
#define DATA_RANDOM 3072u /* then pointers to functions */
#define MODULE_SIZE (DATA_OFF + DATA_SIZE)
#define FUNCTIONS_MAX 96u

/* ---- code with its labels open ---- */

enum item_kind {
	ITEM_PLAIN,
	ITEM_DATA,    /* disp32 to data + to */
	ITEM_JUMP,    /* rel8 or rel32 to the item `to` of the same function */
	ITEM_LABEL,   /* disp32 to it */
	ITEM_FN,      /* rel32 or disp32 to the start of function `to` */
	ITEM_POINTER, /* disp32 to the word in data that holds its address */
	ITEM_TABLE    /* disp32 to jump table `to` */
};
struct item {
	uint8_t len, kind;
	uint8_t field, size; /* of the open displacement: offset and bytes, 1 or 4 */
	uint8_t bytes[16];
	uint32_t to;
	uint32_t salt; /* its own random number */
};
struct code {
	VEC(struct item) items;
	uint16_t pops;     /* of its ret imm16 */
	uint8_t calls;     /* how deep it calls */
	uint8_t alignment; /* of its start */
	uint8_t padding;   /* bytes after it */
	uint8_t filler;
	/* filled in by build */
	uint32_t start, end; /* offsets in the text */
	uint32_t *at;        /* by item, and one more: offset in the text */
};
#define TABLE_CASES 4u
struct table { /* of a switch */
	uint32_t function;
	uint32_t to[TABLE_CASES];
};
struct image {
	struct code fn[FUNCTIONS_MAX];
	unsigned nfn;
	VEC(struct table) tables;
	bool fixed;        /* ET_EXEC, below 2 GiB; else PIE, high up */
	uint16_t pointers; /* registers that point into scratch memory, one bit each */
	uint8_t index;     /* the register with a small number */
	uint64_t base;     /* vaddr of the file's first byte */
	uint64_t bias;
	uint8_t *file;
	size_t file_size;
	uint64_t text; /* where the text runs */
};

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI };

/* diff_generate.c */
void generate_function(struct image *im, struct rng *r);
struct item *add_item(struct code *c, const void *bytes, unsigned len);
/* May the instruction be run here at all, twice, with the same result? */
struct insn;
bool is_harmless(const struct insn *in, const uint8_t *code);
/* Leave the stack as at the entry, and return. */
void add_return(struct code *c, struct rng *r, int depth);

/* diff_cut.c: windows of real programs.  False: none of them could be read. */
bool cut_open(void);
void cut_function(struct image *im, struct rng *r);

/* diff_build.c */
void image_clear(struct image *im);
void image_build(struct image *im);
/* The text may be written, or executed. */
void image_unlock(const struct image *im, bool on);
/* Puts the unpatched module where it runs. */
void image_load(const struct image *im);

/* ---- running ---- */

struct regs {
	uint64_t r[16];
	uint64_t flags;
};
#define FP_SIZE 2816u
struct outcome {
	struct regs regs;
	uint64_t rip; /* of a fault */
	int signal, code;
	uint64_t fault_addr, trap, error;
	uint8_t fp[FP_SIZE];
	uint8_t data[DATA_RANDOM], scratch[SCRATCH_SIZE], stack[STACK_SHOWN];
};
#define SIGNAL_TIMEOUT 1000 /* no signal: it ran too long */

struct step {
	uint64_t rip;
	uint64_t r[16];
};
struct event {
	uint64_t event, sp;
};
#define STEPS_MAX 1500u
#define EVENTS_MAX 8192u
struct trail { /* what went on during a run */
	struct step *steps;
	unsigned nsteps;
	struct event *events;
	unsigned nevents;
	bool reads_lost; /* stepped: from the stack what was below the red zone */
	bool reads_text; /* stepped: an instruction's operand lies in the text */
};

struct state {
	uint64_t seed;
	const struct image *im;
};

void run_setup(void);
extern bool run_has_avx512, run_has_fs;
extern bool run_hands_on_no_flags; /* stepped: a call changes them */
extern struct regs run_in;         /* of the last run */
/*
 * Runs the function at addr.  step: one instruction at a time, with steps in the trail; what
 * lies below the red zone then changes at every step, as a signal handler may change it.
 */
void run_function(uint64_t addr, const struct state *st, bool step, struct outcome *out);
const struct trail *run_trail(void);
extern uint64_t run_count;
void diff_thunk(void);
void diff_payload_thunk(void);
void diff_action_thunk(void);
#define EVENT_STORE 0xac710ull /* upper half of the event: the lower is a KRON_ACTION() */
/* The thread's counters: %fs:RUN_COUNTS holds the address of a word that holds theirs. */
#define RUN_COUNTS 0x12b000 /* no round number, which a random register may hold */
#define COUNTS_ADDR (SCRATCH_ADDR + 1024 + RUN_COUNTS)
static inline struct kron_counts *run_counters(void)
{
	return (struct kron_counts *)(COUNTS_ADDR + 64);
}
extern bool run_has_counters; /* else the word is zero */

#endif

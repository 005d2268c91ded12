/* SPDX-License-Identifier: MIT */
/*
 * tables.h - what follows a trampoline block's stubs: where each piece of a stub
 * belongs in the module, and how far it has moved the stack.
 *
 *   head | stubs | int3 up to a page's end | struct kron_tables | its arrays | .eh_frame ...
 *      \--- word KRON_BLOCK_TABLES: offset of the tables ---^
 *
 * Three read it: unwinders, by way of the .eh_frames in it (inject/bind/unwind_frame.c); the
 * runtime's
 * fault handlers (runtime/faults/faults.c); a debugger, by way of the ELF image in it.  All in
 * place, from signal handlers too: sorted arrays, no pointers but absolute addresses.
 *
 * A *spot* is a piece of a stub that belongs to one instruction of the module: the instruction
 * itself in its new place, a probe in front of it, or the jump back (which belongs to the
 * instruction that it leads to).  Whoever stands in a spot is, as far as the program is
 * concerned, in front of that instruction, with the stack pointer as it was before the spot
 * began: `depth` bytes above the present one.
 *
 * There are many of them, so each is one word, and those of a *granule*, 512 bytes of the block,
 * stand together; a granule has the rest of what they have in common.  Whoever looks one up goes
 * through a granule's spots one by one.
 */
#ifndef KRON_TABLES_H
#define KRON_TABLES_H

#include <stdint.h>

#define KRON_BLOCK_TABLES 64u /* in the head: uint32_t, 0 = none */
#define KRON_TABLES_MAGIC 0x6b72740au

/* How a spot moves the stack; depths are in inject/bind/unwind_shapes.c. */
enum kron_shape {
	KRON_SHAPE_INSN = 0, /* not at all: what it does is the program's doing */
	KRON_SHAPE_BACK = 1, /* likewise: the jump back after the last displaced instruction */
	KRON_SHAPE_CALL = 2, /* a displaced call: its return address stands on the stack */
	KRON_SHAPE_PROBE = 3,
	KRON_SHAPE_HOOK = 4,
	KRON_SHAPE_CALL_RELATIVE = 5, /* a displaced call, position independent */
	/* pieces of a place's sequence (inject/plan/action.h), always this many bytes deep */
	KRON_SHAPE_128 = 6,
	KRON_SHAPE_136 = 7,
	KRON_SHAPE_144 = 8,
	KRON_SHAPE_152 = 9,
	/* the cold part of a count or store, which is entered 0, 136 or 144 bytes deep */
	KRON_SHAPE_COLD = 10,
	KRON_SHAPE_COLD_136 = 11,
	KRON_SHAPE_COLD_144 = 12,
	KRON_SHAPE_START = 13, /* the first piece of a place's sequence: not deep at all */
	/* a count or store that saves one register, or two: up to there, and from there on */
	KRON_SHAPE_SAVE_1 = 14,
	KRON_SHAPE_SAVE_1_SHORT = 15,
	KRON_SHAPE_SAVE_2 = 16,
	KRON_SHAPE_REST_1 = 17,
	KRON_SHAPE_REST_2 = 18,
	/* a stub of the linker's, called and not jumped to, so that its result is seen */
	KRON_SHAPE_RESULT = 19,
	KRON_SHAPES = 20 /* no more than 32 */
};
#define KRON_SHAPE_BYTES 64u /* positions that a depth is kept for; the last holds for the rest */

/*
 * A spot: where it begins, in its granule; its shape; and the instruction that it belongs to,
 * counted from the granule's.  A spot that goes on in the next granule stands there once more, as
 * the first one, as it stands in its own.
 */
#define KRON_GRANULE 512u
#define KRON_SPOT_SHAPE_BIT 9u
#define KRON_SPOT_INSN_BIT 14u
#define KRON_SPOT_OFFSET(spot) ((spot) & (KRON_GRANULE - 1))
#define KRON_SPOT_SHAPE(spot) ((spot) >> KRON_SPOT_SHAPE_BIT & 31)
#define KRON_SPOT_INSN(spot) ((spot) >> KRON_SPOT_INSN_BIT)
#define KRON_SPOT_SPAN (1u << (32 - KRON_SPOT_INSN_BIT)) /* of a granule's instructions */

#define KRON_WINDOW_MAX 512u /* bytes of the module that a stub stands for */
#define KRON_RELAYS_MAX 8u   /* short jumps on the way to where a jump to the stub fits */

struct kron_granule {
	uint32_t first; /* its spots go on to the next granule's first */
	uint32_t
		insn; /* counted from kron_tables.lo; that where the first spot's stub stands for */
};

/* Offsets count from the struct's own address. */
struct kron_tables {
	uint32_t magic;
	uint32_t size;     /* of everything */
	uint64_t block;    /* address that granules count from */
	uint64_t lo, hi;   /* span of the patched text, as addresses */
	uint32_t stubs_at; /* in the block: where the first stub begins */
	uint32_t spot_at;  /* uint32_t spot[], ascending */
	uint32_t ngranules;
	uint32_t granule_at; /* struct kron_granule[], one more than there are */
	uint32_t depth_at;   /* uint8_t depth[KRON_SHAPES][KRON_SHAPE_BYTES]: in units of 8 bytes */
	uint32_t flags;      /* KRON_TABLES_* */
	uint32_t ntraps;     /* int3 sites */
	uint32_t traps_at;   /* struct kron_trap[], ascending by addr */
	uint32_t frame_at;   /* .eh_frame, for libgcc; of the others in the ELF image */
	uint32_t frame_hdr_at;
	uint32_t walker_hdr_at; /* .eh_frame_hdr of the other one */
	uint32_t elf_at;        /* an ELF image for debuggers */
	uint32_t elf_size;
	uint32_t offset; /* of ourselves, in the block */
};

/*
 * Where the block is on disk, addresses are those of the file.  A program that was loaded elsewhere
 * adds this to them; 0 for a block that was bound for its process.
 */
static inline uint64_t kron_tables_bias(const struct kron_tables *t)
{
	return (uint64_t)t - t->offset - t->block;
}

/* The spots' instructions are ascending, too. */
#define KRON_TABLES_SORTED 1u
#define KRON_FRAME_HDR_SIZE 36u

/* An int3 stands at addr in the module, for a jump to the stub. */
struct kron_trap {
	uint64_t addr;
	uint64_t stub;
};

#endif

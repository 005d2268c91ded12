/* SPDX-License-Identifier: MIT */
/*
 * unwind.h - the tables after a block's stubs (kron/tables.h) and the frame information that
 * reads them.
 *
 * To an unwinder a stub is a function that the displaced instruction has called: its frame ends
 * where the program's stack pointer was, and its caller stands in front of that instruction, in
 * the module, where the module's own frame information takes over.  So nothing of the module's
 * rows is copied, and a backtrace through a stub is as good as one from the instruction itself:
 * the same rules, landing pads, lines and variables, plus one frame for the stub.
 *
 *   bind ──► unwind_make() ──► spots, shapes            unwind_tables.c, unwind_shapes.c
 *                         ──► .eh_frame, its table      unwind_frame.c
 *                         ──► an ELF image for gdb      unwind_elf.c, unwind_names.c
 *
 * The .eh_frame is the same few entries for any number of stubs: its expressions do a binary
 * search in the tables.  That keeps binding as fast as it was.
 */
#ifndef INJECT_UNWIND_H
#define INJECT_UNWIND_H

#include "inject/plan/plan.h"
#include <kron/tables.h>

/* Symbols for a debugger, and the bytes of their names (unwind_names.c). */
struct unwind_names {
	uint32_t n, bytes;
};
typedef void unwind_name_fn(void *ctx, const char *name, uint32_t stub);
/* Counts those of a block with these stubs; fn, if it is not NULL, is called for each. */
void unwind_names_add(struct unwind_names *out, const struct plan *p, const uint32_t *stub_at,
		      unwind_name_fn *fn, void *ctx);

struct unwind_block {
	const struct plan *plan;
	const uint32_t *stub_at; /* by site: offset of its stub in the block, 0 = not bound */
	uint64_t bias, block;
	uint32_t stubs_end; /* offset of the end of the last stub */
	uint32_t stubs_at;  /* of the first stub */
	uint64_t lo, hi;    /* patched text, addresses */
	size_t nspots;      /* unwind_count() of all bound sites */
	size_t ntraps;      /* unwind_is_trap() sites among them */
	struct unwind_names names;
};

/* How many spots a bound site makes. */
static inline size_t unwind_count(const struct plan_site *site)
{
	return site->nmaps;
}

/* Is it an int3 that stands there? */
static inline bool unwind_is_trap(const struct plan_site *site)
{
	return site->patch_len == 1 && !site->landing;
}

/* Bytes of the tables; they must be aligned to UNWIND_ALIGN. */
#define UNWIND_ALIGN 16u
size_t unwind_size(size_t nspots, size_t ntraps, uint32_t stubs_end,
		   const struct unwind_names *names);

/*
 * Where the next stub begins: after the last one, or at the next granule, if what the two belong
 * to lies too far apart for one.
 */
struct unwind_cursor {
	uint32_t at;
	uint64_t insn;  /* the lowest of the granule at work */
	bool is_inside; /* something stands in it */
};
uint32_t unwind_next(struct unwind_cursor *c, const struct plan_site *site);
/* Writes them: `out` has unwind_size() bytes, all zero, and will lie at address `at`. */
void unwind_make(uint8_t *out, uint64_t at, const struct unwind_block *in);

/* ---- parts ---- */

/* By how many units of 8 bytes a spot has moved the stack, at each position in it. */
void unwind_shapes(uint8_t depth[KRON_SHAPES][KRON_SHAPE_BYTES]);

/* What the expressions need to know. */
struct unwind_places {
	uint64_t block, stubs, stubs_end; /* addresses: of the block, of its first stub */
	uint64_t lo;                      /* what instructions count from */
	uint64_t spot, granule, depth;    /* addresses of the arrays */
	bool relative;                    /* no absolute addresses: */
	uint32_t page;                    /* an early page of the pc's, counted from the block */
	uint64_t id;                      /* what stands at KRON_BLOCK_ID, and in no other page */
};

#define UNWIND_FRAME_MAX 1024u
#define UNWIND_FDES 3u /* of the head, the commons, the stubs */
/*
 * The frame information: by_call, as if the instruction had called the stub; or as if a signal
 * had stopped it.  fde[] gets the offsets of the entries.  Returns its length.
 */
size_t unwind_frame_make(uint8_t out[UNWIND_FRAME_MAX], const struct unwind_places *w, bool by_call,
			 uint32_t fde[UNWIND_FDES]);
/* .eh_frame_hdr at address `at` for an .eh_frame at address `frame`. */
void unwind_hdr_make(uint8_t out[KRON_FRAME_HDR_SIZE], uint64_t at, uint64_t frame,
		     const struct unwind_places *w, const uint32_t fde[UNWIND_FDES]);

/*
 * The same by_call for a file, where nothing may need a relocation: one entry for some pages,
 * because the pc's page is one of them, and so the block, wherever it was loaded, is at one of as
 * many places; its id tells at which.  The tables are those in the block.  at: its own address in
 * the file.  Appends to out; *fdes of unwind_fde_count().
 */
struct unwind_fde {
	uint64_t start;
	uint32_t off; /* of the entry in what was appended */
};
struct unwind_buffer {
	uint8_t *v;
	size_t n, cap;
};
size_t unwind_fde_count(uint64_t stubs_len);
void unwind_frame_disk(struct unwind_buffer *out, uint64_t at, const struct unwind_places *w,
		       struct unwind_fde *fdes);

/* What a file gets: a merged .eh_frame_hdr followed by ours (unwind_disk.c). */
struct unwind_disk {
	size_t old, added, code; /* entries of the image's table, ours, those of unwind_code */
	size_t hdr_len, len;
};
/* An .eh_frame with code of ours that follows the block: at `at`, or nothing. */
struct unwind_code {
	const uint8_t *frame;
	size_t len;
	uint64_t at;
};
/* hdr: the image's own, NULL: it has none.  False: not of the form that can be merged. */
bool unwind_disk_plan(struct unwind_disk *d, const uint8_t *hdr, size_t len, uint64_t stubs_len,
		      const struct unwind_code *code);
/* Those of the block, and its id. */
struct unwind_tables {
	const uint8_t *bytes; /* the head of them at least */
	uint64_t at;
	const uint8_t *id;
};
/* out: d->len zero bytes that will lie at `at`; the addresses are the file's. */
void unwind_disk_make(uint8_t *out, uint64_t at, const struct unwind_disk *d, const uint8_t *hdr,
		      uint64_t hdr_at, const struct unwind_tables *tables,
		      const struct unwind_code *code);
/* The same for debuggers, without the image's own: a .debug_frame.  Allocated. */
uint8_t *unwind_disk_debug(size_t *len, const struct unwind_tables *tables, uint64_t stubs_len,
			   const struct unwind_code *code);

size_t unwind_elf_size(const struct unwind_names *names);
/* Returns its length.  *frame: offset of its .eh_frame, by_call. */
size_t unwind_elf_make(uint8_t *out, const struct unwind_places *w, const struct unwind_block *in,
		       size_t *frame, uint32_t fde[UNWIND_FDES]);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * functions.h - where the functions of an image are, and how we know.
 *
 * Sources: .symtab, .dynsym, a separate debug file (by build-id, then debug link),
 * .gnu_debugdata, .eh_frame, which names even what a stripped binary hides, and Go's own table
 * (go_table.h).  Where all of these say next to nothing, functions are guessed (guess.h).  GCC's
 * ".cold" fragments, which are entered only by jumps from another function, are not functions:
 * they are parts of their parent, and their exits are their parent's exits.  (".part.0" and
 * ".constprop.0" are called, so they are functions.)
 *
 * functions_find() tells parts by their names and their frame at the start; where both are
 * missing, functions_mark_parts() needs the code map's evidence, and has the last word.
 *
 * No functions: PLT stubs, the fragments of .init and .fini, signal return trampolines (FDEs
 * with the S augmentation: unwinders know them by their bytes), code outside the file.
 */
#ifndef INJECT_FUNCTIONS_H
#define INJECT_FUNCTIONS_H

#include "inject/elf/elf_image.h"

#define FUNCTION_NONE UINT32_MAX

enum function_source {
	FUNCTION_SYMTAB = 1,
	FUNCTION_DYNSYM = 2,
	FUNCTION_DEBUG_FILE = 4,
	FUNCTION_DEBUGDATA = 8,
	FUNCTION_EH_FRAME = 16,
	FUNCTION_GO_TABLE = 64,
	FUNCTION_GUESS = 512, /* nobody says so but the code: guess.h */
	FUNCTION_ALL_SOURCES = 31 | FUNCTION_GO_TABLE | FUNCTION_GUESS,
	/* no sources: in plan_function.sources, is_ifunc and is_stub; FUNCTION_CALLS: it ends with a
	 * call that does not return */
	FUNCTION_IFUNC = 32,
	FUNCTION_STUB = 128,
	FUNCTION_CALLS = 256,
	FUNCTION_UNTAKEN = 1024 /* no pointer leads to it: only direct calls and jumps do */
};

struct function {
	uint64_t start, end; /* vaddr, end exclusive; end > start; all of it in one executable
				segment's file part */
	char *name;          /* demangled later; raw symbol, or NULL when only .eh_frame knows it */
	uint32_t sources;    /* enum function_source, or-ed */
	bool has_fde;        /* .eh_frame gives these bounds */
	bool has_size;       /* an FDE or a symbol's size gives the end; else it is only the start
				of whatever comes next */
	bool is_part;        /* a .cold part: no entry of its own */
	bool is_ifunc;       /* resolver of an STT_GNU_IFUNC */
	bool is_pointed_at; /* a relocation, lea or immediate names its start; the code map knows */
	bool is_stub;       /* the jump of a linker's stub, or a call: see callsite.h */
	bool odd_start;     /* the frame at the start is not that of an entry: registers saved, or
				more on the stack than a return address */
	uint32_t parent;    /* is_part: index of the function it belongs to (never itself a part),
				own index when that is not known; no part: own index */
	uint32_t fde_rank;  /* place of its FDE in the file, FUNCTION_NONE without one: compilers
				write a part's FDE directly after its parent's */
};

/* A symbol that says that a function starts inside of an instruction. */
struct function_lie {
	uint64_t vaddr;
	const char *name; /* raw symbol */
};

struct functions {
	struct function *v; /* sorted by start, no overlaps */
	size_t n;
	struct function_lie *lies; /* not believed, not in v; sorted by vaddr */
	size_t nlies;
	/* Values of all symbols of any type and source that lie in executable memory, sorted,
	 * each once: places that somebody may jump to (code_map's CODE_CONSTANT). */
	uint64_t *symbols;
	size_t nsymbols;
	char *strings; /* what the names point into */
};

struct functions_options {
	uint32_t sources;      /* which to use; 0 = all */
	const char *debug_dir; /* instead of /usr/lib/debug; NULL = that */
};

/*
 * Find them all.  An image without any function is not an error, nor is a damaged table: it gives
 * less (go_table_find() says why, if it is Go's).  -ENOEXEC only when the image is unusable.  Strings are owned by out.
 */
int functions_find(struct functions *out, const struct elf_image *img, struct err *err);
int functions_find_with(struct functions *out, const struct elf_image *img,
			const struct functions_options *opt, struct err *err);
void functions_free(struct functions *f);
/* The function (or part) that holds vaddr, or NULL. */
const struct function *functions_at(const struct functions *f, uint64_t vaddr);

/* ---- which of them are parts of others: code_map.c collects, function_parts.c judges ---- */

/* What the code says about the start of one function.  "Other": any function but itself. */
struct function_evidence {
	bool called;           /* target of a direct call */
	bool address_taken;    /* a relocation, lea or immediate names its start */
	bool jcc_from_other;   /* target of a conditional jump of another function */
	bool jmp_from_other;   /* target of an unconditional direct jump of another function */
	bool jumps_into_other; /* its own direct jumps go to the middle of another function */
	bool many_jump_here;   /* jumps to its start come from more than one other function */
	uint32_t jumped_from;  /* a function that jumps to its start, or FUNCTION_NONE */
	uint32_t jumps_into;   /* a function into whose middle it jumps, or FUNCTION_NONE */
};
/* Sets is_part and parent (the parent is itself no part).  ev has f->n elements; NULL: judge by
 * names and frames alone. */
void functions_mark_parts(struct functions *f, const struct function_evidence *ev);
/* Lists of a function's parts: for (i = root; i != FUNCTION_NONE; i = next[i]), by vaddr.  xfree(). */
uint32_t *functions_link_parts(const struct functions *f);
/* name.cold or name.cold.7: what GCC calls the unlikely part of a function; name.warm: BOLT. */
bool function_is_cold_name(const char *name);
/* Go stops a goroutine anywhere by a call of this one: who is stopped is found by its code. */
bool function_is_preempt(const char *name);

/* ---- frame state, from .eh_frame ---- */

/*
 * CFA offset from the stack pointer at vaddr: 8 means "as at the function's entry", so that a
 * jump out from here is a tail call.  -1 when unknown or when the CFA is not rsp-based.
 */
struct frame_info;
struct frame_info *frame_info_open(const struct elf_image *img);
/* Another one for another thread; the first one lives longer.  Of NULL: NULL. */
struct frame_info *frame_info_share(const struct frame_info *fi);
int64_t frame_info_cfa_from_sp(struct frame_info *fi, uint64_t vaddr);
/* Landing pads of .gcc_except_table: places that the unwinder jumps to. */
void frame_info_for_each_landing_pad(struct frame_info *fi, void (*fn)(uint64_t vaddr, void *ctx),
				     void *ctx);
bool frame_info_is_landing_pad(struct frame_info *fi, uint64_t vaddr);
void frame_info_close(struct frame_info *fi);

#endif

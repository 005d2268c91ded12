/* SPDX-License-Identifier: MIT */
/*
 * eh_frame.h - the call frame information of an image (LSB "Exception Frames", DWARF 5 §6.4).
 *
 * An own reader, because it must be safe for hostile files and answer tens of thousands of
 * questions in milliseconds.  It keeps pointers into the image.
 */
#ifndef INJECT_EH_FRAME_H
#define INJECT_EH_FRAME_H

#include "inject/elf/elf_image.h"

/* How to find the CFA: register + offset, and which registers have been saved. */
struct eh_row {
	uint32_t reg;   /* DWARF number: 7 rsp, 6 rbp; EH_REG_UNKNOWN: by an expression */
	uint32_t saved; /* bit n: a rule says where the caller's register n is (n < 16) */
	int64_t offset;
	bool outermost; /* the return address is undefined: nobody called */
};
#define EH_REG_RSP 7u
#define EH_REG_RA 16u
#define EH_REG_UNKNOWN UINT32_MAX

struct eh_cie {
	uint64_t vaddr;
	const uint8_t *insns;
	uint32_t ninsns;
	uint8_t fde_enc, lsda_enc; /* DW_EH_PE_* */
	bool has_aug_data;         /* 'z' */
	bool is_signal_frame;      /* 'S' */
	bool unusable;             /* FDEs of an augmentation that we do not know are skipped */
	uint64_t code_align;
	int64_t data_align;
	struct eh_row initial; /* after insns */
};

struct eh_fde {
	uint64_t start, end; /* end > start; not checked against the segments */
	uint64_t lsda;       /* 0 when there is none */
	const uint8_t *insns;
	uint32_t ninsns;
	uint32_t cie;   /* index */
	uint32_t order; /* rank in the file */
};

struct eh_frame {
	struct eh_fde *v; /* sorted by start, then by order */
	size_t n;
	struct eh_cie *cies;
	size_t ncies;
};

/* Read what there is; damaged entries are left out. */
void eh_frame_read(struct eh_frame *out, const struct elf_image *img);
void eh_frame_free(struct eh_frame *f);
/* The FDE that covers vaddr, or NULL. */
const struct eh_fde *eh_frame_at(const struct eh_frame *f, uint64_t vaddr);

/*
 * Walk an FDE's rows: fn(start, end, row, ctx) for each span of addresses, in order; it returns
 * false to stop.  A program that does not make sense ends the walk.
 */
void eh_frame_rows(const struct eh_frame *f, const struct eh_fde *fde,
		   bool (*fn)(uint64_t start, uint64_t end, const struct eh_row *row, void *ctx),
		   void *ctx);
/* The row in force at the FDE's start. */
struct eh_row eh_frame_first_row(const struct eh_frame *f, const struct eh_fde *fde);

/* ---- reading DWARF, shared with the reader of .gcc_except_table ---- */

struct eh_cursor {
	const uint8_t *p, *end;
	uint64_t vaddr; /* of p */
	bool failed;    /* something lay past the end, or had an unknown encoding */
};
uint64_t eh_uint(struct eh_cursor *c, unsigned int bytes);
uint64_t eh_uleb(struct eh_cursor *c);
int64_t eh_sleb(struct eh_cursor *c);
/* DW_EH_PE encoded value; 0 stays 0 whatever it is relative to. */
uint64_t eh_encoded(struct eh_cursor *c, uint8_t encoding, uint64_t func_base);

#endif

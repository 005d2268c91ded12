/* SPDX-License-Identifier: MIT */
/*
 * unwind_frame.c - the .eh_frame of a block: three entries, whatever the number of stubs.
 *
 *   head    jmp *thunk: called from a stub, CFA = rsp + 8 as everywhere
 *   commons action.h: called from a stub's cold part, whose stack they take down when they return
 *   stubs   CFA = rsp + depth[shape][pc - start]    the program's stack pointer
 *           ra  = insn                              the displaced instruction's address
 *           of the last spot that does not begin after the pc
 *
 * There are three forms of it, because unwinders differ.
 *
 *   in memory, libgcc   The frame counts as a signal's: the address is taken as it is, and names
 *                       the right function in backtrace_symbols(), too.
 *   in memory, others   As if the instruction had called the stub: ra is one more.  gdb would call
 *                       the other form's frame a signal handler's, and nongnu libunwind takes
 *                       each such frame for the kernel's when it is in a hurry.
 *   on disk, all        Likewise, but without an absolute address in it.
 *
 * DWARF 5 §2.5 and §6.4; LSB "Exception Frames".  All operations are among those that libgcc,
 * both libunwinds, elfutils and gdb know.
 */
#include "inject/bind/unwind.h"

#include "inject/plan/action.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* DW_OP_* */
enum {
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST2U = 0x0a,
	OP_CONST4U = 0x0c,
	OP_CONST8U = 0x0e,
	OP_DUP = 0x12,
	OP_DROP = 0x13,
	OP_OVER = 0x14,
	OP_PICK = 0x15,
	OP_SWAP = 0x16,
	OP_ROT = 0x17,
	OP_AND = 0x1a,
	OP_MINUS = 0x1c,
	OP_PLUS = 0x22,
	OP_SHL = 0x24,
	OP_SHR = 0x25,
	OP_BRA = 0x28,
	OP_EQ = 0x29,
	OP_GE = 0x2a,
	OP_LE = 0x2c,
	OP_SKIP = 0x2f,
	OP_LIT0 = 0x30,
	OP_BREG_RSP = 0x77,
	OP_BREG_PC = 0x80,
	OP_DEREF_SIZE = 0x94
};
/* DW_CFA_* */
enum {
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_OFFSET = 0x80
};
enum { REG_RSP = 7, REG_PC = 16 };
enum { PE_ABSPTR = 0, PE_PCREL_SDATA4 = 0x1b };

#define PAGE 4096u
#define COMMONS (KRON_BLOCK_HEAD) /* they begin there */

struct bytes {
	uint8_t v[UNWIND_FRAME_MAX];
	size_t n;
};

static void put(struct bytes *b, const void *p, size_t n)
{
	assert(b->n + n <= sizeof(b->v));
	memcpy(b->v + b->n, p, n);
	b->n += n;
}

static void put1(struct bytes *b, uint8_t v)
{
	put(b, &v, 1);
}

static void put4(struct bytes *b, uint32_t v)
{
	put(b, &v, 4);
}

static void put8(struct bytes *b, uint64_t v)
{
	put(b, &v, 8);
}

static void put_uleb(struct bytes *b, size_t v)
{
	for (; v > 0x7f; v >>= 7)
		put1(b, 0x80 | (v & 0x7f));
	put1(b, v);
}

/* ---- expressions ---- */

static void op_const(struct bytes *b, uint64_t v)
{
	put1(b, OP_CONST8U);
	put8(b, v);
}

static void op_load(struct bytes *b, unsigned size)
{
	put1(b, OP_DEREF_SIZE);
	put1(b, size);
}

/* A jump forward: where its distance stands. */
static size_t op_jump(struct bytes *b, uint8_t op)
{
	put1(b, op);
	put(b, "\0\0", 2);
	return b->n;
}

static void land(struct bytes *b, size_t jump)
{
	int16_t distance = b->n - jump;

	memcpy(b->v + jump - 2, &distance, 2);
}

static void op_jump_back(struct bytes *b, size_t to)
{
	int16_t distance = (int16_t)(to - (b->n + 3));

	put1(b, OP_SKIP);
	put(b, &distance, 2);
}

/* The address of an array, added to what is on the stack.  In relative form the block's address
 * is the entry this many below the top. */
static void op_add_address(struct bytes *b, const struct unwind_places *w, uint64_t address,
			   uint8_t below)
{
	if (!w->relative) {
		op_const(b, address);
	} else {
		put(b, (uint8_t[]){OP_PICK, below, OP_PLUS, OP_CONST4U}, 4);
		put4(b, (uint32_t)(address - w->block));
	}
	put1(b, OP_PLUS);
}

/*
 * The block's address, in relative form; then x = pc - block.  The relative form tries the
 * places where the block may be from above, for they are in the block, all of them.
 */
static void op_place(struct bytes *b, const struct unwind_places *w)
{
	size_t loop, found;

	put(b, (uint8_t[]){OP_BREG_PC, 0}, 2);
	if (!w->relative) {
		op_const(b, w->block);
		put1(b, OP_MINUS);
		return;
	}
	op_const(b, -(uint64_t)PAGE);
	put(b, (uint8_t[]){OP_AND, OP_CONST4U}, 2);
	put4(b, w->page);
	put1(b, OP_MINUS);
	loop = b->n;
	put(b, (uint8_t[]){OP_DUP, OP_CONST1U, KRON_BLOCK_ID, OP_PLUS, OP_DEREF}, 5);
	op_const(b, w->id);
	put1(b, OP_EQ);
	found = op_jump(b, OP_BRA);
	put(b, (uint8_t[]){OP_CONST2U, PAGE & 0xff, PAGE >> 8, OP_MINUS}, 4);
	op_jump_back(b, loop);
	land(b, found);
	put(b, (uint8_t[]){OP_BREG_PC, 0, OP_OVER, OP_MINUS}, 4);
}

#define OP_IN_GRANULE OP_CONST2U, (KRON_GRANULE - 1) & 0xff, (KRON_GRANULE - 1) >> 8, OP_AND

/* Leaves x = pc - block, its granule, and the spot that it is in. */
static void op_search(struct bytes *b, const struct unwind_places *w)
{
	size_t loop, last, behind, next;

	op_place(b, w);
	put(b, (uint8_t[]){OP_DUP, OP_LIT0 + 9, OP_SHR, OP_LIT0 + 3, OP_SHL}, 5);
	op_add_address(b, w, w->granule, 2); /* x granule */
	put(b, (uint8_t[]){OP_DUP, OP_DEREF_SIZE, 4, OP_LIT0 + 2, OP_SHL}, 5);
	op_add_address(b, w, w->spot, 3); /* x granule p */
	put(b, (uint8_t[]){OP_OVER, OP_LIT0 + 8, OP_PLUS, OP_DEREF_SIZE, 4, OP_LIT0 + 2, OP_SHL},
	    7);
	op_add_address(b, w, w->spot, 4); /* x granule p end */
	loop = b->n;
	put(b, (uint8_t[]){OP_OVER, OP_LIT0 + 4, OP_PLUS}, 3); /* x granule p end p+1 */
	put(b, (uint8_t[]){OP_OVER, OP_OVER, OP_LE}, 3);
	last = op_jump(b, OP_BRA);
	put(b, (uint8_t[]){OP_DUP, OP_DEREF_SIZE, 4, OP_IN_GRANULE}, 7);
	put(b, (uint8_t[]){OP_PICK, 5, OP_IN_GRANULE, OP_LE}, 7);
	next = op_jump(b, OP_BRA);
	behind = op_jump(b, OP_SKIP);
	land(b, next);
	put(b, (uint8_t[]){OP_ROT, OP_SWAP, OP_DROP}, 3); /* x granule p+1 end */
	op_jump_back(b, loop);
	land(b, last);
	land(b, behind);
	put(b, (uint8_t[]){OP_DROP, OP_DROP, OP_DEREF_SIZE, 4}, 4);
}
_Static_assert(KRON_GRANULE == 1 << 9 && sizeof(struct kron_granule) == 1 << 3, "OP_LIT0 + 9, 3");

static void op_cfa(struct bytes *b, const struct unwind_places *w)
{
	const uint8_t last = KRON_SHAPE_BYTES - 1;
	size_t small;

	op_search(b, w); /* x granule spot */
	put(b, (uint8_t[]){OP_DUP, OP_PICK, 3, OP_SWAP, OP_MINUS, OP_IN_GRANULE}, 9);
	put(b, (uint8_t[]){OP_DUP, OP_CONST1U, last, OP_LE}, 4);
	small = op_jump(b, OP_BRA);
	put(b, (uint8_t[]){OP_DROP, OP_CONST1U, last}, 3);
	land(b, small);
	put(b, (uint8_t[]){OP_SWAP, OP_LIT0 + KRON_SPOT_SHAPE_BIT, OP_SHR}, 3);
	put(b, (uint8_t[]){OP_LIT0 + 31, OP_AND, OP_LIT0 + 6, OP_SHL, OP_PLUS}, 5);
	op_add_address(b, w, w->depth, 3); /* x granule depth */
	op_load(b, 1);
	put(b, (uint8_t[]){OP_LIT0 + 3, OP_SHL, OP_BREG_RSP, 0, OP_PLUS}, 5);
}
_Static_assert(KRON_SHAPE_BYTES == 1 << 6 && KRON_SHAPES <= 32, "OP_LIT0 + 6");

static void op_insn(struct bytes *b, const struct unwind_places *w, bool by_call)
{
	op_search(b, w); /* x granule spot */
	put(b, (uint8_t[]){OP_LIT0 + KRON_SPOT_INSN_BIT, OP_SHR, OP_SWAP, OP_LIT0 + 4, OP_PLUS}, 5);
	put(b, (uint8_t[]){OP_DEREF_SIZE, 4, OP_PLUS}, 3); /* x insn */
	if (w->relative)
		put(b, (uint8_t[]){OP_PICK, 2, OP_PLUS}, 3);
	op_const(b, w->lo - (w->relative ? w->block : 0) + by_call);
	put1(b, OP_PLUS);
}

/*
 * Where the return address of a common is: pushes at its bytes 0 and 1, which the instructions
 * before bytes 21 and 22 take back.  Leaves the position in the common below.
 */
static void op_common_return(struct bytes *b)
{
	put(b, (uint8_t[]){OP_BREG_PC, 0, OP_LIT0 + 31, OP_AND}, 4);
	put(b, (uint8_t[]){OP_DUP, OP_LIT0 + 1, OP_GE, OP_OVER, OP_LIT0 + 6, OP_GE, OP_PLUS}, 7);
	put(b, (uint8_t[]){OP_OVER, OP_LIT0 + 21, OP_GE, OP_MINUS}, 4);
	put(b, (uint8_t[]){OP_OVER, OP_LIT0 + 22, OP_GE, OP_MINUS}, 4);
	put(b, (uint8_t[]){OP_LIT0 + 3, OP_SHL, OP_BREG_RSP, 0, OP_PLUS}, 5);
}
_Static_assert(ACTION_COMMON_LEN == 32 && COMMONS % (2 * ACTION_COMMON_LEN) == 0,
	       "OP_LIT0 + 31, and the bit below");

/* ret $8, and 128 more in the first of two. */
static void op_common_cfa(struct bytes *b)
{
	op_common_return(b);
	put(b, (uint8_t[]){OP_LIT0 + 16, OP_PLUS, OP_BREG_PC, 0, OP_LIT0 + 5, OP_SHR}, 6);
	put(b, (uint8_t[]){OP_LIT0 + 1, OP_AND, OP_LIT0 + 1, OP_SWAP, OP_MINUS}, 5);
	put(b, (uint8_t[]){OP_LIT0 + 7, OP_SHL, OP_PLUS}, 3);
}

static void put_expression(struct bytes *b, const struct bytes *expression)
{
	put_uleb(b, expression->n);
	put(b, expression->v, expression->n);
}

/* ---- entries ---- */

/* Begins an entry; end_entry() fills in its length. */
static size_t begin_entry(struct bytes *b)
{
	put4(b, 0);
	return b->n;
}

static void end_entry(struct bytes *b, size_t start)
{
	uint32_t length;

	while (b->n % 8)
		put1(b, 0); /* DW_CFA_nop */
	length = b->n - start;
	memcpy(b->v + start - 4, &length, 4);
}

/* Version 1, CFA instructions to come. */
static size_t begin_cie(struct bytes *b, bool signal_frame, uint8_t encoding)
{
	const char *augmentation = signal_frame ? "zRS" : "zR";
	size_t start = begin_entry(b);

	put4(b, 0);
	put1(b, 1);
	put(b, augmentation, strlen(augmentation) + 1);
	put1(b, 1);    /* code alignment */
	put1(b, 0x78); /* data alignment -8 */
	put1(b, REG_PC);
	put1(b, 1); /* augmentation data: */
	put1(b, encoding);
	return start;
}

/* Returns the offset of the FDE. */
static uint32_t put_fde(struct bytes *b, size_t cie, uint64_t start, uint64_t end)
{
	size_t entry = begin_entry(b);

	put4(b, b->n - (cie - 4));
	put8(b, start);
	put8(b, end - start);
	put1(b, 0); /* augmentation data */
	end_entry(b, entry);
	return entry - 4;
}

static void put_head(struct bytes *b, const struct unwind_places *w, uint32_t *fde)
{
	size_t cie = begin_cie(b, false, PE_ABSPTR);

	put(b, (uint8_t[]){CFA_DEF_CFA, REG_RSP, 8, CFA_OFFSET | REG_PC, 1}, 5);
	end_entry(b, cie);
	*fde = put_fde(b, cie, w->block, w->block + COMMONS);
}

static void put_stubs(struct bytes *b, const struct unwind_places *w, bool by_call, uint32_t *fde)
{
	size_t cie = begin_cie(b, !by_call, PE_ABSPTR);
	struct bytes expression = {.n = 0};

	op_cfa(&expression, w);
	put1(b, CFA_DEF_CFA_EXPRESSION);
	put_expression(b, &expression);
	expression.n = 0;
	op_insn(&expression, w, by_call);
	put1(b, CFA_VAL_EXPRESSION);
	put1(b, REG_PC);
	put_expression(b, &expression);
	end_entry(b, cie);
	*fde = put_fde(b, cie, w->stubs, w->stubs_end);
}

static void put_common_rules(struct bytes *b)
{
	struct bytes expression = {.n = 0};

	op_common_cfa(&expression);
	put1(b, CFA_DEF_CFA_EXPRESSION);
	put_expression(b, &expression);
	expression.n = 0;
	op_common_return(&expression);
	put1(b, CFA_EXPRESSION);
	put1(b, REG_PC);
	put_expression(b, &expression);
}

static void put_commons(struct bytes *b, const struct unwind_places *w, uint32_t *fde)
{
	size_t cie = begin_cie(b, false, PE_ABSPTR);

	put_common_rules(b);
	end_entry(b, cie);
	*fde = put_fde(b, cie, w->block + COMMONS, w->stubs);
}

size_t unwind_frame_make(uint8_t out[UNWIND_FRAME_MAX], const struct unwind_places *w, bool by_call,
			 uint32_t fde[UNWIND_FDES])
{
	struct bytes b = {.n = 0};

	put_head(&b, w, &fde[0]);
	put_commons(&b, w, &fde[1]);
	put_stubs(&b, w, by_call, &fde[2]);
	put4(&b, 0);
	memcpy(out, b.v, b.n);
	return b.n;
}

/* ---- on disk ---- */

static void append(struct unwind_buffer *out, const struct bytes *b)
{
	assert(out->n + b->n <= out->cap);
	memcpy(out->v + out->n, b->v, b->n);
	out->n += b->n;
}

/* An entry without its end; here, cie, at: offsets of b and of the CIE, address of offset 0. */
static size_t begin_page(struct bytes *b, size_t here, size_t cie, uint64_t at,
			 const struct unwind_fde *fde, uint64_t end)
{
	size_t entry = begin_entry(b);

	put4(b, (uint32_t)(here + b->n - cie));
	put4(b, (uint32_t)(fde->start - (at + here + b->n)));
	put4(b, (uint32_t)(end - fde->start));
	put1(b, 0); /* augmentation data */
	return entry;
}

/* Pages that share an entry.  Unwinders may give up when an expression has too many steps. */
#define ENTRY_PAGES 64u

size_t unwind_fde_count(uint64_t stubs_len)
{
	const uint64_t part = ENTRY_PAGES * PAGE;

	return 2 + (stubs_len + part - 1) / part; /* head and commons, and the rest of the page */
}

static void append_head(struct unwind_buffer *out, uint64_t at, size_t base,
			const struct unwind_places *w, struct unwind_fde *fde)
{
	struct bytes b = {.n = 0};
	size_t here = out->n - base, cie = begin_cie(&b, false, PE_PCREL_SDATA4), entry;

	put(&b, (uint8_t[]){CFA_DEF_CFA, REG_RSP, 8, CFA_OFFSET | REG_PC, 1}, 5);
	end_entry(&b, cie);
	*fde = (struct unwind_fde){w->block, (uint32_t)(here + b.n)};
	entry = begin_page(&b, here, here + cie - 4, at, fde, w->block + COMMONS);
	end_entry(&b, entry);
	append(out, &b);
}

static void append_commons(struct unwind_buffer *out, uint64_t at, size_t base,
			   const struct unwind_places *w, struct unwind_fde *fde)
{
	struct bytes b = {.n = 0};
	size_t here = out->n - base, cie = begin_cie(&b, false, PE_PCREL_SDATA4), entry;

	put_common_rules(&b);
	end_entry(&b, cie);
	*fde = (struct unwind_fde){w->block + COMMONS, (uint32_t)(here + b.n)};
	entry = begin_page(&b, here, here + cie - 4, at, fde, w->stubs);
	end_entry(&b, entry);
	append(out, &b);
}

static void append_pages(struct unwind_buffer *out, uint64_t at, size_t base, size_t cie,
			 const struct unwind_places *w, struct unwind_fde *fde)
{
	struct bytes b = {.n = 0}, expression = {.n = 0};
	uint64_t page = w->block + w->page, end = page + ENTRY_PAGES * PAGE;
	size_t here = out->n - base, entry;

	if (end > w->stubs_end)
		end = w->stubs_end;
	*fde = (struct unwind_fde){page < w->stubs ? w->stubs : page, (uint32_t)here};
	if (end < fde->start)
		end = fde->start; /* nothing but commons */
	entry = begin_page(&b, here, cie, at, fde, end);
	op_cfa(&expression, w);
	put1(&b, CFA_DEF_CFA_EXPRESSION);
	put_expression(&b, &expression);
	expression.n = 0;
	op_insn(&expression, w, true);
	put1(&b, CFA_VAL_EXPRESSION);
	put1(&b, REG_PC);
	put_expression(&b, &expression);
	end_entry(&b, entry);
	append(out, &b);
}

void unwind_frame_disk(struct unwind_buffer *out, uint64_t at, const struct unwind_places *w,
		       struct unwind_fde *fdes)
{
	struct unwind_places page = *w;
	struct bytes b = {.n = 0};
	size_t base = out->n, cie, n = unwind_fde_count(w->stubs_end - w->block);

	page.relative = true;
	append_head(out, at, base, w, &fdes[0]);
	append_commons(out, at, base, w, &fdes[1]);
	cie = out->n - base;
	end_entry(&b, begin_cie(&b, false, PE_PCREL_SDATA4));
	append(out, &b);
	for (size_t i = 2; i < n; i++) {
		page.page = (uint32_t)(i - 2) * ENTRY_PAGES * PAGE;
		append_pages(out, at, base, cie, &page, &fdes[i]);
	}
	b.n = 0;
	put4(&b, 0);
	append(out, &b);
}

/* ---- .eh_frame_hdr ---- */

void unwind_hdr_make(uint8_t out[KRON_FRAME_HDR_SIZE], uint64_t at, uint64_t frame,
		     const struct unwind_places *w, const uint32_t fde[UNWIND_FDES])
{
	/* version; .eh_frame: pcrel sdata4; count: udata4; table: datarel sdata4 */
	static const uint8_t head[4] = {1, 0x1b, 0x03, 0x3b};
	const int32_t rest[] = {
		(int32_t)(frame - (at + 4)),        UNWIND_FDES,
		(int32_t)(w->block - at),           (int32_t)(frame + fde[0] - at),
		(int32_t)(w->block + COMMONS - at), (int32_t)(frame + fde[1] - at),
		(int32_t)(w->stubs - at),           (int32_t)(frame + fde[2] - at),
	};

	_Static_assert(sizeof(head) + sizeof(rest) == KRON_FRAME_HDR_SIZE, "its size");
	memcpy(out, head, sizeof(head));
	memcpy(out + sizeof(head), rest, sizeof(rest));
}

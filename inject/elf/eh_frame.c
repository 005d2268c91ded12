/* SPDX-License-Identifier: MIT */
/*
 * eh_frame.c - reads .eh_frame: the entries, and the programs in them.
 *
 *   length | CIE id = 0 | version, augmentation "zRPLS", alignments, ra, aug data | program
 *   length | CIE pointer | start, size, aug data (LSDA)                          | program
 *
 * A program is a list of opcodes that build rows (address -> how to find the CFA and the saved
 * registers).  Of a row only what the planner asks for is kept.
 */
#include "inject/elf/eh_frame.h"

#include <stdlib.h>

#include "base/vec.h"
#include "base/search.h"
#include "inject/elf/elf_image_impl.h"

/* DW_EH_PE_*, LSB core §10.5 */
enum {
	PE_ABSPTR = 0x00,
	PE_ULEB128 = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SLEB128 = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_PCREL = 0x10,
	PE_FUNCREL = 0x40,
	PE_OMIT = 0xff
};

#define REMEMBER_MAX 32 /* nested DW_CFA_remember_state; compilers use 1 */

/* ---- numbers ---- */

uint64_t eh_uint(struct eh_cursor *c, unsigned int bytes)
{
	uint64_t v = 0;

	if ((size_t)(c->end - c->p) < bytes) {
		c->failed = true;
		c->p = c->end;
		return 0;
	}
	memcpy(&v, c->p, bytes);
	c->p += bytes;
	c->vaddr += bytes;
	return v;
}

static int64_t eh_sint(struct eh_cursor *c, unsigned int bytes)
{
	unsigned int shift = 64 - 8 * bytes;

	return (int64_t)(eh_uint(c, bytes) << shift) >> shift;
}

static uint64_t leb(struct eh_cursor *c, unsigned int *bits, uint8_t *last)
{
	uint64_t v = 0;
	unsigned int shift = 0;

	do {
		*last = eh_uint(c, 1);
		if (shift < 64)
			v |= (uint64_t)(*last & 0x7f) << shift;
		shift += shift < 64 ? 7 : 0;
	} while (*last & 0x80 && !c->failed);
	*bits = shift;
	return v;
}

uint64_t eh_uleb(struct eh_cursor *c)
{
	unsigned int bits;
	uint8_t last;

	return leb(c, &bits, &last);
}

int64_t eh_sleb(struct eh_cursor *c)
{
	unsigned int bits;
	uint8_t last;
	uint64_t v = leb(c, &bits, &last);

	if (bits < 64 && last & 0x40)
		v |= ~0ull << bits;
	return v;
}

uint64_t eh_encoded(struct eh_cursor *c, uint8_t encoding, uint64_t func_base)
{
	uint64_t here = c->vaddr, v;

	if (encoding == PE_OMIT)
		return 0;
	switch (encoding & 0x0f) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		v = eh_uint(c, 8);
		break;
	case PE_ULEB128:
		v = eh_uleb(c);
		break;
	case PE_SLEB128:
		v = eh_sleb(c);
		break;
	case PE_UDATA2:
		v = eh_uint(c, 2);
		break;
	case PE_UDATA4:
		v = eh_uint(c, 4);
		break;
	case PE_SDATA2:
		v = eh_sint(c, 2);
		break;
	case PE_SDATA4:
		v = eh_sint(c, 4);
		break;
	default:
		c->failed = true;
		return 0;
	}
	if (!v)
		return 0;
	switch (encoding & 0x70) {
	case 0:
		return v;
	case PE_PCREL:
		return v + here;
	case PE_FUNCREL:
		return v + func_base;
	default:
		c->failed = true;
		return 0;
	}
}

static void skip(struct eh_cursor *c, uint64_t n)
{
	if (n > (uint64_t)(c->end - c->p)) {
		c->failed = true;
		n = c->end - c->p;
	}
	c->p += n;
	c->vaddr += n;
}

/* ---- programs ---- */

struct machine {
	const struct eh_cie *cie;
	struct eh_row row;
	struct eh_row stack[REMEMBER_MAX];
	unsigned int depth;
	uint64_t pc;
};

static void set_saved(struct machine *m, uint64_t reg, bool saved)
{
	if (reg >= 16)
		return;
	if (saved)
		m->row.saved |= 1u << reg;
	else
		m->row.saved &= ~(1u << reg);
}

static void skip_block(struct eh_cursor *c)
{
	skip(c, eh_uleb(c));
}

static void define_cfa(struct machine *m, uint64_t reg, int64_t offset)
{
	m->row.reg = reg < 32 ? reg : EH_REG_UNKNOWN;
	m->row.offset = offset;
}

/* Opcodes that say where a register was saved.  False: none of these. */
static bool register_rule(struct machine *m, struct eh_cursor *c, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case 0x05: /* DW_CFA_offset_extended */
	case 0x14: /* DW_CFA_val_offset */
	case 0x2f: /* DW_CFA_GNU_negative_offset_extended */
	case 0x09: /* DW_CFA_register */
		reg = eh_uleb(c);
		eh_uleb(c);
		set_saved(m, reg, true);
		return true;
	case 0x11: /* DW_CFA_offset_extended_sf */
	case 0x15: /* DW_CFA_val_offset_sf */
		reg = eh_uleb(c);
		eh_sleb(c);
		set_saved(m, reg, true);
		return true;
	case 0x10: /* DW_CFA_expression */
	case 0x16: /* DW_CFA_val_expression */
		reg = eh_uleb(c);
		skip_block(c);
		set_saved(m, reg, true);
		return true;
	case 0x07: /* DW_CFA_undefined */
		reg = eh_uleb(c);
		set_saved(m, reg, false);
		m->row.outermost |= reg == EH_REG_RA;
		return true;
	case 0x06: /* DW_CFA_restore_extended */
	case 0x08: /* DW_CFA_same_value */
		set_saved(m, eh_uleb(c), false);
		return true;
	default:
		return false;
	}
}

/* Opcodes that say how to find the CFA, and the rest.  False: unknown. */
static bool cfa_rule(struct machine *m, struct eh_cursor *c, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case 0x00: /* DW_CFA_nop */
		return true;
	case 0x0a: /* DW_CFA_remember_state */
		if (m->depth == REMEMBER_MAX)
			return false;
		m->stack[m->depth++] = m->row;
		return true;
	case 0x0b: /* DW_CFA_restore_state */
		if (!m->depth)
			return false;
		m->row = m->stack[--m->depth];
		return true;
	case 0x0c: /* DW_CFA_def_cfa */
		reg = eh_uleb(c);
		define_cfa(m, reg, eh_uleb(c));
		return true;
	case 0x12: /* DW_CFA_def_cfa_sf */
		reg = eh_uleb(c);
		define_cfa(m, reg, (uint64_t)eh_sleb(c) * (uint64_t)m->cie->data_align);
		return true;
	case 0x0d: /* DW_CFA_def_cfa_register */
		define_cfa(m, eh_uleb(c), m->row.offset);
		return true;
	case 0x0e: /* DW_CFA_def_cfa_offset */
		m->row.offset = eh_uleb(c);
		return true;
	case 0x13: /* DW_CFA_def_cfa_offset_sf */
		m->row.offset = (uint64_t)eh_sleb(c) * (uint64_t)m->cie->data_align;
		return true;
	case 0x0f: /* DW_CFA_def_cfa_expression */
		skip_block(c);
		m->row.reg = EH_REG_UNKNOWN;
		return true;
	case 0x2e: /* DW_CFA_GNU_args_size */
		eh_uleb(c);
		return true;
	default:
		return register_rule(m, c, op);
	}
}

/* Opcodes that move on in the code.  False: none of these. */
static bool advance(struct machine *m, struct eh_cursor *c, uint8_t op)
{
	switch (op) {
	case 0x01: /* DW_CFA_set_loc */
		m->pc = eh_encoded(c, m->cie->fde_enc, 0);
		return true;
	case 0x02: /* DW_CFA_advance_loc1, 2, 4 */
		m->pc += eh_uint(c, 1) * m->cie->code_align;
		return true;
	case 0x03:
		m->pc += eh_uint(c, 2) * m->cie->code_align;
		return true;
	case 0x04:
		m->pc += eh_uint(c, 4) * m->cie->code_align;
		return true;
	default:
		if ((op & 0xc0) != 0x40)
			return false;
		m->pc += (op & 0x3f) * m->cie->code_align; /* DW_CFA_advance_loc */
		return true;
	}
}

static bool step(struct machine *m, struct eh_cursor *c, uint8_t op)
{
	switch (op & 0xc0) {
	case 0x80: /* DW_CFA_offset */
		eh_uleb(c);
		set_saved(m, op & 0x3f, true);
		return true;
	case 0xc0: /* DW_CFA_restore */
		set_saved(m, op & 0x3f, false);
		return true;
	default:
		return cfa_rule(m, c, op);
	}
}

static struct eh_row run_cie(const struct eh_cie *cie)
{
	struct machine m = {.cie = cie, .row = {.reg = EH_REG_UNKNOWN}};
	struct eh_cursor c = {.p = cie->insns, .end = cie->insns + cie->ninsns};

	while (c.p < c.end && !c.failed) {
		uint8_t op = *c.p++;

		if (!advance(&m, &c, op) && !step(&m, &c, op))
			break;
	}
	return m.row;
}

void eh_frame_rows(const struct eh_frame *f, const struct eh_fde *fde,
		   bool (*fn)(uint64_t start, uint64_t end, const struct eh_row *row, void *ctx),
		   void *ctx)
{
	const struct eh_cie *cie = &f->cies[fde->cie];
	struct machine m = {.cie = cie, .row = cie->initial, .pc = fde->start};
	struct eh_cursor c = {.p = fde->insns, .end = fde->insns + fde->ninsns};
	uint64_t from = fde->start;

	while (c.p < c.end) {
		uint8_t op = *c.p++;

		if (advance(&m, &c, op)) {
			if (c.failed || m.pc < from)
				return;
			if (m.pc > fde->end)
				m.pc = fde->end;
			if (m.pc > from && !fn(from, m.pc, &m.row, ctx))
				return;
			from = m.pc;
		} else if (!step(&m, &c, op) || c.failed) {
			return;
		}
	}
	if (from < fde->end)
		fn(from, fde->end, &m.row, ctx);
}

static bool take_first_row(uint64_t start, uint64_t end, const struct eh_row *row, void *ctx)
{
	(void)start;
	(void)end;
	*(struct eh_row *)ctx = *row;
	return false;
}

struct eh_row eh_frame_first_row(const struct eh_frame *f, const struct eh_fde *fde)
{
	struct eh_row row = {.reg = EH_REG_UNKNOWN};

	eh_frame_rows(f, fde, take_first_row, &row);
	return row;
}

/* ---- entries ---- */

struct reader {
	VEC(struct eh_fde) fdes;
	VEC(struct eh_cie) cies;
	bool sorted; /* so far */
};

static bool read_augmentation(struct eh_cie *cie, struct eh_cursor *c, const char *aug)
{
	struct eh_cursor data;
	uint64_t n;
	uint8_t encoding;

	if (*aug != 'z')
		return !*aug;
	cie->has_aug_data = true;
	n = eh_uleb(c);
	data = *c;
	skip(c, n);
	if (c->failed)
		return false;
	data.end = c->p;
	while (*++aug) {
		switch (*aug) {
		case 'R':
			cie->fde_enc = eh_uint(&data, 1);
			break;
		case 'L':
			cie->lsda_enc = eh_uint(&data, 1);
			break;
		case 'P': /* the personality routine, of no interest */
			encoding = eh_uint(&data, 1);
			if (encoding != PE_OMIT)
				eh_encoded(&data, encoding & 0x0f, 0);
			break;
		case 'S':
			cie->is_signal_frame = true;
			break;
		case 'B':
			break; /* pointer authentication, not on x86 */
		default:
			return false;
		}
	}
	return !data.failed;
}

static void read_cie(struct reader *r, struct eh_cursor c, uint64_t vaddr)
{
	struct eh_cie *cie = vec_push(&r->cies);
	uint8_t version = eh_uint(&c, 1);
	const char *aug = (const char *)c.p;

	cie->vaddr = vaddr;
	cie->lsda_enc = PE_OMIT;
	cie->unusable = true;
	while (eh_uint(&c, 1) && !c.failed)
		;
	cie->code_align = eh_uleb(&c);
	cie->data_align = eh_sleb(&c);
	if (version == 1)
		eh_uint(&c, 1);
	else
		eh_uleb(&c);
	if (c.failed || (version != 1 && version != 3) || !read_augmentation(cie, &c, aug))
		return;
	cie->insns = c.p;
	cie->ninsns = c.end - c.p;
	cie->initial = run_cie(cie);
	cie->unusable = false;
}

/* CIEs were read in ascending order; most FDEs use the latest. */
static size_t find_cie(const struct reader *r, uint64_t vaddr)
{
	size_t lo = 0, hi = r->cies.n;

	if (hi && r->cies.v[hi - 1].vaddr == vaddr)
		return hi - 1;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->cies.v[mid].vaddr == vaddr)
			return mid;
		if (r->cies.v[mid].vaddr < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return SIZE_MAX;
}

static void read_fde(struct reader *r, struct eh_cursor c, uint64_t cie_vaddr)
{
	size_t index = find_cie(r, cie_vaddr);
	const struct eh_cie *cie;
	struct eh_fde fde = {0};
	uint64_t size;

	if (index == SIZE_MAX || r->cies.v[index].unusable)
		return;
	cie = &r->cies.v[index];
	fde.cie = index;
	fde.start = eh_encoded(&c, cie->fde_enc, 0);
	size = eh_encoded(&c, cie->fde_enc & 0x0f, 0);
	if (cie->has_aug_data) {
		uint64_t n = eh_uleb(&c);
		struct eh_cursor data = c;

		skip(&c, n);
		data.end = c.p;
		if (cie->lsda_enc != PE_OMIT && !c.failed)
			fde.lsda = eh_encoded(&data, cie->lsda_enc, fde.start);
	}
	fde.end = fde.start + size;
	if (c.failed || fde.end <= fde.start || !fde.start)
		return;
	fde.insns = c.p;
	fde.ninsns = c.end - c.p;
	fde.order = r->fdes.n;
	if (r->fdes.n && r->fdes.v[r->fdes.n - 1].start > fde.start)
		r->sorted = false;
	*vec_push(&r->fdes) = fde;
}

/* has_size: the extent is known, so a zero length is only where one object file ended. */
static void read_entries(struct reader *r, struct eh_cursor c, bool has_size)
{
	while (c.end - c.p >= 4) {
		struct eh_cursor entry;
		uint64_t vaddr = c.vaddr, length = eh_uint(&c, 4), id_vaddr;
		uint32_t id;

		if (!length && !has_size)
			return;
		if (length == 0xffffffff)
			length = eh_uint(&c, 8);
		if (c.failed || length > (uint64_t)(c.end - c.p))
			return;
		entry = c;
		entry.end = c.p + length;
		skip(&c, length);
		if (length < 4)
			continue;
		id_vaddr = entry.vaddr;
		id = eh_uint(&entry, 4);
		if (!id)
			read_cie(r, entry, vaddr);
		else
			read_fde(r, entry, id_vaddr - id);
	}
}

static int compare_fdes(const void *a, const void *b)
{
	const struct eh_fde *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static struct eh_cursor cursor_at(const struct elf_image *img, uint64_t vaddr)
{
	uint64_t room = elf_image_room(img, vaddr);
	const uint8_t *p = elf_image_at(img, vaddr, room);

	return (struct eh_cursor){.p = p, .end = p ? p + room : p, .vaddr = vaddr};
}

/* .eh_frame_hdr: version 1, three encodings, then the pointer that we want. */
static uint64_t vaddr_from_header(const struct elf_image *img)
{
	const struct elf_priv *priv = img->priv;
	struct eh_cursor c = cursor_at(img, priv->eh_frame_hdr);
	uint8_t version, encoding;

	if (!priv->eh_frame_hdr || !c.p)
		return 0;
	version = eh_uint(&c, 1);
	encoding = eh_uint(&c, 1);
	eh_uint(&c, 2);
	if (version != 1)
		return 0;
	return eh_encoded(&c, encoding, 0);
}

void eh_frame_read(struct eh_frame *out, const struct elf_image *img)
{
	const struct elf_section *s = elf_image_section(img, ".eh_frame");
	struct reader r = {.sorted = true};
	struct eh_cursor c;

	if (s && s->type != SHT_NOBITS && s->flags & SHF_ALLOC) {
		c = cursor_at(img, s->vaddr);
		if (s->size < (uint64_t)(c.end - c.p))
			c.end = c.p + s->size;
		read_entries(&r, c, true);
	}
	if (!r.fdes.n) {
		c = cursor_at(img, vaddr_from_header(img));
		if (c.p)
			read_entries(&r, c, false);
	}
	if (!r.sorted)
		qsort(r.fdes.v, r.fdes.n, sizeof(*r.fdes.v), compare_fdes);
	*out = (struct eh_frame){.v = r.fdes.v, .n = r.fdes.n, .cies = r.cies.v, .ncies = r.cies.n};
}

void eh_frame_free(struct eh_frame *f)
{
	xfree(f->v);
	xfree(f->cies);
	*f = (struct eh_frame){0};
}

const struct eh_fde *eh_frame_at(const struct eh_frame *f, uint64_t vaddr)
{
	size_t lo = partition_point(
		i, f->n, f->v[i].start <= vaddr); /* past those that start at or before it */

	return lo && vaddr < f->v[lo - 1].end ? &f->v[lo - 1] : NULL;
}

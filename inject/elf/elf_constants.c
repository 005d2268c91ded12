/* SPDX-License-Identifier: MIT */
/*
 * elf_constants.c - the code addresses that data holds, as far as the file tells.
 *
 *   position independent:  RELA / REL / RELR --> each pointer has a relocation
 *   ET_EXEC, static:       pointers are plain words --> every aligned word that looks like one
 *
 * Both ways a file may name more than it means; for the planner, one constant too many costs a
 * patch window, one too few a crash.
 */
#include "inject/elf/elf_data.h"

#ifndef DT_RELR
#define DT_RELRSZ 35
#define DT_RELR 36
#endif

struct constants {
	const struct elf_image *img;
	void (*fn)(uint64_t value, void *ctx);
	void *ctx;
	Elf_Data *symbols;   /* dynamic symbol table, and what follows it */
	bool only_resolvers; /* IRELATIVE and nothing else */
	uint64_t budget;     /* bytes still to be scanned: sections of a hostile file overlap */
};

static void emit(const struct constants *c, uint64_t value)
{
	if (value)
		c->fn(value, c->ctx);
}

static uint64_t symbol_value(const struct constants *c, uint64_t index, bool *defined)
{
	GElf_Sym sym;

	*defined = false;
	if (index > INT_MAX || !gelf_getsym(c->symbols, (int)index, &sym))
		return 0;
	*defined = sym.st_shndx != SHN_UNDEF;
	return sym.st_value;
}

/* Relocations that leave no address: thread-local offsets, module numbers, copies. */
static bool is_address_reloc(uint64_t type)
{
	return type == R_X86_64_64 || type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT ||
	       type == R_X86_64_32 || type == R_X86_64_32S || type == R_X86_64_PC32 ||
	       type == R_X86_64_PC64;
}

static void emit_reloc(const struct constants *c, uint64_t info, uint64_t addend)
{
	uint64_t type = GELF_R_TYPE(info), value;
	bool defined;

	if (c->only_resolvers) {
		if (type == R_X86_64_IRELATIVE)
			emit(c, addend);
		return;
	}
	if (type == R_X86_64_RELATIVE || type == R_X86_64_RELATIVE64 ||
	    type == R_X86_64_IRELATIVE) {
		emit(c, addend);
		return;
	}
	if (!is_address_reloc(type))
		return;
	value = symbol_value(c, GELF_R_SYM(info), &defined);
	if (!defined)
		return;
	emit(c, value);
	if (addend && type != R_X86_64_GLOB_DAT && type != R_X86_64_JUMP_SLOT)
		emit(c, value + addend);
}

static void rela_table(const struct constants *c, Elf_Data *d)
{
	int n = elf_data_entries(d, sizeof(Elf64_Rela));
	GElf_Rela r;

	for (int i = 0; i < n && gelf_getrela(d, i, &r); i++)
		emit_reloc(c, r.r_info, (uint64_t)r.r_addend);
}

/* The addend stands in the place itself. */
static void emit_place(const struct constants *c, uint64_t vaddr, uint64_t info)
{
	const uint8_t *p = elf_image_at(c->img, vaddr, 8);

	if (p)
		emit_reloc(c, info, elf_read64(p));
}

static void rel_table(const struct constants *c, Elf_Data *d)
{
	int n = elf_data_entries(d, sizeof(Elf64_Rel));
	GElf_Rel r;

	for (int i = 0; i < n && gelf_getrel(d, i, &r); i++)
		emit_place(c, r.r_offset, r.r_info);
}

/* gABI "relative relocations": an even word is an address, an odd one a map of the next 63. */
static void relr_table(const struct constants *c, const uint8_t *p, uint64_t size)
{
	uint64_t where = 0;

	for (; size >= 8; p += 8, size -= 8) {
		uint64_t word = elf_read64(p);

		if (!(word & 1)) {
			emit_place(c, word, R_X86_64_RELATIVE);
			where = word + 8;
			continue;
		}
		for (uint64_t i = 0; word >>= 1; i++)
			if (word & 1)
				emit_place(c, where + 8 * i, R_X86_64_RELATIVE);
		where += 63 * 8;
	}
}

static void dynamic_relocs(const struct constants *c)
{
	const struct elf_priv *priv = c->img->priv;
	Elf_Data *relr = elf_data_dynamic(c->img, DT_RELR, DT_RELRSZ, ELF_T_XWORD);
	uint64_t plt_type = DT_RELA;

	rela_table(c, priv->rela);
	rel_table(c, elf_data_dynamic(c->img, DT_REL, DT_RELSZ, ELF_T_REL));
	if (relr)
		relr_table(c, relr->d_buf, relr->d_size);
	elf_dynamic(c->img, DT_PLTREL, &plt_type);
	if (plt_type == DT_REL)
		rel_table(c, elf_data_dynamic(c->img, DT_JMPREL, DT_PLTRELSZ, ELF_T_REL));
	else
		rela_table(c, elf_data_dynamic(c->img, DT_JMPREL, DT_PLTRELSZ, ELF_T_RELA));
}

/* A static program has no PT_DYNAMIC, but IRELATIVE relocations that its start code applies. */
static void section_relocs(struct constants *c)
{
	for (size_t i = 0; i < c->img->nsections; i++) {
		const struct elf_section *s = &c->img->sections[i];

		if (s->type != SHT_RELA || !(s->flags & SHF_ALLOC) || s->size > c->budget)
			continue;
		c->budget -= s->size;
		rela_table(c, elf_data(c->img, s->off, s->size, ELF_T_RELA));
	}
}

static void scan_words(struct constants *c, uint64_t vaddr, uint64_t size)
{
	uint64_t pad = -vaddr & 7, room = elf_image_room(c->img, vaddr);
	const uint8_t *p = elf_image_at(c->img, vaddr, room);

	if (size > room)
		size = room;
	if (!p || pad > size || size > c->budget)
		return;
	c->budget -= size;
	for (p += pad, size -= pad; size >= 8; p += 8, size -= 8) {
		uint64_t v = elf_read64(p);

		if (elf_image_is_exec(c->img, v))
			emit(c, v);
	}
}

static bool is_loaded_data(const struct elf_section *s)
{
	return s->flags & SHF_ALLOC && !(s->flags & SHF_EXECINSTR) && s->type != SHT_NOBITS &&
	       s->type != SHT_DYNSYM && s->type != SHT_STRTAB && s->type != SHT_RELA &&
	       s->type != SHT_NOTE;
}

static void scan_data(struct constants *c)
{
	const struct elf_image *img = c->img;

	for (size_t i = 0; i < img->nsections; i++)
		if (is_loaded_data(&img->sections[i]))
			scan_words(c, img->sections[i].vaddr, img->sections[i].size);
	/* Without sections rodata may share a segment with the code: look everywhere. */
	for (size_t i = 0; i < img->nsegments && !img->nsections; i++)
		scan_words(c, img->segments[i].vaddr, img->segments[i].filesz);
}

void elf_image_for_each_address_constant(const struct elf_image *img,
					 void (*fn)(uint64_t value, void *ctx), void *ctx)
{
	static const int64_t entries[] = {DT_INIT, DT_FINI};
	struct constants c = {.img = img, .fn = fn, .ctx = ctx, .budget = 4 * img->size};
	const struct elf_priv *priv = img->priv;
	uint64_t value;

	emit(&c, img->entry);
	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++)
		if (elf_dynamic(img, entries[i], &value))
			emit(&c, value);
	if (elf_dynamic(img, DT_SYMTAB, &value))
		c.symbols = elf_data_at(img, value, UINT64_MAX, ELF_T_SYM);
	dynamic_relocs(&c);
	if (!priv->ndynamic)
		section_relocs(&c);
	if (priv->type == ET_EXEC)
		scan_data(&c);
}

void elf_for_each_ifunc_resolver(const struct elf_image *img, void (*fn)(uint64_t value, void *ctx),
				 void *ctx)
{
	struct constants c = {
		.img = img, .fn = fn, .ctx = ctx, .budget = 4 * img->size, .only_resolvers = true};

	dynamic_relocs(&c);
	if (!((const struct elf_priv *)img->priv)->ndynamic)
		section_relocs(&c);
}

/* ---- one pointer ---- */

uint64_t elf_image_word(const struct elf_image *img, uint64_t vaddr)
{
	const struct elf_priv *priv = img->priv;
	int n = elf_data_entries(priv->rela, sizeof(Elf64_Rela));
	const uint8_t *p = elf_image_at(img, vaddr, 8);
	GElf_Rela r;

	for (int i = 0; i < n && gelf_getrela(priv->rela, i, &r); i++)
		if (r.r_offset == vaddr)
			return GELF_R_TYPE(r.r_info) == R_X86_64_RELATIVE ? (uint64_t)r.r_addend
									  : 0;
	return p ? elf_read64(p) : 0;
}

void elf_for_each_relative(const struct elf_image *img,
			   void (*fn)(uint64_t where, uint64_t value, void *ctx), void *ctx)
{
	const struct elf_priv *priv = img->priv;
	int n = elf_data_entries(priv->rela, sizeof(Elf64_Rela));
	GElf_Rela r;

	for (int i = 0; i < n && gelf_getrela(priv->rela, i, &r); i++)
		if (GELF_R_TYPE(r.r_info) == R_X86_64_RELATIVE)
			fn(r.r_offset, (uint64_t)r.r_addend, ctx);
}

uint64_t elf_relative_at(const struct elf_image *img, uint64_t where)
{
	const struct elf_priv *priv = img->priv;
	int lo = 0, hi = elf_data_entries(priv->rela, sizeof(Elf64_Rela));
	uint64_t count;

	if (!elf_dynamic(img, DT_RELACOUNT, &count))
		return 0;
	if (count < (uint64_t)hi)
		hi = (int)count;
	while (lo < hi) {
		int mid = lo + (hi - lo) / 2;
		GElf_Rela r;

		if (!gelf_getrela(priv->rela, mid, &r))
			return 0;
		if (r.r_offset == where)
			return (uint64_t)r.r_addend;
		if (r.r_offset < where)
			lo = mid + 1;
		else
			hi = mid;
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* imports.c - see imports.h */
#include "inject/code/imports.h"

#include <stdlib.h>
#include <string.h>

#include "inject/elf/elf_image_impl.h"
#include "inject/code/insn.h"

#define SLOTS_MAX (1u << 20)

struct finder {
	const struct elf_image *img;
	struct elf_strings names;
	uint64_t symtab;
	VEC(struct import) found;
};

/* The name of an undefined (or preemptible) symbol. */
static const char *symbol_name(const struct finder *f, uint64_t index)
{
	const uint8_t *p;
	Elf64_Sym sym;

	if (!index || index > UINT32_MAX)
		return NULL;
	p = elf_image_at(f->img, f->symtab + index * sizeof(sym), sizeof(sym));
	if (!p)
		return NULL;
	memcpy(&sym, p, sizeof(sym));
	return elf_strings_get(&f->names, sym.st_name);
}

static void read_relocs(struct finder *f, uint64_t vaddr, uint64_t size)
{
	for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= size; at += sizeof(Elf64_Rela)) {
		const uint8_t *p = elf_image_at(f->img, vaddr + at, sizeof(Elf64_Rela));
		const char *name;
		Elf64_Rela r;

		if (!p || f->found.n >= SLOTS_MAX)
			return;
		memcpy(&r, p, sizeof(r));
		if (ELF64_R_TYPE(r.r_info) != R_X86_64_JUMP_SLOT &&
		    ELF64_R_TYPE(r.r_info) != R_X86_64_GLOB_DAT)
			continue;
		name = symbol_name(f, ELF64_R_SYM(r.r_info));
		if (name && *name)
			*vec_push(&f->found) = (struct import){name, r.r_offset};
	}
}

static int compare_slots(const void *a, const void *b)
{
	const struct import *x = a, *y = b;

	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* Where the file has the bytes that are loaded at vaddr. */
static bool file_offset(const struct elf_image *img, uint64_t vaddr, uint64_t *off)
{
	const uint8_t *p = elf_image_at(img, vaddr, 1);

	if (p)
		*off = (uint64_t)(p - img->bytes);
	return p;
}

void imports_find(struct imports *out, const struct elf_image *img)
{
	struct finder f = {.img = img};
	uint64_t strtab, strsz, off, table, size;

	memset(out, 0, sizeof(*out));
	if (!elf_dynamic(img, DT_SYMTAB, &f.symtab) || !elf_dynamic(img, DT_STRTAB, &strtab) ||
	    !elf_dynamic(img, DT_STRSZ, &strsz) || !file_offset(img, strtab, &off))
		return;
	f.names = elf_strings(img, off, strsz);
	if (elf_dynamic(img, DT_JMPREL, &table) && elf_dynamic(img, DT_PLTRELSZ, &size))
		read_relocs(&f, table, size);
	if (elf_dynamic(img, DT_RELA, &table) && elf_dynamic(img, DT_RELASZ, &size))
		read_relocs(&f, table, size);
	if (f.found.n)
		qsort(f.found.v, f.found.n, sizeof(f.found.v[0]), compare_slots);
	out->v = f.found.v;
	out->n = f.found.n;
}

void imports_free(struct imports *im)
{
	xfree(im->v);
	im->v = NULL;
	im->n = 0;
}

const struct import *imports_at(const struct imports *im, uint64_t slot)
{
	struct import key = {NULL, slot};

	return im->n ? bsearch(&key, im->v, im->n, sizeof(key), compare_slots) : NULL;
}

uint64_t imports_stub_slot(const struct elf_image *img, uint64_t vaddr)
{
	for (int i = 0; i < 3; i++) { /* endbr64, and what old linkers put before the jump */
		uint64_t room = elf_image_room(img, vaddr);
		const uint8_t *p = room ? elf_image_at(img, vaddr, room < 16 ? room : 16) : NULL;
		struct insn in;

		if (!p || !insn_decode(&in, p, room < 16 ? room : 16, vaddr))
			return 0;
		if (in.kind == INSN_JMP_INDIRECT)
			return in.rip_relative ? in.target : 0;
		if (in.kind != INSN_PADDING && in.kind != INSN_PLAIN)
			return 0;
		vaddr += in.len;
	}
	return 0;
}

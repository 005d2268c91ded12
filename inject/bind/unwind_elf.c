/* SPDX-License-Identifier: MIT */
/*
 * unwind_elf.c - a block as an object file that a debugger reads from the process's memory
 * (gdb, "JIT Compilation Interface"): a .text that is there already, .eh_frame, a symbol for all of
 * it, and one for each function that runs nowhere else (unwind_names.c).
 *
 *   struct image | symbols | strings
 */
#include "inject/bind/unwind.h"

#include <assert.h>
#include <elf.h>
#include <string.h>

enum { SECTION_NONE, SECTION_TEXT, SECTION_FRAME, SECTION_SYMBOLS, SECTION_STRINGS, SECTIONS };

static const char strings[] = "\0.text\0.eh_frame\0.symtab\0.strtab\0kron_stubs";
enum {
	NAME_TEXT = 1,
	NAME_FRAME = NAME_TEXT + sizeof(".text"),
	NAME_SYMBOLS = NAME_FRAME + sizeof(".eh_frame"),
	NAME_STRINGS = NAME_SYMBOLS + sizeof(".symtab"),
	NAME_STUBS = NAME_STRINGS + sizeof(".strtab")
};

struct image {
	Elf64_Ehdr head;
	Elf64_Shdr section[SECTIONS];
	uint8_t frame[UNWIND_FRAME_MAX];
};
_Static_assert(sizeof(struct image) % 8 == 0, "symbols are aligned");

static size_t symbols_size(const struct unwind_names *names)
{
	return (2 + (size_t)names->n) * sizeof(Elf64_Sym);
}

size_t unwind_elf_size(const struct unwind_names *names)
{
	return sizeof(struct image) + symbols_size(names) + sizeof(strings) + names->bytes;
}

static void fill_head(Elf64_Ehdr *h)
{
	memcpy(h->e_ident, ELFMAG, SELFMAG);
	h->e_ident[EI_CLASS] = ELFCLASS64;
	h->e_ident[EI_DATA] = ELFDATA2LSB;
	h->e_ident[EI_VERSION] = EV_CURRENT;
	h->e_type = ET_REL;
	h->e_machine = EM_X86_64;
	h->e_version = EV_CURRENT;
	h->e_shoff = offsetof(struct image, section);
	h->e_ehsize = sizeof(*h);
	h->e_shentsize = sizeof(Elf64_Shdr);
	h->e_shnum = SECTIONS;
	h->e_shstrndx = SECTION_STRINGS;
}

static void fill_sections(Elf64_Shdr s[SECTIONS], const struct unwind_places *w, size_t frame,
			  const struct unwind_names *names)
{
	s[SECTION_TEXT] = (Elf64_Shdr){.sh_name = NAME_TEXT,
				       .sh_type = SHT_NOBITS,
				       .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				       .sh_addr = w->block,
				       .sh_offset = offsetof(struct image, frame),
				       .sh_size = w->stubs_end - w->block,
				       .sh_addralign = 1};
	s[SECTION_FRAME] = (Elf64_Shdr){.sh_name = NAME_FRAME,
					.sh_type = SHT_PROGBITS,
					.sh_flags = SHF_ALLOC,
					.sh_offset = offsetof(struct image, frame),
					.sh_size = frame,
					.sh_addralign = 8};
	s[SECTION_SYMBOLS] = (Elf64_Shdr){.sh_name = NAME_SYMBOLS,
					  .sh_type = SHT_SYMTAB,
					  .sh_offset = sizeof(struct image),
					  .sh_size = symbols_size(names),
					  .sh_link = SECTION_STRINGS,
					  .sh_info = 1,
					  .sh_addralign = 8,
					  .sh_entsize = sizeof(Elf64_Sym)};
	s[SECTION_STRINGS] = (Elf64_Shdr){.sh_name = NAME_STRINGS,
					  .sh_type = SHT_STRTAB,
					  .sh_offset = sizeof(struct image) + symbols_size(names),
					  .sh_size = sizeof(strings) + names->bytes,
					  .sh_addralign = 1};
}

/* The symbols, and their names after those of the sections. */
struct filling {
	Elf64_Sym *symbol;
	char *strings;
	uint32_t at; /* in strings */
};

/* Without a size: whoever looks an address up finds the other one. */
static void add_function(void *ctx, const char *name, uint32_t stub)
{
	struct filling *f = ctx;
	size_t n = strlen(name) + 1;

	*f->symbol++ = (Elf64_Sym){.st_name = f->at,
				   .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				   .st_shndx = SECTION_TEXT,
				   .st_value = stub};
	memcpy(f->strings + f->at, name, n);
	f->at += (uint32_t)n;
}

static void fill_symbols(uint8_t *out, const struct unwind_places *w, const struct unwind_block *in)
{
	struct filling f = {.symbol = (Elf64_Sym *)(void *)out,
			    .strings = (char *)out + symbols_size(&in->names),
			    .at = sizeof(strings)};
	struct unwind_names names;

	memcpy(f.strings, strings, sizeof(strings));
	f.symbol[1] = (Elf64_Sym){.st_name = NAME_STUBS,
				  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				  .st_shndx = SECTION_TEXT,
				  .st_size = w->stubs_end - w->block};
	f.symbol += 2;
	if (in->names.n)
		unwind_names_add(&names, in->plan, in->stub_at, add_function, &f);
}

size_t unwind_elf_make(uint8_t *out, const struct unwind_places *w, const struct unwind_block *in,
		       size_t *frame, uint32_t fde[UNWIND_FDES])
{
	struct image m;
	size_t len;

	memset(&m, 0, sizeof(m));
	len = unwind_frame_make(m.frame, w, true, fde);
	fill_head(&m.head);
	fill_sections(m.section, w, len, &in->names);
	memcpy(out, &m, sizeof(m));
	fill_symbols(out + sizeof(m), w, in);
	*frame = offsetof(struct image, frame);
	return unwind_elf_size(&in->names);
}

/* SPDX-License-Identifier: MIT */
/*
 * elf_symbols.h - the symbol tables of an image and of the separate files that carry more.
 */
#ifndef INJECT_ELF_SYMBOLS_H
#define INJECT_ELF_SYMBOLS_H

#include "inject/elf_image.h"

struct elf_symbol {
	const char *name; /* never NULL; "" when the string table lies */
	uint64_t value, size;
	uint8_t type; /* STT_* */
	uint8_t bind; /* STB_* */
	uint16_t shndx;
};

/*
 * Call fn for each symbol of the table of this type (SHT_SYMTAB or SHT_DYNSYM); .dynsym is
 * also found through PT_DYNAMIC in files without section headers.  fn returns false to stop.
 */
void elf_symbols_for_each(const struct elf_image *img, uint32_t table_type,
			  bool (*fn)(const struct elf_symbol *sym, void *ctx), void *ctx);

/* A defined symbol by its name (without version): .dynsym first, then .symtab. */
bool elf_symbols_lookup(const struct elf_image *img, const char *name, struct elf_symbol *out);

/*
 * The separate debug file of an image, by build-id and then by .gnu_debuglink; debug_dir NULL
 * means /usr/lib/debug.  NULL when there is none, or it is another build's.
 */
struct elf_image *elf_debug_file(const struct elf_image *img, const char *debug_dir);
/* The small ELF file in .gnu_debugdata (xz), or NULL. */
struct elf_image *elf_debug_data(const struct elf_image *img);

#endif

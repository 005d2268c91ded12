/* SPDX-License-Identifier: MIT */
/*
 * elf_symbols.h - the symbol tables of an image and of the separate files that carry more.
 */
#ifndef INJECT_ELF_SYMBOLS_H
#define INJECT_ELF_SYMBOLS_H

#include "inject/elf/elf_image.h"

struct elf_symbol {
	const char *name; /* never NULL; "" when the string table lies */
	uint64_t value, size;
	uint8_t type; /* STT_* */
	uint8_t bind; /* STB_* */
	uint16_t shndx;
	bool is_old; /* for programs that were linked long ago: its version is not the default one */
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
 * Where the separate debug file of an image would be, best first: by build-id if something stands
 * there, else by .gnu_debuglink; debug_dir NULL means /usr/lib/debug.  The first that is its
 * debug file is taken, so what stands in these places decides, and nothing else.
 */
struct elf_debug_paths {
	char *v[3];
	size_t n;
	uint32_t crc; /* that .gnu_debuglink wants */
};
void elf_debug_paths(struct elf_debug_paths *out, const struct elf_image *img,
		     const char *debug_dir);
void elf_debug_paths_free(struct elf_debug_paths *p);
/*
 * Returns that file.  NULL when there is none, or it is another build's.  It is the image's, which keeps it
 * open: who asks again gets the same one, whatever has happened to the file.
 */
const struct elf_image *elf_debug_file(const struct elf_image *img, const char *debug_dir);
/* The small ELF file in .gnu_debugdata (xz), or NULL. */
struct elf_image *elf_debug_data(const struct elf_image *img);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * elf_data.h - libelf, as the files of this folder use it; private to them.
 *
 *   elf_data*()              which bytes of the file are a table        ours, checked
 *   gelf_getsym(data, i, …)  entry i of it, or NULL if it has no such   libelf's
 *
 * libelf reads headers, symbols and their versions, dynamic entries, relocations and notes.  What it does
 * badly, or not at all (0.188), is ours:
 *
 *   strings           elf_strptr() looks for the NUL from the table's end, for each string: where a table of
 *                     4 MB has no NUL, 20,000 symbols take it 9 s.  elf_strings() looks once.  And it wants
 *                     a section, which a stripped file has not.
 *   parts of tables   elf_getdata() gives nothing of a section that the file ends in, nor of a table that only
 *                     PT_DYNAMIC names.
 *   sizes of entries  it takes e_phentsize and e_shentsize for right.
 *   many sections     it allocates three times what their headers take, and a hole in a file takes no disk:
 *                     ELF_SECTIONS_MAX.
 *   many tables       elf_getdata_rawchunk() goes through all earlier ones each time: 20,000 take it 5 s.
 *   hash tables and   it has no reader for them.
 *   RELR
 */
#ifndef INJECT_ELF_DATA_H
#define INJECT_ELF_DATA_H

#include <gelf.h>
#include <limits.h>

#include "base/vec.h"
#include "inject/elf/elf_image_impl.h"

#define ELF_SECTIONS_MAX (1u << 20)

/* libelf's view of the image's bytes, which have a whole header of 64 bits.  0, or -ENOEXEC. */
int elf_data_open(struct elf_image *img, GElf_Ehdr *eh, struct err *err);
void elf_data_close(struct elf_priv *priv);

/*
 * n bytes of the file as a table of this kind; NULL when there are none, or they do not lie in the file.
 * It lives as long as the image.  No caller may ask for as many different ones as a file likes to name.
 */
Elf_Data *elf_data(const struct elf_image *img, uint64_t off, uint64_t n, Elf_Type type);
/* The same of what is loaded at vaddr, cut off where the file part of its segment ends. */
Elf_Data *elf_data_at(const struct elf_image *img, uint64_t vaddr, uint64_t n, Elf_Type type);
/* The same; the dynamic entries with these tags have vaddr and n. */
Elf_Data *elf_data_dynamic(const struct elf_image *img, int64_t vaddr_tag, int64_t size_tag,
			   Elf_Type type);
/* The same: notes that are aligned to 8 bytes, or to 4. */
Elf_Data *elf_data_notes(const struct elf_image *img, uint64_t off, uint64_t n, uint64_t align);
/* How many entries of this size it has, as libelf counts them; of NULL, none. */
int elf_data_entries(const Elf_Data *d, size_t each);

#endif

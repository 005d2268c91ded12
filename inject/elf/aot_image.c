/* SPDX-License-Identifier: MIT */
/* aot_image.c - see aot_image.h. */
#include "inject/elf/aot_image.h"

#include <elf.h>
#include <string.h>

#include "inject/elf/elf_symbols.h"

static bool is_info(const char *name)
{
	static const char first[] = "mono_aot_module_", last[] = "_info";
	size_t n = strlen(name), begin = sizeof(first) - 1, end = sizeof(last) - 1;

	if (!strcmp(name, "mono_aot_file_info"))
		return true;
	return n > begin + end && !strncmp(name, first, begin) && !strcmp(name + n - end, last);
}

static bool look(const struct elf_symbol *sym, void *ctx)
{
	bool *found = ctx;

	*found = sym->shndx != SHN_UNDEF && sym->type == STT_OBJECT && is_info(sym->name);
	return !*found;
}

bool aot_image_is(const struct elf_image *img)
{
	bool found = false;

	elf_symbols_for_each(img, SHT_DYNSYM, look, &found);
	if (!found)
		elf_symbols_for_each(img, SHT_SYMTAB, look, &found);
	return found;
}

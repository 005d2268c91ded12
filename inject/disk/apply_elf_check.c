/* SPDX-License-Identifier: MIT */
/*
 * apply_elf_check.c - may a file be patched at all?  Whatever the headers leave in doubt is refused.
 */
#include "inject/disk/apply_elf_impl.h"

#include <errno.h>
#include <string.h>

#include "inject/disk/patch_info.h"
#include "inject/elf/aot_image.h"

#define PAGE 4096ull

Elf64_Phdr apply_elf_header(const struct elf_image *img, const Elf64_Ehdr *eh, size_t i)
{
	Elf64_Phdr ph;

	memcpy(&ph, img->bytes + eh->e_phoff + i * sizeof(ph), sizeof(ph));
	return ph;
}

/* The jump that is written into one segment would show in another one. */
static bool has_shared_text(const struct elf_image *img)
{
	for (size_t i = 0; i < img->nsegments; i++) {
		const struct elf_segment *x = &img->segments[i];

		if (!(x->flags & PF_X))
			continue;
		for (size_t k = 0; k < img->nsegments; k++) {
			const struct elf_segment *y = &img->segments[k];

			if (k != i && y->off < x->off + x->filesz && x->off < y->off + y->filesz)
				return true;
		}
	}
	return false;
}

static bool has_writable_text(const struct elf_image *img)
{
	for (size_t i = 0; i < img->nsegments; i++)
		if ((img->segments[i].flags & (PF_X | PF_W)) == (PF_X | PF_W))
			return true;
	return false;
}

/* Neither kernel nor dynamic linker would; nor can we tell where the new parts have to be. */
static bool can_be_mapped(const struct elf_image *img)
{
	for (size_t i = 0; i < img->nsegments; i++)
		if (img->segments[i].filesz &&
		    (img->segments[i].vaddr - img->segments[i].off) % PAGE)
			return false;
	return true;
}

/* The kernel and the dynamic linker take the first and the last one for the ends. */
static bool are_loads_in_order(const struct elf_image *img, const Elf64_Ehdr *eh)
{
	uint64_t last = 0;

	for (size_t i = 0; i < eh->e_phnum; i++) {
		Elf64_Phdr ph = apply_elf_header(img, eh, i);

		if (ph.p_type != PT_LOAD)
			continue;
		if (ph.p_vaddr < last)
			return false;
		last = ph.p_vaddr;
	}
	return true;
}

int apply_elf_check(const struct elf_image *img, struct err *err)
{
	Elf64_Ehdr eh;

	memcpy(&eh, img->bytes, sizeof(eh));
	if (patch_info_is_there(img))
		return err_set(err, EEXIST,
			       "%s has probes from kron patch already: patch the original",
			       img->path);
	if (img->has_text_relocs)
		return err_set(err, ENOTSUP,
			       "%s has text relocations: its code in memory is not its file's",
			       img->path);
	if (aot_image_is(img))
		return err_set(err, ENOTSUP, "%s " AOT_IMAGE_WHY, img->path);
	if (has_writable_text(img))
		return err_set(err, ENOTSUP, "%s has code that it may write to", img->path);
	if (has_shared_text(img))
		return err_set(err, ENOTSUP, "%s loads the same bytes twice, once as code",
			       img->path);
	if (!can_be_mapped(img))
		return err_set(err, ENOEXEC,
			       "%s is damaged: its segments cannot be mapped to where they belong",
			       img->path);
	if (!are_loads_in_order(img, &eh))
		return err_set(err, ENOEXEC, "%s is damaged: its segments are not in order",
			       img->path);
	if (eh.e_phnum > PN_XNUM - NEW_HEADERS - 1)
		return err_set(err, ENOTSUP, "%s has too many program headers", img->path);
	return 0;
}

struct plan_options apply_elf_options(const struct elf_image *img)
{
	Elf64_Ehdr eh;

	memcpy(&eh, img->bytes, sizeof(eh));
	return (struct plan_options){.position_independent = eh.e_type != ET_EXEC,
				     .for_file = true};
}

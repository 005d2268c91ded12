/* SPDX-License-Identifier: MIT */
/* elf_data.c - see elf_data.h */
#include "inject/elf/elf_data.h"

#include <errno.h>

/* Without a number in the ELF header it stands in the first section's. */
static bool has_too_many_sections(const struct elf_image *img)
{
	Elf64_Ehdr eh;
	Elf64_Shdr sh;

	memcpy(&eh, img->bytes, sizeof(eh));
	if (eh.e_shnum || !eh.e_shoff || !elf_has(img, eh.e_shoff, sizeof(sh)))
		return false;
	memcpy(&sh, img->bytes + eh.e_shoff, sizeof(sh));
	return sh.sh_size > ELF_SECTIONS_MAX &&
	       (sh.sh_size > UINT32_MAX || elf_has(img, eh.e_shoff, sh.sh_size * sizeof(sh)));
}

int elf_data_open(struct elf_image *img, GElf_Ehdr *eh, struct err *err)
{
	struct elf_priv *priv = img->priv;

	if (has_too_many_sections(img))
		return err_set(err, ENOEXEC, "%s is damaged: it has more than %u section headers",
			       img->path, ELF_SECTIONS_MAX);
	elf_version(EV_CURRENT); /* without it, libelf does nothing */
	/* It writes only to files that it was told to change. */
	priv->elf = elf_memory((char *)(uintptr_t)img->bytes, img->size);
	if (!priv->elf || !gelf_getehdr(priv->elf, eh))
		return err_set(err, ENOEXEC, "%s is damaged: %s", img->path, elf_errmsg(-1));
	return 0;
}

void elf_data_close(struct elf_priv *priv)
{
	elf_end(priv->elf);
	xfree(priv->dynamic);
}

Elf_Data *elf_data(const struct elf_image *img, uint64_t off, uint64_t n, Elf_Type type)
{
	struct elf_priv *priv = img->priv;
	Elf_Data *d;

	if (!n || !elf_has(img, off, n))
		return NULL;
	pthread_mutex_lock(&priv->lock);
	d = elf_getdata_rawchunk(priv->elf, (int64_t)off, n, type);
	pthread_mutex_unlock(&priv->lock);
	return d;
}

Elf_Data *elf_data_at(const struct elf_image *img, uint64_t vaddr, uint64_t n, Elf_Type type)
{
	uint64_t room = elf_image_room(img, vaddr);
	const uint8_t *p = elf_image_at(img, vaddr, room);

	return p ? elf_data(img, (uint64_t)(p - img->bytes), n < room ? n : room, type) : NULL;
}

Elf_Data *elf_data_dynamic(const struct elf_image *img, int64_t vaddr_tag, int64_t size_tag,
			   Elf_Type type)
{
	uint64_t vaddr, size;

	if (!elf_dynamic(img, vaddr_tag, &vaddr) || !elf_dynamic(img, size_tag, &size))
		return NULL;
	return elf_data_at(img, vaddr, size, type);
}

/* libelf wants the padding of the last note, too, which tables often end without. */
Elf_Data *elf_data_notes(const struct elf_image *img, uint64_t off, uint64_t n, uint64_t align)
{
	const Elf_Type type = align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR;
	const uint64_t unit = align == 8 ? 8 : 4, padded = (n + unit - 1) & ~(unit - 1);

	return elf_data(img, off, elf_has(img, off, padded) ? padded : n, type);
}

int elf_data_entries(const Elf_Data *d, size_t each)
{
	size_t n = d ? d->d_size / each : 0;

	return n < INT_MAX ? (int)n : INT_MAX;
}

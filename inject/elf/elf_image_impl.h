/* SPDX-License-Identifier: MIT */
/*
 * elf_image_impl.h - shared by the files that implement elf_image.h; private to them.
 */
#ifndef INJECT_ELF_IMAGE_IMPL_H
#define INJECT_ELF_IMAGE_IMPL_H

#include <pthread.h>
#include <string.h>

#include "base/file_bytes.h"
#include "inject/elf/elf_image.h"

struct elf_priv {
	struct file_bytes file; /* to close */
	void *owned;            /* to free */
	struct Elf *elf;        /* elf_data.h */
	pthread_mutex_t lock;   /* of what libelf changes when it is asked for a table */
	uint64_t dynamic_off;   /* PT_DYNAMIC in the file, and its size */
	uint64_t dynamic_size;
	Elf64_Dyn *dynamic; /* its entries up to DT_NULL, and that */
	size_t ndynamic;
	void *rela;            /* Elf_Data: DT_RELA */
	unsigned note_tables;  /* that were looked into */
	uint16_t type;         /* ET_EXEC or ET_DYN */
	uint64_t eh_frame_hdr; /* vaddr of PT_GNU_EH_FRAME, 0 when there is none */
	/* elf_debug_file(): what it found, and where it looked; NULL: it was not asked */
	struct elf_image *debug;
	char *debug_dir;
};

enum elf_load_flags {
	/* A separate debug file: its program headers describe another file, so only its
	 * sections are read, and kind, segments and entry stay empty. */
	ELF_LOAD_DEBUG = 1
};

/* Takes over priv (file, owned) whether it succeeds or not. */
int elf_image_load(struct elf_image **out, const void *bytes, size_t size, const char *name,
		   struct elf_priv *priv, unsigned int flags, struct err *err);
int elf_image_open_debug(struct elf_image **out, const char *path, struct err *err);

static inline bool elf_has(const struct elf_image *img, uint64_t off, uint64_t n)
{
	return elf_file_has(img->size, off, n);
}

/* Files are read by copy: nothing in a hostile one is aligned. */
static inline uint64_t elf_read64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}
static inline uint32_t elf_read32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Resolvers named by IRELATIVE relocations: what is left of STT_GNU_IFUNC after a strip. */
void elf_for_each_ifunc_resolver(const struct elf_image *img, void (*fn)(uint64_t value, void *ctx),
				 void *ctx);

/* The relative relocations of DT_RELA, as they come: the pointer at `where` will be `value`. */
void elf_for_each_relative(const struct elf_image *img,
			   void (*fn)(uint64_t where, uint64_t value, void *ctx), void *ctx);
/* What one of them makes of the pointer at `where`, 0 when there is none: linkers sort them. */
uint64_t elf_relative_at(const struct elf_image *img, uint64_t where);

/* The first dynamic entry with this tag; false when there is none. */
bool elf_dynamic(const struct elf_image *img, int64_t tag, uint64_t *value);

/*
 * A string table, cut after its last NUL: one look makes every string in it safe, where a look
 * for each would let a hostile file make them all scan the whole table.
 */
struct elf_strings {
	const char *v;
	uint64_t size;
};
struct elf_strings elf_strings(const struct elf_image *img, uint64_t off, uint64_t size);
static inline const char *elf_strings_get(const struct elf_strings *t, uint64_t i)
{
	return i < t->size ? t->v + i : "";
}

#endif

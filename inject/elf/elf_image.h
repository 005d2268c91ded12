/* SPDX-License-Identifier: MIT */
/*
 * elf_image.h - an ELF file as the planner sees it: bytes, segments, sections, build-id.
 *
 * Everything here is bounds-checked against the file: a truncated file, headers that lie, or
 * a hostile symbol table give an error or less data, never a crash.  The image is immutable
 * after elf_image_open(); pointers into it live until elf_image_close().  Addresses ("vaddr")
 * are those of the file, before load bias.  What another user can change is copied; the rest is mapped,
 * and who shortens it in place meanwhile makes it end in zeros: elf_image_check() tells (base/file_bytes.h).
 */
#ifndef INJECT_ELF_IMAGE_H
#define INJECT_ELF_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum elf_kind {
	ELF_KIND_EXEC,   /* ET_EXEC with an interpreter */
	ELF_KIND_PIE,    /* ET_DYN with an interpreter, and DF_1_PIE or no DT_SONAME */
	ELF_KIND_SHARED, /* ET_DYN, a library */
	/* no interpreter, no PT_DYNAMIC, or static-pie; and Go's without a C library: an interpreter
	 * loads it, but its threads' data are its own */
	ELF_KIND_STATIC
};

/* Which file, and in which state: one that was changed has another ctime_ns, whatever was done about
 * its mtime_ns; but for changes within one tick of the kernel's clock (some milliseconds). */
struct file_identity {
	uint64_t dev, ino, size, mtime_ns, ctime_ns;
};
struct stat;
void file_identify(struct file_identity *out, const struct stat *st);

struct elf_segment { /* a PT_LOAD, clipped to the file */
	uint64_t vaddr, memsz;
	uint64_t off, filesz;
	uint32_t flags; /* PF_* */
};

struct elf_section {
	const char *name;          /* "" when the string table lies */
	uint64_t vaddr, size, off; /* size clipped to the file; SHT_NOBITS keeps size, off is 0 */
	uint64_t flags;            /* SHF_* */
	uint32_t type;             /* SHT_* */
	uint32_t link, info;
	uint64_t entsize;
};

struct elf_image {
	char *path;
	int fd; /* -1 when opened from memory */
	const uint8_t *bytes;
	size_t size;
	enum elf_kind kind;
	uint64_t entry; /* e_entry, 0 if none */
	struct elf_segment *segments;
	size_t nsegments;
	struct elf_section *sections; /* may be none: section headers are optional */
	size_t nsections;
	uint8_t build_id[32];
	size_t build_id_len;        /* 0 when there is none */
	const char *interp;         /* PT_INTERP or NULL */
	struct {                    /* what the note of `kron patch` holds */
		uint64_t off, size; /* in the file; 0 when there is none */
	} kron_note;
	bool is_go;                /* Go's runtime is in it */
	bool has_text_relocs;      /* DT_TEXTREL: memory will differ from the file */
	struct file_identity file; /* when it was opened; zeros when opened from memory */
	void *priv;
};

/* Does [off, off+n) lie in a file of this size?  A file with a PT_LOAD that does not is cut off:
 * the kernel may start it, and it dies where pages lack.  Safe for any values. */
static inline bool elf_file_has(uint64_t size, uint64_t off, uint64_t n)
{
	return off <= size && n <= size - off;
}

/* EM_... in words; NULL: no name is known. */
const char *elf_machine_name(unsigned int machine);

/*
 * Open an x86-64 little-endian ELF file.  Errors (positive errno in the message's code):
 * -ENOENT, -EACCES, -EISDIR as from open(2); -ENOEXEC not ELF, truncated or lying headers;
 * -EPROTO another architecture or class (the sentence names it).
 */
int elf_image_open(struct elf_image **out, const char *path, struct err *err);
int elf_image_open_fd(struct elf_image **out, int fd, const char *path_for_messages,
		      struct err *err); /* dups fd */
int elf_image_from_memory(struct elf_image **out, const void *bytes, size_t size, const char *name,
			  struct err *err); /* borrows bytes; for fuzz and tests */
void elf_image_close(struct elf_image *img);
/* To be asked before what was made from it is believed.  -ESTALE: it was cut off under our hands. */
int elf_image_check(const struct elf_image *img, struct err *err);

/* n file bytes that are loaded at vaddr, or NULL when not all of them lie in one segment's
 * file part. */
const uint8_t *elf_image_at(const struct elf_image *img, uint64_t vaddr, size_t n);
/* How many file-backed bytes follow vaddr in its segment, 0 when it lies in none. */
uint64_t elf_image_room(const struct elf_image *img, uint64_t vaddr);
bool elf_image_is_exec(const struct elf_image *img, uint64_t vaddr);
/* DT_SONAME; NULL: it has none. */
const char *elf_image_soname(const struct elf_image *img);
const struct elf_section *elf_image_section(const struct elf_image *img, const char *name);
const struct elf_section *elf_image_section_at(const struct elf_image *img, uint64_t vaddr);

/*
 * Every address constant that the loader puts into memory: addends of RELATIVE and IRELATIVE
 * relocations (RELR too), values of symbols named by other relocations, and, in files that
 * are not position independent, every aligned 8-byte word of a data section that lies in
 * executable memory.  Calls fn(vaddr of the constant's value, ctx).
 */
void elf_image_for_each_address_constant(const struct elf_image *img,
					 void (*fn)(uint64_t value, void *ctx), void *ctx);
/* The pointer at vaddr as it will be in memory, less the load bias; 0 when it is not known. */
uint64_t elf_image_word(const struct elf_image *img, uint64_t vaddr);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * callsite_links.h - how an image is linked to others when it runs: the functions that it calls through
 * its global offset table, the stubs of the linker that do so, and the functions it offers.
 *
 *   call f ─► stub: jmp *slot(%rip) ─► what the dynamic linker put into the slot
 *   call *slot(%rip)                   (-fno-plt, Rust)
 *
 * A copy: it needs the image no more, and a recording keeps one a module.
 */
#ifndef INJECT_CALLSITE_LINKS_H
#define INJECT_CALLSITE_LINKS_H

#include "base/vec.h"
#include "inject/elf/elf_image.h"

struct callsite_import {
	const char *name;    /* "": a function of the image's own (IFUNC), and target says which */
	const char *version; /* "" without one */
	const char *file;    /* that must have the version; "" without one */
	uint64_t slot;       /* vaddr of the pointer */
	uint64_t jump;       /* vaddr of a "jmp *slot(%rip)" of the linker's; 0: it made none */
	uint64_t target;     /* the resolver, where there is no name */
	bool is_data;        /* the slot also gives the function's address (GLOB_DAT) */
};

/* Bytes that call or jump through a slot, if they are an instruction: callsite_check_calls(). */
struct callsite_call {
	uint64_t vaddr;  /* of the first byte after prefixes, once checked of the instruction's */
	uint32_t import; /* one of those with this slot */
	bool jumps;
	enum { CALLSITE_UNKNOWN, CALLSITE_YES, CALLSITE_NO } state;
};

struct callsite_export {
	const char *name, *version;
	uint64_t value; /* vaddr; of an IFUNC, its resolver's */
	bool is_hidden; /* only who asks for this very version gets it */
	bool is_ifunc;
};

struct callsite_links {
	VEC(struct callsite_import) imports; /* a stub each; a slot may have several */
	VEC(struct callsite_call) calls;     /* by vaddr */
	VEC(const char *) needed;            /* DT_NEEDED */
	VEC(struct callsite_export) exports; /* by name */
	/* Imported functions whose address is, for all modules, that of a stub of this image
	 * (a program that is not position independent); by name */
	VEC(const char *) addresses;
	uint64_t debug;   /* vaddr of the value of DT_DEBUG; 0: it has none */
	bool is_symbolic; /* its own functions come first when it calls */
	char *strings;
};

/* Of damaged tables, what can be read. */
struct callsite_links *callsite_links_make(const struct elf_image *img);
/* Its slots alone, sorted: no code is read, so no stub, no call and no export is known. */
struct callsite_links *callsite_links_make_slots(const struct elf_image *img);
void callsite_links_free(struct callsite_links *l);

/* The export that a reference to name@version finds here, as ld.so looks it up; or NULL. */
const struct callsite_export *callsite_links_find(const struct callsite_links *l, const char *name,
						  const char *version);
/* Does what the import means come from a file of this kind, as far as the image says? */
bool callsite_links_is_from(const struct callsite_links *l, const struct callsite_import *im,
			    bool (*is_meant)(const char *file, void *ctx), void *ctx);
/* Of callsite_links_make_slots(): the import by this slot, or NULL. */
const struct callsite_import *callsite_links_slot_at(const struct callsite_links *l, uint64_t slot);
/* Is the name one of `addresses`? */
bool callsite_links_is_address(const struct callsite_links *l, const char *name);

#endif

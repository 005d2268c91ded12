/* SPDX-License-Identifier: MIT */
/*
 * elf_lookup.c - dlsym(RTLD_NEXT) without libdl: the GNU hash tables of ld.so's list.
 *
 * Versions are not looked at: the functions that are asked for have one each.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include "runtime/sys/elf_lookup.h"
#include "runtime/sys/mini.h"

extern struct r_debug rt_r_debug __asm__("_r_debug") __attribute__((weak, visibility("default")));
extern const Elf64_Ehdr own_start __asm__("__ehdr_start") __attribute__((visibility("hidden")));

struct library {
	const Elf64_Sym *symbols;
	const char *strings;
	const uint32_t *hash;
};

/* ld.so has made addresses of most of these, but not of the vDSO's. */
static uint64_t address(const struct link_map *m, uint64_t v)
{
	return v < m->l_addr ? v + m->l_addr : v;
}

static bool library_open(struct library *l, const struct link_map *m)
{
	mini_zero(l, sizeof(*l));
	for (const Elf64_Dyn *d = m->l_ld; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			l->symbols = (const Elf64_Sym *)address(m, d->d_un.d_ptr);
		else if (d->d_tag == DT_STRTAB)
			l->strings = (const char *)address(m, d->d_un.d_ptr);
		else if (d->d_tag == DT_GNU_HASH)
			l->hash = (const uint32_t *)address(m, d->d_un.d_ptr);
	}
	return l->symbols && l->strings && l->hash;
}

static uint32_t gnu_hash(const char *s)
{
	uint32_t h = 5381;

	while (*s)
		h = h * 33 + (uint8_t)*s++;
	return h;
}

/* nbuckets, first symbol, words of the filter, its shift | filter | buckets | chains */
static const Elf64_Sym *find(const struct library *l, const char *name, uint32_t hash)
{
	uint32_t nbuckets = l->hash[0], first = l->hash[1];
	const uint32_t *buckets = l->hash + 4 + 2 * l->hash[2];
	const uint32_t *chains = buckets + nbuckets;
	uint32_t i = nbuckets ? buckets[hash % nbuckets] : 0;

	if (i < first)
		return NULL;
	for (;; i++) {
		const Elf64_Sym *s = &l->symbols[i];

		if ((chains[i - first] | 1) == (hash | 1) && s->st_shndx != SHN_UNDEF &&
		    ELF64_ST_TYPE(s->st_info) == STT_FUNC &&
		    mini_equal(l->strings + s->st_name, name))
			return s;
		if (chains[i - first] & 1)
			return NULL;
	}
}

uint64_t elf_own_start(void)
{
	return (uint64_t)&own_start;
}

void *elf_lookup_next(const char *name)
{
	const struct link_map *m = &rt_r_debug ? rt_r_debug.r_map : NULL;
	uint32_t hash = gnu_hash(name);

	while (m && m->l_addr != elf_own_start())
		m = m->l_next;
	for (m = m ? m->l_next : NULL; m; m = m->l_next) {
		struct library l;
		const Elf64_Sym *s = library_open(&l, m) ? find(&l, name, hash) : NULL;

		if (s)
			return (void *)(m->l_addr + s->st_value);
	}
	return NULL;
}

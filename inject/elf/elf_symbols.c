/* SPDX-License-Identifier: MIT */
/*
 * elf_symbols.c - symbol tables, and the separate files that carry them.
 *
 *   .symtab .dynsym in the file; .dynsym by PT_DYNAMIC when there are no section headers
 *   /usr/lib/debug/.build-id/ab/cdef.debug, else .gnu_debuglink's name in the usual places
 *   .gnu_debugdata: an ELF file with a small .symtab, compressed (Fedora's "MiniDebugInfo")
 */
#define _GNU_SOURCE
#include "inject/elf/elf_symbols.h"

#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "inject/elf/elf_data.h"

#define DEBUG_DIR "/usr/lib/debug"
#define DEBUGDATA_MAX (256ull << 20) /* a hostile one may grow a thousandfold */

/* ---- tables ---- */

struct table {
	Elf_Data *data;
	Elf_Data *versions; /* NULL: there are none */
	struct elf_strings strings;
};

static bool table_from_section(const struct elf_image *img, uint32_t type, struct table *t)
{
	for (size_t i = 0; i < img->nsections; i++) {
		const struct elf_section *s = &img->sections[i];

		if (s->type != type)
			continue;
		t->data = elf_data(img, s->off, s->size, ELF_T_SYM);
		if (s->link < img->nsections && img->sections[s->link].type == SHT_STRTAB)
			t->strings = elf_strings(img, img->sections[s->link].off,
						 img->sections[s->link].size);
		return true;
	}
	return false;
}

/* DT_GNU_HASH: the last symbol is at the end of the chain that starts highest. */
static uint64_t count_by_gnu_hash(const struct elf_image *img, uint64_t vaddr)
{
	uint64_t room = elf_image_room(img, vaddr), n = 0, buckets, chains;
	const uint8_t *p = elf_image_at(img, vaddr, room);
	uint32_t nbuckets, first, bloom;

	if (!p || room < 16)
		return 0;
	nbuckets = elf_read32(p);
	first = elf_read32(p + 4);
	bloom = elf_read32(p + 8);
	buckets = 16 + 8ull * bloom;
	chains = buckets + 4ull * nbuckets;
	if (chains > room)
		return 0;
	for (uint64_t i = 0; i < nbuckets; i++) {
		uint32_t start = elf_read32(p + buckets + 4 * i);

		if (start > n)
			n = start;
	}
	if (n < first)
		return first;
	for (uint64_t at = chains + 4 * (n - first); at + 4 <= room; at += 4, n++)
		if (elf_read32(p + at) & 1)
			return n + 1;
	return n;
}

static bool table_from_dynamic(const struct elf_image *img, struct table *t)
{
	uint64_t vaddr, hash, n = 0, room, strtab, strsz, size;
	const uint8_t *p;

	if (!elf_dynamic(img, DT_SYMTAB, &vaddr))
		return false;
	if (elf_dynamic(img, DT_GNU_HASH, &hash))
		n = count_by_gnu_hash(img, hash);
	else if (elf_dynamic(img, DT_HASH, &hash) && (p = elf_image_at(img, hash, 8)))
		n = elf_read32(p + 4);
	t->data = elf_data_at(img, vaddr, n * sizeof(Elf64_Sym), ELF_T_SYM);
	if (elf_dynamic(img, DT_STRTAB, &strtab) && elf_dynamic(img, DT_STRSZ, &strsz)) {
		room = elf_image_room(img, strtab);
		size = strsz < room ? strsz : room;
		p = elf_image_at(img, strtab, size);
		if (p)
			t->strings = elf_strings(img, p - img->bytes, size);
	}
	return t->data;
}

static bool find_table(const struct elf_image *img, uint32_t type, struct table *t)
{
	uint64_t versions;

	*t = (struct table){0};
	if (!table_from_section(img, type, t) &&
	    (type != SHT_DYNSYM || !table_from_dynamic(img, t)))
		return false;
	if (type == SHT_DYNSYM && elf_dynamic(img, DT_VERSYM, &versions))
		t->versions = elf_data_at(img, versions, UINT64_MAX, ELF_T_HALF);
	return true;
}

#define VERSYM_HIDDEN 0x8000u

static bool is_old_version(const struct table *t, int i)
{
	GElf_Versym v;

	return gelf_getversym(t->versions, i, &v) && v & VERSYM_HIDDEN;
}

static struct elf_symbol get_symbol(const struct table *t, int i)
{
	GElf_Sym sym = {0};

	gelf_getsym(t->data, i, &sym);
	return (struct elf_symbol){.name = elf_strings_get(&t->strings, sym.st_name),
				   .is_old = is_old_version(t, i),
				   .value = sym.st_value,
				   .size = sym.st_size,
				   .type = GELF_ST_TYPE(sym.st_info),
				   .bind = GELF_ST_BIND(sym.st_info),
				   .shndx = sym.st_shndx};
}

void elf_symbols_for_each(const struct elf_image *img, uint32_t table_type,
			  bool (*fn)(const struct elf_symbol *sym, void *ctx), void *ctx)
{
	struct table t;
	int n;

	if (!find_table(img, table_type, &t))
		return;
	n = elf_data_entries(t.data, sizeof(Elf64_Sym));
	for (int i = 1; i < n; i++) {
		struct elf_symbol sym = get_symbol(&t, i);

		if (!fn(&sym, ctx))
			return;
	}
}

struct lookup {
	const char *name;
	struct elf_symbol *out;
	bool found;
};

static bool match_name(const struct elf_symbol *sym, void *ctx)
{
	struct lookup *l = ctx;

	if (sym->shndx == SHN_UNDEF || strcmp(sym->name, l->name))
		return true;
	*l->out = *sym;
	l->found = true;
	return false;
}

bool elf_symbols_lookup(const struct elf_image *img, const char *name, struct elf_symbol *out)
{
	struct lookup l = {.name = name, .out = out};

	elf_symbols_for_each(img, SHT_DYNSYM, match_name, &l);
	if (!l.found)
		elf_symbols_for_each(img, SHT_SYMTAB, match_name, &l);
	return l.found;
}

/* ---- separate debug files ---- */

static bool same_build(const struct elf_image *a, const struct elf_image *b)
{
	return a->build_id_len && a->build_id_len == b->build_id_len &&
	       !memcmp(a->build_id, b->build_id, a->build_id_len);
}

static char *path_by_build_id(const struct elf_image *img, const char *debug_dir)
{
	char hex[2 * sizeof(img->build_id) + 1];

	if (img->build_id_len < 2)
		return NULL;
	for (size_t i = 0; i < img->build_id_len; i++) {
		static const char digits[] = "0123456789abcdef";

		hex[2 * i] = digits[img->build_id[i] >> 4];
		hex[2 * i + 1] = digits[img->build_id[i] & 15];
	}
	hex[2 * img->build_id_len] = 0;
	return xasprintf("%s/.build-id/%.2s/%s.debug", debug_dir, hex, hex + 2);
}

/* The name in .gnu_debuglink, "" if there is none, and the sum of the file that is meant. */
static const char *read_link(const struct elf_image *img, uint32_t *crc)
{
	const struct elf_section *s = elf_image_section(img, ".gnu_debuglink");
	struct elf_strings name;
	uint64_t crc_at;

	if (!s || s->type == SHT_NOBITS || s->size < 8)
		return "";
	name = elf_strings(img, s->off, s->size - 4);
	if (!name.size || !*name.v || strchr(name.v, '/'))
		return "";
	crc_at = s->off + ((strlen(name.v) + 4) & ~3ull);
	if (!elf_has(img, crc_at, 4))
		return "";
	*crc = elf_read32(img->bytes + crc_at);
	return name.v;
}

static void add_linked(struct elf_debug_paths *out, const struct elf_image *img,
		       const char *debug_dir)
{
	const char *name = read_link(img, &out->crc);
	char *real = *name ? realpath(img->path, NULL) : NULL;
	char *slash = real ? strrchr(real, '/') : NULL;

	if (slash) {
		*slash = 0;
		out->v[out->n++] = xasprintf("%s/%s", real, name);
		out->v[out->n++] = xasprintf("%s/.debug/%s", real, name);
		out->v[out->n++] = xasprintf("%s%s/%s", debug_dir, real, name);
	}
	free(real);
}

void elf_debug_paths(struct elf_debug_paths *out, const struct elf_image *img,
		     const char *debug_dir)
{
	char *first = path_by_build_id(img, debug_dir ? debug_dir : DEBUG_DIR);

	*out = (struct elf_debug_paths){0};
	if (first && !access(first, F_OK)) {
		out->v[out->n++] = first;
		return;
	}
	xfree(first);
	add_linked(out, img, debug_dir ? debug_dir : DEBUG_DIR);
}

void elf_debug_paths_free(struct elf_debug_paths *p)
{
	for (size_t i = 0; i < p->n; i++)
		xfree(p->v[i]);
}

/* The link's checksum is only looked at when there is no build-id to compare.  The link of an
 * unstripped copy may name the file itself. */
static bool is_debug_file(const struct elf_image *img, const struct elf_image *debug, uint32_t crc)
{
	if (debug->file.ino == img->file.ino && debug->file.dev == img->file.dev)
		return false;
	if (img->build_id_len || debug->build_id_len)
		return same_build(img, debug);
	return lzma_crc32(debug->bytes, debug->size, 0) == crc;
}

static struct elf_image *find_debug_file(const struct elf_image *img, const char *debug_dir)
{
	struct elf_image *debug = NULL;
	struct elf_debug_paths paths;

	elf_debug_paths(&paths, img, debug_dir);
	for (size_t i = 0; i < paths.n && !debug; i++) {
		elf_image_open_debug(&debug, paths.v[i], NULL);
		if (debug && !is_debug_file(img, debug, paths.crc)) {
			elf_image_close(debug);
			debug = NULL;
		}
	}
	elf_debug_paths_free(&paths);
	return debug;
}

const struct elf_image *elf_debug_file(const struct elf_image *img, const char *debug_dir)
{
	struct elf_priv *priv = img->priv;

	if (!debug_dir)
		debug_dir = DEBUG_DIR;
	if (priv->debug_dir && strcmp(priv->debug_dir, debug_dir)) {
		elf_image_close(priv->debug);
		xfree(priv->debug_dir);
		priv->debug_dir = NULL;
	}
	if (!priv->debug_dir) {
		priv->debug = find_debug_file(img, debug_dir);
		priv->debug_dir = xstrdup(debug_dir);
	}
	return priv->debug;
}

/* ---- .gnu_debugdata ---- */

/* All of it into *out, at most DEBUGDATA_MAX bytes.  Returns the length, 0 when damaged. */
static size_t decompress(const uint8_t *in, size_t n, uint8_t **out)
{
	lzma_stream s = LZMA_STREAM_INIT;
	size_t cap = 4 * n + 4096;
	lzma_ret ret = LZMA_OK;

	*out = NULL;
	if (lzma_stream_decoder(&s, DEBUGDATA_MAX, 0) != LZMA_OK)
		return 0;
	s.next_in = in;
	s.avail_in = n;
	while (ret == LZMA_OK && cap <= DEBUGDATA_MAX) {
		*out = xrealloc(*out, cap);
		s.next_out = *out + s.total_out;
		s.avail_out = cap - s.total_out;
		ret = lzma_code(&s, LZMA_FINISH);
		cap *= 2;
	}
	n = ret == LZMA_STREAM_END ? s.total_out : 0;
	lzma_end(&s);
	return n;
}

struct elf_image *elf_debug_data(const struct elf_image *img)
{
	const struct elf_section *s = elf_image_section(img, ".gnu_debugdata");
	struct elf_priv priv = {0};
	struct elf_image *debug = NULL;
	uint8_t *bytes;
	size_t n;

	if (!s || s->type == SHT_NOBITS || !s->size)
		return NULL;
	n = decompress(img->bytes + s->off, s->size, &bytes);
	if (!n) {
		xfree(bytes);
		return NULL;
	}
	priv.owned = bytes;
	elf_image_load(&debug, bytes, n, img->path, &priv, ELF_LOAD_DEBUG, NULL);
	return debug;
}

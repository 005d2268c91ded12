/* SPDX-License-Identifier: MIT */
/*
 * callsite_links.c - see callsite_links.h.
 *
 * Stubs are found by what they do, not by names of sections, which may be missing: an indirect
 * jump through a slot, outside all functions.  Linkers write them in many shapes (lazy or not,
 * after endbr64, in .plt, .plt.sec, .plt.got); all have that jump.
 */
#include "inject/elf/callsite_links.h"
#include "base/search.h"

#include <emmintrin.h>
#include <stdlib.h>
#include <string.h>

#include "inject/elf/elf_data.h"

#define SLOTS_MAX (1u << 20)
#define SYMBOLS_MAX (1 << 24)
#define VERSION_HIDDEN 0x8000u
#define VERSION_INDEX 0x7fffu

struct reader {
	const struct elf_image *img;
	struct callsite_links *l;
	uint64_t symtab, versym; /* 0: it has no versions */
	Elf_Data *symbols, *symbol_versions;
	unsigned nversions;                /* read so far: many entries may lead to the same ones */
	struct elf_strings names;          /* in the copy */
	VEC(const char *) versions;        /* by index; NULL: none */
	VEC(const char *) files;           /* likewise: those that must have the version */
	VEC(struct callsite_import) slots; /* by slot */
};

/* ---- versions ---- */

static void set_version(struct reader *r, uint32_t index, const char *name, const char *file)
{
	while (r->versions.n <= index) {
		*vec_push(&r->versions) = NULL;
		*vec_push(&r->files) = "";
	}
	r->versions.v[index] = name;
	r->files.v[index] = file;
}

/* From the address that this tag gives to the end of its segment. */
static Elf_Data *data_of(const struct reader *r, int64_t tag, Elf_Type type)
{
	uint64_t vaddr;

	return elf_dynamic(r->img, tag, &vaddr) ? elf_data_at(r->img, vaddr, UINT64_MAX, type)
						: NULL;
}

static void read_needs(struct reader *r)
{
	Elf_Data *d = data_of(r, DT_VERNEED, ELF_T_VNEED);
	uint64_t at = 0, aux_at, n;
	GElf_Verneed need;
	GElf_Vernaux aux;

	if (!d || !elf_dynamic(r->img, DT_VERNEEDNUM, &n))
		return;
	for (uint64_t i = 0; i < n && at <= INT_MAX && gelf_getverneed(d, (int)at, &need); i++) {
		aux_at = at + need.vn_aux;
		for (unsigned k = 0; k < need.vn_cnt; k++) {
			if (aux_at > INT_MAX || r->nversions++ > VERSION_INDEX ||
			    !gelf_getvernaux(d, (int)aux_at, &aux))
				return;
			set_version(r, aux.vna_other & VERSION_INDEX,
				    elf_strings_get(&r->names, aux.vna_name),
				    elf_strings_get(&r->names, need.vn_file));
			if (!aux.vna_next)
				break;
			aux_at += aux.vna_next;
		}
		if (!need.vn_next)
			return;
		at += need.vn_next;
	}
}

static void read_definitions(struct reader *r)
{
	Elf_Data *d = data_of(r, DT_VERDEF, ELF_T_VDEF);
	uint64_t at = 0, aux_at, n;
	GElf_Verdef def;
	GElf_Verdaux aux;

	if (!d || !elf_dynamic(r->img, DT_VERDEFNUM, &n))
		return;
	for (uint64_t i = 0; i < n && at <= INT_MAX && gelf_getverdef(d, (int)at, &def); i++) {
		aux_at = at + def.vd_aux;
		if (!(def.vd_flags & VER_FLG_BASE) && aux_at <= INT_MAX &&
		    gelf_getverdaux(d, (int)aux_at, &aux))
			set_version(r, def.vd_ndx & VERSION_INDEX,
				    elf_strings_get(&r->names, aux.vda_name), "");
		if (!def.vd_next)
			return;
		at += def.vd_next;
	}
}

/* "" without one. */
static const char *version_of(const struct reader *r, int symbol, bool *hidden, const char **file)
{
	GElf_Versym v;

	if (!gelf_getversym(r->symbol_versions, symbol, &v))
		v = 0;
	*hidden = v & VERSION_HIDDEN;
	v &= VERSION_INDEX;
	*file = v < r->files.n ? r->files.v[v] : "";
	return v < r->versions.n && r->versions.v[v] ? r->versions.v[v] : "";
}

/* ---- slots ---- */

static void add_slot(struct reader *r, const GElf_Rela *rela)
{
	uint64_t type = GELF_R_TYPE(rela->r_info), symbol = GELF_R_SYM(rela->r_info);
	struct callsite_import im = {.slot = rela->r_offset,
				     .name = "",
				     .version = "",
				     .file = "",
				     .is_data = type == R_X86_64_GLOB_DAT};
	GElf_Sym sym;
	bool hidden;

	if (type == R_X86_64_IRELATIVE) {
		im.target = (uint64_t)rela->r_addend;
		*vec_push(&r->slots) = im;
		return;
	}
	if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) || symbol > INT_MAX ||
	    !gelf_getsym(r->symbols, (int)symbol, &sym) ||
	    GELF_ST_TYPE(sym.st_info) == STT_OBJECT || GELF_ST_TYPE(sym.st_info) == STT_TLS)
		return;
	im.name = elf_strings_get(&r->names, sym.st_name);
	im.version = version_of(r, (int)symbol, &hidden, &im.file);
	if (*im.name)
		*vec_push(&r->slots) = im;
}

static void read_relocs(struct reader *r, Elf_Data *d)
{
	int n = elf_data_entries(d, sizeof(Elf64_Rela));
	GElf_Rela rela;

	for (int i = 0; i < n && r->slots.n < SLOTS_MAX && gelf_getrela(d, i, &rela); i++)
		add_slot(r, &rela);
}

/* A static program has no PT_DYNAMIC, but slots that its start code fills (IRELATIVE). */
static void read_section_slots(struct reader *r)
{
	uint64_t budget = r->img->size;

	for (size_t i = 0; i < r->img->nsections; i++) {
		const struct elf_section *s = &r->img->sections[i];

		if (s->type != SHT_RELA || !(s->flags & SHF_ALLOC) || s->size > budget)
			continue;
		budget -= s->size;
		read_relocs(r, elf_data(r->img, s->off, s->size, ELF_T_RELA));
	}
}

static int compare_slots(const void *a, const void *b)
{
	const struct callsite_import *x = a, *y = b;

	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static void sort_slots(struct reader *r)
{
	if (r->slots.n)
		qsort(r->slots.v, r->slots.n, sizeof(r->slots.v[0]), compare_slots);
}

static void read_slots(struct reader *r)
{
	const struct elf_priv *priv = r->img->priv;

	r->symbols = elf_data_at(r->img, r->symtab, UINT64_MAX, ELF_T_SYM);
	if (r->versym)
		r->symbol_versions = elf_data_at(r->img, r->versym, UINT64_MAX, ELF_T_HALF);
	read_relocs(r, elf_data_dynamic(r->img, DT_JMPREL, DT_PLTRELSZ, ELF_T_RELA));
	read_relocs(r, priv->rela);
	sort_slots(r);
}

/* ---- stubs ---- */

/* In a section of stubs; where there are no sections, as linkers lay stubs out: after an
 * endbr64, or where an entry of a table begins. */
static bool is_stub(const struct elf_image *img, uint64_t jump)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const struct elf_section *s = elf_image_section_at(img, jump);
	const uint8_t *p;

	if (img->nsections)
		return s && !strncmp(s->name, ".plt", 4);
	p = elf_image_at(img, jump - 4, sizeof(endbr64));
	return jump % 8 == 0 || (p && jump % 8 == 4 && !memcmp(p, endbr64, sizeof(endbr64)));
}

/* "jmp *slot(%rip)" or call at this address, perhaps after a "bnd".  calls: `import` is a slot's
 * number until sort_calls(). */
static void take_jump(struct reader *r, uint64_t vaddr, const uint8_t *p, bool has_bnd)
{
	struct callsite_import key = {.slot = vaddr + 6 +
					      (uint64_t)(int64_t)(int32_t)elf_read32(p + 2)};
	const struct callsite_import *slot =
		r->slots.n ? bsearch(&key, r->slots.v, r->slots.n, sizeof(key), compare_slots)
			   : NULL;
	uint64_t jump = has_bnd ? vaddr - 1 : vaddr;
	bool jumps = p[1] == 0x25;

	if (!slot)
		return;
	if (!jumps || !is_stub(r->img, jump)) {
		*vec_push(&r->l->calls) = (struct callsite_call){
			vaddr, (uint32_t)(slot - r->slots.v), jumps, CALLSITE_UNKNOWN};
		return;
	}
	key = *slot;
	key.jump = jump;
	*vec_push(&r->l->imports) = key;
}

/*
 * The first two bytes of "jmp *slot(%rip)" (ff 25) or "call" (ff 15), the next from p on, or end.  All
 * code of all libraries is gone through here at the start of a program; memmem() takes a second
 * for a gigabyte.
 */
static const uint8_t *next_jump(const uint8_t *p, const uint8_t *end)
{
	const __m128i ff = _mm_set1_epi8((char)0xff), jmp = _mm_set1_epi8(0x25),
		      call = _mm_set1_epi8(0x15);

	for (; end - p > 16; p += 16) {
		__m128i first = _mm_loadu_si128((const void *)p);
		__m128i second = _mm_loadu_si128((const void *)(p + 1));
		int found = _mm_movemask_epi8(_mm_and_si128(
			_mm_cmpeq_epi8(first, ff),
			_mm_or_si128(_mm_cmpeq_epi8(second, jmp), _mm_cmpeq_epi8(second, call))));

		if (found)
			return p + __builtin_ctz((unsigned)found);
	}
	for (; end - p > 1; p++)
		if (p[0] == 0xff && (p[1] == 0x25 || p[1] == 0x15))
			return p;
	return end;
}

static void scan_segment(struct reader *r, const struct elf_segment *s)
{
	const uint8_t *start = r->img->bytes + s->off, *p = start, *end = start + s->filesz;

	while ((p = next_jump(p, end)), end - p >= 6) {
		take_jump(r, s->vaddr + (uint64_t)(p - start), p, p > start && p[-1] == 0xf2);
		p += 2;
	}
}

static void scan_segments(struct reader *r)
{
	for (size_t i = 0; i < r->img->nsegments && r->slots.n; i++)
		if (r->img->segments[i].flags & PF_X)
			scan_segment(r, &r->img->segments[i]);
}

/* Slots that no stub leads through, once each. */
static void add_rest(struct reader *r)
{
	uint8_t *seen = xcalloc(r->slots.n + 1, 1);

	vec_for(&r->l->imports, im) {
		const struct callsite_import *s =
			bsearch(im, r->slots.v, r->slots.n, sizeof(*s), compare_slots);

		seen[s - r->slots.v] = 1;
	}
	for (size_t i = 0; i < r->slots.n; i++)
		if (!seen[i] && (!i || r->slots.v[i].slot != r->slots.v[i - 1].slot))
			*vec_push(&r->l->imports) = r->slots.v[i];
	xfree(seen);
}

static int compare_calls(const void *a, const void *b)
{
	const struct callsite_call *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static void sort_calls(struct reader *r)
{
	uint32_t *import = xcalloc(r->slots.n + 1, sizeof(*import));

	for (uint32_t i = r->l->imports.n; i-- > 0;) {
		const struct callsite_import *s = bsearch(&r->l->imports.v[i], r->slots.v,
							  r->slots.n, sizeof(*s), compare_slots);

		import[s - r->slots.v] = i;
	}
	vec_for(&r->l->calls, c)
		c->import = import[c->import];
	if (r->l->calls.n)
		qsort(r->l->calls.v, r->l->calls.n, sizeof(r->l->calls.v[0]), compare_calls);
	xfree(import);
}

/* ---- exports ---- */

static int count_symbols(const struct reader *r)
{
	int room = elf_data_entries(r->symbols, sizeof(Elf64_Sym));

	for (size_t i = 0; i < r->img->nsections; i++) {
		const struct elf_section *s = &r->img->sections[i];

		if (s->type == SHT_DYNSYM && s->vaddr == r->symtab)
			return s->size / sizeof(Elf64_Sym) < (uint64_t)room
				       ? (int)(s->size / sizeof(Elf64_Sym))
				       : room;
	}
	return room;
}

static void take_symbol(struct reader *r, int i)
{
	struct callsite_export e = {0};
	const char *file;
	GElf_Sym sym;

	if (!gelf_getsym(r->symbols, i, &sym))
		return;
	e.name = elf_strings_get(&r->names, sym.st_name);
	e.value = sym.st_value;
	e.is_ifunc = GELF_ST_TYPE(sym.st_info) == STT_GNU_IFUNC;
	if (!*e.name || !e.value || GELF_ST_BIND(sym.st_info) == STB_LOCAL ||
	    (GELF_ST_TYPE(sym.st_info) != STT_FUNC && GELF_ST_TYPE(sym.st_info) != STT_NOTYPE &&
	     !e.is_ifunc))
		return;
	if (sym.st_shndx == SHN_UNDEF) {
		*vec_push(&r->l->addresses) = e.name;
		return;
	}
	if (sym.st_shndx == SHN_ABS)
		return;
	e.version = version_of(r, i, &e.is_hidden, &file);
	*vec_push(&r->l->exports) = e;
}

static int compare_exports(const void *a, const void *b)
{
	const struct callsite_export *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : strcmp(x->version, y->version);
}

static int compare_names(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

static void read_exports(struct reader *r)
{
	int n = count_symbols(r);

	for (int i = 1; i < n && i < SYMBOLS_MAX; i++)
		take_symbol(r, i);
	if (r->l->exports.n)
		qsort(r->l->exports.v, r->l->exports.n, sizeof(r->l->exports.v[0]),
		      compare_exports);
	if (r->l->addresses.n)
		qsort(r->l->addresses.v, r->l->addresses.n, sizeof(r->l->addresses.v[0]),
		      compare_names);
}

/* ---- the dynamic segment ---- */

static void read_dynamic(struct reader *r)
{
	const struct elf_priv *priv = r->img->priv;
	uint64_t flags;

	r->l->is_symbolic = elf_dynamic(r->img, DT_SYMBOLIC, &flags) ||
			    (elf_dynamic(r->img, DT_FLAGS, &flags) && flags & DF_SYMBOLIC);
	for (size_t i = 0; i < priv->ndynamic; i++) {
		uint64_t off = priv->dynamic_off + i * sizeof(Elf64_Dyn);

		if (priv->dynamic[i].d_tag == DT_NEEDED)
			*vec_push(&r->l->needed) =
				elf_strings_get(&r->names, priv->dynamic[i].d_un.d_val);
		if (priv->dynamic[i].d_tag != DT_DEBUG)
			continue;
		for (size_t k = 0; k < r->img->nsegments; k++) {
			const struct elf_segment *s = &r->img->segments[k];

			if (off >= s->off && off - s->off < s->filesz)
				r->l->debug = off - s->off + s->vaddr + offsetof(Elf64_Dyn, d_un);
		}
	}
}

/* ---- all together ---- */

/* The dynamic string table, copied: its strings are what all names here point to. */
static bool copy_strings(struct reader *r)
{
	uint64_t strtab, size, room;
	const uint8_t *p;

	if (!elf_dynamic(r->img, DT_SYMTAB, &r->symtab) ||
	    !elf_dynamic(r->img, DT_STRTAB, &strtab) || !elf_dynamic(r->img, DT_STRSZ, &size))
		return false;
	room = elf_image_room(r->img, strtab);
	size = size < room ? size : room;
	p = elf_image_at(r->img, strtab, size);
	if (!p || !size)
		return false;
	r->names = elf_strings(r->img, (uint64_t)(p - r->img->bytes), size);
	r->l->strings = xmalloc(r->names.size + 1);
	if (r->names.size)
		memcpy(r->l->strings, r->names.v, r->names.size);
	r->names.v = r->l->strings;
	return true;
}

static struct reader begin(const struct elf_image *img)
{
	struct reader r = {.img = img, .l = xcalloc(1, sizeof(*r.l))};

	if (!copy_strings(&r))
		return r;
	if (!elf_dynamic(img, DT_VERSYM, &r.versym))
		r.versym = 0;
	read_needs(&r);
	read_definitions(&r);
	read_slots(&r);
	return r;
}

struct callsite_links *callsite_links_make_slots(const struct elf_image *img)
{
	struct reader r = begin(img);

	vec_append(&r.l->imports, &r.slots);
	vec_free(&r.versions);
	vec_free(&r.files);
	return r.l;
}

struct callsite_links *callsite_links_make(const struct elf_image *img)
{
	struct reader r = begin(img);
	struct callsite_links *l = r.l;

	if (!((const struct elf_priv *)img->priv)->ndynamic) {
		read_section_slots(&r);
		sort_slots(&r);
	}
	scan_segments(&r);
	add_rest(&r);
	sort_calls(&r);
	if (l->strings) {
		read_exports(&r);
		read_dynamic(&r);
	}
	vec_free(&r.slots);
	vec_free(&r.versions);
	vec_free(&r.files);
	return l;
}

void callsite_links_free(struct callsite_links *l)
{
	if (!l)
		return;
	vec_free(&l->imports);
	vec_free(&l->calls);
	vec_free(&l->needed);
	vec_free(&l->exports);
	vec_free(&l->addresses);
	xfree(l->strings);
	xfree(l);
}

/* ---- asking ---- */

/* The first export of this name. */
static size_t first_export(const struct callsite_links *l, const char *name)
{
	return partition_point(i, l->exports.n, strcmp(l->exports.v[i].name, name) < 0);
}

/*
 * ld.so: the very version; else one without a version, which serves every reference; a reference
 * without a version takes that, or what is not hidden.
 */
const struct callsite_export *callsite_links_find(const struct callsite_links *l, const char *name,
						  const char *version)
{
	const struct callsite_export *plain = NULL, *open = NULL;

	for (size_t i = first_export(l, name); i < l->exports.n; i++) {
		const struct callsite_export *e = &l->exports.v[i];

		if (strcmp(e->name, name))
			break;
		if (*version && !strcmp(e->version, version))
			return e;
		if (!*e->version && !e->is_hidden)
			plain = e;
		else if (!e->is_hidden)
			open = e;
	}
	return plain || *version ? plain : open;
}

/* One without a version may be in any of those that it needs. */
bool callsite_links_is_from(const struct callsite_links *l, const struct callsite_import *im,
			    bool (*is_meant)(const char *file, void *ctx), void *ctx)
{
	if (*im->file)
		return is_meant(im->file, ctx);
	for (size_t i = 0; i < l->needed.n; i++)
		if (is_meant(l->needed.v[i], ctx))
			return true;
	return false;
}

const struct callsite_import *callsite_links_slot_at(const struct callsite_links *l, uint64_t slot)
{
	const struct callsite_import key = {.slot = slot};

	return l->imports.n ? bsearch(&key, l->imports.v, l->imports.n, sizeof(key), compare_slots)
			    : NULL;
}

bool callsite_links_is_address(const struct callsite_links *l, const char *name)
{
	return l->addresses.n && bsearch(&name, l->addresses.v, l->addresses.n,
					 sizeof(l->addresses.v[0]), compare_names);
}

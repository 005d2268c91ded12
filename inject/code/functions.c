/* SPDX-License-Identifier: MIT */
/*
 * functions.c - merges what symbols and frame information say about where functions are.
 *
 *   FDEs      |--------|   |------|      |-----------|        authoritative bounds
 *   symbols   a            b,c    d(8)   e    f(local) g      names; and functions of their own
 *   result    [a      )    [b    )[d )   [e          [g       where no FDE is
 *   guesses   starts that the code gives away, where neither says much (guess.c)
 *
 * A symbol inside an FDE is an entry of its own only when it is a global function (assembly
 * with several entries: the range is cut there, and code falls from one into the next), and when
 * an instruction starts there, counted from the FDE's start: else the symbol lies.  Anything else
 * inside is a label.  Ranges never overlap.
 */
#define _GNU_SOURCE
#include "inject/code/functions.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "base/search.h"
#include "inject/elf/eh_frame.h"
#include "inject/elf/elf_image_impl.h"
#include "inject/elf/elf_symbols.h"
#include "inject/elf/go_table.h"
#include "inject/code/guess.h"
#include "inject/code/insn.h"

#define CODE_SECTIONS_MAX 64
#define LOCK_PREFIX 0xf0

struct raw_symbol {
	uint64_t value, size;
	const char *name;
	uint8_t type, bind;
	uint8_t source;
	bool is_old; /* elf_symbols.h */
};

/* All symbols of one address. */
struct symbol_group {
	uint64_t value, size;
	const char *name;
	uint32_t sources;
	bool is_ifunc, is_global, is_cold;
};

struct range {
	uint64_t start, end;
};

/* A function while it is being found. */
struct found {
	struct function f; /* but for the name */
	const char *name;  /* in a symbol table, may have "@VERSION"; NULL */
};

struct finder {
	const struct elf_image *img;
	struct eh_frame frame;
	VEC(struct found) found;
	VEC(struct raw_symbol) symbols;
	VEC(struct symbol_group) lies;
	VEC(uint64_t) addresses;
	struct range excluded[CODE_SECTIONS_MAX]; /* .plt and the like */
	size_t nexcluded;
	struct range sections[CODE_SECTIONS_MAX]; /* all with code */
	size_t nsections;
	uint32_t source; /* of the table that is being read */
};

/* ---- where functions may lie ---- */

static bool is_excluded_section(const char *name)
{
	return !strcmp(name, ".plt") || !strncmp(name, ".plt.", 5) || !strcmp(name, ".iplt") ||
	       !strcmp(name, ".init") || !strcmp(name, ".fini") ||
	       !strncmp(name, ".kron.text", 10); /* libmk: see board/libmk/fragment.am */
}

static void find_sections(struct finder *f)
{
	for (size_t i = 0; i < f->img->nsections; i++) {
		const struct elf_section *s = &f->img->sections[i];
		struct range r = {s->vaddr, s->vaddr + s->size};

		if (!(s->flags & SHF_EXECINSTR) || !(s->flags & SHF_ALLOC) || r.end <= r.start)
			continue;
		if (is_excluded_section(s->name) && f->nexcluded < CODE_SECTIONS_MAX)
			f->excluded[f->nexcluded++] = r;
		if (f->nsections < CODE_SECTIONS_MAX)
			f->sections[f->nsections++] = r;
	}
}

/*
 * Stubs of a linker are told by their section; in a file without sections by their look:
 * "jmp *slot(%rip)", perhaps after endbr64 and with a bnd prefix, or "push slot(%rip)" of the
 * first stub.  No compiler starts a function so.
 */
static bool looks_like_plt(const struct elf_image *img, uint64_t vaddr)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const uint8_t *p = elf_image_at(img, vaddr, 8);

	if (!p)
		return false;
	if (!memcmp(p, endbr64, sizeof(endbr64)))
		p += sizeof(endbr64);
	if (*p == 0xf2)
		p++;
	return p[0] == 0xff && (p[1] == 0x25 || p[1] == 0x35);
}

static bool is_excluded(const struct finder *f, uint64_t vaddr)
{
	for (size_t i = 0; i < f->nexcluded; i++)
		if (vaddr >= f->excluded[i].start && vaddr < f->excluded[i].end)
			return true;
	return !f->img->nsections && looks_like_plt(f->img, vaddr);
}

/* Where code that starts here ends at the latest. */
static uint64_t code_limit(const struct finder *f, uint64_t vaddr)
{
	uint64_t limit = vaddr + elf_image_room(f->img, vaddr);

	for (size_t i = 0; i < f->nsections; i++)
		if (vaddr >= f->sections[i].start && vaddr < f->sections[i].end &&
		    f->sections[i].end < limit)
			limit = f->sections[i].end;
	return limit;
}

static bool is_code(const struct finder *f, uint64_t vaddr)
{
	return elf_image_is_exec(f->img, vaddr) && elf_image_room(f->img, vaddr);
}

/* ---- symbols ---- */

/*
 * What GCC's crtstuff.c brings into every program: no FDE, no size, jumps from one into the
 * next.  Nobody wrote them, a stripped file does not show them, and an entry whose end is
 * unknown would stay open around all that follows.
 */
static bool is_start_file_symbol(const struct elf_symbol *sym)
{
	static const char *const names[] = {"deregister_tm_clones", "register_tm_clones",
					    "__do_global_dtors_aux", "frame_dummy"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!sym->size && sym->bind == STB_LOCAL && !strcmp(sym->name, names[i]))
			return true;
	return false;
}

/* Go's linker writes the build-id in front of the code and calls it a function. */
static bool is_go_label(const char *name)
{
	return !strcmp(name, "go.buildid") || !strcmp(name, "go:buildid");
}

/* In .symtab the version is part of the name: "cfree@GLIBC_2.2.5"; the default one has "@@". */
static bool is_old_name(const char *name)
{
	const char *at = strchr(name, '@');

	return at && at > name && at[1] != '@';
}

static bool add_symbol(const struct elf_symbol *sym, void *ctx)
{
	struct finder *f = ctx;
	struct raw_symbol *raw;

	if (sym->shndx == SHN_UNDEF || sym->shndx == SHN_ABS || sym->type == STT_TLS ||
	    !sym->value || !is_code(f, sym->value))
		return true;
	*vec_push(&f->addresses) = sym->value;
	if ((sym->type != STT_FUNC && sym->type != STT_GNU_IFUNC) || is_start_file_symbol(sym) ||
	    is_go_label(sym->name))
		return true;
	raw = vec_push(&f->symbols);
	raw->value = sym->value;
	raw->size = sym->size;
	raw->name = sym->name;
	raw->type = sym->type;
	raw->bind = sym->bind;
	raw->source = f->source;
	raw->is_old = sym->is_old || is_old_name(sym->name);
	return true;
}

static void read_symbols(struct finder *f, const struct elf_image *from, uint32_t table,
			 uint32_t source)
{
	f->source = source;
	elf_symbols_for_each(from, table, add_symbol, f);
}

static void read_go_table(struct finder *f)
{
	struct go_table t;
	struct go_function g;

	if (go_table_find(&t, f->img, NULL))
		return;
	for (uint64_t i = 0; i < t.n; i++) {
		if (!go_table_function(&t, i, &g) || !is_code(f, g.start) || is_go_label(g.name))
			continue;
		*vec_push(&f->addresses) = g.start;
		*vec_push(&f->symbols) = (struct raw_symbol){
			.value = g.start,
			.size = g.end > g.start ? g.end - g.start : 0,
			.name = g.name,
			.type = STT_FUNC,
			.bind = STB_LOCAL,
			.source = FUNCTION_GO_TABLE,
		};
	}
}

static void sort_addresses(struct finder *f)
{
	f->addresses.n = sort_uint64_once(f->addresses.v, f->addresses.n);
}

static size_t underscores(const char *name)
{
	return strspn(name, "_");
}

/* Of several names the one that people use: "read" rather than "__GI___read", "free" rather than
 * "cfree", which has gone from glibc's headers. */
static int compare_names(const struct raw_symbol *x, const struct raw_symbol *y)
{
	size_t a, b;

	if ((x->bind == STB_LOCAL) != (y->bind == STB_LOCAL))
		return x->bind == STB_LOCAL ? 1 : -1;
	a = underscores(x->name);
	b = underscores(y->name);
	if (a != b)
		return a < b ? -1 : 1;
	if (x->is_old != y->is_old)
		return x->is_old ? 1 : -1;
	return strcmp(x->name, y->name);
}

static int compare_symbols(const void *a, const void *b)
{
	const struct raw_symbol *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return compare_names(x, y);
}

/* The group that starts at symbol *i, which moves past it. */
static struct symbol_group next_group(const struct finder *f, size_t *i)
{
	const struct raw_symbol *s = &f->symbols.v[*i];
	struct symbol_group g = {.value = s->value, .is_cold = true};

	for (; *i < f->symbols.n && s->value == g.value; s++, ++*i) {
		bool cold = function_is_cold_name(s->name);

		if (*s->name && (!g.name || (g.is_cold && !cold)))
			g.name = s->name;
		if (s->size > g.size)
			g.size = s->size;
		g.sources |= s->source;
		g.is_ifunc |= s->type == STT_GNU_IFUNC;
		g.is_global |= s->bind != STB_LOCAL;
		g.is_cold &= cold;
	}
	return g;
}

/* ---- merging ---- */

static struct found *last(struct finder *f)
{
	return f->found.n ? &f->found.v[f->found.n - 1] : NULL;
}

static struct found *push(struct finder *f, uint64_t start, uint64_t end, bool has_size)
{
	struct found *prev = last(f), *new;

	if (prev && prev->f.end > start)
		prev->f.end = start;
	new = vec_push(&f->found);
	new->f.start = start;
	new->f.end = end;
	new->f.has_size = has_size;
	new->f.fde_rank = FUNCTION_NONE;
	return new;
}

/* A caller leaves a return address on the stack and every register as it was. */
static bool is_odd_start(const struct finder *f, const struct eh_fde *fde)
{
	const struct eh_row *entry = &f->frame.cies[fde->cie].initial;
	struct eh_row row = eh_frame_first_row(&f->frame, fde);

	return row.reg != entry->reg || row.offset != entry->offset || row.saved != entry->saved ||
	       row.outermost;
}

/* Length of the no-op at p, as assemblers pad with, or 0. */
static size_t nop_length(const uint8_t *p, size_t n)
{
	static const uint8_t with_mod[] = {3, 4, 7};
	size_t i = 0, len;

	while (i < n && (p[i] == 0x66 || p[i] == 0x2e))
		i++;
	if (i < n && p[i] == 0x90)
		return i + 1;
	if (n - i < 3 || p[i] != 0x0f || p[i + 1] != 0x1f || p[i + 2] >> 6 == 3)
		return 0;
	len = i + with_mod[p[i + 2] >> 6] + ((p[i + 2] & 7) == 4);
	return len <= n ? len : 0;
}

/*
 * glibc opens some FDEs before it aligns the code: the function starts after the padding.
 * Only padding up to a multiple of 16 is skipped, so that no-ops of an entry that wait to be
 * patched are kept.
 */
static uint64_t skip_padding(const struct finder *f, const struct eh_fde *fde)
{
	uint64_t pad = -fde->start & 15;
	const uint8_t *p = elf_image_at(f->img, fde->start, pad);
	size_t at = 0, len = 1;

	if (!p || pad >= fde->end - fde->start)
		return fde->start;
	while (at < pad && len) {
		len = nop_length(p + at, pad - at);
		at += len;
	}
	return at == pad ? fde->start + pad : fde->start;
}

/* next: the first symbol at or after the FDE's start. */
static void push_fde(struct finder *f, const struct eh_fde *fde, const struct raw_symbol *next)
{
	const struct found *prev = last(f);
	uint64_t start = skip_padding(f, fde);
	struct found *new;

	if (next && next->value < start)
		start = fde->start;
	if (prev && prev->f.start >= start)
		return;
	if (!is_code(f, fde->start) || elf_image_room(f->img, fde->start) < fde->end - fde->start)
		return;
	if (f->frame.cies[fde->cie].is_signal_frame || is_excluded(f, fde->start))
		return;
	new = push(f, start, fde->end, true);
	new->f.has_fde = true;
	new->f.odd_start = is_odd_start(f, fde);
	new->f.fde_rank = fde->order;
	new->f.sources = FUNCTION_EH_FRAME;
}

static void name_found(struct found *found, const struct symbol_group *g)
{
	found->name = g->name;
	found->f.sources |= g->sources;
	found->f.is_ifunc |= g->is_ifunc;
}

/* A signal return trampoline's symbol is one byte after its FDE's start. */
static bool is_in_signal_frame(const struct finder *f, uint64_t vaddr)
{
	const struct eh_fde *fde = eh_frame_at(&f->frame, vaddr);

	return fde && f->frame.cies[fde->cie].is_signal_frame;
}

static void push_symbol_function(struct finder *f, const struct symbol_group *g)
{
	uint64_t limit = code_limit(f, g->value), end = g->value + g->size;

	if (is_excluded(f, g->value) || is_in_signal_frame(f, g->value))
		return;
	if (!g->size || end < g->value || end > limit)
		end = limit;
	name_found(push(f, g->value, end, g->size > 0), g);
}

/*
 * Does an instruction of [fn, vaddr) reach over vaddr?  But code may jump over a lock prefix.
 * Where it cannot be decoded nobody knows.
 */
static bool is_inside_insn(const struct finder *f, const struct function *fn, uint64_t vaddr)
{
	uint64_t room = fn->end - fn->start;
	const uint8_t *code = elf_image_at(f->img, fn->start, room);
	uint64_t at = fn->start;
	unsigned len = 0;

	for (; code && at < vaddr; at += len) {
		const uint8_t *p = code + (at - fn->start);
		struct insn in;

		len = insn_skim(p, fn->end - at);
		if (!len && !insn_scan(&in, p, fn->end - at, at))
			return false;
		len = len ? len : in.len;
		if (at + 1 == vaddr && *p == LOCK_PREFIX)
			return false;
	}
	return code && at != vaddr;
}

static void push_symbols(struct finder *f, const struct symbol_group *g)
{
	struct found *prev = last(f);
	uint64_t end;

	if (prev && g->value == prev->f.start) {
		name_found(prev, g);
		return;
	}
	if (!prev || g->value >= prev->f.end || !prev->f.has_size) {
		push_symbol_function(f, g);
		return;
	}
	if (!g->is_global || g->is_cold)
		return;
	if (prev->f.has_fde && is_inside_insn(f, &prev->f, g->value)) {
		*vec_push(&f->lies) = *g;
		return;
	}
	end = prev->f.end;
	if (!prev->f.has_fde && g->size && g->size < end - g->value)
		end = g->value + g->size;
	prev = push(f, g->value, end, true); /* which cuts the one before */
	name_found(prev, g);
	prev->f.has_fde = prev[-1].f.has_fde;
	if (prev->f.has_fde)
		prev->f.sources |= FUNCTION_EH_FRAME;
}

static void merge(struct finder *f)
{
	size_t fde = 0, sym = 0;

	while (fde < f->frame.n || sym < f->symbols.n) {
		const struct raw_symbol *next = sym < f->symbols.n ? &f->symbols.v[sym] : NULL;

		if (fde < f->frame.n && (!next || f->frame.v[fde].start <= next->value)) {
			push_fde(f, &f->frame.v[fde++], next);
		} else {
			struct symbol_group g = next_group(f, &sym);

			push_symbols(f, &g);
		}
	}
}

/* ---- guesses, where nothing else says much ---- */

static uint64_t code_bytes(const struct finder *f)
{
	uint64_t n = 0;

	for (size_t i = 0; i < f->nsections; i++)
		n += f->sections[i].end - f->sections[i].start;
	for (size_t i = 0; i < f->nexcluded; i++)
		n -= f->excluded[i].end - f->excluded[i].start;
	for (size_t i = 0; i < f->img->nsegments && !f->nsections; i++)
		n += f->img->segments[i].flags & PF_X ? f->img->segments[i].filesz : 0;
	return n;
}

/*
 * Is a quarter of the code or more without a frame, and are there no symbols but those for the
 * linker?  Filler between functions is less than that.  Go's has its table; where that is damaged,
 * nobody is to be misled.
 */
static bool is_bare(const struct finder *f)
{
	uint64_t framed = 0;

	if (f->img->is_go)
		return false;
	for (size_t i = 0; i < f->symbols.n; i++)
		if (f->symbols.v[i].source != FUNCTION_DYNSYM)
			return false;
	for (size_t i = 0; i < f->frame.n; i++)
		framed += f->frame.v[i].end - f->frame.v[i].start;
	return framed < code_bytes(f) / 4 * 3;
}

static bool may_not_start(const void *ctx, uint64_t vaddr)
{
	return is_excluded(ctx, vaddr);
}

static struct found make_guess(const struct guess *g, uint64_t limit)
{
	return (struct found){
		.f =
			{
				.start = g->start,
				.end = g->end < limit ? g->end : limit,
				.sources = FUNCTION_GUESS,
				.has_size = g->is_whole && g->end <= limit,
				.fde_rank = FUNCTION_NONE,
			},
	};
}

/* The guesses go where they belong; they end what has no end of its own. */
static void insert_guesses(struct finder *f, const struct guesses *all)
{
	VEC(struct found) merged = {0};
	size_t old = 0, new = 0;

	while (old < f->found.n || new < all->n) {
		const struct found *o = old < f->found.n ? &f->found.v[old] : NULL;
		const struct guess *g = new < all->n ? &all->v[new] : NULL;

		if (o && (!g || o->f.start <= g->start)) {
			*vec_push(&merged) = *o;
			if (g && !o->f.has_size && g->start < o->f.end)
				merged.v[merged.n - 1].f.end = g->start;
			old++;
			continue;
		}
		new ++;
		*vec_push(&merged) =
			make_guess(g, new < all->n && (!o || all->v[new].start < o->f.start)
					      ? all->v[new].start
				      : o ? o->f.start
					  : UINT64_MAX);
	}
	vec_free(&f->found);
	f->found.v = merged.v;
	f->found.n = merged.n;
	f->found.cap = merged.cap;
}

static void guess(struct finder *f)
{
	struct guess_range *known = xcalloc(f->found.n + 1, sizeof(*known));
	struct guess_input in = {
		.img = f->img,
		.known = known,
		.nknown = f->found.n,
		.is_excluded = may_not_start,
		.ctx = f,
	};
	struct guesses all;

	for (size_t i = 0; i < f->found.n; i++) {
		const struct function *fn = &f->found.v[i].f;

		known[i].start = fn->start;
		known[i].end = fn->has_size ? fn->end : fn->start + 1;
	}
	guess_functions(&all, &in);
	if (all.n)
		insert_guesses(f, &all);
	guesses_free(&all);
	xfree(known);
}

/* ---- the result ---- */

static size_t name_length(const char *name)
{
	const char *at = strchrnul(name, '@');

	return at == name ? strlen(name) : (size_t)(at - name);
}

struct names { /* that are copied one after the other */
	char *at;
	uint64_t total;
};

static void add_length(struct names *to, const char *name)
{
	to->total += name ? name_length(name) + 1 : 0;
}

static char *copy_name(struct names *to, const char *name)
{
	size_t n = name ? name_length(name) : 0;
	char *p = to->at;

	if (!name)
		return NULL;
	memcpy(p, name, n);
	p[n] = 0;
	to->at += n + 1;
	return p;
}

/* Long names that share their bytes could make a small hostile file fill the memory. */
static void copy_names(struct functions *out, const struct finder *f, uint64_t budget)
{
	struct names names = {0};

	for (size_t i = 0; i < out->n; i++)
		add_length(&names, f->found.v[i].name);
	for (size_t i = 0; i < out->nlies; i++)
		add_length(&names, f->lies.v[i].name);
	if (!names.total || names.total > budget)
		return;
	names.at = out->strings = xmalloc(names.total);
	for (size_t i = 0; i < out->n; i++)
		out->v[i].name = copy_name(&names, f->found.v[i].name);
	for (size_t i = 0; i < out->nlies; i++)
		out->lies[i].name = copy_name(&names, f->lies.v[i].name);
}

static void mark_ifunc(uint64_t value, void *ctx)
{
	struct functions *out = ctx;
	const struct function *f = functions_at(out, value);

	if (f && f->start == value)
		out->v[f - out->v].is_ifunc = true;
}

static void finish(struct functions *out, struct finder *f, uint64_t name_budget)
{
	out->n = f->found.n;
	out->v = xcalloc(out->n, sizeof(*out->v));
	for (size_t i = 0; i < out->n; i++)
		out->v[i] = f->found.v[i].f;
	out->nlies = f->lies.n;
	out->lies = xcalloc(out->nlies, sizeof(*out->lies));
	for (size_t i = 0; i < out->nlies; i++)
		out->lies[i].vaddr = f->lies.v[i].value;
	copy_names(out, f, name_budget);
	out->symbols = f->addresses.v;
	out->nsymbols = f->addresses.n;
	elf_for_each_ifunc_resolver(f->img, mark_ifunc, out);
}

/* A file with a .symtab of its own needs no other. */
static bool has_full_symbols(const struct finder *f)
{
	for (size_t i = 0; i < f->symbols.n; i++)
		if (f->symbols.v[i].source == FUNCTION_SYMTAB)
			return true;
	return false;
}

int functions_find_with(struct functions *out, const struct elf_image *img,
			const struct functions_options *opt, struct err *err)
{
	struct finder f = {.img = img};
	const struct elf_image *debug = NULL;
	struct elf_image *data = NULL;
	uint32_t use = opt->sources ? opt->sources : FUNCTION_ALL_SOURCES;
	uint64_t name_budget = 4ull * img->size + 4096;

	(void)err;
	*out = (struct functions){0};
	find_sections(&f);
	if (use & FUNCTION_SYMTAB)
		read_symbols(&f, img, SHT_SYMTAB, FUNCTION_SYMTAB);
	if (use & FUNCTION_DEBUG_FILE && !has_full_symbols(&f))
		debug = elf_debug_file(img, opt->debug_dir);
	if (debug) {
		read_symbols(&f, debug, SHT_SYMTAB, FUNCTION_DEBUG_FILE);
		name_budget += 4ull * debug->size;
	}
	if (use & FUNCTION_DEBUGDATA && !has_full_symbols(&f) && !debug)
		data = elf_debug_data(img);
	if (data) {
		read_symbols(&f, data, SHT_SYMTAB, FUNCTION_DEBUGDATA);
		name_budget += 4ull * data->size;
	}
	if (use & FUNCTION_GO_TABLE && !f.symbols.n)
		read_go_table(&f);
	if (use & FUNCTION_DYNSYM)
		read_symbols(&f, img, SHT_DYNSYM, FUNCTION_DYNSYM);
	if (f.symbols.n)
		qsort(f.symbols.v, f.symbols.n, sizeof(*f.symbols.v), compare_symbols);
	sort_addresses(&f);
	if (use & FUNCTION_EH_FRAME)
		eh_frame_read(&f.frame, img);
	merge(&f);
	if (use & FUNCTION_GUESS && is_bare(&f))
		guess(&f);
	finish(out, &f, name_budget);
	functions_mark_parts(out, NULL);
	eh_frame_free(&f.frame);
	vec_free(&f.symbols);
	vec_free(&f.found);
	vec_free(&f.lies);
	elf_image_close(data);
	return 0;
}

int functions_find(struct functions *out, const struct elf_image *img, struct err *err)
{
	return functions_find_with(out, img, &(struct functions_options){0}, err);
}

void functions_free(struct functions *f)
{
	xfree(f->v);
	xfree(f->lies);
	xfree(f->symbols);
	xfree(f->strings);
	*f = (struct functions){0};
}

bool function_is_preempt(const char *name)
{
	return name && (!strcmp(name, "runtime.asyncPreempt") ||
			!strcmp(name, "runtime.asyncPreempt.abi0"));
}

const struct function *functions_at(const struct functions *f, uint64_t vaddr)
{
	static _Thread_local size_t last; /* the next question is mostly about the same one */
	size_t lo;

	if (last < f->n && f->v[last].start <= vaddr &&
	    (last + 1 == f->n || vaddr < f->v[last + 1].start))
		lo = last + 1;
	else
		lo = partition_point(i, f->n, f->v[i].start <= vaddr);
	if (!lo)
		return NULL;
	last = lo - 1;
	return vaddr < f->v[last].end ? &f->v[last] : NULL;
}

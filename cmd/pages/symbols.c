/* SPDX-License-Identifier: MIT */
/* symbols.c - see symbols.h.  A file is read once, as it is now. */
#include "cmd/pages/symbols.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vec.h"
#include "inject/elf/demangle.h"
#include "inject/elf/elf_symbols.h"

struct symbol {
	uint64_t start, end; /* from the module's first byte in memory */
	char *name;
	bool is_readable; /* it was asked whether it is mangled */
};

struct symbols {
	VEC(struct symbol) v; /* by start */
	uint64_t longest;
};

struct module {
	char *path;
	uint64_t base; /* vaddr of its first byte */
	struct symbols variables, functions;
};

struct pages_symbols {
	VEC(struct module) modules;
};

struct pages_symbols *pages_symbols_new(void)
{
	return xcalloc(1, sizeof(struct pages_symbols));
}

static bool take_symbol(const struct elf_symbol *s, void *ctx)
{
	struct module *m = ctx;
	struct symbols *to = s->type == STT_OBJECT ? &m->variables : &m->functions;

	if ((s->type != STT_OBJECT && s->type != STT_FUNC && s->type != STT_GNU_IFUNC) ||
	    s->shndx == SHN_UNDEF || s->shndx == SHN_ABS || !s->size || s->value < m->base ||
	    s->value + s->size < s->value)
		return true;
	*vec_push(&to->v) = (struct symbol){s->value - m->base, s->value - m->base + s->size,
					    xstrdup(s->name), false};
	if (s->size > to->longest)
		to->longest = s->size;
	return true;
}

static int by_start(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void sort(struct symbols *s)
{
	if (s->v.n)
		qsort(s->v.v, s->v.n, sizeof(s->v.v[0]), by_start);
}

static bool has_symbols(const struct module *m)
{
	return m->variables.v.n || m->functions.v.n;
}

static void read_module(struct module *m)
{
	const struct elf_image *debug;
	struct elf_image *img;
	struct err err;

	if (elf_image_open(&img, m->path, &err))
		return;
	if (img->nsegments)
		m->base = img->segments[0].vaddr - img->segments[0].off;
	elf_symbols_for_each(img, SHT_SYMTAB, take_symbol, m);
	debug = has_symbols(m) ? NULL : elf_debug_file(img, NULL);
	if (debug)
		elf_symbols_for_each(debug, SHT_SYMTAB, take_symbol, m);
	if (!has_symbols(m))
		elf_symbols_for_each(img, SHT_DYNSYM, take_symbol, m);
	elf_image_close(img);
	sort(&m->variables);
	sort(&m->functions);
}

static struct module *find_module(struct pages_symbols *s, const char *path)
{
	struct module *m;

	vec_for(&s->modules, one)
		if (!strcmp(one->path, path))
			return one;
	m = vec_push(&s->modules);
	m->path = xstrdup(path);
	read_module(m);
	return m;
}

/* The first that may reach `from`. */
static size_t first_near(const struct symbols *s, uint64_t from)
{
	const uint64_t least = from > s->longest ? from - s->longest : 0;

	return partition_point(i, s->v.n, s->v.v[i].start < least);
}

size_t pages_symbols_find(void *ctx, const char *path, uint64_t from, uint64_t to,
			  const char *names[], size_t max)
{
	const struct symbols *s = &find_module(ctx, path)->variables;
	const struct symbol *last = NULL;
	size_t n = 0;

	for (size_t i = first_near(s, from); i < s->v.n && s->v.v[i].start < to; i++) {
		const struct symbol *v = &s->v.v[i];

		if (v->end <= from || (last && last->start == v->start)) /* another name of it */
			continue;
		last = v;
		if (n < max)
			names[n] = v->name;
		n++;
	}
	return n;
}

static const char *readable(struct symbol *s)
{
	char *name = s->is_readable ? NULL : symbol_demangle(s->name);

	if (name) {
		xfree(s->name);
		s->name = name;
	}
	s->is_readable = true;
	return s->name;
}

const char *pages_symbols_function(void *ctx, const char *path, uint64_t at, uint64_t *offset)
{
	const struct symbols *s = &find_module(ctx, path)->functions;
	struct symbol *found = NULL;

	/* the innermost; of several names the one with the fewest underscores in front, which is the last */
	for (size_t i = first_near(s, at); i < s->v.n && s->v.v[i].start <= at; i++)
		if (at < s->v.v[i].end)
			found = &s->v.v[i];
	if (!found)
		return NULL;
	*offset = at - found->start;
	return readable(found);
}

static void free_symbols(struct symbols *s)
{
	vec_for(&s->v, v)
		xfree(v->name);
	vec_free(&s->v);
}

void pages_symbols_free(struct pages_symbols *s)
{
	vec_for(&s->modules, m) {
		free_symbols(&m->variables);
		free_symbols(&m->functions);
		xfree(m->path);
	}
	vec_free(&s->modules);
	xfree(s);
}

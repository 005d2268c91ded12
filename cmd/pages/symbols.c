/* SPDX-License-Identifier: MIT */
/* symbols.c - see symbols.h.  A file is read once, as it is now. */
#include "cmd/pages/symbols.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "inject/elf/elf_symbols.h"

struct variable {
	uint64_t start, end; /* from the module's first byte in memory */
	char *name;
};

struct module {
	char *path;
	uint64_t base;          /* vaddr of its first byte */
	VEC(struct variable) v; /* by start */
	uint64_t longest;
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

	if (s->type != STT_OBJECT || s->shndx == SHN_UNDEF || s->shndx == SHN_ABS || !s->size ||
	    s->value < m->base || s->value + s->size < s->value)
		return true;
	*vec_push(&m->v) = (struct variable){s->value - m->base, s->value - m->base + s->size,
					     xstrdup(s->name)};
	if (s->size > m->longest)
		m->longest = s->size;
	return true;
}

static int by_start(const void *a, const void *b)
{
	const struct variable *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return strcmp(x->name, y->name);
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
	debug = m->v.n ? NULL : elf_debug_file(img, NULL);
	if (debug)
		elf_symbols_for_each(debug, SHT_SYMTAB, take_symbol, m);
	if (!m->v.n)
		elf_symbols_for_each(img, SHT_DYNSYM, take_symbol, m);
	elf_image_close(img);
	if (m->v.n)
		qsort(m->v.v, m->v.n, sizeof(m->v.v[0]), by_start);
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
static size_t first_near(const struct module *m, uint64_t from)
{
	uint64_t least = from > m->longest ? from - m->longest : 0;
	size_t lo = 0, hi = m->v.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (m->v.v[mid].start < least)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

size_t pages_symbols_find(void *ctx, const char *path, uint64_t from, uint64_t to,
			  const char *names[], size_t max)
{
	const struct module *m = find_module(ctx, path);
	const struct variable *last = NULL;
	size_t n = 0;

	for (size_t i = first_near(m, from); i < m->v.n && m->v.v[i].start < to; i++) {
		const struct variable *v = &m->v.v[i];

		if (v->end <= from || (last && last->start == v->start)) /* another name of it */
			continue;
		last = v;
		if (n < max)
			names[n] = v->name;
		n++;
	}
	return n;
}

void pages_symbols_free(struct pages_symbols *s)
{
	vec_for(&s->modules, m) {
		vec_for(&m->v, v)
			xfree(v->name);
		vec_free(&m->v);
		xfree(m->path);
	}
	vec_free(&s->modules);
	xfree(s);
}

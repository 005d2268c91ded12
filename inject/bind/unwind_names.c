/* SPDX-License-Identifier: MIT */
/*
 * unwind_names.c - functions that run in the block and nowhere else, for a debugger's breakpoints.
 *
 *   module   f: jmp stub  xx xx xx ...  g: ...        every byte of f lies in some window
 *   block    stub of f's first window | stub | ...    f, a symbol without a size
 *
 * With a probe at every instruction control goes from stub to stub, and "break f" would wait at an
 * address that nothing comes to.  So the image that the debugger gets (unwind_elf.c) has f once more,
 * at the beginning of the stub that every call comes through.  Functions of which some instructions
 * are where they were are left out: they would be stopped at twice.
 */
#include "inject/bind/unwind.h"
#include "base/search.h"

#include <string.h>

/* The first site that does not begin before vaddr. */
static size_t site_from(const struct plan *p, uint64_t vaddr)
{
	return partition_point(i, p->nsites, p->sites[i].vaddr < vaddr);
}

/* The site at its start, if windows follow each other to its end. */
static bool is_displaced(const struct plan *p, const uint32_t *stub_at,
			 const struct plan_function *f, size_t *first)
{
	uint64_t at = f->vaddr;

	*first = site_from(p, at);
	for (size_t i = *first; at < f->vaddr + f->size; i++) {
		if (i >= p->nsites || p->sites[i].vaddr != at || !stub_at[i] ||
		    !p->sites[i].patch_len)
			return false;
		at += p->sites[i].window;
	}
	return f->size;
}

void unwind_names_add(struct unwind_names *out, const struct plan *p, const uint32_t *stub_at,
		      unwind_name_fn *fn, void *ctx)
{
	size_t first;

	*out = (struct unwind_names){0, 0};
	if (!p->nactions)
		return;
	for (size_t i = 0; i < p->nfunctions; i++) {
		const char *name = p->strings + p->functions[i].raw_name;

		if (!*name || !is_displaced(p, stub_at, &p->functions[i], &first))
			continue;
		if (fn)
			fn(ctx, name, stub_at[first]);
		out->n++;
		out->bytes += (uint32_t)strlen(name) + 1;
	}
}
